"""What ends a model that writes or fills in: the scores of every word of the vocabulary."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.nn.feedforward import ACTIVATIONS, Activation
from regard.nn.norms import Norm, build_norm
from regard.nn.tap import tap


class Vocabulary(nn.Module):
    """logits = h W^T (+ b), at every position by itself, after a layer of its own if there is one. The table may be the embedding's own."""

    def __init__(self, table: nn.Parameter, *, bias: bool = False, before: nn.Module | None = None):
        super().__init__()
        self.before = before
        self.table = table
        self.bias = nn.Parameter(torch.zeros(len(table))) if bias else None

    def forward(self, hidden_BTD: Float[Tensor, "B T D"]) -> Float[Tensor, "B T V"]:
        hidden_BTD = hidden_BTD if self.before is None else self.before(hidden_BTD)
        return tap(nn.functional.linear(hidden_BTD, self.table, self.bias), "output.scores")


class Before(nn.Module):
    """norm(act(h W + b)): what BERT has between its last block and the table."""

    def __init__(self, d_model: int, width: int, norm: Norm, activation: Activation):
        super().__init__()
        self.inner = nn.Linear(d_model, width)
        self.activation = ACTIVATIONS[activation]
        self.norm = build_norm(norm, width)

    def forward(self, hidden_BTD: Float[Tensor, "B T D"]) -> Float[Tensor, "B T E"]:
        return self.norm(self.activation(self.inner(hidden_BTD)))
