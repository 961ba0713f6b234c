"""Patterns that leave most pairs out: dilated and strided ones, blocks, global tokens, and BigBird's random blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.errors import UsageError
from regard.nn.attention.predicate import Predicate, Stretch


@dataclass(frozen=True)
class Dilated(Predicate):
    """A window with gaps: every step-th key, up to `reach` of them on each side; with `Causal`, of the past (Longformer 2020)."""

    kind: ClassVar[Literal["dilated"]] = "dilated"
    reach: int
    """How many keys are seen on each side, besides oneself."""
    steps: tuple[int, ...] = (2,)
    """From one key to the next; of several numbers the heads take one each, in turn."""

    def __post_init__(self):
        _check("dilated", "reach", self.reach, least=0)
        _check("dilated", "number of steps", len(self.steps), least=1)
        for step in self.steps:
            _check("dilated", "step", step, least=1)

    @property
    def sparse(self):
        return True

    def allows(self, query, key, head):
        away, step = (query.positions - key.positions).abs(), self._step(head)
        return (away % step == 0) & (away <= self.reach * step)

    def meets(self, query, key, head):
        return _near(query, key, self.reach * self._step(head))

    def _step(self, head: Int[Tensor, "..."]) -> Int[Tensor, "..."] | int:
        if len(self.steps) == 1:
            return self.steps[0]
        return sum(torch.where(head % len(self.steps) == turn, step, 0) for turn, step in enumerate(self.steps))


@dataclass(frozen=True)
class Strided(Predicate):
    """Every step-th key, however far away (with a window beside it, the Sparse Transformer of Child 2019)."""

    kind: ClassVar[Literal["strided"]] = "strided"
    step: int
    """From one key to the next."""

    def __post_init__(self):
        _check("strided", "step", self.step, least=1)

    def allows(self, query, key, head):
        return (query.positions - key.positions) % self.step == 0


@dataclass(frozen=True)
class BlockLocal(Predicate):
    """Keys of the query's own block, the document cut into blocks of `size`; and of so many neighbouring blocks on each side."""

    kind: ClassVar[Literal["block-local"]] = "block-local"
    size: int = 256
    """Tokens of a block."""
    reach: int = 0
    """How many blocks further are seen on each side."""

    def __post_init__(self):
        _check("block-local", "size", self.size, least=1)
        _check("block-local", "reach", self.reach, least=0)

    @property
    def sparse(self):
        return True

    def allows(self, query, key, head):
        return (query.positions // self.size - key.positions // self.size).abs() <= self.reach

    def meets(self, query, key, head):
        near_past = query.low // self.size - key.high // self.size <= self.reach
        return near_past & (key.low // self.size - query.high // self.size <= self.reach)


@dataclass(frozen=True)
class Global(Predicate):
    """Some positions see everything and are seen by everyone (Longformer 2020)."""

    kind: ClassVar[Literal["global"]] = "global"
    first: int = 1
    """How many positions at the start of the document are global."""
    at: tuple[int, ...] = ()
    """Further positions that are."""
    side: Literal["both", "queries", "keys"] = "both"
    """Whether they see everything, are seen by everyone, or both."""

    def __post_init__(self):
        _check("global", "first", self.first, least=0)

    @property
    def sparse(self):
        return True

    def allows(self, query, key, head):
        nowhere = (query.positions != query.positions) & (key.positions != key.positions)
        looking = self._marks(query.positions) if self.side != "keys" else nowhere
        return looking | (self._marks(key.positions) if self.side != "queries" else nowhere)

    def meets(self, query, key, head):
        nowhere = (query.low != query.low) & (key.low != key.low)
        looking = self._touches(query) if self.side != "keys" else nowhere
        return looking | (self._touches(key) if self.side != "queries" else nowhere)

    def _marks(self, positions: Int[Tensor, "..."]) -> Bool[Tensor, "..."]:
        marked = positions < self.first
        for place in self.at:
            marked = marked | (positions == place)
        return marked

    def _touches(self, stretch: Stretch) -> Bool[Tensor, "..."]:
        touched = stretch.low < self.first
        for place in self.at:
            touched = touched | ((stretch.low <= place) & (stretch.high >= place))
        return touched


@dataclass(frozen=True)
class BlockEnds(Predicate):
    """The first and the last block of a document see everything and are seen by everyone: BigBird's global part."""

    kind: ClassVar[Literal["block-ends"]] = "block-ends"
    size: int = 64
    """Tokens of a block."""

    def __post_init__(self):
        _check("block-ends", "size", self.size, least=1)

    @property
    def sparse(self):
        return True

    @property
    def measures(self):
        return True

    def allows(self, query, key, head):
        return self._ends(query.positions, query.positions, query.length) | self._ends(key.positions, key.positions, key.length)

    def meets(self, query, key, head):
        return self._ends(query.low, query.high, query.lengths) | self._ends(key.low, key.high, key.lengths)

    def _ends(self, low: Tensor, high: Tensor, lengths: Tensor) -> Tensor:
        return (low < self.size) | (high // self.size >= (lengths - 1) // self.size)


@dataclass(frozen=True)
class RandomBlocks(Predicate):
    """BigBird's random part: each block sees `count` others, besides its neighbours and the ends of the document.

    What is left after those is cut into `count` equal parts, and one block is drawn from each: never the same twice. A draw is a
    function of seed, head, block and the document's length alone, so training and evaluation have the same table.
    """

    kind: ClassVar[Literal["random-blocks"]] = "random-blocks"
    size: int = 64
    """Tokens of a block."""
    count: int = 3
    """How many blocks are drawn."""
    seed: int = 0
    """Of the draw; give each layer of a cycle its own."""

    def __post_init__(self):
        _check("random-blocks", "size", self.size, least=1)
        _check("random-blocks", "count", self.count, least=0)

    @property
    def sparse(self):
        return True

    @property
    def measures(self):
        return True

    def allows(self, query, key, head):
        return self._drawn(query.positions // self.size, key.positions // self.size, (query.length - 1) // self.size, head)

    def meets(self, query, key, head):
        met = ~(query.even & key.even)  # where documents meet in one stretch, no corner speaks for the rest
        for asking in self._blocks(query):
            for asked in self._blocks(key):
                met = met | self._drawn(asking, asked, (query.lengths - 1) // self.size, head)
        return met

    def _blocks(self, stretch: Stretch) -> list[Int[Tensor, "..."]]:
        """All blocks that a stretch may touch."""
        return [(stretch.low + self.size * more).clamp_max(stretch.high) // self.size for more in range(-(-stretch.size // self.size) + 1)]

    def _drawn(self, row: Tensor, column: Tensor, last: Tensor, head: Tensor) -> Tensor:
        # A row may draw 1 .. row-2 and row+2 .. last-1; `place` counts these without the gap.
        before = (row - 2).clamp(min=0)
        left = before + (last - row - 2).clamp(min=0)
        place = torch.where(column < row, column - 1, column - row - 2 + before)
        inner = (row > 0) & (row < last) & (column > 0) & (column < last) & ((row - column).abs() > 1)
        found = inner & ~inner
        for part in range(self.count):
            start, end = part * left // self.count, (part + 1) * left // self.count
            drawn = start + _hash(self.seed, part, head, row) % (end - start).clamp(min=1)
            found = found | ((end > start) & (place == drawn))
        return inner & found


@dataclass(frozen=True)
class BigBird(Predicate):
    """Window, ends and random blocks together, all in blocks of `size` (Zaheer 2020)."""

    kind: ClassVar[Literal["bigbird"]] = "bigbird"
    size: int = 64
    """Tokens of a block."""
    random: int = 3
    """How many random blocks each block sees."""
    seed: int = 0
    """Of the draw; give each layer of a cycle its own."""

    def __post_init__(self):
        self.parts  # noqa: B018  (which refuse sizes that cannot be)

    @property
    def parts(self) -> tuple[BlockLocal, BlockEnds, RandomBlocks]:
        """What it is the union of."""
        return BlockLocal(self.size, reach=1), BlockEnds(self.size), RandomBlocks(self.size, self.random, self.seed)

    @property
    def sparse(self):
        return True

    @property
    def measures(self):
        return True

    def allows(self, query, key, head):
        window, ends, random = (part.allows(query, key, head) for part in self.parts)
        return window | ends | random

    def meets(self, query, key, head):
        window, ends, random = (part.meets(query, key, head) for part in self.parts)
        return window | ends | random


def _near(query: Stretch, key: Stretch, reach: Tensor | int) -> Bool[Tensor, "..."]:
    return (key.low - query.high <= reach) & (query.low - key.high <= reach)


def _hash(seed: int, part: int, head: Tensor, row: Tensor) -> Tensor:
    """A number below 2^31 that looks random, by elementwise integer operations alone (the constants are those of common mixers)."""
    mixed = (seed * 0x2545F491 + part * 0x1B873593 + 0x3C6EF372 + head * 0x5EBCA6B + row * 0x1E3779B1) & 0x7FFFFFFF
    for factor in (0x2C1B3C6D, 0x297A2D39):
        mixed = ((mixed ^ (mixed >> 15)) * factor) & 0x7FFFFFFF
    return mixed ^ (mixed >> 13)


def _check(where: str, name: str, value: int, *, least: int) -> None:
    if value < least:
        raise UsageError(f"{name} is {value}", where=where, do=f"give {least} or more")
