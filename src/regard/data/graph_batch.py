"""A whole graph as a batch: all nodes are seen, some of their labels are asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from regard.data.batch import IGNORED
from regard.data.graph import Graph
from regard.nn.edges import Edges
from regard.nn.embed_nodes import Features


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """The graph, and a label for each node that counts (IGNORED for the others)."""

    features: Features
    edges: Edges
    labels: Int[Tensor, "N"]
    pairs: tuple[int, ...]  # the nodes whose labels count

    @staticmethod
    def of(graph: Graph, nodes: Int[Tensor, "M"]) -> GraphBatch:
        labels = torch.full_like(graph.labels, IGNORED)
        labels[nodes] = graph.labels[nodes]
        return GraphBatch(graph.features, graph.edges, labels, tuple(nodes.tolist()))

    @property
    def source_tokens(self) -> int:
        return len(self.labels)

    @property
    def target_tokens(self) -> int:
        return len(self.pairs)

    def to(self, device: torch.device | str) -> GraphBatch:
        return replace(self, features=self.features.to(device), edges=self.edges.to(device), labels=self.labels.to(device))

    def part(self, wanted: range) -> GraphBatch:
        kept = self.pairs[wanted.start : wanted.stop]
        labels = torch.full_like(self.labels, IGNORED)
        labels[list(kept)] = self.labels[list(kept)]
        return replace(self, labels=labels, pairs=kept)
