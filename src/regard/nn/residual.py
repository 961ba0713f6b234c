"""The residual around a sublayer, with its dropout and its norm: after the sum (the paper), before the sublayer, or left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.nn.narrow import narrow
from regard.nn.norms import Norm, build_norm, normed
from regard.nn.tap import tap

Placement = Literal["post", "pre"]


class Residual(nn.Module):
    """post: x <- norm(x + drop(f(x))).  pre: x <- x + drop(f(norm(x)))."""

    def __init__(self, norm: Norm, d_model: int, *, placement: Placement, dropout: float, skip: bool, name: str = "residual"):
        super().__init__()
        self.norm = build_norm(norm, d_model)
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()
        self.placement: Placement = placement
        self.skip, self.name = skip, name

    def forward(self, x: Float[Tensor, "B T D"], sublayer: Callable[[Tensor], Tensor], real: Bool[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        x = tap(x, f"{self.name}.input")
        if self.placement == "pre":
            return self._join(x, sublayer(narrow(self._normed(x, real))))
        return self._normed(self._join(x, sublayer(x)), real)

    def _normed(self, x: Tensor, real: Tensor) -> Tensor:
        return tap(normed(self.norm, x, real), f"{self.name}.normed")

    def _join(self, x: Tensor, change: Tensor) -> Tensor:
        change = tap(self.dropout(change), f"{self.name}.change")
        return tap(x + change if self.skip else change, f"{self.name}.added")
