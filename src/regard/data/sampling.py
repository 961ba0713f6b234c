"""Other ways to spell a word, drawn while training: BPE-dropout and unigram sampling, each a pure function of (seed, word)."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Mapping
from itertools import pairwise
from random import Random

import numpy as np
from numpy.typing import NDArray

LONGEST_PIECE = 16  # characters, SentencePiece's own limit


def drop_merges(symbols: list[str], ranks: Mapping[str, int], *, dropout: float, random: Random) -> list[str]:
    """BPE where each possible merge is overlooked with this chance at every step (Provilkov et al. 2020, algorithm 1)."""
    symbols = list(symbols)
    while True:
        open_merges = [
            (rank, place)
            for place, (left, right) in enumerate(pairwise(symbols))
            if (rank := ranks.get(left + right)) is not None and (not dropout or random.random() >= dropout)
        ]
        if not open_merges:
            return symbols
        _, place = min(open_merges)
        symbols[place : place + 2] = [symbols[place] + symbols[place + 1]]


class Lattice:
    """All the spellings of a word by known pieces; one is drawn with probability proportional to P(pieces)^alpha (Kudo 2018)."""

    def __init__(self, word: str, scores: Mapping[str, float], *, alpha: float, unknown: float):
        self.word = word
        totals = [0.0] + [-math.inf] * len(word)  # log of the summed weight of all spellings of word[:end]
        self._arcs: list[tuple[list[int], list[float]]] = [([], [])]  # for each end: starts, and their summed probabilities
        for end in range(1, len(word) + 1):
            starts, logs = [], []
            for start in range(max(0, end - LONGEST_PIECE), end):
                score = scores.get(word[start:end])
                if score is None and end - start == 1:
                    score = unknown
                if score is not None:
                    starts.append(start)
                    logs.append(totals[start] + alpha * score)
            top = max(logs)
            weights = [math.exp(value - top) for value in logs]
            whole = sum(weights)
            totals[end] = top + math.log(whole)
            summed, running = [], 0.0
            for weight in weights:
                running += weight / whole
                summed.append(running)
            summed[-1] = 1.0
            self._arcs.append((starts, summed))

    def draw(self, random: Random) -> list[str]:
        """One spelling, from the end of the word to its beginning (forward filtering, backward sampling)."""
        pieces, end = [], len(self.word)
        while end:
            starts, summed = self._arcs[end]
            start = starts[bisect(summed, random.random())]
            pieces.append(self.word[start:end])
            end = start
        return pieces[::-1]


def choices(pairs: NDArray[np.int64], places: NDArray[np.int64], *, draws: int, seed: int, epoch: int, side: int) -> NDArray[np.int64]:
    """Which of the draws, 1 to `draws`, stands at this place of this pair in this epoch: a hash, so that nothing has to be remembered."""
    salt = np.uint64(_mixed_number(seed) ^ _mixed_number(2 * epoch + side + 1))
    value = _mixed(_mixed(pairs.astype(np.uint64) ^ salt) + places.astype(np.uint64))
    return ((value >> np.uint64(11)) % np.uint64(draws)).astype(np.int64) + 1


def _mixed(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finaliser: every bit of the input moves every bit of the output."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def _mixed_number(value: int) -> int:
    return int(_mixed(np.array([value % 2**64], np.uint64))[0])
