"""From the features of nodes to vectors: a linear map of rows that are nearly all zeros, at the cost of what is not zero."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.nn.tap import tap


@dataclass(frozen=True, eq=False)
class Features:
    """What is not zero: `columns[offsets[n]:offsets[n + 1]]` are the features that node n has, and `values` what they are there."""

    columns: Int[Tensor, "M"]
    offsets: Int[Tensor, "N"]
    values: Float[Tensor, "M"]
    width: int

    @staticmethod
    def of(rows: Int[Tensor, "M"], columns: Int[Tensor, "M"], values: Float[Tensor, "M"], *, nodes: int, width: int) -> Features:
        order = torch.argsort(rows, stable=True)
        counts = torch.bincount(rows, minlength=nodes)
        return Features(columns[order].long(), counts.cumsum(0) - counts, values[order].float(), width)

    @staticmethod
    def dense(table_NF: Float[Tensor, "N F"]) -> Features:
        rows, columns = table_NF.nonzero().unbind(1)
        return Features.of(rows, columns, table_NF[rows, columns], nodes=len(table_NF), width=table_NF.shape[1])

    @property
    def nodes(self) -> int:
        return len(self.offsets)

    def shares(self) -> Features:
        """Each node's values divided by their sum, as the papers on Cora have them."""
        owner = torch.repeat_interleave(torch.arange(self.nodes), torch.diff(self.offsets, append=torch.tensor([len(self.columns)])))
        sums = torch.zeros(self.nodes).index_add(0, owner, self.values)
        return dataclasses.replace(self, values=self.values / sums[owner])

    def to(self, device: torch.device | str) -> Features:
        moved = {name: getattr(self, name).to(device) for name in ("columns", "offsets", "values")}
        return dataclasses.replace(self, **moved)


def _unflatten(tensors: Iterable[Any], width: int) -> Features:
    columns, offsets, values = tensors
    return Features(columns, offsets, values, width)


pytree.register_pytree_node(Features, lambda features: ([features.columns, features.offsets, features.values], features.width), _unflatten)


class NodeEmbedding(nn.Module):
    """x W, where dropout falls on the features of x; to drop a zero changes nothing, so only the others are drawn for."""

    def __init__(self, features: int, d_model: int, *, dropout: float, name: str):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(features, d_model))
        nn.init.xavier_uniform_(self.weight)
        self.dropout, self.name = dropout, name

    def forward(self, features: Features) -> Float[Tensor, "N D"]:
        values = F.dropout(features.values, self.dropout, self.training).to(self.weight.dtype)
        return tap(
            F.embedding_bag(features.columns, self.weight, features.offsets, mode="sum", per_sample_weights=values), f"{self.name}.sum"
        )
