"""Facts about tokens, apart from what is decided on them: where each one stands, to which document it belongs, whether it is real."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.utils._pytree as pytree
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Spans:
    """Where the documents of one packed row lie, so that a kernel can lay them side by side.

    `gather` holds, for each document, the places of its tokens in the row, and T (one past the end) where it has none;
    `scatter` holds, for each token of the row, its place in the flattened N x L rectangle.
    """

    offsets: Int[Tensor, "N+1"]
    longest: int
    gather: Int[Tensor, "N L"]
    scatter: Int[Tensor, "T"]

    @staticmethod
    def of(lengths: Int[Tensor, "N"], *, longest: int = 0) -> Spans:
        """The spans of documents of these lengths, end to end. Built on the CPU, by whoever makes the batch.

        For shapes that stay the same from batch to batch: a fixed `longest`, and documents of length 0 that make up their number.
        """
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        longest, total = longest or int(lengths.max()), int(offsets[-1])
        columns = torch.arange(longest)
        gather = torch.where(columns < lengths[:, None], offsets[:-1, None] + columns, total)
        scatter = torch.nonzero((columns < lengths[:, None]).flatten()).flatten()
        return Spans(offsets=offsets.to(torch.int32), longest=longest, gather=gather, scatter=scatter)

    def to(self, device: torch.device | str) -> Spans:
        return _moved(self, device)

    def twice(self) -> Spans:
        """The same documents once more, behind themselves. Without asking the device anything."""
        total = len(self.scatter)
        again = torch.where(self.gather < total, self.gather + total, 2 * total)
        gather = torch.cat([torch.where(self.gather < total, self.gather, 2 * total), again])
        scatter = torch.cat([self.scatter, self.scatter + self.gather.numel()])
        return Spans(torch.cat([self.offsets, self.offsets[1:] + self.offsets[-1]]), self.longest, gather, scatter)


@dataclass(frozen=True, eq=False)
class Tokens:
    """The facts that a pattern is asked about. `spans` is there when the row is packed (B = 1) and the batcher laid it out."""

    positions: Int[Tensor, "B T"]
    documents: Int[Tensor, "B T"]
    real: Bool[Tensor, "B T"]
    spans: Spans | None = None
    lengths: Int[Tensor, "B T"] | None = None  # of each token's document, where somebody worked them out; `measured` does
    upright: bool = False  # the promise that every real token stands in its row at the place that is its position

    @staticmethod
    def plain(batch: int, length: int, *, device: torch.device | str = "cpu") -> Tokens:
        """Rows of equal length, all real, one document each."""
        positions = torch.arange(length, device=device).expand(batch, length)
        return Tokens(positions, torch.zeros_like(positions), torch.ones_like(positions, dtype=torch.bool), upright=True)

    @staticmethod
    def padded(real: Bool[Tensor, "B T"]) -> Tokens:
        """Rows with padding on either side; positions count the real tokens from 0, so that left padding moves nothing."""
        positions = (real.long().cumsum(1) - 1).clamp_min(0)
        return Tokens(positions, torch.zeros_like(positions), real)

    @staticmethod
    def packed(lengths: Int[Tensor, "N"], *, longest: int = 0) -> Tokens:
        """One row (B = 1) of documents end to end; positions restart in each."""
        documents = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        offsets = torch.repeat_interleave(lengths.cumsum(0) - lengths, lengths)
        positions = torch.arange(len(documents)) - offsets
        real = torch.ones_like(positions, dtype=torch.bool)
        return Tokens(positions[None], documents[None], real[None], Spans.of(lengths, longest=longest))

    def each(self, change: Callable[[Shaped[Tensor, "B T"]], Shaped[Tensor, "..."]]) -> Tokens:
        """Every fact changed alike: cut, gathered, put into another order."""
        return Tokens(change(self.positions), change(self.documents), change(self.real))

    def measured(self) -> Tokens:
        """The same facts, and how long each token's document is: up to its last real position."""
        if self.lengths is not None:
            return self
        ends = self.positions.new_zeros(len(self.documents), int(self.documents.max()) + 1)
        ends = ends.scatter_reduce(1, self.documents, torch.where(self.real, self.positions + 1, 0), "amax")
        return dataclasses.replace(self, lengths=ends.gather(1, self.documents))

    def twice(self) -> Tokens:
        """All documents once more: behind one another in a packed row, rows under one another otherwise."""
        if self.spans is None:
            positions, documents, real = (torch.cat([fact, fact]) for fact in (self.positions, self.documents, self.real))
            return Tokens(positions, documents, real)
        documents = torch.cat([self.documents, self.documents + len(self.spans.gather)], 1)
        return Tokens(self.positions.repeat(1, 2), documents, self.real.repeat(1, 2), self.spans.twice())

    def to(self, device: torch.device | str) -> Tokens:
        return _moved(self, device)


@dataclass(frozen=True, eq=False)
class Memory:
    """What an encoder hands to a decoder: a vector for each token, and what else its kind can tell."""

    states: Float[Tensor, "B S D"]
    tokens: Tokens
    values: Float[Tensor, "B S D"] | None = None  # what is gathered, where it is not the states themselves (ConvS2S)
    final: Float[Tensor, "N L B D"] | None = None  # last states of each layer, both directions side by side; N = 2 for h and c

    @property
    def gathered(self) -> Float[Tensor, "B S D"]:
        return self.states if self.values is None else self.values


@dataclass(frozen=True, eq=False)
class View:
    """What a trunk sees besides its own input: the facts of its tokens, and the memories (a decoder may have two encoders)."""

    own: Tokens
    memories: tuple[Memory, ...] = ()
    memo: dict = field(default_factory=dict)  # masks and layouts that all layers of this call share


def _moved(facts, device):
    """A copy with every tensor on `device`; what is not a tensor stays."""
    moved = {field.name: getattr(facts, field.name) for field in dataclasses.fields(facts)}
    for name, value in moved.items():
        if isinstance(value, Tensor):
            moved[name] = value.to(device, non_blocking=True)
        elif isinstance(value, Spans):
            moved[name] = _moved(value, device)
    return type(facts)(**moved)


def _register(facts: type, static: tuple[str, ...]) -> None:
    """So that compiled code and wrappers see the tensors inside."""
    names = [field.name for field in dataclasses.fields(facts) if field.name not in static]

    def flatten(value):
        return [getattr(value, name) for name in names], tuple(getattr(value, name) for name in static)

    def unflatten(children, context):
        return facts(**dict(zip(names, children)), **dict(zip(static, context)))

    pytree.register_pytree_node(facts, flatten, unflatten)


_register(Spans, ("longest",))
_register(Tokens, ("upright",))
_register(Memory, ())
_register(View, ())
