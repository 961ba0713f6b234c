"""Linformer: keys and values are summed up, over the length of the row, in a fixed number of slots (Wang 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import UsageError
from regard.nn.attention.biases import NoBias
from regard.nn.attention.multihead import Attention, MultiHead
from regard.nn.layout import Rows
from regard.nn.view import Tokens, View

Sharing = Literal["none", "headwise", "key-value", "layerwise"]
Common = dict[tuple[int, int], nn.Parameter]  # by rank and length: matrices that the layers of a trunk have in common


@dataclass(frozen=True)
class Linformer:
    """K' = E K and V' = F V: attention to `rank` mixtures of the row; for encoders, and for looking at a source."""

    kind: ClassVar[Literal["linformer"]] = "linformer"
    rank: int = 256
    "How many mixtures: the paper's k."
    length: int = 512
    "The longest row that it can read."
    sharing: Sharing = "headwise"
    "none: each head has its E and its F; headwise: one pair a layer; key-value: E is F too; layerwise: one matrix for all layers."
    attention: Attention = Attention()
    "Scores and all else of every head; without patterns and biases, for a mixture has no position."

    def __post_init__(self):
        if self.rank < 1 or self.length < 1:
            raise UsageError(f"rank is {self.rank} and length {self.length}", where=self.kind, do="give 1 or more")
        if self.attention.pattern or not isinstance(self.attention.bias, NoBias):
            raise UsageError("its keys are mixtures, which have no position", where=self.kind, do="leave out pattern and bias")


class LinformerAttention(MultiHead):
    """softmax(Q (E K)^T / sqrt(d_k)) F V, by heads. E and F work on documents in rows of their own, from the first real token on."""

    packs = False
    maps = False

    def __init__(self, config: Linformer, d_model: int, *, heads: int, groups: int, d_head: int, causal: bool, common: Common, name: str):
        if causal:
            do = "keep it for encoders and for cross-attention"
            raise UsageError("every mixture holds the whole row, the future too, so no decoder can write with it", where=name, do=do)
        super().__init__(config.attention, d_model, heads=heads, groups=groups, d_head=d_head, pattern=(), name=name)
        self.rank, self.length = config.rank, config.length
        shape = (groups if config.sharing == "none" else 1, config.rank, config.length)
        if config.sharing == "layerwise":
            self.key_mixing = common.setdefault((config.rank, config.length), nn.Parameter(torch.empty(shape)))
        else:
            self.key_mixing = nn.Parameter(torch.empty(shape))
        self.value_mixing = nn.Parameter(torch.empty(shape)) if config.sharing in ("none", "headwise") else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = (3 / (self.rank + self.length)) ** 0.5  # Xavier, gain 1/sqrt(2)
        for mixing in (self.key_mixing, self.value_mixing):
            if mixing is not None:
                nn.init.uniform_(mixing, -bound, bound)

    def forward(self, x_BTD: Float[Tensor, "B T D"], view: View, memory: int | None = None) -> Float[Tensor, "B T D"]:
        source, tokens = (x_BTD, view.own) if memory is None else (view.memories[memory].states, view.memories[memory].tokens)
        rows = Rows.of(view.own)
        query_NHLE = self._query(rows.take(x_BTD), Tokens.padded(rows.real))
        return rows.put(self._attend(query_NHLE, *self.project(source, tokens), None, None, view.memo))

    def project(self, memory: Float[Tensor, "B S D"], tokens: Tokens) -> tuple[Float[Tensor, "N G K E"], Float[Tensor, "N G K E"]]:
        """The mixtures; a token that is not real must be nothing before it is mixed, for no mask can take it out again."""
        rows = Rows.of(tokens)
        states_NLD = rows.take(memory)
        key_NGLE, value_NGLE = super().project(states_NLD, Tokens.padded(rows.real))
        real_N1L1 = self._fitting(rows.real)[:, None, :, None]
        value_mixing = self.key_mixing if self.value_mixing is None else self.value_mixing
        return _mixed(self.key_mixing, key_NGLE, real_N1L1), _mixed(value_mixing, value_NGLE, real_N1L1)

    def _fitting(self, real_NL: Tensor) -> Tensor:
        if real_NL.shape[1] > self.length and real_NL[:, self.length :].any():
            longest = int(real_NL.sum(1).max())
            raise UsageError(f"a row of {longest} tokens", where=self.name, do=f"keep rows to {self.length}, or set a larger length")
        return real_NL[:, : self.length]

    def _attend(self, query, key, value, queries, keys, memo):
        """Without facts: mixtures stand nowhere, and all of them are seen."""
        return super()._attend(query, key, value, None, None, memo)


def _mixed(mixing_GKM: Tensor, heads_NGLE: Tensor, real_N1L1: Tensor) -> Tensor:
    length = real_N1L1.shape[2]
    return mixing_GKM[..., :length].to(heads_NGLE.dtype) @ torch.where(real_N1L1, heads_NGLE[:, :, :length], 0)
