"""The trunks over graphs: hops of graph attention, and its rival, graph convolution. Each hop brings every node its neighbours' news."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, assert_never

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.nn.attention.neighbours import Form, NeighbourAttention, NeighbourMean
from regard.nn.edges import Edges
from regard.nn.tap import tap


@dataclass(frozen=True)
class GraphAttention:
    """Attention to neighbours, heads side by side and ELU; in the last hop the heads are averaged."""

    kind: ClassVar[Literal["graph-attention"]] = "graph-attention"
    layers: int = 2
    "How many hops."
    heads: int = 8
    "Attention heads of every hop but the last."
    d_head: int = 8
    "Width of a head."
    last_heads: int = 1
    "Heads of the last hop, each as wide as the output."
    slope: float = 0.2
    "Of LeakyReLU below zero, in the scores."
    dropout: float = 0.6
    "Dropout on what enters a hop, the features of the nodes included."
    weights_dropout: float = 0.6
    "Dropout on the attention weights."
    form: Form = "edges"
    "edges: a cost that grows with the edges; dense: a mask over all pairs of nodes through ordinary attention, the same numbers."

    @property
    def first(self) -> int:
        """The width at which nodes enter the first hop, if it is not the last."""
        return self.heads * self.d_head


@dataclass(frozen=True)
class GraphConvolution:
    """The mean of the neighbours, weighed by their degrees alone, and ReLU."""

    kind: ClassVar[Literal["graph-convolution"]] = "graph-convolution"
    layers: int = 2
    "How many hops."
    width: int = 16
    "Width between the hops."
    dropout: float = 0.5
    "Dropout on what enters a hop, the features of the nodes included."

    @property
    def first(self) -> int:
        return self.width


GraphTrunkConfig = GraphAttention | GraphConvolution


class Hop(nn.Module):
    """project, gather from the neighbours, shift. The first hop is given its nodes projected already, by the embedding."""

    def __init__(self, project: nn.Linear | None, gather: NeighbourAttention | NeighbourMean, *, d_out: int, join: Literal["side", "mean"]):
        super().__init__()
        self.project, self.gather, self.join = project, gather, join
        self.bias = nn.Parameter(torch.zeros(d_out))

    def forward(self, x_ND: Float[Tensor, "N D"], edges: Edges) -> Float[Tensor, "N D"]:
        x = self.gather(x_ND if self.project is None else self.project(x_ND), edges)
        if x.ndim == 3:
            x = x.flatten(1) if self.join == "side" else x.mean(1)
        return x + self.bias


class GraphTrunk(nn.Module):
    """Hops in a row. The last one ends at the width asked for: for labels, one number a class."""

    hops: Sequence[Hop]  # in an nn.ModuleList

    def __init__(self, config: GraphTrunkConfig, d_out: int, *, name: str):
        super().__init__()
        hops, self.d_in = [], width_in(config, d_out)
        for layer in range(config.layers):
            last = layer == config.layers - 1
            match config:
                case GraphAttention():
                    heads, width = (config.last_heads, d_out) if last else (config.heads, config.d_head)
                    inward, through, outward = config.first, heads * width, d_out if last else config.first
                    gather = NeighbourAttention(
                        heads=heads,
                        width=width,
                        slope=config.slope,
                        dropout=config.weights_dropout,
                        form=config.form,
                        name=f"{name}.{layer}",
                    )
                case GraphConvolution():
                    inward, outward = config.width, d_out if last else config.width
                    through, gather = outward, NeighbourMean()
                case _:
                    assert_never(config)
            project = nn.Linear(inward, through, bias=False) if layer else None
            if project is not None:
                nn.init.xavier_uniform_(project.weight)
            hops.append(Hop(project, gather, d_out=outward, join="mean" if last else "side"))
        self.hops = nn.ModuleList(hops)  # type: ignore[assignment]
        self.activation = F.elu if isinstance(config, GraphAttention) else F.relu
        self.dropout, self.name = config.dropout, name

    def forward(self, x_ND: Float[Tensor, "N D"], edges: Edges) -> Float[Tensor, "N D"]:
        for layer, hop in enumerate(self.hops):
            if layer:
                x_ND = F.dropout(self.activation(x_ND), self.dropout, self.training)
            x_ND = tap(hop(x_ND, edges), f"{self.name}.{layer}.stream")
        return x_ND


def width_in(config: GraphTrunkConfig, d_out: int) -> int:
    """The width at which the embedding hands the nodes to the first hop."""
    if config.layers > 1:
        return config.first
    return d_out * config.last_heads if isinstance(config, GraphAttention) else d_out
