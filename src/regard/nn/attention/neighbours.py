"""Graph attention (Velickovic 2018): each node attends to its neighbours, edge by edge, or densely under an adjacency pattern."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.nn.attention.attend import attend
from regard.nn.attention.predicate import Predicate
from regard.nn.attention.scores import Pairwise
from regard.nn.edges import Edges
from regard.nn.tap import tap

Form = Literal["edges", "dense"]


@dataclass(frozen=True, eq=False)
class Adjacent(Predicate):
    """A node sees its neighbours. The positions of tokens are the numbers of nodes."""

    kind: ClassVar[Literal["adjacent"]] = "adjacent"
    adjacency: Bool[Tensor, "N N"]
    """True where the row's node sees the column's."""

    def allows(self, query, key, head):
        return self.adjacency[query.positions, key.positions]


class NeighbourScore(nn.Module, Pairwise):
    """LeakyReLU(a^T [W h_i ; W h_j]), with a cut into the half that meets the query and the half that meets the key."""

    def __init__(self, heads: int, width: int, *, slope: float):
        super().__init__()
        self.query_HE = nn.Parameter(torch.empty(heads, width))
        self.key_HE = nn.Parameter(torch.empty(heads, width))
        self.slope = slope
        self.reset_parameters()

    def reset_parameters(self) -> None:
        # Xavier of the one vector a: it maps 2E numbers to one
        for half in (self.query_HE, self.key_HE):
            bound = (6 / (2 * half.shape[1] + 1)) ** 0.5
            nn.init.uniform_(half, -bound, bound)

    def halves(self, query: Float[Tensor, "... H E"], key: Float[Tensor, "... H E"]) -> tuple[Tensor, Tensor]:
        """What each node brings into its scores: as the one that looks, and as the one that is seen. O(nodes), whatever the edges."""
        return (query * self.query_HE).sum(-1), (key * self.key_HE).sum(-1)

    def pairwise(self, query, key):
        looking_BTH, seen_BSH = self.halves(query.transpose(1, 2), key.transpose(1, 2))
        return F.leaky_relu(looking_BTH.mT[..., :, None] + seen_BSH.mT[..., None, :], self.slope)

    def along(self, edges: Edges, values_NHE: Float[Tensor, "N H E"]) -> Float[Tensor, "M H"]:
        """The scores of the edges alone."""
        looking_NH, seen_NH = self.halves(values_NHE, values_NHE)
        return F.leaky_relu(looking_NH[edges.target] + seen_NH[edges.source], self.slope)


class NeighbourAttention(nn.Module):
    """Weights over the edges of each node average what the neighbours bring. The input is W h already: one map for all three roles."""

    def __init__(self, *, heads: int, width: int, slope: float, dropout: float, form: Form, name: str):
        super().__init__()
        self.heads, self.dropout, self.form, self.name = heads, dropout, form, name
        self.score = NeighbourScore(heads, width, slope=slope)

    def forward(self, values_ND: Float[Tensor, "N D"], edges: Edges) -> Float[Tensor, "N H E"]:
        values_NHE = values_ND.unflatten(-1, (self.heads, -1))
        return self._along(values_NHE, edges) if self.form == "edges" else self._dense(values_NHE, edges)

    def _along(self, values_NHE: Tensor, edges: Edges) -> Tensor:
        scores_MH = tap(self.score.along(edges, values_NHE), f"{self.name}.scores")
        weights_MH = tap(edges.softmax(scores_MH), f"{self.name}.weights").to(values_NHE.dtype)
        weights_MH = F.dropout(weights_MH, self.dropout, self.training)
        return edges.sum(weights_MH[..., None] * values_NHE[edges.source])

    def _dense(self, values_NHE: Tensor, edges: Edges) -> Tensor:
        heads_1HNE = values_NHE.transpose(0, 1)[None]
        out_1HNE = attend(
            heads_1HNE,
            heads_1HNE,
            heads_1HNE,
            pattern=Adjacent(edges.adjacency()),
            score=self.score,
            dropout=self.dropout if self.training else 0.0,
            taps=f"{self.name}.",
        )
        return out_1HNE[0].transpose(0, 1)


class NeighbourMean(nn.Module):
    """Graph convolution (Kipf 2017): the neighbours' sum, each divided by the roots of both degrees; nothing is learned here."""

    def forward(self, values_ND: Float[Tensor, "N D"], edges: Edges) -> Float[Tensor, "N D"]:
        root_N = edges.sum(torch.ones_like(edges.target, dtype=values_ND.dtype)).clamp_min(1).rsqrt()
        return edges.sum((root_N[edges.target] * root_N[edges.source])[:, None] * values_ND[edges.source])
