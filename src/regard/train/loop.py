"""Training, as a page: steps, and what happens between them, until the budget is spent or somebody asks to stop."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from regard.data.batch import Batch
from regard.data.batching import Cursor
from regard.errors import Interrupted, RegardError
from regard.models.tensors import restore, state_of
from regard.train.checkpoint import Checkpoints, Origin, Snapshot, check_origin
from regard.train.events import Every
from regard.train.feed import Stream, steps
from regard.train.log import Log
from regard.train.progress import Progress
from regard.train.schedule import Schedule, factor
from regard.train.segments import Left
from regard.train.signals import Signals
from regard.train.step import Learner, Report


@dataclass(frozen=True)
class Budget:
    """When a run is over: at the first limit that is reached. 0 = no such limit."""

    steps: int = 0
    epochs: float = 0.0
    seconds: float = 0.0
    patience: int = 0  # evaluations in a row without a better score
    batches_in_epoch: int = 1  # of one rank; needed where epochs count


@dataclass
class Parts:
    """All that training is made of; run.py puts it together from the configuration."""

    learner: Learner
    batches: Stream
    schedule: Schedule
    budget: Budget
    checkpoints: Checkpoints
    log: Log
    events: Sequence[Every] = ()
    signals: Signals = field(default_factory=Signals)
    origin: Origin = Origin()
    accumulate: int = 1
    bad_steps: int = 10
    rate: float = 1.0  # the optimiser's, to log factor x rate
    width: int = 512  # the model's D, for Noam
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self):
        self.began = time.monotonic()
        self.window = torch.zeros(2, dtype=torch.float64, device=self.learner.machine.device)
        self.stopped = False

    def share(self, *, ahead: int = 0) -> float:
        """How much of the run is behind us, 0 to 1, `ahead` steps from now: the largest of what its limits say."""
        budget, progress = self.budget, self.progress
        by_steps = (progress.step + ahead) / (budget.steps + ahead) if budget.steps else 0.0
        by_clock = progress.elapsed / budget.seconds if budget.seconds else 0.0
        epochs = progress.cursor.epoch + progress.cursor.batch / budget.batches_in_epoch
        return min(1.0, max(by_steps, by_clock, epochs / budget.epochs if budget.epochs else 0.0))

    def over(self) -> bool:
        worn_out = self.budget.patience > 0 and self.progress.since_best >= self.budget.patience
        return worn_out or self.share() >= 1

    def seconds_left(self) -> float | None:
        share = self.share()
        return round(self.progress.elapsed * (1 - share) / share, 1) if share > 0 else None

    def take_window(self) -> tuple[float, float]:
        """Loss and target tokens since this was last asked."""
        loss, tokens = self.window.tolist()
        self.window.zero_()
        return loss, tokens

    def save(self) -> bool:
        """A checkpoint, written by the first rank; False if the disk would not have it."""
        judge(self, all=True)
        learner = self.learner
        self.progress.window = self.window.tolist()
        saved, failed = True, None
        if learner.ranks.first:
            tensors = {"model": state_of(learner.model), "optimiser": learner.optimiser.state()}
            if learner.average is not None:
                tensors["average"] = learner.average.average
            if learner.left is not None:
                tensors["left"] = learner.left.tensors()
            try:
                saved = self.checkpoints.save(Snapshot(tensors, self.progress, self.origin))
            except Interrupted as error:  # the disk failed too often: all ranks must hear of it
                failed = error
        if learner.ranks.any(failed is not None)[0]:
            self.stopped = True
            raise failed or Interrupted("saving failed on the first rank")
        return saved

    def resume(self, *, force: bool = False) -> bool:
        """Go on from the newest sound checkpoint; False if there is none. `force`: even with another configuration or other data."""
        if (snapshot := self.checkpoints.load()) is None:
            return False
        where = str(self.checkpoints.place)
        if not force:
            check_origin(snapshot.origin, self.origin, where=where)
        learner = self.learner
        restore(learner.model, snapshot.tensors["model"], where=where)
        learner.optimiser.restore(snapshot.tensors["optimiser"])
        if learner.average is not None and "average" in snapshot.tensors:
            learner.average.restore(snapshot.tensors["average"])
        if "left" in snapshot.tensors:
            learner.left = Left.of(snapshot.tensors["left"], device=learner.machine.device)
        self.progress = snapshot.progress
        self.window.copy_(torch.tensor(self.progress.window, dtype=torch.float64))
        return True


def train(parts: Parts) -> Progress:
    """Train until the budget is spent. A signal ends it after the step at hand, saved, with Interrupted."""
    learner, progress, ranks = parts.learner, parts.progress, parts.learner.ranks
    parts.began = time.monotonic() - progress.elapsed
    parts.log.begin(after=progress.step)
    try:
        with contextlib.closing(steps(parts.batches, progress.cursor, accumulate=parts.accumulate, device=learner.machine.device)) as feed:
            happen(parts, None)  # what an interruption had cut off
            while not parts.over():
                batches, cursor = next(feed)
                report = optimise(parts, batches, cursor)
                happen(parts, report)
    except Interrupted as stop:
        if parts.stopped or progress.step == 0:  # nothing can be saved, or there is nothing to save
            raise
        while not parts.save():  # a full disk is tried again until Checkpoints gives up
            time.sleep(1)
        raise Interrupted(f"{stop.what}, saved at step {progress.step}", where=stop.where, do="go on with --resume") from stop
    ranks.wait()
    return progress


def optimise(parts: Parts, batches: Sequence[Batch], cursor: Cursor) -> Report:
    """One step, and the counts that come of it."""
    progress = parts.progress
    rate = factor(parts.schedule, progress.updates + 1, share=parts.share(ahead=1), width=parts.width, scores=progress.scores)
    report = parts.learner.step(batches, step=progress.step + 1, updates=progress.updates, factor=rate)
    progress.step += 1
    progress.cursor = cursor
    progress.source_tokens += report.source_tokens
    progress.target_tokens += report.target_tokens
    progress.pairs += report.pairs
    (progress.elapsed,) = parts.learner.ranks.from_first(time.monotonic() - parts.began)
    seen = torch.stack([report.loss.double(), torch.full_like(report.loss, report.target_tokens, dtype=torch.float64)])
    parts.window += torch.where(report.bad > 0, 0.0, seen)
    judge(parts)
    return report


def happen(parts: Parts, report: Report | None) -> None:
    """The events that are due, and the wish to stop, on which all ranks agree."""
    for event in parts.events:
        if event.due(parts):
            event.run(parts, report)
    if parts.learner.ranks.any(bool(parts.signals.asked))[0]:
        raise Interrupted(f"stopped by {parts.signals.asked or 'a signal to another rank'}")


def judge(parts: Parts, *, all: bool = False) -> None:
    """Count the bad steps and name their pairs; too many in a row end the run, since they will not become better by themselves."""
    progress = parts.progress
    for verdict in parts.learner.verdicts(all=all):
        if not verdict.bad:
            progress.bad_in_a_row = 0
            continue
        progress.skipped += 1
        progress.bad_in_a_row += 1
        pairs = parts.learner.ranks.gather(verdict.pairs)
        if parts.learner.ranks.first:
            parts.log.write({"step": verdict.step, "event": "skipped", "reason": "loss or gradient not finite", "pairs": pairs})
        if progress.bad_in_a_row >= parts.bad_steps:
            parts.stopped = True
            raise RegardError(
                f"{progress.bad_in_a_row} steps in a row had no finite loss and gradient",
                where=f"step {verdict.step}",
                do="lower the learning rate, lengthen the warm-up, or look at the pairs that log.jsonl names",
            )
