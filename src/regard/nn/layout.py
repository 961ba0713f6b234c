"""The documents of a packed row side by side, and back again: for what works on rectangles only."""

from __future__ import annotations

import torch
from jaxtyping import Shaped
from torch import Tensor

from regard.nn.view import Tokens


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
