"""What the rows of a search have written so far: tokens, their log-probabilities and, when asked for, where each one looked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decode.state import Marks, Step

NOTHING = -1  # stands where no token is, so that it equals no token
LEAST = -1e9  # a log-probability of minus infinity from the model; kept apart from what the rules forbid


@dataclass(frozen=True)
class Job:
    """One source to be decoded, and what is asked of its targets; lengths count tokens without the end mark."""

    source: tuple[int, ...]
    limit: int
    minimum: int = 0
    prefix: tuple[int, ...] = ()
    number: int = 0  # its place in the input: the randomness of a sample hangs on it, and on nothing of its neighbours

    def __post_init__(self):
        object.__setattr__(self, "limit", max(self.limit, len(self.prefix)))


@dataclass(frozen=True)
class Hypothesis:
    """A finished target. `log_probs` are the model's own, end mark included; `score` is what the search ranked it by."""

    tokens: tuple[int, ...]  # without marks
    log_probs: tuple[float, ...]
    score: float
    full: bool  # as long as was allowed, so probably cut short
    attention: Float[Tensor, "T S"] | None = None

    @property
    def log_prob(self) -> float:
        return sum(self.log_probs)


class Written:
    """Rows = slots x beam. A row is running, ended, or empty (it has lost its place and waits for another)."""

    def __init__(self, slots: int, beam: int, *, jobs: Sequence[Job], marks: Marks, device: torch.device, attention: bool):
        """`jobs` are all those that will come, so that everything but the length is known beforehand."""
        rows = slots * beam
        self.slots, self.beam, self.marks, self.device = slots, beam, marks, device
        self.jobs: list[Job | None] = [None] * slots
        self.steps = [0] * slots  # since its job began: the length of every row of a slot that is still running
        self.width = max(len(job.source) for job in jobs)
        self.tokens: Int[Tensor, "R L"] = torch.full((rows, 0), NOTHING, device=device)
        self.log_probs: Float[Tensor, "R L"] = torch.zeros(rows, 0, device=device)
        self.attention = torch.zeros(rows, 0, self.width, device=device) if attention else None
        self.lengths: Int[Tensor, "R"] = torch.zeros(rows, dtype=torch.long, device=device)
        self.totals: Float[Tensor, "R"] = torch.zeros(rows, device=device)
        self.running: Bool[Tensor, "R"] = torch.zeros(rows, dtype=torch.bool, device=device)
        self.ended: Bool[Tensor, "R"] = torch.zeros(rows, dtype=torch.bool, device=device)
        self.limits, self.minimums = torch.zeros_like(self.lengths), torch.zeros_like(self.lengths)
        self.prefixes = torch.full((rows, max(len(job.prefix) for job in jobs)), NOTHING, device=device)

    def begin(self, slots: Sequence[int], jobs: Sequence[Job | None]) -> None:
        """Empty the rows of these slots for these jobs; a slot without a job rests."""
        rows = self.rows(slots)
        busy = torch.tensor([job is not None for job in jobs], device=self.device).repeat_interleave(self.beam)
        for values, empty in ((self.tokens, NOTHING), (self.log_probs, 0), (self.lengths, 0), (self.totals, 0), (self.ended, False)):
            values[rows] = empty
        self.running[rows] = busy
        if self.attention is not None:
            self.attention[rows] = 0
        asked = [job or Job((), 0) for job in jobs]
        self.limits[rows] = self._each([job.limit for job in asked])
        self.minimums[rows] = self._each([job.minimum for job in asked])
        prefixes = [list(job.prefix) + [NOTHING] * (self.prefixes.shape[1] - len(job.prefix)) for job in asked]
        self.prefixes[rows] = self._each(prefixes)
        for slot, job in zip(slots, jobs, strict=True):
            self.jobs[slot], self.steps[slot] = job, 0

    def reserve(self, length: int) -> None:
        """Room for rows of this length; doubled, so that it is seldom made."""
        more = max(length, 2 * self.tokens.shape[1], 16) - self.tokens.shape[1]
        if length > self.tokens.shape[1]:
            self.tokens = F.pad(self.tokens, (0, more), value=NOTHING)
            self.log_probs = F.pad(self.log_probs, (0, more))
            if self.attention is not None:
                self.attention = F.pad(self.attention, (0, 0, 0, more))

    def follow(self, rows: Int[Tensor, "R"]) -> None:
        """Row r takes over what row rows[r] has written, of the same slot."""
        self.tokens, self.log_probs = self.tokens[rows], self.log_probs[rows]
        self.lengths, self.totals = self.lengths[rows], self.totals[rows]
        if self.attention is not None:
            self.attention = self.attention[rows]

    def append(self, tokens: Int[Tensor, "R"], log_probs: Float[Tensor, "R"], *, where: Bool[Tensor, "R"], step: Step) -> None:
        """One more token for the rows of `where`; `step` has the rows as they lie now. The end mark ends a row."""
        rows = torch.arange(len(tokens), device=self.device)
        columns = self.lengths.clamp_max(self.tokens.shape[1] - 1)
        self.tokens[rows, columns] = torch.where(where, tokens, self.tokens[rows, columns])
        self.log_probs[rows, columns] = torch.where(where, log_probs, self.log_probs[rows, columns])
        if self.attention is not None:
            assert step.attention is not None
            seen = F.pad(step.attention, (0, self.width - step.attention.shape[1]))
            self.attention[rows, columns] = torch.where(where[:, None], seen, self.attention[rows, columns])
        self.totals = torch.where(where, self.totals + log_probs, self.totals)
        self.steps = [steps + 1 for steps in self.steps]
        self.lengths = self.lengths + where
        self.ended = self.ended | (where & (tokens == self.marks.end))
        self.running = where & (tokens != self.marks.end)

    def read(self, slot: int, scores: Sequence[float], *, count: int) -> list[Hypothesis]:
        """The ended rows of this slot, best first; of equals the one that ended first. `scores` has one for each row of the slot."""
        job = self.jobs[slot]
        assert job is not None
        rows = range(slot * self.beam, (slot + 1) * self.beam)
        lengths, ended = self.lengths[rows.start : rows.stop].tolist(), self.ended[rows.start : rows.stop].tolist()
        order = sorted((k for k in range(self.beam) if ended[k]), key=lambda k: (-scores[k], lengths[k], k))
        hypotheses = []
        for k in order[:count]:
            row, length = rows[k], lengths[k]
            attention = None if self.attention is None else self.attention[row, :length, : len(job.source)].to("cpu", copy=True)
            hypotheses.append(
                Hypothesis(
                    tokens=tuple(self.tokens[row, : length - 1].tolist()),
                    log_probs=tuple(self.log_probs[row, :length].tolist()),
                    score=scores[k],
                    full=length - 1 >= job.limit,
                    attention=attention,
                )
            )
        return hypotheses

    def rows(self, slots: Sequence[int]) -> Int[Tensor, "n"]:
        return torch.tensor([slot * self.beam + k for slot in slots for k in range(self.beam)], device=self.device)

    def _each(self, values: list) -> Tensor:
        """A value a slot, laid out for its rows."""
        return torch.tensor(values, dtype=torch.long, device=self.device).repeat_interleave(self.beam, dim=0)
