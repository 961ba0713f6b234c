"""Pairs of sentences as flat arrays of word numbers, and every word of one side linked to every word of the other."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

# A word is a run of letters or digits, a mark, or one character of a script that does not part its words.
WORD = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+|[^\w\s]|_"
)
STEM = 6  # letters kept of a word: endings and compounds would make most words rare
LONGEST = 80  # words of a side that are looked at


def words(text: str) -> list[str]:
    return [word[:STEM] for word in WORD.findall(text.casefold())[:LONGEST]]


@dataclass(frozen=True, eq=False)
class Side:
    """The words of one side of all pairs, end to end."""

    word: Ints  # the number of each word
    pair: Ints  # the pair it stands in
    start: Ints  # where each pair begins; one more than there are pairs
    letters: Ints  # its length in characters
    mark: Bools  # whether it is punctuation
    names: tuple[str, ...]  # the words by number

    @staticmethod
    def of(texts: Iterable[str]) -> Side:
        numbers: dict[str, int] = {}
        flat, lengths = [], []
        for text in texts:
            tokens = words(text)
            lengths.append(len(tokens))
            flat += [numbers.setdefault(token, len(numbers)) for token in tokens]
        word, names = np.array(flat, dtype=np.int64), tuple(numbers)
        letters = np.array([len(name) for name in names] or [0])[word] if len(word) else word
        mark = np.array([not name[0].isalnum() for name in names] or [False])[word] if len(word) else word.astype(bool)
        start = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        return Side(word, np.repeat(np.arange(len(lengths)), lengths), start, letters, mark, names)

    @property
    def lengths(self) -> Ints:
        return np.diff(self.start)

    def take(self, pairs: Ints) -> Side:
        """These pairs, in this order, with the same numbers for words."""
        lengths = self.lengths[pairs]
        start = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(start[-1]) + np.repeat(self.start[pairs] - start[:-1], lengths)
        pair = np.repeat(np.arange(len(pairs)), lengths)
        return Side(self.word[places], pair, start, self.letters[places], self.mark[places], self.names)


@dataclass(frozen=True, eq=False)
class Links:
    """Every word of the source with every word of the target of the same pair, as places in the flat sides."""

    source: Ints
    target: Ints

    @staticmethod
    def between(source: Side, target: Side) -> Links:
        counts = source.lengths * target.lengths
        pair = np.repeat(np.arange(len(counts)), counts)
        within = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
        width = target.lengths[pair]
        return Links(source.start[pair] + within // width, target.start[pair] + within % width)


def blocks(pairs: Sequence[tuple[str, str]], links: int) -> Iterable[range]:
    """Runs of pairs of about this many links, so that memory does not grow with the corpus; nearly equal in size."""
    sizes = np.array([min(len(source.split()) + 2, LONGEST) * min(len(target.split()) + 2, LONGEST) for source, target in pairs])
    ends = np.cumsum(sizes)
    count = max(1, round(float(ends[-1]) / links)) if len(ends) else 0
    cuts = [0, *np.searchsorted(ends, ends[-1] * np.arange(1, count) / count).tolist(), len(pairs)] if count else []
    return [range(first, last) for first, last in itertools.pairwise(cuts) if first < last]
