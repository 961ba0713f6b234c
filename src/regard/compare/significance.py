"""Are two variants different, or was it the seeds? Welch's t-test, for samples of a few."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, variance

import numpy as np

STEPS = 20_000  # of the integral; its error is far below what is printed


def welch(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The chance of so large a difference between means that are equal; unknown of fewer than two values a side."""
    if min(len(first), len(second)) < 2:
        return None
    errors = [variance(values) / len(values) for values in (first, second)]
    difference = abs(fmean(first) - fmean(second))
    if not sum(errors):
        return 0.0 if difference else 1.0
    freedom = sum(errors) ** 2 / sum(error**2 / (len(values) - 1) for error, values in zip(errors, (first, second)))
    return tails(difference / math.sqrt(sum(errors)), freedom)


def tails(t: float, freedom: float) -> float:
    """How much of Student's distribution lies beyond -t and t: with x = sqrt(freedom) tan(angle), an integral over a finite interval."""
    edge = math.atan(t / math.sqrt(freedom))
    angles = np.linspace(edge, math.pi / 2, STEPS)
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    return float(min(1.0, 2 * scale * np.trapezoid(np.cos(angles) ** (freedom - 1), angles)))
