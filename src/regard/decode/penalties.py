"""How finished hypotheses of different lengths are compared: the length penalties in use, told apart by name, and coverage.

All in double precision, so that the width of the batch, which changes the order of sums, does not show in a score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Gnmt:
    """log P / ((5 + length) / 6)^alpha, of Wu et al. 2016 (equation 14) and Vaswani et al. 2017."""

    kind: ClassVar[Literal["gnmt"]] = "gnmt"
    alpha: float = 0.6
    """0 compares sums of log-probabilities, 1 means nearly; larger ones like longer translations."""

    def divisor(self, length: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        return ((5 + length.double()) / 6) ** self.alpha


@dataclass(frozen=True)
class Exponent:
    """log P / length^power: what fairseq and Hugging Face call length_penalty. Not GNMT's."""

    kind: ClassVar[Literal["exponent"]] = "exponent"
    power: float = 1.0
    """0 compares sums of log-probabilities, 1 their means."""

    def divisor(self, length: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        return length.double() ** self.power


@dataclass(frozen=True)
class NoPenalty:
    """log P as it is: the search for the most probable target."""

    kind: ClassVar[Literal["none"]] = "none"

    def divisor(self, length: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        return torch.ones_like(length, dtype=torch.double)


Penalty = Gnmt | Exponent | NoPenalty


def bound(
    penalty: Penalty, log_probs: Float[Tensor, "..."], lengths: Int[Tensor, "..."], *, longest: Int[Tensor, "..."]
) -> Float[Tensor, "..."]:
    """No hypothesis that begins like this one can score more.

    What follows adds log-probabilities of at most 0, so log P can only fall; being negative, it scores best under the largest divisor
    that is still possible. Divisors are monotone in the length, so the largest one stands at an end: after one token more, or at the
    longest. Coverage adds at most 0.
    """
    return log_probs / torch.maximum(penalty.divisor(lengths + 1), penalty.divisor(longest))


def coverage(beta: float, looked_RS: Float[Tensor, "R S"], sources: Int[Tensor, "R"]) -> Float[Tensor, "R"]:
    """beta * sum_i log(min(sum_j p_ij, 1)), Wu et al. 2016: what a target never looked at counts against it.

    `looked_RS` holds for each source token the attention summed over all target tokens, the end mark's too; rows of shorter sources
    have padding behind them, which does not count.
    """
    real_RS = torch.arange(looked_RS.shape[1], device=looked_RS.device) < sources[:, None]
    seen_RS = looked_RS.double().clamp(1e-30, 1).log()
    return beta * torch.where(real_RS, seen_RS, 0).sum(1)
