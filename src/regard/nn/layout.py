"""Documents as rows of their own, and back again: for what works on rectangles, or goes through a text word by word."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from regard.nn.view import Memory, Tokens


def side_by_side(values_BT: Shaped[Tensor, "B T *X"], tokens: Tokens, *, filling: float = 0) -> Shaped[Tensor, "N L *X"]:
    """A row for each document, filled up on the right; rows that are not packed stay as they are."""
    if tokens.spans is None:
        return values_BT
    rest = values_BT.new_full((1, *values_BT.shape[2:]), filling)
    return torch.cat([values_BT[0], rest])[tokens.spans.gather]


def end_to_end(values_NL: Shaped[Tensor, "N L *X"], tokens: Tokens) -> Shaped[Tensor, "B T *X"]:
    """What `side_by_side` laid out, in one row again."""
    if tokens.spans is None:
        return values_NL
    return values_NL.flatten(0, 1)[tokens.spans.scatter][None]


def apart(memory: Memory) -> Memory:
    """The memory with a row for each document."""
    tokens = memory.tokens
    if tokens.spans is None:
        return memory
    values = None if memory.values is None else side_by_side(memory.values, tokens)
    real_NL = side_by_side(tokens.real, tokens)
    return dataclasses.replace(memory, states=side_by_side(memory.states, tokens), tokens=Tokens.padded(real_NL), values=values)


@dataclass(frozen=True, eq=False)
class Rows:
    """A row for each document, its real tokens first, whatever the layout it came in."""

    came: Tokens
    order: Int[Tensor, "N L"] | None  # places of the tokens that come first, second, ...; none if rows came packed
    real: Bool[Tensor, "N L"]

    @staticmethod
    def of(tokens: Tokens) -> Rows:
        if tokens.spans is not None:
            return Rows(tokens, None, side_by_side(tokens.real, tokens))
        order = (~tokens.real).long().argsort(dim=1, stable=True)
        return Rows(tokens, order, tokens.real.gather(1, order))

    def take(self, values_BT: Shaped[Tensor, "B T *X"]) -> Shaped[Tensor, "N L *X"]:
        return side_by_side(values_BT, self.came) if self.order is None else _gathered(values_BT, self.order)

    def put(self, values_NL: Shaped[Tensor, "N L *X"]) -> Shaped[Tensor, "B T *X"]:
        return end_to_end(values_NL, self.came) if self.order is None else _gathered(values_NL, self.order.argsort(dim=1))


def _gathered(values: Shaped[Tensor, "N L *X"], places: Int[Tensor, "N L"]) -> Shaped[Tensor, "N L *X"]:
    return values.gather(1, places.reshape(*places.shape, *[1] * (values.dim() - 2)).expand_as(values))
