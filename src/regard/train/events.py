"""What happens now and then: log, evaluate, sample, save. Each is an action and how often."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from regard.errors import Interrupted

if TYPE_CHECKING:
    from regard.train.loop import Parts
    from regard.train.step import Report

Action = Callable[["Parts", "Report | None"], None]


@dataclass
class Every:
    """An action at each `steps`-th step, or each time so many `seconds` of the run have gone by, and `last` of all at the end.

    What an interruption cut off is made up for when the run goes on, since the progress says which step each event last completed.
    """

    name: str
    action: Action
    steps: int = 0
    seconds: float = 0.0
    last: bool = True
    _elapsed: float = field(default=-1.0, init=False)

    def due(self, parts: Parts) -> bool:
        progress = parts.progress
        if progress.step == 0 or progress.done.get(self.name) == progress.step:
            return False
        if self.last and parts.over():
            return True
        if self.seconds and self._elapsed < 0:
            self._elapsed = progress.elapsed  # the clock of this event starts with the run, or anew when the run goes on
        by_clock = bool(self.seconds) and progress.elapsed - self._elapsed >= self.seconds
        return by_clock or (self.steps > 0 and progress.step % self.steps == 0)

    def run(self, parts: Parts, report: Report | None) -> None:
        self.action(parts, report)
        parts.progress.done[self.name] = parts.progress.step
        self._elapsed = parts.progress.elapsed


class LogStep:
    """Mean loss and speed since the last line. The only place where numbers are fetched from the device each time."""

    def __init__(self):
        self.since: tuple[float, int] | None = None  # clock and target tokens at the last line

    def __call__(self, parts: Parts, report: Report | None) -> None:
        progress, now = parts.progress, time.monotonic()
        loss, tokens = parts.take_window()
        line: dict[str, float | int | None] = {"step": progress.step, "loss": loss / tokens if tokens else None}
        if report is not None:
            line |= {"norm": report.norm.item(), "rate": report.factor * parts.rate}
        if self.since is not None and now > self.since[0]:
            line["tokens_per_second"] = round((progress.target_tokens - self.since[1]) / (now - self.since[0]), 1)
        line |= {"epoch": progress.cursor.epoch, "target_tokens": progress.target_tokens, "skipped": progress.skipped}
        line |= {"elapsed": round(progress.elapsed, 3), "share": round(parts.share(), 6), "seconds_left": parts.seconds_left()}
        self.since = now, progress.target_tokens
        if parts.learner.ranks.first:
            parts.log.write(line)


class Evaluate:
    """Metrics of the model as it would be exported (averaged, if an average is kept); the best one is exported.

    `measure(check)` gives names and numbers; it calls `check` in its loops. The first rank measures, all learn the score.
    """

    def __init__(
        self,
        measure: Callable[[Callable[[], None]], Mapping[str, float]],
        *,
        score: str,
        better: Literal["higher", "lower"] = "higher",
        export: Callable[[], None] | None = None,
    ):
        self.measure, self.score, self.sign, self.export = measure, score, 1.0 if better == "higher" else -1.0, export

    def __call__(self, parts: Parts, report: Report | None) -> None:
        ranks, progress = parts.learner.ranks, parts.progress
        metrics: Mapping[str, float] = {}
        cut_off: Interrupted | None = None
        if ranks.first:
            try:
                with parts.learner.at_rest():
                    metrics = self.measure(parts.signals.check)
            except Interrupted as stop:  # the others wait for the score, and must hear of this instead
                cut_off = stop
        score, stopped = ranks.from_first(self.sign * metrics.get(self.score, 0.0), float(cut_off is not None))
        if stopped:
            raise cut_off or Interrupted("stopped with the first rank")
        progress.scores.append(score)
        progress.scored.append(progress.step)
        if ranks.first:
            parts.log.write({"step": progress.step, "event": "evaluate", **metrics, "best": progress.best == progress.step})
            if self.export is not None and progress.best == progress.step:
                with parts.learner.at_rest():
                    self.export()


class Sample:
    """A translation or two, to see the model improve: `translate()` gives (source, translation) pairs."""

    def __init__(self, translate: Callable[[], Sequence[tuple[str, str]]]):
        self.translate = translate

    def __call__(self, parts: Parts, report: Report | None) -> None:
        if parts.learner.ranks.first:
            with parts.learner.at_rest():
                pairs = self.translate()
            for source, translation in pairs:
                parts.log.write({"step": parts.progress.step, "event": "sample", "source": source, "translation": translation})


def save(parts: Parts, report: Report | None) -> None:
    """A checkpoint. Its own event counts as done inside it: going on from it begins with the next step."""
    parts.progress.done["save"] = parts.progress.step
    parts.save()
