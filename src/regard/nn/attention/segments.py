"""Transformer-XL's slot: besides its own segment a token sees what each layer had of the segment before, without a gradient (Dai 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.errors import UsageError
from regard.nn.attention.biases import RelativeSinusoid
from regard.nn.attention.multihead import Attention, MultiHead
from regard.nn.attention.patterns import Causal, Pattern, Window
from regard.nn.attention.scores import OffsetDot
from regard.nn.cache import Slots, Written
from regard.nn.view import Tokens, View


@dataclass(frozen=True)
class TransformerXL:
    """Attention to one's own segment and to a memory of the one before; for models that write, in all layers."""

    kind: ClassVar[Literal["transformer-xl"]] = "transformer-xl"
    memory: int = 128
    "How many tokens a layer remembers."
    remembered: int = 0
    "How many once the model is trained; 0: as many."
    same_length: bool = False
    "Every token sees exactly `memory` tokens, itself among them, wherever in its segment it stands."
    attention: Attention = Attention(score=OffsetDot(), bias=RelativeSinusoid(), biases=False)
    "Scores, bias and all else of every head; the paper's content and position terms unless others are named."

    def __post_init__(self):
        if self.memory < 1 or self.remembered < 0:
            raise UsageError(f"memory is {self.memory} and remembered {self.remembered}", where=self.kind, do="give a memory of 1 or more")
        if self.same_length and self.remembered:
            do = "leave out one of them"
            raise UsageError("of a longer memory nothing would be seen with same_length", where=self.kind, do=do)


class TransformerXLAttention(MultiHead):
    """Queries of x, keys and values of [memory; x]. Given no state it is plain attention over the row.

    With one its weights are over what is remembered too: they pass the tap NAME.recalled_weights.
    """

    def __init__(self, config: TransformerXL, d_model: int, *, heads: int, groups: int, d_head: int, causal: bool, name: str):
        if not causal:
            raise UsageError("it remembers what came before, and an encoder sees all at once", where=name, do="keep it for what writes")
        attention = config.attention
        if isinstance(attention.bias, RelativeSinusoid) and not attention.bias.width:
            attention = replace(attention, bias=replace(attention.bias, width=d_model))
        order: tuple[Pattern, ...] = (Causal(), Window(config.memory - 1)) if config.same_length else (Causal(),)
        super().__init__(attention, d_model, heads=heads, groups=groups, d_head=d_head, pattern=order, name=name)
        self.memory, self.remembered = config.memory, config.remembered or config.memory

    def new_cache(self, rows: int, capacity: int) -> Recent:
        return Recent(rows, self.memory if self.training else self.remembered)

    def step(self, x_RTD: Float[Tensor, "R T D"], view: View, past: Written, slots: Slots) -> Float[Tensor, "R T D"]:
        assert isinstance(past, Recent)
        return self.remember(x_RTD, view, past)

    def remember(self, x_RTD: Float[Tensor, "R T D"], view: View, past: Recent) -> Float[Tensor, "R T D"]:
        """One token or a whole segment: both go on from what is remembered, and are remembered."""
        joined_RSD, keys = past.extend(x_RTD, view)
        key, value = self.project(joined_RSD, keys)
        query = self._query(x_RTD, view.own)
        return self._join(self.found(query, key, value, view.own, keys, view.memo, pattern=self.pattern, name="recalled_weights"))


class Joined(NamedTuple):
    """The facts of memory and segment together, and those of what is remembered of them: the same in all layers."""

    keys: Tokens
    kept: Tokens
    places: Int[Tensor, "R M"]  # of what is remembered


class Recent:
    """What went into one layer for the last `size` real tokens of each row. Without gradient: no segment learns from the next."""

    def __init__(self, rows: int, size: int):
        self.rows, self.size = rows, size
        self.states: Tensor | None = None
        self.tokens: Tokens | None = None
        self.seen = 0  # columns, the most that any row may have taken in

    def extend(self, x_RTD: Float[Tensor, "R T D"], view: View) -> tuple[Float[Tensor, "R M+T D"], Tokens]:
        """What is remembered, and behind it the segment, which from now on is remembered too."""
        if self.states is None or self.tokens is None:
            self.states = x_RTD.new_zeros(self.rows, self.size, x_RTD.shape[2])
            none = torch.zeros(self.rows, self.size, dtype=torch.long, device=x_RTD.device)
            self.tokens = Tokens(none, none, none.bool())
        key = ("recent", self.size)
        if key not in view.memo:
            view.memo[key] = _joined(self.tokens, view.own, self.size)
        joined: Joined = view.memo[key]
        joined_RSD = torch.cat([self.states.to(x_RTD.dtype), x_RTD], 1)
        self.seen += x_RTD.shape[1]
        self.states = joined_RSD.detach().gather(1, joined.places[..., None].expand(-1, -1, x_RTD.shape[2]))
        self.tokens = joined.kept
        return joined_RSD, joined.keys

    def reorder(self, rows: Int[Tensor, "R"], used: int) -> None:
        if self.states is not None and self.tokens is not None:
            self.states, self.tokens = self.states[rows], self.tokens.each(lambda fact: fact[rows])

    def trim(self, length: int) -> None:
        if self.seen > self.size:
            raise UsageError("a layer that remembers the last tokens alone cannot forget the newest of them", do="begin the row again")
        if self.tokens is not None:
            self.tokens = replace(self.tokens, real=self.tokens.real & (self.tokens.positions < length))

    def clear(self, rows: Sequence[int]) -> None:
        if self.tokens is not None:
            real = self.tokens.real.clone()
            real[list(rows)] = False
            self.tokens = replace(self.tokens, real=real)


def _joined(past: Tokens, own: Tokens, size: int) -> Joined:
    cat = lambda first, second: torch.cat([first, second], 1)
    keys = Tokens(cat(past.positions, own.positions), cat(past.documents, own.documents), cat(past.real, own.real))
    places = keys.real.long().argsort(dim=1, stable=True)[:, own.real.shape[1] :]  # what is real comes last, in its order
    return Joined(keys, keys.each(lambda fact: fact.gather(1, places)), places)
