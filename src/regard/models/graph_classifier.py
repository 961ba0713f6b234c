"""Which label a node of a graph has: its features, and hop by hop what its neighbours know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.data.graph_batch import GraphBatch
from regard.errors import UsageError
from regard.nn.embed_nodes import NodeEmbedding
from regard.nn.trunk_graph import GraphAttention, GraphTrunk, GraphTrunkConfig


@dataclass(frozen=True)
class GraphClassifier:
    """A label for every node."""

    kind: ClassVar[Literal["graph-classifier"]] = "graph-classifier"
    trunk: GraphTrunkConfig = GraphAttention()
    "The hops."
    features: int = 0
    "How many features a node may have; 0: taken from the data."
    labels: tuple[str, ...] = ()
    "Names of the labels; empty: taken from the data."

    @property
    def d_model(self) -> int:
        """The width between the hops."""
        return self.trunk.first


class NodeLabeller(nn.Module):
    """forward: the scores of each node's labels; the last hop ends on them, so nothing is left for an output to do."""

    packs = False

    def __init__(self, config: GraphClassifier):
        super().__init__()
        if not (config.features and config.labels):
            raise UsageError("the model does not know its nodes", where="model", do="give features and labels")
        self.config = config
        self.trunk = GraphTrunk(config.trunk, len(config.labels), name="graph")
        self.embedding = NodeEmbedding(config.features, self.trunk.d_in, dropout=config.trunk.dropout, name="nodes")
        self.output = nn.Identity()

    def forward(self, batch: GraphBatch) -> Float[Tensor, "N V"]:
        return self.trunk(self.embedding(batch.features), batch.edges)

    @property
    def device(self) -> torch.device:
        return self.embedding.weight.device
