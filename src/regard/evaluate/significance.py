"""Is one system better than another, or was it luck? Paired tests on the same sentences, for any metric that sums counts.

The statistics are those of sacreBLEU's own tests, so that p-values agree with what it prints, but for one thing: a draw that differs
exactly as much as the systems do counts against them here. Two systems that score the same are thus never told apart (sacreBLEU's
bootstrap gives identical outputs a p-value of 1 / (samples + 1)).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from regard.evaluate.measure import Metric, check

ROUNDING = 1e-9  # of a score; below it two differences are equal


@dataclass(frozen=True)
class Comparison:
    """`p_value` is the chance of so large a difference between systems that are equally good."""

    metric: str
    signature: str
    test: Literal["paired-bootstrap", "approximate-randomisation"]
    scores: tuple[float, float]
    difference: float  # first minus second
    p_value: float
    samples: int
    seed: int
    interval: tuple[float, float] | None = None  # of the difference, 95 %, bootstrap only

    def json(self) -> dict[str, Any]:
        return asdict(self)


def paired_bootstrap(
    metric: Metric,
    first: Sequence[str],
    second: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    samples: int = 1000,
    seed: int = 12345,
) -> Comparison:
    """Koehn 2004: draw as many sentences as there are, with replacement, and score both systems on the same draw.

    The p-value counts the draws whose difference is larger than the mean difference by as much as was measured, or more.
    """
    counts = _counts(metric, first, second, references)
    generator, size = np.random.default_rng(seed), len(first)
    score = _scorer(metric)
    drawn = np.empty((samples, 2))
    for number in range(samples):
        often = np.bincount(generator.integers(0, size, size=size), minlength=size)
        drawn[number] = [score(often @ each) for each in counts]
    scores = [score(each.sum(0)) for each in counts]
    spread = np.abs(drawn[:, 0] - drawn[:, 1])
    beyond = int((spread - spread.mean() >= abs(scores[0] - scores[1]) - ROUNDING).sum())
    low, high = np.percentile(drawn[:, 0] - drawn[:, 1], [2.5, 97.5]).tolist()
    return _comparison(metric, "paired-bootstrap", scores, beyond, samples, seed, references, interval=(low, high))


def approximate_randomisation(
    metric: Metric,
    first: Sequence[str],
    second: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    samples: int = 10000,
    seed: int = 12345,
) -> Comparison:
    """Riezler and Maxwell 2005: swap the two systems' outputs sentence by sentence, by coin; how often is the difference as large?"""
    one, two = _counts(metric, first, second, references)
    generator = np.random.default_rng(seed)
    score = _scorer(metric)
    scores = [score(one.sum(0)), score(two.sum(0))]
    whole, beyond = one.sum(0) + two.sum(0), 0
    for _ in range(samples):
        coins = generator.integers(2, size=len(first), dtype=bool)
        mixed = coins @ one + ~coins @ two
        beyond += abs(score(mixed) - score(whole - mixed)) >= abs(scores[0] - scores[1]) - ROUNDING
    return _comparison(metric, "approximate-randomisation", scores, beyond, samples, seed, references)


def _counts(metric: Metric, first: Sequence[str], second: Sequence[str], references: Sequence[Sequence[str]]) -> list[np.ndarray]:
    for hypotheses in (first, second):
        check(hypotheses, references)
    return [metric.counts(hypotheses, references) for hypotheses in (first, second)]


def _scorer(metric: Metric) -> Callable[[np.ndarray], float]:
    return lambda total: metric.value(total)[0]


def _comparison(metric, test, scores, beyond, samples, seed, references, *, interval=None) -> Comparison:
    """One is added on both sides, so that no finite number of samples claims certainty."""
    return Comparison(
        metric=metric.name,
        signature=metric.signature(len(references)),
        test=test,
        scores=(scores[0], scores[1]),
        difference=scores[0] - scores[1],
        p_value=(beyond + 1) / (samples + 1),
        samples=samples,
        seed=seed,
        interval=interval,
    )
