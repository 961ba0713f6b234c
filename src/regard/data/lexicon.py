"""Which words translate which, learned from the corpus itself: IBM model 1 in both directions (Brown et al. 1993, section 4.2).

Each pair is judged by what all the *other* pairs say about its words: its own share of the counts is taken out first, or else a
wrong pair would vouch for itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regard.data.bitext import Floats, Ints, Links, Side

ROUNDS = 4
NULL = 0.1  # what the empty word has beside each real one
SHRINK = 1.0  # counts added to the denominator: a word seen once proves little
SAME = 0.3  # the least probability of a number or a name that stands alike on both sides


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Expected counts of word pairs; `counts[d]` for direction d: 0 target given source, 1 source given target."""

    keys: Ints  # source * width + target, sorted
    width: int
    counts: tuple[Floats, Floats]
    totals: tuple[Floats, Floats]  # by the word given
    background: tuple[Floats, Floats]  # share of each target and each source word
    seen: tuple[Ints, Ints]  # how often each target and each source word occurs
    same: Floats  # for each source word the number of the same target word, or -1


def learn(source: Side, target: Side) -> tuple[Lexicon, tuple[Floats, Floats]]:
    """The lexicon, and the probability of each link in both directions with the pair's own counts left out."""
    links = Links.between(source, target)
    width = len(target.names)
    keys, cell = np.unique(source.word[links.source] * width + target.word[links.target], return_inverse=True)
    background = _shares(target), _shares(source)
    counts, totals, apart = [], [], []
    for given, said, share in ((0, 1, background[0]), (1, 0, background[1])):
        places, sides = (links.source, links.target), (source, target)
        word_given = (keys // width, keys % width)[given]
        floor = NULL * share[sides[said].word]
        table = np.ones(len(keys))
        posterior, count, total = table[cell], table, table
        for _ in range(ROUNDS):
            likely = table[cell]
            posterior = likely / (np.bincount(places[said], likely, len(floor)) + floor)[places[said]]
            count = np.bincount(cell, posterior, len(keys))
            total = np.bincount(word_given, count, len(sides[given].names))
            table = count / np.maximum(total[word_given], 1e-12)
        own = np.bincount(places[given], posterior, len(sides[given].word))
        left = np.maximum(count[cell] - posterior, 0.0)
        apart.append(left / (np.maximum(total[sides[given].word] - own, 0.0)[places[given]] + SHRINK))
        counts.append(count)
        totals.append(total)
    numbers = {name: number for number, name in enumerate(target.names)}
    same = np.array([numbers.get(name, -1) if len(name) > 2 or name.isdigit() else -1 for name in source.names])
    seen = np.bincount(target.word, minlength=width), np.bincount(source.word, minlength=len(source.names))
    lexicon = Lexicon(keys, width, (counts[0], counts[1]), (totals[0], totals[1]), background, seen, same)
    alike = same[source.word[links.source]] == target.word[links.target]
    return lexicon, (np.where(alike, np.maximum(apart[0], SAME), apart[0]), np.where(alike, np.maximum(apart[1], SAME), apart[1]))


def look_up(lexicon: Lexicon, source: Side, target: Side, links: Links) -> tuple[Floats, Floats]:
    """The probability of each link of pairs that the lexicon was not learned from.

    One occurrence of each word is taken out of its counts here too, or these pairs would be judged by more than those of `learn`.
    """
    one, other = source.word[links.source], target.word[links.target]
    wanted = one * lexicon.width + other
    place = np.minimum(np.searchsorted(lexicon.keys, wanted), len(lexicon.keys) - 1)
    there = lexicon.keys[place] == wanted
    alike = lexicon.same[one] == other
    found = []
    for direction, given in ((0, one), (1, other)):
        times = lexicon.seen[1 - direction][given]
        left = np.maximum(times - 1, 0) / np.maximum(times, 1)
        probability = np.where(there, lexicon.counts[direction][place], 0.0) * left / (lexicon.totals[direction][given] * left + SHRINK)
        found.append(np.where(alike, np.maximum(probability, SAME), probability))
    return found[0], found[1]


def _shares(side: Side) -> Floats:
    counts = np.bincount(side.word, minlength=len(side.names)).astype(float)
    return counts / max(counts.sum(), 1.0)
