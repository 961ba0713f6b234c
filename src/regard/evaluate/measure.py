"""A metric's answer, and what every metric can say: counts for each sentence, and a score from their sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from regard.errors import DataError, UsageError

MetricName = Literal["bleu", "chrf", "chrf++", "ter", "multi-bleu", "rouge-1", "rouge-2", "rouge-l", "exact", "log-perplexity"]


@dataclass(frozen=True)
class Score:
    """One figure of a whole corpus. The signature says how it came about: figures under different signatures are not to be compared."""

    name: str
    score: float
    signature: str
    detail: dict[str, Any] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        return asdict(self)


class Metric(Protocol):
    """Counts are additive, so any choice of sentences can be scored by their sum; that is all a significance test asks for."""

    name: str

    def counts(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        """A row of numbers for each sentence."""
        ...

    def value(self, total: np.ndarray) -> tuple[float, dict[str, Any]]:
        """The score of summed counts, and its parts."""
        ...

    def signature(self, references: int) -> str: ...


def measure(metric: Metric, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Score:
    """`references` holds one or more translations of the whole corpus, each as long as the hypotheses."""
    check(hypotheses, references)
    value, detail = metric.value(metric.counts(hypotheses, references).sum(0))
    return Score(metric.name, value, metric.signature(len(references)), detail)


def check(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Lines that do not belong together are never scored."""
    if isinstance(references, str) or any(isinstance(stream, str) for stream in references):
        raise UsageError("references are given as lines", do="give a list of reference corpora, each a list of lines")
    if not references:
        raise UsageError("there is no reference to compare with", do="give at least one")
    for number, stream in enumerate(references):
        if len(stream) != len(hypotheses):
            raise DataError(
                f"{len(hypotheses)} hypotheses and {len(stream)} reference lines", where=f"reference {number + 1}", do="give line for line"
            )
    if not hypotheses:
        raise DataError("there is nothing to score", do="give at least one line")
