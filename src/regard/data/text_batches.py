"""Batches of running text: the long row of ids is cut into rows of one length, anew in each epoch, and each predicts its next tokens."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.batch import IGNORED, Side
from regard.data.batching import Batching, Cursor, turns
from regard.data.layouts import Rows, rectangle, rectangle_side, row
from regard.data.marks import BOS, EOS
from regard.data.prefetch import prefetch
from regard.data.text_batch import TextBatch
from regard.data.text_cache import TextCache
from regard.errors import UsageError
from regard.nn.view import Tokens


class TextBatches:
    """As many rows as the budget holds. An epoch has every token once; where its rows begin is a function of the seed."""

    def __init__(self, cache: TextCache, config: Batching, *, seed: int = 1, rank: int = 0, world: int = 1):
        if config.tokens < 1:
            raise UsageError("the budget of a batch is not set", do="fit it to the device first, or give a number")
        self.cache, self.config, self.seed, self.rank, self.world = cache, config, seed, rank, world
        self.length = min(config.max_length, config.tokens)
        self.rows = config.tokens // self.length
        self.marked = cache.begin == BOS
        self.count = len(cache) - (not self.marked)  # where the mark is text, nothing is said to follow the last token
        self._real = self._places = 0

    @property
    def padding_share(self) -> float:
        return 1 - self._real / self._places if self._places else 0.0

    @property
    def in_epoch(self) -> int:
        """Batches of the first epoch, over all ranks."""
        return -(-len(self.starts(self.shift(0))) // self.rows)

    def after(self, cursor: Cursor | None = None) -> Generator[tuple[TextBatch, Cursor], None, None]:
        """Batches without end, each with the cursor that continues after it."""

        def made() -> Generator[tuple[TextBatch, Cursor], None, None]:
            for epoch, starts, following in turns(self.plan, cursor or Cursor(), rank=self.rank, world=self.world):
                yield self.drawn(starts, epoch=epoch), following

        return prefetch(made, ahead=self.config.ahead) if self.config.ahead else made()

    def plan(self, epoch: int) -> Iterator[NDArray[np.int64]]:
        """Where the rows of each batch of an epoch begin, over all ranks."""
        starts = np.random.default_rng([self.seed, epoch, 1]).permutation(self.starts(self.shift(epoch)))
        for first in range(0, len(starts), self.rows):
            yield starts[first : first + self.rows]

    def once(self) -> Iterator[TextBatch]:
        """Every token once, in the order of the text: for evaluation."""
        starts = self.starts(0)
        for number, first in enumerate(range(0, len(starts), self.rows)):
            if number % self.world == self.rank:
                yield self.batch(starts[first : first + self.rows])

    def largest(self) -> TextBatch:
        return self.batch(np.resize(self.starts(0), self.rows))

    def shift(self, epoch: int) -> int:
        """How long the first row of an epoch is, so that rows begin elsewhere each time."""
        return int(np.random.default_rng([self.seed, epoch, 0]).integers(self.length))

    def starts(self, shift: int) -> NDArray[np.int64]:
        """The begin of every row."""
        later = np.arange(shift, self.count, self.length)
        return np.concatenate([np.zeros(1, np.int64), later]) if shift else later

    def drawn(self, starts: NDArray[np.int64], *, epoch: int) -> TextBatch:
        """The rows of an epoch that begin here."""
        return self.batch(starts, shift=self.shift(epoch))

    def stops(self, starts: NDArray[np.int64], shift: int) -> NDArray[np.int64]:
        """The ends of the rows that begin here."""
        return np.minimum(np.where(starts < shift, shift, starts + self.length), self.count)

    def batch(self, starts: NDArray[np.int64], *, shift: int = 0) -> TextBatch:
        """The rows that begin here."""
        stops = self.stops(starts, shift)
        if self.config.within:
            starts, stops = self._parted(starts, stops)
        lengths = stops - starts
        places = np.repeat(stops - np.cumsum(lengths), lengths) + np.arange(lengths.sum())
        rows, labels = Rows(self.cache.ids[places].astype(np.int64), lengths), self._labels(places)
        if self.config.within and self.config.layout != "padded":
            text, answers = Side(row(rows.ids), Tokens.packed(torch.from_numpy(lengths))), row(labels)
        elif (lengths == lengths[0]).all():
            shape = len(lengths), int(lengths[0])
            text = Side(torch.from_numpy(rows.ids).view(shape), Tokens.plain(*shape))
            answers = torch.from_numpy(labels).view(shape)
        else:
            text, answers = rectangle_side(rows.ids, lengths), rectangle(labels, lengths, IGNORED)
        self._real += len(places)
        self._places += text.ids.numel()
        return TextBatch(text, answers, tuple(starts.tolist()), len(labels))

    def _labels(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """What follows: the next token or, before the mark of the next document, that this one is over."""
        following = self.cache.ids[(places + 1) % len(self.cache)].astype(np.int64)
        if self.marked:
            following[following == BOS] = EOS
        return following

    def _parted(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The same rows, cut where documents begin inside them."""
        first, last = np.searchsorted(self.cache.starts, starts, side="right"), np.searchsorted(self.cache.starts, stops, side="left")
        inside = last - first
        cuts = self.cache.starts[np.repeat(last - np.cumsum(inside), inside) + np.arange(inside.sum())]
        edges = np.unique(np.concatenate([starts, cuts]))  # rows do not overlap
        owner = np.searchsorted(np.sort(starts), edges, side="right") - 1
        return edges, np.minimum(np.append(edges[1:], self.count), np.sort(stops)[owner])
