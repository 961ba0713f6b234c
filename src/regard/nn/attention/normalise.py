"""From scores to weights, row by row. A row that may see nothing gets zeros in every one of them, and zero gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.errors import UsageError

Scores = Float[Tensor, "B H T S"]
Allowed = Bool[Tensor, "#B #H #T #S"]


@dataclass(frozen=True)
class Softmax:
    """exp(score), divided by its sum."""

    kind: ClassVar[Literal["softmax"]] = "softmax"

    def weights(self, scores_BHTS: Scores, allowed_BHTS: Allowed) -> Scores:
        scores_BHTS = scores_BHTS.masked_fill(~allowed_BHTS, -torch.inf)
        top = scores_BHTS.detach().amax(-1, keepdim=True)
        exponentials = (scores_BHTS - top.masked_fill(top == -torch.inf, 0)).exp()
        return _divided(exponentials)


@dataclass(frozen=True)
class Sparsemax:
    """The nearest point of the simplex (Martins 2016): weights may be exactly zero."""

    kind: ClassVar[Literal["sparsemax"]] = "sparsemax"

    def weights(self, scores_BHTS: Scores, allowed_BHTS: Allowed) -> Scores:
        # Scores within 1 of the largest are all that can matter, so those that are forbidden go just below that, and stay finite.
        least = torch.finfo(scores_BHTS.dtype).min
        top = scores_BHTS.detach().masked_fill(~allowed_BHTS, least).amax(-1, keepdim=True)
        shifted = (scores_BHTS - top).clamp_min(-2).masked_fill(~allowed_BHTS, -2)
        falling = shifted.sort(-1, descending=True).values
        sums = falling.cumsum(-1)
        counts = torch.arange(1, falling.shape[-1] + 1, device=falling.device, dtype=falling.dtype)
        support = (1 + counts * falling > sums).sum(-1, keepdim=True).clamp_min(1)
        threshold = (sums.gather(-1, support - 1) - 1) / support
        return (shifted - threshold).clamp_min(0).masked_fill(~allowed_BHTS, 0)


@dataclass(frozen=True)
class Hard:
    """All on the largest score, the limit of a falling temperature; ties share equally. No gradient reaches the scores."""

    kind: ClassVar[Literal["hard"]] = "hard"

    def weights(self, scores_BHTS: Scores, allowed_BHTS: Allowed) -> Scores:
        scores_BHTS = scores_BHTS.masked_fill(~allowed_BHTS, -torch.inf)
        largest = (scores_BHTS == scores_BHTS.amax(-1, keepdim=True)) & allowed_BHTS
        return _divided(largest.to(scores_BHTS.dtype))


@dataclass(frozen=True)
class Sigmoid:
    """Each score by itself; the weights of a row need not sum to 1."""

    kind: ClassVar[Literal["sigmoid"]] = "sigmoid"

    def weights(self, scores_BHTS: Scores, allowed_BHTS: Allowed) -> Scores:
        return scores_BHTS.sigmoid().masked_fill(~allowed_BHTS, 0)


@dataclass(frozen=True)
class Epanechnikov:
    """3/4 (1 - u^2) up to u = 1, with u the distance over the bandwidth, divided by its sum; goes with the score negative-distance."""

    kind: ClassVar[Literal["epanechnikov"]] = "epanechnikov"
    bandwidth: float = 1.0
    """h, beyond which nothing counts."""

    def __post_init__(self):
        if not self.bandwidth > 0:
            raise UsageError(f"bandwidth is {self.bandwidth}", where="epanechnikov", do="give a bandwidth above 0")

    def weights(self, scores_BHTS: Scores, allowed_BHTS: Allowed) -> Scores:
        bumps = 0.75 * (1 - (scores_BHTS / self.bandwidth).square()).clamp_min(0)
        return _divided(bumps.masked_fill(~allowed_BHTS, 0))


Normaliser = Softmax | Sparsemax | Hard | Sigmoid | Epanechnikov


def _divided(parts: Tensor) -> Tensor:
    """Each row divided by its sum, an empty one left at zero."""
    sums = parts.sum(-1, keepdim=True)
    return parts / sums.masked_fill(sums == 0, 1)
