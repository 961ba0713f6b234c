"""The residual around a sublayer, with its dropout and its norm: after the sum (the paper), before the sublayer, or left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from regard.nn.narrow import narrow
from regard.nn.norms import Norm, build_norm

Placement = Literal["post", "pre"]


class Residual(nn.Module):
    """post: x <- norm(x + drop(f(x))).  pre: x <- x + drop(f(norm(x)))."""

    def __init__(self, norm: Norm, d_model: int, *, placement: Placement, dropout: float, skip: bool):
        super().__init__()
        self.norm = build_norm(norm, d_model)
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()
        self.placement: Placement = placement
        self.skip = skip

    def forward(self, x: Float[Tensor, "B T D"], sublayer: Callable[[Tensor], Tensor]) -> Float[Tensor, "B T D"]:
        if self.placement == "pre":
            return self._join(x, sublayer(narrow(self.norm(x))))
        return self.norm(self._join(x, sublayer(x)))

    def _join(self, x: Tensor, change: Tensor) -> Tensor:
        change = self.dropout(change)
        return x + change if self.skip else change
