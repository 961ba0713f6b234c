"""From scores at every place to letters (Graves 2006): repeats are one, blanks none; the best path, or the best text over its paths."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from jaxtyping import Float, Int
from torch import Tensor

BLANK = 0


@dataclass(frozen=True)
class Spelled:
    """Letters as numbers (from 1; 0 is the blank), and the logarithm of their probability."""

    letters: tuple[int, ...]
    log_prob: float


def collapse(path: Sequence[int]) -> tuple[int, ...]:
    """What a path spells: neighbours that are alike are one, then blanks are left out."""
    return tuple(letter for letter, _ in groupby(path) if letter != BLANK)


def greedy(log_probs_BPV: Float[Tensor, "B P V"], lengths: Int[Tensor, "B"]) -> list[Spelled]:
    """The text of the best path of each recording; its score is the path's own, which other paths to the same text may add to."""
    best_BP, letters_BP = log_probs_BPV.max(2)
    real_BP = torch.arange(best_BP.shape[1], device=best_BP.device) < lengths[:, None]
    scores, paths, ends = (best_BP * real_BP).sum(1).tolist(), letters_BP.tolist(), lengths.tolist()
    return [Spelled(collapse(path[:end]), score) for path, end, score in zip(paths, ends, scores)]


def prefix_beam(log_probs_PV: Float[Tensor, "P V"], *, beam: int = 8) -> list[Spelled]:
    """The likeliest texts of one recording, best first. Of each text found so far it keeps two probabilities: of all paths that end
    in a blank, and of those that end in its last letter; only the former may take that letter once more."""
    nothing = -float("inf")
    beams: dict[tuple[int, ...], tuple[float, float]] = {(): (0.0, nothing)}
    for row in log_probs_PV.double().tolist():
        grown: dict[tuple[int, ...], list[float]] = defaultdict(lambda: [nothing, nothing])
        for text, (blank, letter) in beams.items():
            kept = grown[text]
            kept[0] = _plus(kept[0], _plus(blank, letter) + row[BLANK])
            if text:
                kept[1] = _plus(kept[1], letter + row[text[-1]])
            for new, score in enumerate(row[1:], 1):
                longer = grown[(*text, new)]
                longer[1] = _plus(longer[1], (blank if text and new == text[-1] else _plus(blank, letter)) + score)
        ranked = sorted(grown.items(), key=lambda item: -_plus(*item[1]))[:beam]
        beams = {text: (blank, letter) for text, (blank, letter) in ranked}
    return [Spelled(text, _plus(*scores)) for text, scores in beams.items() if max(scores) > nothing]


def _plus(first: float, second: float) -> float:
    """log(exp(first) + exp(second))."""
    high, low = max(first, second), min(first, second)
    return high if low == -float("inf") else high + math.log1p(math.exp(low - high))
