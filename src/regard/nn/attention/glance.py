"""One head of attention to a memory, without an output map: what recurrent and convolutional decoders look at their source with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import UsageError
from regard.nn.attention.attend import attend
from regard.nn.attention.normalise import Normaliser
from regard.nn.attention.scores import Score
from regard.nn.cache import Fixed
from regard.nn.tap import tap
from regard.nn.view import Memory, Tokens

Keys = Literal["states", "split", "projected"]


class Glance(nn.Module):
    """c = sum_j a_j v_j, a = normalise(score(q, k)).

    keys, values = the states, twice; or their two halves (h = [k; v], Daniluk 2017); or two maps of them. The query is treated likewise.
    """

    def __init__(self, score: Score, normalise: Normaliser, *, keys: Keys, d_query: int, d_memory: int, name: str):
        super().__init__()
        self.keys: Keys = keys
        self.normalise = normalise
        if keys == "split":
            if d_query % 2 or d_memory % 2:
                raise UsageError(f"vectors of {d_query} and {d_memory} numbers have no halves", where=name, do="choose even widths")
            d_query, d_memory = d_query // 2, d_memory // 2
        self.width = d_query if keys == "projected" else d_memory  # of what is gathered
        if keys == "projected":
            self.query = nn.Linear(d_query, d_query, bias=False)
            self.key = nn.Linear(d_memory, d_query, bias=False)
            self.value = nn.Linear(d_memory, d_query, bias=False)
            for layer in (self.query, self.key, self.value):
                nn.init.xavier_uniform_(layer.weight)
            d_memory = d_query
        if d_query != d_memory and not score.mixes:
            raise UsageError(
                f"the score {score.kind} compares {d_query} numbers of the decoder with {d_memory} of the encoder",
                where=name,
                do='choose bilinear or additive, trunks of one width, or keys = "projected"',
            )
        self.score = score.build(1, d_query, d_memory)

    def project(self, memory: Memory) -> tuple[Float[Tensor, "B 1 S K"], Float[Tensor, "B 1 S E"]]:
        """Keys, as far as they can be worked out beforehand, and values."""
        match self.keys:
            case "states":
                key_BSE, value_BSE = memory.states, memory.gathered
            case "split":
                key_BSE, value_BSE = memory.states.chunk(2, -1)[0], memory.gathered.chunk(2, -1)[1]
            case "projected":
                key_BSE, value_BSE = self.key(memory.states), self.value(memory.gathered)
        return self.score.prepare(key_BSE[:, None]), value_BSE[:, None]

    def forward(
        self, query_RTD: Float[Tensor, "R T D"], key: Tensor, value: Tensor, *, keys: Tokens, memo: dict, name: str
    ) -> Float[Tensor, "R T E"]:
        """Rows that share a source ask together, as one longer query."""
        rows, time = query_RTD.shape[:2]
        if self.keys == "split":
            query_RTD = query_RTD.chunk(2, -1)[0]
        elif self.keys == "projected":
            query_RTD = self.query(query_RTD)
        out_B1TE = attend(
            tap(query_RTD.reshape(len(key), 1, -1, query_RTD.shape[-1]), f"{name}.query"),
            tap(key.to(query_RTD.dtype), f"{name}.key"),
            tap(value.to(query_RTD.dtype), f"{name}.value"),
            keys=keys,
            score=self.score.prepared,
            normalise=self.normalise,
            memo=memo,
            taps=f"{name}.",
        )
        return tap(out_B1TE.reshape(rows, time, -1), f"{name}.context")


Looked = tuple[Tensor, Tensor, Tokens]  # keys, values and the facts of one memory


class Glances(nn.Module):
    """A glance at each memory; what they gather stands side by side."""

    each: Sequence[Glance]  # in an nn.ModuleList

    def __init__(self, score: Score, normalise: Normaliser, *, keys: Keys, d_query: int, d_memories: Sequence[int], name: str):
        super().__init__()
        self.each = nn.ModuleList(  # type: ignore[assignment]
            Glance(score, normalise, keys=keys, d_query=d_query, d_memory=width, name=name) for width in d_memories
        )
        self.width = sum(glance.width for glance in self.each)

    def project(self, memories: Sequence[Memory]) -> list[Looked]:
        return [(*glance.project(memory), memory.tokens) for glance, memory in zip(self.each, memories, strict=True)]

    def remember(self, kept: Sequence[Fixed], memories: Sequence[Memory], slots: Tensor | None) -> None:
        """Leave keys and values in the caches of one layer."""
        for fixed, (key, value, _) in zip(kept, self.project(memories), strict=True):
            fixed.write(key, value, slots)

    def forward(self, query_RTD: Float[Tensor, "R T D"], looked: Sequence[Looked], memo: dict, *, name: str) -> Float[Tensor, "R T E"]:
        """`name` is the layer's; the taps are NAME.cross.weights, or cross0, cross1, ... where there are several memories."""
        found = [query_RTD.new_zeros(*query_RTD.shape[:2], 0)]
        for number, (glance, (key, value, tokens)) in enumerate(zip(self.each, looked, strict=True)):
            called = f"{name}.cross{number if len(looked) > 1 else ''}"
            found.append(glance(query_RTD, key, value, keys=tokens, memo=memo, name=called))
        return torch.cat(found, -1)


def recalled(kept: Sequence[Fixed], facts: Sequence[Tokens]) -> list[Looked]:
    """What `remember` left in the caches of one layer."""
    return [(fixed.key, fixed.value, tokens) for fixed, tokens in zip(kept, facts, strict=True)]
