"""Who is joined to whom in a graph: a list of edges, and what flows along them at a cost that grows with their number alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as pytree
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.errors import DataError


@dataclass(frozen=True, eq=False)
class Edges:
    """Edge m lets the node `target[m]` see the node `source[m]`."""

    source: Int[Tensor, "M"]
    target: Int[Tensor, "M"]
    nodes: int

    @staticmethod
    def of(pairs: Int[Tensor, "M 2"], nodes: int, *, loops: bool = True) -> Edges:
        """Undirected: each pair counts in both directions, once. `loops`: each node sees itself, so that an isolated one has a row."""
        if len(pairs) and (int(pairs.min()) < 0 or int(pairs.max()) >= nodes):
            raise DataError(f"an edge names node {int(pairs.max())}, but there are {nodes} nodes", where="edges")
        both = torch.cat([pairs, pairs.flip(1)]).long()
        both = both[both[:, 0] != both[:, 1]]
        if loops:
            both = torch.cat([both, torch.arange(nodes)[:, None].expand(nodes, 2)])
        numbers = torch.unique(both[:, 0] * nodes + both[:, 1])  # sorted by target
        return Edges(source=numbers % nodes, target=numbers // nodes, nodes=nodes)

    def adjacency(self) -> Bool[Tensor, "T S"]:
        """The same as a mask, for the dense form: nodes x nodes, True where the row's node sees the column's."""
        allowed = torch.zeros(self.nodes, self.nodes, dtype=torch.bool, device=self.source.device)
        allowed[self.target, self.source] = True
        return allowed

    def sum(self, values: Float[Tensor, "M *any"]) -> Float[Tensor, "N *any"]:
        """For each node the sum of what its edges bring; zeros where it has none."""
        return values.new_zeros(self.nodes, *values.shape[1:]).index_add(0, self.target, values)

    def softmax(self, scores_MH: Float[Tensor, "M H"]) -> Float[Tensor, "M H"]:
        """Weights that sum to 1 over the edges of each node."""
        scores_MH = scores_MH.to(torch.promote_types(scores_MH.dtype, torch.float32))
        places_MH = self.target[:, None].expand_as(scores_MH)
        largest_NH = scores_MH.new_full((self.nodes, scores_MH.shape[1]), -torch.inf)
        largest_NH = largest_NH.scatter_reduce(0, places_MH, scores_MH.detach(), "amax")
        raised_MH = (scores_MH - largest_NH[self.target]).exp()
        return raised_MH / self.sum(raised_MH)[self.target]

    def to(self, device: torch.device | str) -> Edges:
        return dataclasses.replace(self, source=self.source.to(device), target=self.target.to(device))


def _unflatten(tensors: Iterable[Any], nodes: int) -> Edges:
    source, target = tensors
    return Edges(source, target, nodes)


pytree.register_pytree_node(Edges, lambda edges: ([edges.source, edges.target], edges.nodes), _unflatten)
