"""ROUGE-1, 2 and L: how much of the reference's words, pairs of words, or words in order are there (Lin 2004); the mean over sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np


class Rouge:
    """Precision, recall and F1 for each sentence; of several references the best counts. Words as in the rouge-score package, no stemming:

    lower case, runs of a to z and 0 to 9. An accented letter separates words, which makes the metric one for English.
    """

    name: str

    def overlap(self, hypothesis: list[str], reference: list[str]) -> tuple[int, int, int]:
        """What is shared, and how much of it there might be in either."""
        raise NotImplementedError

    def counts(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        pairs = zip(hypotheses, *references, strict=True)
        return np.array([max((self._sentence(text, each) for each in rest), key=lambda found: found[2]) for text, *rest in pairs])

    def value(self, total: np.ndarray) -> tuple[float, dict[str, Any]]:
        precision, recall, f1, sentences = total.tolist()
        return 100 * f1 / sentences, {"precision": 100 * precision / sentences, "recall": 100 * recall / sentences}

    def signature(self, references: int) -> str:
        return f"{self.name}|nrefs:{references}|case:lc|tok:a-z0-9|stemmer:no|mean:sentences"

    def _sentence(self, hypothesis: str, reference: str) -> tuple[float, float, float, int]:
        """Precision, recall, their harmonic mean, and 1 for the sentence."""
        shared, ours, theirs = self.overlap(words(hypothesis), words(reference))
        if not shared:
            return 0.0, 0.0, 0.0, 1
        precision, recall = shared / ours, shared / theirs
        return precision, recall, 2 * precision * recall / (precision + recall), 1


class RougeL(Rouge):
    """By the longest common subsequence."""

    name = "rouge-l"

    def overlap(self, hypothesis, reference):
        return common(reference, hypothesis), len(hypothesis), len(reference)


class RougeN(Rouge):
    """By runs of so many words."""

    def __init__(self, size: int):
        self.name, self.size = f"rouge-{size}", size

    def overlap(self, hypothesis, reference):
        ours, theirs = grams(hypothesis, self.size), grams(reference, self.size)
        return (ours & theirs).total(), ours.total(), theirs.total()


def grams(found: Sequence[str], size: int) -> Counter[tuple[str, ...]]:
    """How often each run of so many words is there."""
    return Counter(zip(*(found[start:] for start in range(size))))


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
