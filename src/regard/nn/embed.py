"""From ids to vectors: the embedding table, scaled, plus positions, norm and dropout as the paper has them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.nn.norms import NoNorm, Norm, build_norm, normed
from regard.nn.positions import Positions, Sinusoid, build_positions
from regard.nn.tap import tap
from regard.nn.view import Tokens


@dataclass(frozen=True)
class Embedding:
    """How tokens become vectors."""

    positions: Positions = Sinusoid()
    "What is added to tell the positions apart."
    scale: bool = True
    "Multiply the table's rows by sqrt(d_model), as the paper does."
    norm: Norm = NoNorm()
    "Norm of the sum (BART has one here; the paper has none)."
    dropout: float = 0.1
    "Dropout on the sum."


class TokenEmbedding(nn.Module):
    """drop(norm(table[id] * sqrt(D) + position)). The table may be shared with another embedding or with the output."""

    def __init__(self, config: Embedding, table: nn.Parameter, *, name: str):
        super().__init__()
        self.table = table
        d_model = table.shape[1]
        self.positions = build_positions(config.positions, d_model)
        self.norm = build_norm(config.norm, d_model)
        self.dropout = nn.Dropout(config.dropout) if config.dropout else nn.Identity()
        self.scale = math.sqrt(d_model) if config.scale else 1.0
        self.name = name

    def forward(self, ids: Int[Tensor, "B T"], tokens: Tokens, *, length: int | None = None) -> Float[Tensor, "B T D"]:
        """`length` bounds the positions when the caller knows it (packed rows, steps); the row's own length otherwise."""
        x_BTD = tap(nn.functional.embedding(ids, self.table) * self.scale, f"{self.name}.token")
        if self.positions is not None:
            self.positions.reach(length or ids.shape[1])
            x_BTD = x_BTD + tap(self.positions(tokens.positions), f"{self.name}.position").to(x_BTD.dtype)
        return tap(self.dropout(normed(self.norm, x_BTD, tokens.real)), f"{self.name}.sum")


def new_table(vocabulary: int, d_model: int) -> nn.Parameter:
    """A table of embeddings, N(0, D^-0.5), with the padding row (0) at zero."""
    table = torch.empty(vocabulary, d_model).normal_(std=d_model**-0.5)
    table[0] = 0
    return nn.Parameter(table)
