"""Batches of pieces: rows are whole pieces, or parts of long ones that begin with a step; anew in each epoch, and in another key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from regard.data.batch import IGNORED
from regard.data.batching import Batching
from regard.data.marks import EOS, FIRST
from regard.data.music import Cells, text_of
from regard.data.text_batch import TextBatch
from regard.data.text_batches import TextBatches
from regard.data.text_cache import TextCache
from regard.data.words import PitchVocabulary
from regard.errors import UsageError

LOWEST = FIRST + 1  # the id of pitch 0; the rest stands before it


def music_cache(pieces: Sequence[Cells], vocabulary: PitchVocabulary, *, fingerprint: str = "") -> TextCache:
    """All pieces end to end, each begun by its mark."""
    return replace(TextCache.of([vocabulary.encode(text_of(piece)) for piece in pieces]), fingerprint=fingerprint)


class MusicBatches(TextBatches):
    """A row's tokens are the last voice of the step before, or the mark of the piece, and then whole steps: so a position says whose
    turn it is."""

    def __init__(
        self, cache: TextCache, config: Batching, *, voices: int, transpose: int = 0, seed: int = 1, rank: int = 0, world: int = 1
    ):
        super().__init__(cache, replace(config, within=True), seed=seed, rank=rank, world=world)
        if config.static and config.layout != "padded":
            raise UsageError("rows of constant shape are padded ones", where="batching", do='set layout = "padded"')
        self.voices, self.transpose = voices, transpose
        self.length = max(voices, self.length // voices * voices)
        self.ends = np.append(cache.starts[1:], len(cache))
        self.whole = self.ends - cache.starts <= self.length + 1  # pieces that are not cut; the mark is one token more

    @property
    def in_epoch(self) -> int:
        return sum(1 for _ in self.plan(0))

    def plan(self, epoch: int) -> Iterator[NDArray[np.int64]]:
        shift = self.shift(epoch)
        starts = np.random.default_rng([self.seed, epoch, 1]).permutation(self.starts(shift))
        yield from self._gathered(starts, self.stops(starts, shift) - starts)

    def once(self) -> Iterator[TextBatch]:
        """Every note once, and no end: what is asked is which notes come."""
        starts = self.starts(0)
        for some in self._gathered(starts, self.stops(starts, 0) - starts):
            batch = self.batch(some)
            labels = torch.where(batch.labels == EOS, IGNORED, batch.labels)
            yield replace(batch, labels=labels, target_tokens=int((labels != IGNORED).sum()))

    def largest(self) -> TextBatch:
        starts = self.starts(0)
        lengths = self.stops(starts, 0) - starts
        order = np.argsort(-lengths, kind="stable")
        return self.batch(next(self._gathered(starts[order], lengths[order])))

    def shift(self, epoch: int) -> int:
        return super().shift(epoch) // self.voices * self.voices

    def starts(self, shift: int) -> NDArray[np.int64]:
        first = shift or self.length
        later = [
            np.arange(start + first, end, self.length)
            for start, end in zip(self.cache.starts[~self.whole].tolist(), self.ends[~self.whole].tolist(), strict=True)
        ]
        return np.sort(np.concatenate([self.cache.starts, *later])).astype(np.int64)

    def stops(self, starts: NDArray[np.int64], shift: int) -> NDArray[np.int64]:
        piece = self._pieces(starts)
        length = np.where((starts == self.cache.starts[piece]) & (shift > 0), shift, self.length)
        return np.where(self.whole[piece], self.ends[piece], np.minimum(starts + length, self.ends[piece]))

    def drawn(self, starts: NDArray[np.int64], *, epoch: int) -> TextBatch:
        """Each piece in the key that this epoch draws for it; no pitch leaves what MIDI has."""
        batch = super().drawn(starts, epoch=epoch)
        if not self.transpose:
            return batch
        drawn = np.random.default_rng([self.seed, epoch, 2]).integers(-self.transpose, self.transpose, len(self.ends), endpoint=True)
        up = torch.from_numpy(drawn[self._pieces(np.array(batch.pairs))])
        tokens, ids = batch.text.tokens, batch.text.ids
        moved = up[tokens.documents] if tokens.spans is not None else F.pad(up, (0, len(ids) - len(up)))[:, None]
        return replace(batch, text=replace(batch.text, ids=_moved(ids, moved)), labels=_moved(batch.labels, moved))

    def batch(self, starts: NDArray[np.int64], *, shift: int = 0) -> TextBatch:
        batch = super().batch(starts, shift=shift)
        if not self.config.static:
            return batch
        missing = (0, self.length + 1 - batch.text.ids.shape[1], 0, self._most - len(batch.text.ids))
        facts = replace(batch.text.tokens.each(lambda fact: F.pad(fact, missing)), upright=True)
        text = replace(batch.text, ids=F.pad(batch.text.ids, missing), tokens=facts)
        self._places += text.ids.numel() - batch.text.ids.numel()
        return replace(batch, text=text, labels=F.pad(batch.labels, missing, value=IGNORED))

    @property
    def _most(self) -> int:
        """Rows of a batch of constant shape."""
        return max(1, self.config.tokens // (self.length + 1))

    def _pieces(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Whose rows these are."""
        return np.searchsorted(self.cache.starts, starts, side="right") - 1

    def _gathered(self, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """As many rows at a time as the budget holds."""
        first = tokens = longest = 0
        for place, length in enumerate(lengths.tolist()):
            longest, tokens = max(longest, length), tokens + length
            padded = (place + 1 - first) * (self.length + 1 if self.config.static else longest)
            if place > first and (tokens if self.config.layout != "padded" else padded) > self.config.tokens:
                yield starts[first:place]
                first, tokens, longest = place, length, length
        yield starts[first:]


def _moved(ids: Int[Tensor, "B T"], up: Int[Tensor, "#B #T"]) -> Int[Tensor, "B T"]:
    """Pitches so many semitones higher; one that MIDI does not have stays where it is."""
    higher = ids + up
    return torch.where((ids >= LOWEST) & (higher >= LOWEST) & (higher < LOWEST + 128), higher, ids)
