import math
from collections import Counter
from random import Random

import numpy as np
import pytest

from regard.data.sampling import Lattice, choices, drop_merges
from regard.data.tokenise import Bpe, Unigram, train_tokenizer

WORDS = ["low", "lower", "newest", "widest", "slowest", "new", "wide", "lowest", "newer", "wider"]
TEXT = [" ".join(WORDS[place:] + WORDS[:place]) for place in range(len(WORDS))] * 3


def test_without_dropout_the_best_merge_goes_first():
    ranks = {"es": 0, "est": 1, "lo": 2, "low": 3, "ow": 9}
    assert drop_merges(list("lowest"), ranks, dropout=0.0, random=Random(1)) == ["low", "est"]
    assert drop_merges(list("lowest"), ranks, dropout=1.0, random=Random(1)) == list("lowest")


def test_dropout_is_as_frequent_as_asked():
    noise = Random(2)
    kept = sum(len(drop_merges(["a", "b"], {"ab": 0}, dropout=0.3, random=noise)) == 1 for _ in range(4001))
    assert abs(kept / 4001 - 0.7) < 0.03


def test_bpe_without_dropout_is_sentencepiece():
    vocabulary = train_tokenizer(Bpe(size=331), TEXT).vocabulary
    for word in (*WORDS, "newlower", "wıdest", "漢"):
        assert vocabulary.draws("▁" + word, 1, amount=0.0, seed=1) == [vocabulary.encode(word)]


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_spellings_are_drawn_by_probability_to_the_alpha(alpha):
    scores = {"a": -1.0, "b": -2.0, "ab": -2.5, "c": -1.5, "bc": -1.2}
    spellings = {"a b c": -4.5, "ab c": -4.0, "a bc": -2.2}
    weights = {spelling: math.exp(alpha * score) for spelling, score in spellings.items()}
    lattice, noise, count = Lattice("abc", scores, alpha=alpha, unknown=-20.0), Random(5), 6007
    drawn = Counter(" ".join(lattice.draw(noise)) for _ in range(count))
    assert set(drawn) == set(spellings)
    for spelling, weight in weights.items():
        assert abs(drawn[spelling] / count - weight / sum(weights.values())) < 0.02


def test_unknown_characters_are_pieces_of_their_own():
    assert Lattice("aéa", {"a": -1.0}, alpha=1.0, unknown=-9.0).draw(Random(1)) == ["a", "é", "a"]


@pytest.mark.parametrize(("config", "amount"), [(Bpe(size=331), 0.3), (Unigram(size=331), 0.0)], ids=["bpe", "unigram"])
def test_every_draw_spells_the_word_and_depends_on_seed_and_word_alone(config, amount):
    vocabulary = train_tokenizer(config, TEXT).vocabulary
    for word in (*WORDS, "unseen漢é"):
        drawn = vocabulary.draws("▁" + word, 13, amount=amount, seed=1)
        assert {vocabulary.decode(ids) for ids in drawn} == {word}
        assert drawn == vocabulary.draws("▁" + word, 13, amount=amount, seed=1)
    assert len({tuple(ids) for ids in vocabulary.draws("▁slowest", 13, amount=amount, seed=1)}) > 1
    assert vocabulary.draws("▁slowest", 13, amount=amount, seed=1) != vocabulary.draws("▁slowest", 13, amount=amount, seed=2)


def test_choices_are_even_and_depend_on_every_argument():
    pairs, places = np.repeat(np.arange(1009), 7), np.tile(np.arange(7), 1009)
    chosen = choices(pairs, places, draws=5, seed=1, epoch=0, side=0)
    assert chosen.min() == 1 and chosen.max() == 5
    assert np.abs(np.bincount(chosen)[1:] / len(chosen) - 0.2).max() < 0.02
    for other in ({"seed": 2}, {"epoch": 1}, {"side": 1}):
        changed = choices(pairs, places, draws=5, **({"seed": 1, "epoch": 0, "side": 0} | other))
        assert abs((changed == chosen).mean() - 0.2) < 0.02
    assert (choices(pairs[7:], places[7:], draws=5, seed=1, epoch=0, side=0) == chosen[7:]).all()
