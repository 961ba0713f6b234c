"""A kind from outside the package: heads that are mixed before and after the softmax (Shazeer 2020). Not an axis, so a whole slot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from regard.nn.attention import Causal, Full
from regard.nn.attention.multihead import Attention
from regard.nn.attention.sight import Sight
from regard.nn.attention.slot import Slot
from regard.nn.cache import Growing
from regard.nn.tap import tap


@dataclass(frozen=True)
class TalkingHeads:
    """softmax(P (Q K^T / sqrt(d))) mixed by R, times V."""

    kind: ClassVar[str] = "talking-heads"
    extends: ClassVar[type] = Attention

    def build(self, d_model, *, heads, groups, d_head, causal, name):
        return TalkingHeadsAttention(d_model, heads=heads, d_head=d_head, pattern=Causal() if causal else Full(), name=name)


class TalkingHeadsAttention(Slot):
    maps = True

    def __init__(self, d_model, *, heads, d_head, pattern, name):
        super().__init__()
        self.heads, self.pattern, self.name = heads, pattern, name
        self.maps_in = nn.ModuleList(nn.Linear(d_model, heads * d_head) for _ in range(3))
        self.output = nn.Linear(heads * d_head, d_model)
        self.before_HH = nn.Parameter(torch.eye(heads) + torch.randn(heads, heads) / heads)
        self.after_HH = nn.Parameter(torch.eye(heads) + torch.randn(heads, heads) / heads)

    def forward(self, x, view, memory=None):
        states, keys = (x, view.own) if memory is None else (view.memories[memory].states, view.memories[memory].tokens)
        return self._attend(x, *self.project(states, keys), view.own, keys, view.memo)

    def project(self, memory, tokens):
        return tuple(layer(memory).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer in self.maps_in[1:])

    def new_cache(self, rows, capacity):
        return Growing(rows, capacity)

    def step(self, x, view, past, slots):
        return self._attend(x, *past.extend(*self.project(x, view.own), slots), view.own, slots.keys, view.memo)

    def look(self, x, view, memory, memory_tokens):
        beam = len(x) // len(memory.key)
        again = lambda tensor: tensor.repeat_interleave(beam, 0)
        return self._attend(x, again(memory.key), again(memory.value), view.own, memory_tokens.each(again), {})

    def _attend(self, x, key, value, queries, keys, memo):
        query = self.maps_in[0](x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        lengths = query.shape[2], key.shape[2]
        sight = Sight(queries, keys, self.pattern, lengths=lengths, heads=self.heads, device=x.device, memo=memo)
        scores = torch.einsum("bhts,gh->bgts", query @ key.mT * query.shape[-1] ** -0.5, self.before_HH)
        weights = torch.nan_to_num(sight.forbid(scores).softmax(-1))
        mixed = tap(torch.einsum("bhts,gh->bgts", weights, self.after_HH), f"{self.name}.weights")
        return self.output((mixed @ value).transpose(1, 2).flatten(2))
