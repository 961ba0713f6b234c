"""Held-out pairs that training has not seen, on neither side: whole connected components of the sentence graph go."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from regard.errors import DataError

Index = npt.NDArray[np.int64]

LARGEST = 32  # pairs of a component that may be held out: a great tangle would take a part of the language with it


@dataclass(frozen=True, eq=False)
class Split:
    """Indices of pairs. Dev and test hold the first pair of each held-out component; its other pairs are in nothing."""

    train: Index
    dev: Index
    test: Index


def normalise(text: str) -> str:
    """What makes two sentences the same here: their letters and digits, in any case, with any punctuation."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(r"[\W_]+", " ", folded).strip() or folded.strip()


def key(text: str) -> int:
    """64 bits of a sentence. A collision would join two components, which costs nothing but a pair."""
    digest = hashlib.blake2b(normalise(text).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def components(pairs: Iterable[tuple[str, str]]) -> Index:
    """For each pair the number of the first pair of its component; equal sources and equal targets join. About 70 bytes a pair."""
    sources, targets = array("q"), array("q")
    for source, target in pairs:
        sources.append(key(source))
        targets.append(key(target))
    sides = [
        np.unique(np.frombuffer(side, dtype=np.int64), return_inverse=True)[1] if side else np.zeros(0, np.int64)
        for side in (sources, targets)
    ]
    return _joined(*sides)


def _joined(source: Index, target: Index) -> Index:
    """The least pair spreads over equal sources and equal targets; jumping from label to label's label makes long chains short."""
    labels = np.arange(len(source))
    while True:
        before = labels
        for side in (source, target):
            least = np.full(int(side.max(initial=-1)) + 1, len(side))
            np.minimum.at(least, side, labels)
            labels = least[side]
        labels = labels[labels]
        if np.array_equal(labels, before):
            return labels


def hold_out(pairs: Iterable[tuple[str, str]], *, dev: int, test: int, seed: int, largest: int = LARGEST) -> Split:
    """`dev` and `test` pairs, one from each of as many components drawn at random, and what is left for training."""
    labels = components(pairs)
    firsts, sizes = np.unique(labels, return_counts=True)
    candidates = firsts[sizes <= largest]
    if len(candidates) < dev + test or len(labels) <= dev + test:
        raise DataError(
            f"{dev} + {test} pairs cannot be held out: only {len(candidates)} groups of sentences share nothing with the rest",
            do="hold out fewer, or give files of your own for dev and test",
        )
    drawn = np.random.default_rng(seed).permutation(candidates)[: dev + test]
    train = np.flatnonzero(~np.isin(labels, drawn))
    if not len(train):
        raise DataError("nothing would be left for training", do="hold out fewer pairs")
    return Split(train, np.sort(drawn[:dev]), np.sort(drawn[dev:]))
