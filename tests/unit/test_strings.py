"""Pairs of strings that are made: by hand, and the same each time."""

import pytest

from regard.data.parallel import read_pairs
from regard.data.strings import Strings
from regard.errors import UsageError


@pytest.mark.parametrize(("problem", "answer"), [("copy", lambda s: s), ("reverse", lambda s: s[::-1]), ("sort", sorted)])
def test_what_is_to_be_made_of_the_letters(problem, answer):
    pairs = list(read_pairs(Strings(problem, count=29, sizes=(2, 7), letters=5, seed=3)))
    assert [len(source.split()) for source, _ in pairs[:7]] == [2, 3, 4, 5, 6, 7, 2]
    for source, target in pairs:
        assert target.split() == list(answer(source.split())) and set(source) <= set("abcde ")
    assert len(set(pairs)) > 20


def test_seed_and_number_say_what_a_pair_holds():
    few, many, other = (list(read_pairs(Strings(count=count, seed=seed))) for count, seed in ((5, 1), (9, 1), (5, 2)))
    assert many[:5] == few != other


@pytest.mark.parametrize("wrong", [{"count": 0}, {"sizes": (0, 4)}, {"sizes": (5, 4)}, {"letters": 27}, {"seed": -1}])
def test_what_cannot_be_drawn(wrong):
    with pytest.raises(UsageError, match="there is no such corpus"):
        Strings(**wrong)
