"""One answer for a whole row: its vectors joined into one (the first, or the mean of the real ones), and the scores of each label."""

from __future__ import annotations

from typing import Literal

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.nn.tap import tap

Pool = Literal["first", "mean"]


def pooled(x_BTD: Float[Tensor, "B T D"], real_BT: Bool[Tensor, "B T"] | None = None, *, pool: Pool) -> Float[Tensor, "B D"]:
    """The first vector, or the mean of the real ones; a row without any gives zeros."""
    if pool == "first":
        return x_BTD[:, 0]
    if real_BT is None:
        return x_BTD.mean(1)
    return x_BTD.masked_fill(~real_BT[..., None], 0.0).sum(1) / real_BT.sum(1, keepdim=True).clamp_min(1)


class Label(nn.Module):
    """Scores of the labels: a linear map, or with a hidden layer (tanh) before it. It starts at zero: all labels are alike at first."""

    def __init__(self, d_model: int, classes: int, *, hidden: int = 0):
        super().__init__()
        self.inner = nn.Linear(d_model, hidden) if hidden else None
        self.outer = nn.Linear(hidden or d_model, classes)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, hidden_BD: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        return tap(self.outer(hidden_BD if self.inner is None else F.tanh(self.inner(hidden_BD))), "output.scores")
