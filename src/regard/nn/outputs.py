"""What ends a model: for now the scores of every word of the vocabulary."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.nn.tap import tap


class Vocabulary(nn.Module):
    """logits = h W^T (+ b), at every position by itself. The table may be the embedding's own."""

    def __init__(self, table: nn.Parameter, *, bias: bool = False):
        super().__init__()
        self.table = table
        self.bias = nn.Parameter(torch.zeros(len(table))) if bias else None

    def forward(self, hidden_BTD: Float[Tensor, "B T D"]) -> Float[Tensor, "B T V"]:
        return tap(nn.functional.linear(hidden_BTD, self.table, self.bias), "output.scores")
