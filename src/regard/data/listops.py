"""ListOps: nested lists of digits and what they come to, long texts whose label is their structure (Nangia & Bowman 2018, Tay 2020)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from regard.errors import UsageError

WORDS = np.array([*"0123456789", "[MIN", "[MAX", "[MED", "[SM", "]"])
MIN, MAX, MED, SM, CLOSE = range(10, 15)  # places among the words, of which the first ten are the digits themselves
NESTED = 0.25  # of the places where a list may stand, how many hold one
CHUNK = 4096  # trees drawn at a time, of which few have the right length

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ListOps:
    """Expressions like "[MAX 2 9 [MIN 4 7 ] 0 ]", labelled by the digit that they come to; made, so it needs no files."""

    kind: ClassVar[Literal["listops"]] = "listops"
    count: int = 1000
    "How many expressions."
    sizes: tuple[int, int] = (500, 2000)
    "Fewest and most words of an expression; the published figures are for these."
    depth: int = 10
    "How deep lists stand in lists, the outermost and the digits included."
    most: int = 10
    "Most members of a list; the fewest are two."
    seed: int = 1
    "Of what is drawn; every corpus needs one of its own."

    def __post_init__(self):
        least, most = self.sizes
        possible = self.depth >= 2 and most >= 4 and least <= most and least <= self.largest
        if self.count < 1 or self.seed < 0 or self.most < 2 or not possible:
            do = "give count >= 1, seed >= 0, most >= 2, depth >= 2 and sizes that lists of this depth can have"
            raise UsageError("there is no such corpus", where="listops", do=do)

    @property
    def largest(self) -> int:
        """Words of the largest expression: two for each list, one for each digit."""
        lists = sum(self.most**level for level in range(self.depth - 1))
        return 2 * lists + self.most ** (self.depth - 1)


def expressions(corpus: ListOps) -> Iterator[tuple[str, str]]:
    """The expressions and their labels; a longer corpus of the same seed begins with a shorter one."""
    found = chunk = 0
    while found < corpus.count:
        for words, value in drawn(corpus, np.random.default_rng([corpus.seed, chunk]))[: corpus.count - found]:
            yield " ".join(WORDS[words].tolist()), str(value)
            found += 1
        chunk += 1


@dataclass(frozen=True)
class Level:
    """The nodes that are equally deep, from left to right over all trees, so that the members of a list stand side by side."""

    tree: Ints
    members: Ints
    "How many; 0: a digit."
    word: Ints


def drawn(corpus: ListOps, rng: np.random.Generator) -> list[tuple[Ints, int]]:
    """The words and values of those of a chunk of trees that have the right length: all of them level by level, none node by node."""
    levels, alive, words = [], np.arange(CHUNK), np.zeros(CHUNK, np.int64)
    while len(alive):
        nested = (rng.random(len(alive)) < NESTED) & (len(levels) < corpus.depth - 1)
        members = np.where(nested, rng.integers(2, corpus.most + 1, len(alive)), 0)
        levels.append(Level(alive, members, np.where(nested, rng.integers(MIN, CLOSE, len(alive)), rng.integers(10, size=len(alive)))))
        words += np.bincount(alive, minlength=CHUNK) + np.bincount(alive[nested], minlength=CHUNK)
        alive = np.repeat(alive, members)
    least, most = corpus.sizes
    right = (words >= least) & (words <= most)
    levels = [kept(level, right) for level in levels]
    values = worked_out(levels)
    texts = written(levels, np.cumsum(right) - 1, words[right])
    return list(zip(texts, values[0].tolist(), strict=True))


def kept(level: Level, trees: NDArray[np.bool_]) -> Level:
    here = trees[level.tree]
    return Level(level.tree[here], level.members[here], level.word[here])


def worked_out(levels: list[Level]) -> list[Ints]:
    """What every node comes to, from the innermost lists outwards."""
    values = [level.word.copy() for level in levels]
    for place in reversed(range(len(levels) - 1)):
        lists = np.flatnonzero(levels[place].members)
        if not len(lists):
            continue
        members, inner = levels[place].members[lists], values[place + 1]
        first = np.cumsum(members) - members
        ordered = inner[np.lexsort((inner, np.repeat(np.arange(len(lists)), members)))]
        low, high = ordered[first + (members - 1) // 2], ordered[first + members // 2]
        choices = {
            MIN: ordered[first],
            MAX: ordered[first + members - 1],
            MED: (low + high) // 2,
            SM: np.add.reduceat(inner, first) % 10,
        }
        for word, answer in choices.items():
            which = levels[place].word[lists] == word
            values[place][lists[which]] = answer[which]
    return values


def written(levels: list[Level], number: Ints, words: Ints) -> list[Ints]:
    """Each tree's words from left to right: a node stands behind its elder siblings and all that is in them."""
    sizes = [np.where(level.members > 0, 2, 1) for level in levels]
    for place in reversed(range(len(levels) - 1)):
        owners = np.repeat(np.arange(len(sizes[place])), levels[place].members)
        sizes[place] += np.bincount(owners, sizes[place + 1], minlength=len(sizes[place])).astype(np.int64)
    begins = np.cumsum(words) - words
    line = np.full(int(words.sum()), CLOSE)  # what is not written over closes a list
    where = begins[number[levels[0].tree]] if len(words) else np.zeros(0, np.int64)
    for place, level in enumerate(levels):
        line[where] = level.word
        if place + 1 < len(levels):
            members = level.members[level.members > 0]
            before = np.cumsum(sizes[place + 1]) - sizes[place + 1]  # of all nodes, and so, less the first's, of one's siblings
            eldest = np.repeat(np.cumsum(members) - members, members)
            where = np.repeat(where, level.members) + 1 + before - before[eldest]
    return np.split(line, begins[1:]) if len(words) else []
