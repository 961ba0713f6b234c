"""Which pairs are probably not translations of each other: the corpus is compared with spoilt copies of itself.

Real pairs against pairs put together at random and pairs of which one side is cut short: a logistic regression on what the lexicon
explains, from where to where, and on lengths. How many of the real ones are bad comes out of the same comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from regard.data.bitext import Bools, Floats, Ints, Links, Side, blocks
from regard.data.lexicon import Lexicon, learn, look_up

FEWEST = 1000  # pairs below which nothing can be learned about words
BLOCK = 6_000_000  # links looked at together
SPOILT = 12_000  # spoilt copies of each kind, at most
DOUBT = 0.5  # a pair goes when it is more probably bad than good
GAINS = [0, 8]  # the columns of `features` that say how well the words of the target and of the source are explained
TURNS = 3  # each learns from the pairs that the last one trusted
MISSED = 0.02  # the share of spoilt pairs that may look better than a trusted one
PARALLEL = 0.65  # told apart worse than this, the files are no translations of each other as a whole, and no single pair is blamed


@dataclass(frozen=True, eq=False)
class Verdict:
    """For each pair the probability that it is no translation, and how well pairs could be told from strangers (0.5: not at all)."""

    bad: Floats
    told_apart: float


def judge(pairs: Sequence[tuple[str, str]], *, seed: int = 1) -> Verdict:
    """Judge each pair by all the others. With fewer than FEWEST pairs nothing is held against any."""
    if len(pairs) < FEWEST:
        return Verdict(np.zeros(len(pairs)), 1.0)
    verdicts = [_judge_block([pairs[index] for index in block], seed) for block in blocks(pairs, BLOCK)]
    weights = [len(verdict.bad) for verdict in verdicts]
    told = float(np.average([verdict.told_apart for verdict in verdicts], weights=weights))
    return Verdict(np.concatenate([verdict.bad for verdict in verdicts]), told)


def _judge_block(pairs: Sequence[tuple[str, str]], seed: int) -> Verdict:
    source, target = Side.of(pair[0] for pair in pairs), Side.of(pair[1] for pair in pairs)
    usable = np.flatnonzero((source.lengths > 0) & (target.lengths > 0))
    trusted, bad = usable, np.zeros(len(pairs))
    rng = np.random.default_rng(seed)
    told = _told_apart(source.take(usable), target.take(usable), rng)
    for _ in range(TURNS if told >= PARALLEL else 0):
        if len(trusted) < FEWEST // 2:
            break
        doubted = np.setdiff1d(usable, trusted)
        odds, spoilt = _compared(source, target, trusted, doubted, rng)
        every = np.concatenate([trusted, doubted])
        bad[every] = _posterior(odds)
        trusted = np.sort(every[odds < np.quantile(spoilt, MISSED)])
    bad[np.setdiff1d(np.arange(len(pairs)), usable)] = 1.0
    return Verdict(bad, told)


def _compared(source: Side, target: Side, trusted: Ints, doubted: Ints, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Log-odds of being spoilt, of trusted and doubted pairs end to end and of spoilt ones; all is learned from the trusted."""
    one, other = source.take(trusted), target.take(trusted)
    lexicon, apart = learn(one, other)
    real = features(lexicon, one, other, apart)
    spoilt = _spoilt(lexicon, one, other, apart, rng)
    far = source.take(doubted), target.take(doubted)
    beside = features(lexicon, *far, look_up(lexicon, *far, Links.between(*far)))
    theirs = _odds(real, spoilt)
    return theirs(np.concatenate([real, beside])), theirs(spoilt)


def features(
    lexicon: Lexicon,
    source: Side,
    target: Side,
    links_say: tuple[Floats, Floats],
    *,
    kept: tuple[Bools, Bools] | None = None,
) -> Floats:
    """A row of numbers for each pair; `kept` leaves out words of the source and of the target, as if they had been cut off."""
    links = Links.between(source, target)
    kept = kept or (np.ones(len(source.word), bool), np.ones(len(target.word), bool))
    columns = []
    for say, said, given, here, there, share, seen, stays, given_stays in (
        (links_say[0], target, source, links.target, links.source, lexicon.background[0], lexicon.seen[0], kept[1], kept[0]),
        (links_say[1], source, target, links.source, links.target, lexicon.background[1], lexicon.seen[1], kept[0], kept[1]),
    ):
        pairs = len(said.start) - 1
        length = np.maximum(np.bincount(given.pair, given_stays, pairs), 1.0)
        total = np.bincount(here, say * given_stays[there], len(said.word)) / length[said.pair]
        gain = np.log(0.25 + 0.75 * total / np.maximum(share[said.word], 1e-9))  # how much better than by chance each word is explained
        weight = np.where(seen[said.word] > 2, 1.0, 0.25) * stays
        place = np.arange(len(said.word)) - said.start[said.pair]
        count = np.bincount(said.pair, stays, pairs)
        third = place * 3 // np.maximum(count[said.pair], 1)
        columns.append(_mean(said.pair, gain, weight, pairs))
        columns.append(_mean(said.pair, gain > 0.5, weight, pairs))
        columns.append(_mean(said.pair, gain, weight * (third == 0), pairs))
        columns.append(_mean(said.pair, gain, weight * (third >= 2), pairs))
        columns.append(_mean(said.pair, gain, weight * ~said.mark, pairs))
        last = np.bincount(said.pair[stays], minlength=pairs) + said.start[:-1] - 1
        columns.append(np.where(count > 0, said.mark[np.clip(last, 0, max(len(said.mark) - 1, 0))], False).astype(float))
        columns.append(np.log(np.bincount(said.pair, stays * said.letters, pairs) + 3.0))
        columns.append(np.log(count + 2.0))
    table = np.stack(columns, axis=1)
    half = table.shape[1] // 2
    letters, count = table[:, half - 2] - table[:, -2], table[:, half - 1] - table[:, -1]
    ends = table[:, 5] - table[:, half + 5]
    return np.column_stack([table, letters, count, ends, np.abs(ends)])


def _mean(pair: Ints, value: Floats | Bools, weight: Floats, pairs: int) -> Floats:
    """Weighted means by pair, drawn a little towards the chance level where there is little to weigh."""
    return np.bincount(pair, value * weight, pairs) / (np.bincount(pair, weight, pairs) + 0.5)


def _spoilt(lexicon: Lexicon, source: Side, target: Side, apart: tuple[Floats, Floats], rng: np.random.Generator) -> Floats:
    """Features of spoilt pairs: strangers, strangers of the same length, and pairs of which one side is cut short."""
    pairs = len(source.start) - 1
    some = rng.permutation(pairs)[:SPOILT]
    by_length = np.argsort(target.lengths + rng.random(pairs), kind="stable")
    rank = np.empty(pairs, np.int64)
    rank[by_length] = np.arange(pairs)
    near = by_length[(rank[some] + rng.integers(1, max(pairs // 50, 2), len(some))) % pairs]
    rows = []
    for partner in (rng.permutation(pairs)[: len(some)], near):
        real = partner != some
        one, other = source.take(some[real]), target.take(partner[real])
        rows.append(features(lexicon, one, other, look_up(lexicon, one, other, Links.between(one, other))))
    for cut in (0, 1):
        sides = [source, target]
        length = sides[cut].lengths
        keep = np.ceil(length * rng.uniform(0.3, 0.7, pairs))[sides[cut].pair]
        place = np.arange(len(sides[cut].word)) - sides[cut].start[sides[cut].pair]
        kept = [np.ones(len(side.word), bool) for side in sides]
        kept[cut] = place < keep
        row = features(lexicon, source, target, apart, kept=(kept[0], kept[1]))
        rows.append(row[some[length[some] > 3]])
    return np.concatenate(rows)


def _odds(real: Floats, spoilt: Floats) -> Callable[[Floats], Floats]:
    """The log-odds of being spoilt, both sorts weighing the same: ridge logistic regression by Newton's method."""
    mean, scale = real.mean(0), real.std(0) + 1e-6

    def inputs(rows: Floats) -> Floats:
        return _expanded(np.clip((rows - mean) / scale, -8, 8))

    weight = np.concatenate([np.full(len(rows), 0.5 / max(len(rows), 1)) for rows in (real, spoilt)])
    x, y = inputs(np.concatenate([real, spoilt])), np.concatenate([np.zeros(len(real)), np.ones(len(spoilt))])
    theta, ridge = np.zeros(x.shape[1]), 1e-4 * np.eye(x.shape[1])
    for _ in range(12):
        chance = 1 / (1 + np.exp(-np.clip(x @ theta, -30, 30)))
        gradient = x.T @ (weight * (chance - y)) + ridge @ theta
        hessian = (x * (weight * np.maximum(chance * (1 - chance), 1e-6))[:, None]).T @ x + ridge
        step = np.linalg.solve(hessian, gradient)
        theta = theta - step
        if np.abs(step).max() < 0.01:
            break
    return lambda rows: inputs(rows) @ theta


def _expanded(x: Floats) -> Floats:
    """The numbers, their products two by two, and a constant."""
    upper = np.triu_indices(x.shape[1])
    return np.column_stack([np.ones(len(x)), x, x[:, upper[0]] * x[:, upper[1]] / 4])


def _posterior(odds: Floats) -> Floats:
    """Probabilities of being bad, with the share of bad pairs found by EM (Saerens et al. 2002)."""
    ratio, share = np.exp(np.clip(odds, -30, 30)), 0.05
    chance = ratio
    for _ in range(100):
        chance = share * ratio / (share * ratio + 1 - share)
        share = float(np.clip(chance.mean(), 1e-4, 0.9))
    return chance


def _told_apart(source: Side, target: Side, rng: np.random.Generator) -> float:
    """The probability that a pair is explained better than strangers, by a lexicon of other pairs (area under the ROC curve)."""
    order = rng.permutation(len(source.start) - 1)[: 2 * SPOILT]
    learned, asked = np.array_split(order, 2)
    lexicon, _ = learn(source.take(learned), target.take(learned))
    said = []
    for partners in (rng.permutation(asked), asked):
        one, other = source.take(asked), target.take(partners)
        said.append(features(lexicon, one, other, look_up(lexicon, one, other, Links.between(one, other)))[:, GAINS].sum(1))
    rank = np.argsort(np.argsort(np.concatenate(said), kind="stable"), kind="stable") + 1.0
    count = len(asked)
    return float((rank[count:].sum() - count * (count + 1) / 2) / count**2)
