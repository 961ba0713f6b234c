"""Batches by token budget, without end and from any point: what comes after a cursor is a pure function of (data, config, seed)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from regard.data.batch import PairBatch
from regard.data.layouts import Fixed, Rows, packed, padded
from regard.data.order import Budget, batches, cut, windows
from regard.data.prefetch import prefetch
from regard.data.stream import Draw, PairCache
from regard.errors import DataError, UsageError


@dataclass(frozen=True)
class Batching:
    """How pairs become batches."""

    tokens: int = 0
    """Most tokens of a batch on either side, marks included: real ones when packed, rows x longest when padded. 0 = fit to the device."""
    layout: Literal["auto", "packed", "padded"] = "auto"
    """Pairs end to end in one row, or one row each, padded; auto = packed, or padded where the model has to go word by word."""
    max_length: int = 256
    """Most tokens of one side of a pair, its mark included; pairs beyond are left out and counted. Of running text: tokens of a row."""
    within: bool = False
    """Of running text: whether what is read stays within a document, or reaches back over those before it in the row."""
    order: Literal["auto", "length", "random"] = "auto"
    """Whether a batch holds pairs of similar lengths, or any; auto = any where that wastes nothing, in packed rows, since steps that see
    all lengths learn much faster (docs/results.md)."""
    static: bool = False
    """Packed rows of one constant shape, made up with filler that has no loss: for compiled code."""
    block: int = 256
    """Neighbouring pairs that stay together when an epoch is permuted."""
    window: int = 65_536
    """How many pairs are sorted by length at a time."""
    ahead: int = 4
    """Batches made ahead by a background thread; 0 = none."""

    def suited(self, *, packs: bool) -> Batching:
        """With the layout of auto decided for a model."""
        return self if packs or self.layout != "auto" else replace(self, layout="padded")


@dataclass(frozen=True)
class Cursor:
    """A point in the endless stream of batches, counted over all ranks."""

    epoch: int = 0
    batch: int = 0


class Batches:
    """The batches of a cache. With several ranks each takes its turn, so that together they make exactly the batches of one."""

    def __init__(self, cache: PairCache, config: Batching, *, seed: int = 1, rank: int = 0, world: int = 1):
        if config.tokens < 1:
            raise UsageError("the token budget is not set", do="fit tokens to the device first, or give a number")
        self.cache, self.config, self.seed, self.rank, self.world = cache, config, seed, rank, world
        self.layout: Literal["packed", "padded"] = "padded" if config.layout == "padded" else "packed"
        self.order: Literal["length", "random"] = (
            config.order if config.order != "auto" else "random" if self.layout == "packed" else "length"
        )
        self.limit = min(config.max_length, config.tokens)
        self.fixed = self._fixed() if config.static else None
        self.budget = (
            Budget(self.fixed.room, "packed", documents=self.fixed.documents - self.fixed.fillers)
            if self.fixed
            else Budget(config.tokens, self.layout)
        )
        self.left_out = sum(int((~self._fits(pairs)).sum()) for pairs in _ranges(len(cache)))
        """Pairs longer than a batch or `max_length` allows."""
        if self.left_out == len(cache):
            raise DataError(
                "there are no pairs to make batches of" + (f": all {len(cache)} are longer than {self.limit} tokens" if len(cache) else ""),
                do="check the corpora and their filters" if not len(cache) else "raise max_length or tokens",
            )
        self._real = self._places = 0

    @property
    def padding_share(self) -> float:
        """The part of all places, of all batches made so far, that held no real token."""
        return 1 - self._real / self._places if self._places else 0.0

    def after(self, cursor: Cursor | None = None) -> Generator[tuple[PairBatch, Cursor], None, None]:
        """Batches without end, each with the cursor that continues after it (after the turn of every rank)."""
        start = cursor or Cursor()
        return prefetch(lambda: self._turns(start), ahead=self.config.ahead) if self.config.ahead else self._turns(start)

    @property
    def in_epoch(self) -> int:
        """Batches of the first epoch, over all ranks."""
        return sum(1 for _ in self.plan(0))

    def once(self) -> Iterator[PairBatch]:
        """Every pair once, in the order of the corpus and by its best spelling: for evaluation."""
        edge = 0
        for pairs in _ranges(len(self.cache)):
            kept = pairs[self._fits(pairs)]
            lengths = [side.lengths[kept].astype(np.int64) + 1 for side in self.cache.sides]
            edges = cut(lengths[0], lengths[1], self.budget)
            for start, stop in pairwise(edges):
                if edge % self.world == self.rank:
                    yield self.batch(kept[start:stop])
                edge += 1

    def plan(self, epoch: int) -> Iterator[NDArray[np.int64]]:
        """Which pairs make up each batch of an epoch, over all ranks."""
        config = self.config
        draw = self._draw(epoch)
        gathered = windows(self.cache.parts, seed=self.seed, epoch=epoch, block=config.block, window=config.window)
        for number, pairs in enumerate(gathered):
            kept = pairs[self._fits(pairs)]
            source, target = (side.drawn_lengths(kept, draw) + 1 for side in self.cache.sides)
            random = np.random.default_rng([self.seed, epoch, 1, number])
            for places in batches((source, target), self.budget, order=self.order, random=random):
                yield kept[places]

    def batch(self, pairs: NDArray[np.int64], *, epoch: int | None = None) -> PairBatch:
        """These pairs as a batch, spelled as the epoch draws them, or (without one) as well as can be."""
        draw = None if epoch is None else self._draw(epoch)
        source, target = (Rows(*side.take(pairs, draw)) for side in self.cache.sides)
        made = packed(source, target, pairs, fixed=self.fixed) if self.layout == "packed" else padded(source, target, pairs)
        self._real += made.source_tokens + made.target_tokens
        self._places += made.source.ids.numel() + made.target.ids.numel()
        return made

    def largest(self) -> PairBatch:
        """A batch as large as any can be, of the longest pairs there are: to try, before the first step, whether it fits the device."""
        found = np.zeros(0, np.int64)
        for pairs in _ranges(len(self.cache)):
            pairs = np.concatenate([found, pairs[self._fits(pairs)]])
            longer = np.maximum(*(side.lengths[pairs] for side in self.cache.sides))
            found = pairs[np.argsort(-longer, kind="stable")[: max(1, self.config.tokens // 8)]]
        found = np.resize(found, max(len(found), self.config.tokens))  # few pairs are repeated until the budget is full
        lengths = [side.lengths[found].astype(np.int64) + 1 for side in self.cache.sides]
        return self.batch(found[: cut(lengths[0], lengths[1], self.budget)[1]])

    def _turns(self, cursor: Cursor) -> Generator[tuple[PairBatch, Cursor], None, None]:
        for epoch, pairs, following in turns(self.plan, cursor, rank=self.rank, world=self.world):
            yield self.batch(pairs, epoch=epoch), following

    def _fixed(self) -> Fixed:
        if self.layout != "packed":
            raise UsageError("static shapes are for the packed layout", do='set layout = "packed"')
        fixed = Fixed(self.config.tokens, longest=self.limit, documents=max(2, self.config.tokens // 8))
        fixed = Fixed(fixed.length, fixed.longest, fixed.documents + fixed.fillers)
        self.limit = min(self.limit, fixed.room)
        return fixed

    def _fits(self, pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
        source, target = (side.lengths[pairs] for side in self.cache.sides)
        return np.maximum(source, target) < self.limit

    def _draw(self, epoch: int) -> Draw:
        return Draw(self.seed, epoch, self.limit - 1)


def _ranges(count: int, size: int = 1 << 16) -> Iterator[NDArray[np.int64]]:
    """All pairs, some at a time."""
    for start in range(0, count, size):
        yield np.arange(start, min(start + size, count))


def turns(
    plan: Callable[[int], Iterator[NDArray[np.int64]]], cursor: Cursor, *, rank: int, world: int
) -> Iterator[tuple[int, NDArray[np.int64], Cursor]]:
    """From the cursor on without end, of each turn of all ranks what is this rank's: the epoch, the examples, the cursor after the turn."""
    stream = _planned(plan, cursor)
    while turn := list(islice(stream, world)):
        epoch, pairs, _ = turn[rank]
        yield epoch, pairs, turn[-1][2]


def _planned(plan: Callable[[int], Iterator[NDArray[np.int64]]], cursor: Cursor) -> Iterator[tuple[int, NDArray[np.int64], Cursor]]:
    epoch, skipped = cursor.epoch, cursor.batch
    while True:
        upcoming = enumerate(islice(plan(epoch), skipped, None), skipped + 1)
        current = next(upcoming, None)
        while current is not None:
            following = next(upcoming, None)  # the last batch of an epoch hands on to the next one
            number, pairs = current
            yield epoch, pairs, Cursor(epoch, number) if following else Cursor(epoch + 1, 0)
            current = following
        epoch, skipped = epoch + 1, 0
