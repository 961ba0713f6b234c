"""Batches of running text for models that remember: as many streams as a batch has rows, each read on from where the last batch left it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.batch import IGNORED, Side
from regard.data.batching import Batching
from regard.data.layouts import rectangle
from regard.data.text_batch import TextBatch
from regard.data.text_batches import TextBatches
from regard.data.text_cache import TextCache
from regard.nn.view import Tokens


@dataclass(frozen=True, eq=False)
class SegmentBatch(TextBatch):
    """A segment of each of some streams; `pairs` says where in the text it begins, which is where the one before it ended."""

    streams: tuple[int, ...] = ()
    """Which streams of the rank these are."""
    of: int = 0
    """How many it has."""
    ends: tuple[int, ...] = ()
    """Where in the text each row ends."""
    longest: int = 0
    """Bounds the positions."""

    def part(self, wanted: range) -> Self:
        some = slice(wanted.start, wanted.stop)
        return replace(super().part(wanted), streams=self.streams[some], ends=self.ends[some])


class SegmentBatches(TextBatches):
    """The text is parted into streams of equal length, the same in every epoch; what is left over at its end is for `once` alone."""

    def __init__(self, cache: TextCache, config: Batching, *, seed: int = 1, rank: int = 0, world: int = 1):
        super().__init__(cache, config, seed=seed, rank=rank, world=world)
        self.streams = max(world, min(self.rows * world, self.count // self.length))
        self.stride = self.count // self.streams
        if config.static and self.stride > self.length:
            self.stride -= self.stride % self.length  # no shorter segment at the end

    @property
    def in_epoch(self) -> int:
        return -(-self.stride // self.length) * self.world

    def plan(self, epoch: int) -> Iterator[NDArray[np.int64]]:
        """Segment by segment, and of each the streams of one rank after those of another."""
        for first in range(0, self.stride, self.length):
            for rank in range(self.world):
                yield np.arange(rank, self.streams, self.world) * self.stride + first

    def once(self) -> Iterator[SegmentBatch]:
        for first in range(0, self._stop(self.streams - 1, whole=True) - self._begin(self.streams - 1), self.length):
            streams = np.arange(self.streams)
            starts = self._begin(streams) + first
            yield self.batch(starts[starts < self._stop(streams, whole=True)], whole=True)

    def largest(self) -> SegmentBatch:
        return self.batch(next(self.plan(0)))

    def batch(self, starts: NDArray[np.int64], *, shift: int = 0, whole: bool = False) -> SegmentBatch:
        """The segments that begin here; `whole`: the last stream has what is left over besides."""
        streams = np.minimum(starts // self.stride, self.streams - 1)
        stops = np.minimum(starts + self.length, self._stop(streams, whole=whole))
        lengths = stops - starts
        places = np.minimum(starts[:, None] + np.arange(lengths.max()), len(self.cache) - 1)
        real = np.arange(lengths.max()) < lengths[:, None]
        positions, documents = places - self._begin(streams)[:, None], np.zeros_like(places)
        if self.config.within:
            documents = np.searchsorted(self.cache.starts, places, side="right") - 1
            positions = places - self.cache.starts[documents]
        ids = np.where(real, self.cache.ids[places], 0).astype(np.int64)
        facts = Tokens(torch.from_numpy(positions), torch.from_numpy(documents), torch.from_numpy(real))
        labels = rectangle(self._labels(places[real]), lengths, IGNORED)
        self._real += int(lengths.sum())
        self._places += real.size
        return SegmentBatch(
            Side(torch.from_numpy(ids), facts),
            labels,
            tuple(starts.tolist()),
            int(lengths.sum()),
            streams=tuple((streams // self.world).tolist()),
            of=-(-self.streams // self.world),
            ends=tuple(stops.tolist()),
            longest=int(positions.max()) + 1,
        )

    def _begin(self, stream):
        return stream * self.stride

    def _stop(self, stream, *, whole: bool):
        """Where a stream ends."""
        return np.where(whole & (stream == self.streams - 1), self.count, (stream + 1) * self.stride)
