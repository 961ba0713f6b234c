"""Learning-rate schedules: pure functions of where training stands, giving the factor by which the optimiser's rate is multiplied."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, assert_never


@dataclass(frozen=True)
class Noam:
    """D^-0.5 min(step^-0.5, step warmup^-1.5): the paper's, which wants the optimiser's rate to be 1."""

    kind: ClassVar[Literal["noam"]] = "noam"
    warmup: int = 4000
    "Steps until the peak."


@dataclass(frozen=True)
class InverseSqrt:
    """Up in a line to 1, then down as sqrt(warmup / step)."""

    kind: ClassVar[Literal["inverse-sqrt"]] = "inverse-sqrt"
    warmup: int = 4000
    "Steps until the peak."


@dataclass(frozen=True)
class Cosine:
    """Up in a line to 1, then down along half a cosine until the end of the run."""

    kind: ClassVar[Literal["cosine"]] = "cosine"
    warmup: float = 0.05
    "Steps until the peak; below 1, a share of the run."
    floor: float = 0.0
    "The factor at the end."


@dataclass(frozen=True)
class Linear:
    """Up in a line to 1, then down in a line until the end of the run."""

    kind: ClassVar[Literal["linear"]] = "linear"
    warmup: float = 0.05
    "Steps until the peak; below 1, a share of the run."
    floor: float = 0.0
    "The factor at the end."


@dataclass(frozen=True)
class WarmupStableDecay:
    """Up in a line to 1, level, then down in the last share of the run, as 1 - sqrt."""

    kind: ClassVar[Literal["warmup-stable-decay"]] = "warmup-stable-decay"
    warmup: float = 0.02
    "Steps until the peak; below 1, a share of the run."
    decay: float = 0.2
    "The share of the run in which it falls."
    floor: float = 0.0
    "The factor at the end."


@dataclass(frozen=True)
class Constant:
    """Up in a line to 1, then level."""

    kind: ClassVar[Literal["constant"]] = "constant"
    warmup: int = 0
    "Steps until the peak."


@dataclass(frozen=True)
class Plateau:
    """Up in a line to 1, then multiplied by `factor` whenever evaluations have brought nothing better for a while."""

    kind: ClassVar[Literal["plateau"]] = "plateau"
    warmup: int = 0
    "Steps until the peak."
    patience: int = 3
    "Evaluations without a better score that are forgiven."
    factor: float = 0.5
    "What the rate is multiplied by after that."
    floor: float = 0.0
    "It falls no lower than this."


Schedule = Noam | InverseSqrt | Cosine | Linear | WarmupStableDecay | Constant | Plateau


def factor(schedule: Schedule, step: int, *, share: float = 0.0, width: int = 512, scores: Sequence[float] = ()) -> float:
    """The factor of update `step` (the first is 1). `share` of the run is behind us (0 to 1: by steps, epochs or the clock);
    `width` is the model's D; `scores` are those of the evaluations so far, the higher the better."""
    match schedule:
        case Noam(warmup):
            return width**-0.5 * min(step**-0.5, step * max(1, warmup) ** -1.5)
        case InverseSqrt(warmup):
            return min(step / max(1, warmup), math.sqrt(max(1, warmup) / step))
        case Constant(warmup):
            return _ascent(step, warmup)
        case Plateau(warmup, patience, cut, floor):
            return _ascent(step, warmup) * max(floor, cut ** falls(scores, patience))
        case Cosine(warmup, floor):
            up, down = _phases(warmup, step, share)
            return up * (floor + (1 - floor) * (1 + math.cos(math.pi * down)) / 2)
        case Linear(warmup, floor):
            up, down = _phases(warmup, step, share)
            return up * (floor + (1 - floor) * (1 - down))
        case WarmupStableDecay(warmup, decay, floor):
            up, _ = _phases(warmup, step, share)
            level = 1 - decay
            down = max(0.0, share - level) / (1 - level) if decay else 0.0
            return up * (floor + (1 - floor) * (1 - math.sqrt(down)))
        case _:
            assert_never(schedule)


def falls(scores: Sequence[float], patience: int) -> int:
    """How many times more than `patience` evaluations in a row brought no better score; each fall begins the count anew."""
    best, waited, count = -math.inf, 0, 0
    for score in scores:
        if score > best:
            best, waited = score, 0
        else:
            waited += 1
            if waited > patience:
                count, waited = count + 1, 0
    return count


def _ascent(step: int, warmup: float) -> float:
    return min(1.0, step / warmup) if warmup else 1.0


def _phases(warmup: float, step: int, share: float) -> tuple[float, float]:
    """How far the rise has come, and how far the fall after it, each from 0 to 1.

    A warm-up in steps ends at a share of the run that is known only if the run is measured in steps; step / share is how many
    there will be, as far as one can tell now, and exactly so in that case.
    """
    if warmup >= 1:
        up = min(1.0, step / warmup)
        peak = min(1.0, warmup * share / step)
    else:
        peak = warmup
        up = min(1.0, share / warmup) if warmup else 1.0
    if share >= 1:
        return up, 1.0
    return up, max(0.0, (share - peak) / (1 - peak)) if peak < 1 else 0.0
