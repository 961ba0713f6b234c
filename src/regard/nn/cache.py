"""What decoding keeps between steps, handed down the call: growing keys and values of the target, fixed ones of the source.

A slot of a growing cache is the absolute position of its token, so rows may be at different lengths, and an empty slot is one that is
not real. Rows are targets being written; `beam` of them share the keys and values of one source, which are stored once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.nn.view import Tokens


class Growing:
    """Keys and values of one self-attention layer; static buffers, filled by position."""

    def __init__(self, rows: int, capacity: int):
        self.rows, self.capacity = rows, capacity
        self.key: Tensor | None = None
        self.value: Tensor | None = None

    def extend(self, key_RGTE: Float[Tensor, "R G T E"], value_RGTE: Float[Tensor, "R G T E"], shared: Slots) -> tuple[Tensor, Tensor]:
        """Write these tokens into the slots chosen for this step and return all keys and values so far."""
        if self.key is None or self.value is None:  # one more slot takes what padding would write
            self.key = key_RGTE.new_zeros(self.rows, self.capacity + 1, key_RGTE.shape[1], key_RGTE.shape[3])
            self.value = value_RGTE.new_zeros(self.rows, self.capacity + 1, value_RGTE.shape[1], value_RGTE.shape[3])
        self.key[shared.row, shared.column] = key_RGTE.transpose(1, 2)
        self.value[shared.row, shared.column] = value_RGTE.transpose(1, 2)
        used = shared.used
        return self.key[:, :used].transpose(1, 2), self.value[:, :used].transpose(1, 2)

    def reorder(self, rows: Int[Tensor, "R"], used: int) -> None:
        for buffer in (self.key, self.value):
            if buffer is not None:
                buffer[:, :used] = buffer[rows, :used]


@dataclass
class Slots:
    """Which slots are filled, and which ones this step writes: the same for every layer, so it is kept once."""

    positions: Int[Tensor, "R C"]
    real: Tensor
    used: int = 0  # slots beyond are empty in every row
    row: Tensor = field(default_factory=lambda: torch.empty(0))
    column: Tensor = field(default_factory=lambda: torch.empty(0))
    keys: Tokens = field(init=False)  # the facts of all filled slots, after the last write

    def write(self, tokens: Tokens, *, longest: int) -> None:
        """Take these tokens in; `longest` is the host's word for how many positions are in use after them."""
        capacity = self.real.shape[1] - 1
        if longest > capacity:
            raise IndexError(f"the cache holds {capacity} tokens a row, and position {longest - 1} was to be written")
        self.column = torch.where(tokens.real, tokens.positions, capacity)
        self.row = torch.arange(len(self.real), device=self.real.device)[:, None]
        self.real[self.row, self.column] = True
        self.real[:, capacity] = False
        self.used = max(self.used, longest)
        positions = self.positions[:, : self.used]
        self.keys = Tokens(positions, torch.zeros_like(positions), self.real[:, : self.used])


class Fixed:
    """Keys and values of one cross-attention layer: written when a source comes in, read at every step."""

    def __init__(self):
        self.key: Tensor | None = None
        self.value: Tensor | None = None

    def write(self, key_BGSE: Tensor, value_BGSE: Tensor, slots: Tensor | None = None) -> None:
        """All sources at once, or only those in these slots (the width must then have been made to fit)."""
        if slots is None or self.key is None or self.value is None:
            self.key, self.value = key_BGSE.contiguous(), value_BGSE.contiguous()
        else:
            self.key[slots], self.value[slots] = key_BGSE, value_BGSE


@dataclass
class State:
    """The whole state of a Transformer decoder over rows = sources x beam."""

    layers: list[Growing]
    cross: list[tuple[Fixed, ...]]
    slots: Slots
    beam: int = 1

    def reorder(self, rows: Int[Tensor, "R"]) -> None:
        """Row r goes on from what row rows[r] had written. Sources stay where they are."""
        used = self.slots.used
        self.slots.real = self.slots.real[rows]
        for layer in self.layers:
            layer.reorder(rows, used)

    def trim(self, length: int) -> None:
        """Forget every token at position `length` and after it, in every row."""
        self.slots.real[:, length:] = False
        self.slots.used = min(self.slots.used, length)

    def clear(self, rows: Sequence[int]) -> None:
        """Empty these rows, for a new source."""
        self.slots.real[list(rows)] = False


def new_slots(rows: int, capacity: int, device: torch.device | str) -> Slots:
    positions = torch.arange(capacity + 1, device=device).expand(rows, capacity + 1)
    return Slots(positions, torch.zeros(rows, capacity + 1, dtype=torch.bool, device=device))
