"""ROUGE-L: how much of the reference's words come in the reference's order (Lin 2004), for each sentence by itself, then the mean."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np


class RougeL:
    """The F1 of the longest common subsequence; of several references the best counts. Words as in the rouge-score package, no stemming:

    lower case, runs of a to z and 0 to 9. An accented letter separates words, which makes the metric one for English.
    """

    name = "rouge-l"

    def counts(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        pairs = zip(hypotheses, *references, strict=True)
        return np.array([max((_overlap(words(text), words(each)) for each in rest), key=lambda found: found[2]) for text, *rest in pairs])

    def value(self, total: np.ndarray) -> tuple[float, dict[str, Any]]:
        precision, recall, f1, sentences = total.tolist()
        return 100 * f1 / sentences, {"precision": 100 * precision / sentences, "recall": 100 * recall / sentences}

    def signature(self, references: int) -> str:
        return f"rouge-l|nrefs:{references}|case:lc|tok:a-z0-9|stemmer:no|mean:sentences"


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def common(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest common subsequence."""
    row = [0] * (len(second) + 1)
    for word in first:
        diagonal = 0
        for place, other in enumerate(second, start=1):
            diagonal, row[place] = row[place], diagonal + 1 if word == other else max(row[place], row[place - 1])
    return row[-1]


def _overlap(hypothesis: list[str], reference: list[str]) -> tuple[float, float, float, int]:
    """Precision, recall, their harmonic mean, and 1 for the sentence."""
    shared = common(reference, hypothesis)
    if not shared:
        return 0.0, 0.0, 0.0, 1
    precision, recall = shared / len(hypothesis), shared / len(reference)
    return precision, recall, 2 * precision * recall / (precision + recall), 1
