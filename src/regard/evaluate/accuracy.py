"""How often an answer is right, and how far letters are from the right ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.evaluate.edits import error_rate
from regard.evaluate.measure import Score


def accuracy(found: Sequence[str], right: Sequence[str]) -> Score:
    """Percent of the answers that are right, with the standard error of that share."""
    share = sum(one == other for one, other in zip(found, right, strict=True)) / max(1, len(right))
    error = math.sqrt(share * (1 - share) / max(1, len(right)))
    return Score("accuracy", 100 * share, f"accuracy|n:{len(right)}", {"standard_error": 100 * error})


def letter_errors(found: Sequence[str], right: Sequence[str]) -> Score:
    """Letters to put in, take out or change, for each hundred of the right ones."""
    return Score("cer", error_rate(found, right), f"cer|n:{len(right)}|letters:{sum(map(len, right))}")


class Exact:
    """Percent of the lines that are the reference, letter for letter but for the spaces around; of several references one is enough."""

    name = "exact"

    def __init__(self, *, lowercase: bool = False):
        self.lowercase = lowercase

    def counts(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        lines = zip(hypotheses, *references, strict=True)
        return np.array([[self._plain(text) in map(self._plain, wanted), 1] for text, *wanted in lines], dtype=float)

    def value(self, total: np.ndarray) -> tuple[float, dict[str, Any]]:
        right, lines = total.tolist()
        return 100 * right / lines, {}

    def signature(self, references: int) -> str:
        return f"exact|nrefs:{references}|case:{'lc' if self.lowercase else 'mixed'}"

    def _plain(self, text: str) -> str:
        return text.strip().lower() if self.lowercase else text.strip()
