"""How often an answer is right, and how far letters are from the right ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
