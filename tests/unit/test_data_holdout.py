"""Components of the sentence graph by hand, against a plain union-find, and the promise that nothing held out was seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.holdout import components, hold_out, normalise
from regard.errors import DataError


def test_sentences_are_the_same_by_letters_and_digits():
    assert normalise("Geh  weg!") == normalise("geh weg .") == "geh weg"
    assert normalise("Straße") == normalise("STRASSE")
    assert normalise("?!") == "?!" != normalise("...")


def test_components_by_hand():
    pairs = [("a", "x"), ("b", "y"), ("A!", "z"), ("c", "y."), ("d", "w"), ("e", "Z"), ("b", "w")]
    assert components(pairs).tolist() == [0, 1, 0, 1, 1, 0, 1]
    assert components([]).tolist() == []


def plain_union_find(pairs: list[tuple[int, int]]) -> list[int]:
    labels = list(range(len(pairs)))
    for _ in pairs:
        for one in range(len(pairs)):
            for other in range(one):
                if pairs[one][0] == pairs[other][0] or pairs[one][1] == pairs[other][1]:
                    labels[one] = labels[other] = min(labels[one], labels[other])
    return labels


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=13))
def test_components_are_those_of_a_plain_union_find(pairs: list[tuple[int, int]]):
    assert components((f"s{source}", f"t{target}") for source, target in pairs).tolist() == plain_union_find(pairs)


def test_a_long_chain_is_one_component():
    chain = [(f"s{place // 2}", f"t{(place + 1) // 2}") for place in range(10_007)]
    shuffled = [chain[place] for place in np.random.default_rng(3).permutation(len(chain))]
    assert set(components(shuffled).tolist()) == {0}


def test_nothing_held_out_was_seen_on_either_side():
    random = np.random.default_rng(5)
    pairs = [(f"s {random.integers(700)}", f"t {random.integers(700)}") for _ in range(499)]
    split = hold_out(pairs, dev=7, test=11, seed=1)
    assert len(split.dev) == 7 and len(split.test) == 11
    train = [pairs[index] for index in split.train]
    seen = [{normalise(pair[side]) for pair in train} for side in (0, 1)]
    for index in [*split.dev, *split.test]:
        assert all(normalise(pairs[index][side]) not in seen[side] for side in (0, 1))
    labels = components(pairs)
    assert len(set(labels[split.dev]) | set(labels[split.test])) == 18  # one pair a component
    again = hold_out(pairs, dev=7, test=11, seed=1)
    assert np.array_equal(again.test, split.test) and not np.array_equal(hold_out(pairs, dev=7, test=11, seed=2).test, split.test)


def test_great_tangles_stay_in_training():
    pairs = [("hub", f"t{number}") for number in range(50)] + [(f"s{number}", f"u{number}") for number in range(5)]
    split = hold_out(pairs, dev=1, test=3, seed=1, largest=49)
    assert set(range(50)) <= set(split.train.tolist()) and len(split.train) == 51


def test_what_cannot_be_held_out():
    with pytest.raises(DataError, match="only 1 groups"):
        hold_out([("a", "b")] * 5, dev=1, test=1, seed=1)
    with pytest.raises(DataError, match="cannot be held out"):
        hold_out([("a", "b"), ("c", "d")], dev=1, test=1, seed=1)
