"""What decoding keeps between steps, handed down the call: of the target what has been written, of the source what is looked at.

Of the target a layer keeps growing keys and values, the vectors of a recurrent cell, or the tail that a convolution still reaches. A slot
of a growing cache is the absolute position of its token, so rows may be at different lengths, and an empty slot is one that is not real.
Rows are targets being written; `beam` of them share one source, which is stored once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.errors import UsageError
from regard.nn.view import Tokens


class Written(Protocol):
    """What one layer keeps of the target."""

    def reorder(self, rows: Int[Tensor, "R"], used: int) -> None:
        """Row r goes on from what row rows[r] had written."""
        ...

    def trim(self, length: int) -> None:
        """Forget every token at position `length` and after it."""
        ...

    def clear(self, rows: Sequence[int]) -> None:
        """Empty these rows, for a new source."""
        ...


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

    def trim(self, length: int) -> None:
        """The slots tell what is real."""

    def clear(self, rows: Sequence[int]) -> None:
        """The slots tell what is real."""


class Vectors:
    """The vectors of a recurrent layer, of a few names; `first` are those of each source, from which its rows begin."""

    def __init__(self, beam: int):
        self.beam = beam
        self.first: dict[str, Tensor] = {}
        self.now: dict[str, Tensor] = {}

    def begin(self, first: dict[str, Float[Tensor, "N D"]], slots: Tensor | None = None) -> None:
        """All sources are new, or those in these slots; the rows of the latter begin once they are cleared."""
        if slots is None or not self.first:
            self.first = first
            self.now = {name: of_source.repeat_interleave(self.beam, 0) for name, of_source in first.items()}
        else:
            for name, of_source in first.items():
                self.first[name][slots] = of_source

    def reorder(self, rows: Int[Tensor, "R"], used: int) -> None:
        self.now = {name: vector[rows] for name, vector in self.now.items()}

    def trim(self, length: int) -> None:
        raise UsageError("a recurrent layer cannot forget its last words", do="begin the row again")

    def clear(self, rows: Sequence[int]) -> None:
        places = torch.tensor(list(rows))
        for name, vector in self.now.items():
            of_source = self.first[name]
            self.now[name] = vector.index_copy(0, places.to(vector.device), of_source[(places // self.beam).to(vector.device)])


class Tail:
    """The last inputs of a causal convolution: as many as it reaches back, zeros before the first."""

    def __init__(self, rows: int, reach: int):
        self.rows, self.reach = rows, reach
        self.kept: Tensor | None = None

    def extend(self, x_RTD: Float[Tensor, "R T D"], real_RT: Bool[Tensor, "R T"]) -> Float[Tensor, "R reach+T D"]:
        """The inputs with what came before them; of all that, the last real ones are kept."""
        before = x_RTD.new_zeros(self.rows, self.reach, x_RTD.shape[2]) if self.kept is None else self.kept
        joined = torch.cat([before, x_RTD], 1)
        last = F.pad(real_RT, (self.reach, 0), value=True).long().argsort(dim=1, stable=True)[:, x_RTD.shape[1] :]
        self.kept = joined.gather(1, last[..., None].expand(-1, -1, x_RTD.shape[2]))
        return joined

    def reorder(self, rows: Int[Tensor, "R"], used: int) -> None:
        self.kept = self.kept[rows] if self.kept is not None else None

    def trim(self, length: int) -> None:
        raise UsageError("a convolution that keeps only what it reaches cannot forget its last words", do="begin the row again")

    def clear(self, rows: Sequence[int]) -> None:
        if self.kept is not None:
            self.kept[list(rows)] = 0


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


class Kept:
    """Tensors with a row for each source: all written at once, or some of them beside the others; `along` is the source's length."""

    def __init__(self, sources: int, *, along: int):
        self.sources, self.along = sources, along
        self.tensors: tuple[Tensor, ...] = ()

    def write(self, new: tuple[Tensor, ...], slots: Tensor | None = None) -> None:
        """Whichever is shorter is filled up with zeros, which padding is."""
        if slots is None:
            self.tensors = tuple(tensor.contiguous() for tensor in new)
            return
        kept = self.tensors or tuple(tensor.new_zeros(self.sources, *tensor.shape[1:]) for tensor in new)
        length = max(kept[0].shape[self.along], new[0].shape[self.along])
        self.tensors = tuple(self._lengthened(tensor, length) for tensor in kept)
        for tensor, rows in zip(self.tensors, new, strict=True):
            tensor[slots] = self._lengthened(rows, length)

    def _lengthened(self, tensor: Tensor, length: int) -> Tensor:
        more = length - tensor.shape[self.along]
        return F.pad(tensor, (0, 0) * (tensor.dim() - 1 - self.along) + (0, more)) if more else tensor


class Fixed:
    """Keys and values of one cross-attention layer: written when a source comes in, read at every step."""

    def __init__(self, sources: int):
        self.kept = Kept(sources, along=2)

    def write(self, key_BGSE: Tensor, value_BGSE: Tensor, slots: Tensor | None = None) -> None:
        """All sources at once, or only those in these slots."""
        self.kept.write((key_BGSE, value_BGSE), slots)

    @property
    def key(self) -> Float[Tensor, "B G S E"]:
        return self.kept.tensors[0]

    @property
    def value(self) -> Float[Tensor, "B G S E"]:
        return self.kept.tensors[1]


@dataclass
class State:
    """The whole state of a decoder over rows = sources x beam."""

    layers: Sequence[Written]
    cross: Sequence[tuple[Fixed, ...]]
    sources: tuple[Kept, ...]  # the facts of each memory's tokens
    slots: Slots
    beam: int = 1
    also: tuple[Written, ...] = ()  # what the model keeps of the target beside its decoder

    @property
    def memory_tokens(self) -> tuple[Tokens, ...]:
        """The facts of each memory's tokens; new objects each time, so a step asks once and its layers share masks."""
        facts = (source.tensors for source in self.sources)
        return tuple(Tokens(positions, documents, real) for positions, documents, real in facts)

    def write(self, tokens: Tokens, *, longest: int) -> None:
        """The tokens of the coming step; `longest` bounds the positions after them."""
        self.slots.write(tokens, longest=longest)

    def reorder(self, rows: Int[Tensor, "R"]) -> None:
        """Row r goes on from what row rows[r] had written. Sources stay where they are."""
        used = self.slots.used
        self.slots.real = self.slots.real[rows]
        for part in (*self.layers, *self.also):
            part.reorder(rows, used)

    def trim(self, length: int) -> None:
        """Forget every token at position `length` and after it, in every row."""
        for part in (*self.layers, *self.also):
            part.trim(length)
        self.slots.real[:, length:] = False
        self.slots.used = min(self.slots.used, length)

    def clear(self, rows: Sequence[int]) -> None:
        """Empty these rows, for a new source."""
        self.slots.real[list(rows)] = False
        for part in (*self.layers, *self.also):
            part.clear(rows)


def new_state(
    rows: int,
    capacity: int,
    *,
    layers: Sequence[Written],
    fixed: int,
    memories: int,
    beam: int,
    device: torch.device | str,
) -> State:
    """An empty state; `fixed` is how many layers look at the memories."""
    positions = torch.arange(capacity + 1, device=device).expand(rows, capacity + 1)
    slots = Slots(positions, torch.zeros(rows, capacity + 1, dtype=torch.bool, device=device))
    sources = rows // beam
    cross = [tuple(Fixed(sources) for _ in range(memories)) for _ in range(fixed)]
    return State(layers, cross, tuple(Kept(sources, along=1) for _ in range(memories)), slots, beam)
