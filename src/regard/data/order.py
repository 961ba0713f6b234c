"""The order of an epoch, a pure function of (seed, epoch): blocks of pairs permuted, gathered into windows, each window sorted and cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from regard.data.stream import Part
from regard.errors import UsageError

Blocks = NDArray[np.int64]  # rows of (start, stop)


@dataclass(frozen=True)
class Budget:
    """What one batch may hold on either side. Packed: `tokens` real ones. Padded: a rectangle of `tokens` places."""

    tokens: int
    layout: Literal["packed", "padded"]
    documents: int = 1 << 30


def windows(parts: Sequence[Part], *, seed: int, epoch: int, block: int, window: int) -> Iterator[NDArray[np.int64]]:
    """The pairs of an epoch, in stretches of about `window` pairs."""
    blocks = _mixture(parts, seed=seed, epoch=epoch, block=block)
    blocks = blocks[np.random.default_rng([seed, epoch, 0]).permutation(len(blocks))]
    ends = np.cumsum(blocks[:, 1] - blocks[:, 0])
    first = 0
    while first < len(blocks):
        begun = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, begun + window, side="right")))
        yield np.concatenate([np.arange(start, stop) for start, stop in blocks[first:last]])
        first = last


def batches(
    lengths: tuple[NDArray[np.int64], NDArray[np.int64]], budget: Budget, *, order: Literal["length", "random"], random: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Places in the window, cut into batches of similar lengths; the batches come in random order."""
    shuffled = random.permutation(len(lengths[0]))
    source, target = lengths[0][shuffled], lengths[1][shuffled]
    if order == "length":
        # like a snake: sources rise where targets are even and fall where they are odd, so that neighbours are alike on both sides
        ranked = np.lexsort((np.where(target % 2, -source, source), target))
        shuffled, source, target = shuffled[ranked], source[ranked], target[ranked]
    edges = cut(source, target, budget)
    cuts = [shuffled[start:stop] for start, stop in pairwise(edges)]
    return [cuts[place] for place in random.permutation(len(cuts))]


def cut(source: NDArray[np.int64], target: NDArray[np.int64], budget: Budget) -> list[int]:
    """Where each batch begins, and the end: as many pairs as the budget allows, in the order given."""
    if budget.layout == "packed":
        return _cut_packed(source, target, budget)
    edges, longest = [0], 0
    for place, length in enumerate(np.maximum(source, target).tolist()):
        longest = max(longest, length)
        count = place + 1 - edges[-1]
        if count > 1 and (longest * count > budget.tokens or count > budget.documents):
            edges.append(place)
            longest = length
    return [*edges, len(source)] if len(source) else [0]


def _cut_packed(source: NDArray[np.int64], target: NDArray[np.int64], budget: Budget) -> list[int]:
    ends = np.cumsum(source), np.cumsum(target)
    edges = [0]
    while edges[-1] < len(source):
        start = edges[-1]
        fits = (int(np.searchsorted(end, (end[start - 1] if start else 0) + budget.tokens, side="right")) for end in ends)
        edges.append(max(start + 1, min(*fits, start + budget.documents)))
    return edges


def _mixture(parts: Sequence[Part], *, seed: int, epoch: int, block: int) -> Blocks:
    """The blocks of an epoch, each corpus by its share. Without shares: every pair once."""
    shares = [part.share for part in parts]
    if not any(shares):
        return np.concatenate([_blocks(part, block) for part in parts])
    if not all(share > 0 for share in shares):
        raise UsageError(f"shares {shares}: give every corpus a share above 0, or none")
    whole = sum(part.stop - part.start for part in parts)
    taken = []
    for number, part in enumerate(parts):
        if part.stop == part.start:
            continue
        count = max(1, round(whole * part.share / sum(shares)))
        taken.append(_stretch(part, epoch * count, (epoch + 1) * count, seed=[seed, 1, number], block=block))
    return np.concatenate(taken) if taken else np.zeros((0, 2), np.int64)


def _stretch(part: Part, start: int, stop: int, *, seed: list[int], block: int) -> Blocks:
    """Pairs `start` to `stop` of a corpus's own endless stream, pass after pass, so that over the epochs all come equally often."""
    size, found = part.stop - part.start, []
    for turn in range(start // size, -(-stop // size)):
        blocks = _blocks(part, block)
        blocks = blocks[np.random.default_rng([*seed, turn]).permutation(len(blocks))]
        ends = turn * size + np.cumsum(blocks[:, 1] - blocks[:, 0])
        begins = ends - (blocks[:, 1] - blocks[:, 0])
        cut_start = blocks[:, 0] + np.maximum(start - begins, 0)
        cut_stop = blocks[:, 1] - np.maximum(ends - stop, 0)
        kept = cut_start < cut_stop
        found.append(np.stack([cut_start[kept], cut_stop[kept]], 1))
    return np.concatenate(found)


def _blocks(part: Part, block: int) -> Blocks:
    starts = np.arange(part.start, part.stop, block)
    return np.stack([starts, np.minimum(starts + block, part.stop)], 1)
