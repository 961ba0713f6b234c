"""A batch cut in two, for when memory is short: the two halves together have the gradient of the whole."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.data.batch import IGNORED, PairBatch, Side
from regard.nn.view import Tokens


def halve(batch: PairBatch) -> tuple[PairBatch, ...]:
    """Two batches of half the pairs each, or the batch itself where it holds a single pair."""
    if len(batch.pairs) < 2:
        return (batch,)
    middle = len(batch.pairs) // 2
    if batch.target.ids.shape[0] > 1:
        return tuple(_rows(batch, rows, pairs) for rows, pairs in _cut(batch.target.ids.shape[0], batch.pairs))
    return _documents(batch, range(middle)), _documents(batch, range(middle, len(batch.pairs)))


def _cut(rows: int, pairs: tuple[int, ...]):
    middle = rows // 2
    return (slice(0, middle), pairs[:middle]), (slice(middle, rows), pairs[middle:])


def _rows(batch: PairBatch, rows: slice, pairs: tuple[int, ...]) -> PairBatch:
    def side(whole: Side) -> Side:
        tokens = whole.tokens
        return Side(whole.ids[rows], Tokens(tokens.positions[rows], tokens.documents[rows], tokens.real[rows]))

    source, target, labels = side(batch.source), side(batch.target), batch.labels[rows]
    return PairBatch(source, target, labels, pairs, int(source.tokens.real.sum()), int((labels != IGNORED).sum()))


def _documents(batch: PairBatch, wanted: range) -> PairBatch:
    """Some documents of a packed row, numbered from 0 again; filler at the row's end is left behind."""

    def side(whole: Side) -> tuple[Side, Tensor]:
        documents = whole.tokens.documents[0]
        places = torch.nonzero((documents >= wanted.start) & (documents < wanted.stop) & whole.tokens.real[0]).flatten()
        lengths = torch.bincount(documents[places] - wanted.start, minlength=len(wanted)).cpu()
        return Side(whole.ids[:, places], Tokens.packed(lengths).to(whole.ids.device)), places

    source, _ = side(batch.source)
    target, places = side(batch.target)
    labels = batch.labels[:, places]
    pairs = batch.pairs[wanted.start : wanted.stop]
    return PairBatch(source, target, labels, pairs, source.ids.shape[1], int((labels != IGNORED).sum()))
