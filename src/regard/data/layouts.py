"""Pairs laid out as a batch: packed end to end into one row, or padded to a rectangle. Arrays all the way, no loop over tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.batch import IGNORED, PairBatch, Side
from regard.data.marks import BOS, EOS, PAD
from regard.nn.view import Tokens


class Rows(NamedTuple):
    """Ids without marks, end to end, and the length of each row."""

    ids: NDArray
    lengths: NDArray[np.int64]


@dataclass(frozen=True)
class Fixed:
    """Shapes that stay the same from batch to batch, so that compiled code is compiled once: what is missing is filled with
    documents without loss, and documents of length 0 make up their number."""

    length: int
    """Tokens in the packed row, of each side."""
    longest: int
    """Tokens in the longest document."""
    documents: int
    """Documents in the row, filler among them."""

    @property
    def fillers(self) -> int:
        """Filler documents in every row: enough that even an empty row is filled by documents of at most `longest`."""
        return -(-self.length // self.longest)

    @property
    def room(self) -> int:
        """Real tokens that fit a side: each filler keeps one place, so that none of them is without a source to look at."""
        return self.length - self.fillers


def packed(source: Rows, target: Rows, pairs: NDArray, *, fixed: Fixed | None = None) -> PairBatch:
    """One row (B = 1), nothing wasted; with `fixed`, one row of a constant length."""
    sources, inputs, labels = _ended(source), _begun(target), _ended(target).astype(np.int64)
    source_lengths, target_lengths = source.lengths + 1, target.lengths + 1
    longest = 0
    if fixed:
        longest = fixed.longest
        sources, source_lengths = _filled(sources, source_lengths, fixed)
        inputs, target_lengths = _filled(inputs, target_lengths, fixed)
        labels = np.concatenate([labels, np.full(fixed.length - len(labels), IGNORED)])
    return PairBatch(
        source=Side(row(sources), Tokens.packed(torch.from_numpy(source_lengths), longest=longest)),
        target=Side(row(inputs), Tokens.packed(torch.from_numpy(target_lengths), longest=longest)),
        labels=row(labels),
        pairs=tuple(pairs.tolist()),
        source_tokens=len(source.ids) + len(pairs),
        target_tokens=len(target.ids) + len(pairs),
    )


def padded(source: Rows, target: Rows, pairs: NDArray) -> PairBatch:
    """One row a pair, padded on the right to the longest."""
    sources, inputs, labels = _ended(source), _begun(target), _ended(target)
    return PairBatch(
        source=rectangle_side(sources, source.lengths + 1),
        target=rectangle_side(inputs, target.lengths + 1),
        labels=rectangle(labels, target.lengths + 1, IGNORED),
        pairs=tuple(pairs.tolist()),
        source_tokens=len(source.ids) + len(pairs),
        target_tokens=len(target.ids) + len(pairs),
    )


def _ended(rows: Rows) -> NDArray:
    """Each row with the end mark after it."""
    return _marked(rows, np.cumsum(rows.lengths + 1) - 1, EOS)


def _begun(rows: Rows) -> NDArray:
    """Each row with the begin mark before it."""
    return _marked(rows, np.cumsum(rows.lengths + 1) - rows.lengths - 1, BOS)


def _marked(rows: Rows, places: NDArray, mark: int) -> NDArray:
    ids = np.empty(len(rows.ids) + len(places), np.int64)
    own = np.ones(len(ids), bool)
    own[places] = False
    ids[own], ids[places] = rows.ids, mark
    return ids


def _filled(ids: NDArray, lengths: NDArray[np.int64], fixed: Fixed) -> tuple[NDArray, NDArray[np.int64]]:
    missing, fillers = fixed.length - len(ids), fixed.fillers
    if missing < fillers or len(lengths) + fillers > fixed.documents:
        raise ValueError(f"{len(ids)} tokens in {len(lengths)} documents do not fit {fixed}")
    filler = np.full(fillers, missing // fillers)
    filler[: missing % fillers] += 1
    none = np.zeros(fixed.documents - len(lengths) - fillers, np.int64)
    return np.concatenate([ids, np.full(missing, PAD)]), np.concatenate([lengths, filler, none])


def row(ids: NDArray) -> torch.Tensor:
    return torch.from_numpy(ids.astype(np.int64, copy=False))[None]


def rectangle_side(ids: NDArray, lengths: NDArray[np.int64]) -> Side:
    real = torch.arange(int(lengths.max())) < torch.from_numpy(lengths)[:, None]
    return Side(rectangle(ids, lengths, PAD), replace(Tokens.padded(real), upright=True))


def rectangle(ids: NDArray, lengths: NDArray[np.int64], filling: int) -> torch.Tensor:
    rectangle = np.full((len(lengths), int(lengths.max())), filling, np.int64)
    rectangle[np.arange(rectangle.shape[1]) < lengths[:, None]] = ids
    return torch.from_numpy(rectangle)
