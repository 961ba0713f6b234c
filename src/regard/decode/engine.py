"""Continuous batching: sources wait in a queue, longest first, and a slot whose source has ended takes the next one."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, assert_never

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.decode.beam import Beam, BeamSearch
from regard.decode.constrain import Constraint
from regard.decode.draft import Hypothesis, Job, Written
from regard.decode.sample import Greedy, Sample, Walk
from regard.decode.state import Marks, OpenStepper, Step
from regard.errors import ModelError

Search = Greedy | Sample | Beam


class Searching(Protocol):
    """A search under way: begin some slots, take a step's answer to the next tokens (and whom each row follows), say who is done."""

    def begin(self, slots: Sequence[int], jobs: Sequence[Job | None]) -> None: ...
    def advance(self, step: Step) -> tuple[Int[Tensor, "R"], Int[Tensor, "R"] | None]: ...
    def done(self) -> Bool[Tensor, "N"]: ...
    def collect(self, slot: int) -> list[Hypothesis]: ...


@dataclass(frozen=True)
class Room:
    """How much is decoded at once."""

    rows: int = 256
    """Targets side by side; a beam of 4 leaves a quarter as many sources."""
    tokens: int = 65536
    """Source and target tokens side by side, so that long sources get fewer rows."""
    refill: float = 0.125
    """The share of slots that must be free before new sources come in: they are encoded together."""

    def slots(self, search: Search, job: Job) -> int:
        """How many sources like this one fit."""
        rows = min(self.rows, self.tokens // (len(job.source) + job.limit + 1))
        return max(1, rows // search.rows)


@dataclass(frozen=True)
class Moment:
    """One step of a search, for those who watch: what the model answered, which row each row follows, what it wrote, whose row it is."""

    step: Step
    rows: Int[Tensor, "R"] | None
    tokens: Int[Tensor, "R"]
    jobs: tuple[Job | None, ...]


def decode(
    open_stepper: OpenStepper,
    jobs: Sequence[Job],
    *,
    search: Search,
    constraints: Sequence[Constraint] = (),
    marks: Marks = Marks(),  # noqa: B008 (frozen)
    room: Room = Room(),
    attention: bool = False,
    watch: Callable[[Moment], None] | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses of each job, best first, in the order of the jobs; what is beside a job in the batch changes nothing about them."""
    answers: list[list[Hypothesis]] = [[] for _ in jobs]
    looks = attention or (isinstance(search, Beam) and search.coverage > 0)
    for group in groups(jobs, search, room):
        run = _Run(open_stepper, group, search, constraints=constraints, marks=marks, room=room, attention=looks, watch=watch)
        for number, found in run.finish():
            answers[number] = found if attention else [replace(one, attention=None) for one in found]
    return answers


def groups(jobs: Sequence[Job], search: Search, room: Room) -> Iterator[list[tuple[int, Job]]]:
    """Jobs of like length, longest first, each with its place: a new group where sources have become half as long and fill a batch."""
    group: list[tuple[int, Job]] = []
    for number in sorted(range(len(jobs)), key=lambda number: -len(jobs[number].source)):
        if group:
            longest = group[0][1]
            if 2 * len(jobs[number].source) <= len(longest.source) and len(group) >= room.slots(search, longest):
                yield group
                group = []
        group.append((number, jobs[number]))
    if group:
        yield group


class _Run:
    """One group through one stepper."""

    def __init__(self, open_stepper, group, search, *, constraints, marks, room, attention, watch):
        self.queue, self.marks, self.watch = deque(group), marks, watch
        self.slots = min(len(group), room.slots(search, group[0][1]))
        self.free_enough = max(1, math.ceil(room.refill * self.slots))
        jobs = [job for _, job in group]
        self.capacity = max(job.limit for job in jobs) + 1
        with torch.inference_mode():
            self.stepper = open_stepper(slots=self.slots, beam=search.rows, capacity=self.capacity, attention=attention)
            self.written = Written(self.slots, search.rows, jobs=jobs, marks=marks, device=self.stepper.device, attention=attention)
        self.searching: Searching = _start(search, self.written, constraints)
        self.numbers: list[int | None] = [None] * self.slots  # which job is in a slot
        self.tokens: Tensor = torch.full((self.slots * search.rows,), marks.begin, device=self.stepper.device)

    @torch.inference_mode()
    def finish(self) -> list[tuple[int, list[Hypothesis]]]:
        found: list[tuple[int, list[Hypothesis]]] = []
        while self.queue or any(number is not None for number in self.numbers):
            self.admit()
            step = self.stepper.step(self.tokens)
            self.written.reserve(max(self.written.steps) + 1)
            self.tokens, rows = self.searching.advance(step)
            if self.watch is not None:
                self.watch(Moment(step, rows, self.tokens, tuple(self.written.jobs)))
            if rows is not None:
                self.stepper.reorder(rows)
            for slot, done in enumerate(self.searching.done().tolist()):
                number = self.numbers[slot]
                if done and number is not None:
                    found.append((number, _sound(self.searching.collect(slot))))
                    self.numbers[slot] = self.written.jobs[slot] = None
        return found

    def admit(self) -> None:
        """Fill free slots from the queue. A stepper gets no more steps than its capacity, so a slot that rests starts again in time."""
        free = [slot for slot in range(self.slots) if self.numbers[slot] is None]
        if self.stepper.continuous:
            due = free if self.queue and len(free) >= self.free_enough else []
            due = due or [slot for slot in free if self.written.steps[slot] >= self.capacity]
        else:
            due = free if len(free) == self.slots else []
        if not due:
            return
        taken = [self.queue.popleft() if self.queue else None for _ in due]
        jobs = [job for _, job in filter(None, taken)] + [None] * taken.count(None)
        for slot, entry in zip(due, taken, strict=True):
            self.numbers[slot] = entry[0] if entry else None
        self.stepper.admit(due, [job.source if job else (self.marks.end,) for job in jobs])
        self.written.begin(due, jobs)
        self.searching.begin(due, jobs)
        self.tokens[self.written.rows(due)] = self.marks.begin


def _start(search: Search, written: Written, constraints: Sequence[Constraint]) -> Searching:
    match search:
        case Greedy() | Sample():
            return Walk(search, written, constraints)
        case Beam():
            return BeamSearch(search, written, constraints)
        case _:
            assert_never(search)


def _sound(found: list[Hypothesis]) -> list[Hypothesis]:
    if not found or any(math.isnan(one.score) for one in found):
        raise ModelError("the model's output is not a number", do="look at its parameters, or decode in a higher precision")
    return found
