"""Nested lists of digits: what they come to, and that what is drawn in bulk is what a reader of one expression would say."""

import numpy as np
import pytest

from regard.data.listops import WORDS, ListOps, drawn, expressions
from regard.errors import UsageError

SMALL = ListOps(count=300, sizes=(4, 60), depth=5, most=5, seed=3)


def said(text):
    """The value of an expression, word by word with a stack."""
    stack = [[]]
    for word in text.split():
        if word.startswith("["):
            stack.append([word])
        elif word == "]":
            name, *members = stack.pop()
            ordered = sorted(members)
            middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) // 2
            stack[-1].append({"[MIN": ordered[0], "[MAX": ordered[-1], "[MED": middle, "[SM": sum(members) % 10}[name])
        else:
            stack[-1].append(int(word))
    (value,) = stack.pop()
    assert not stack
    return value


def test_a_reader_of_one_word_after_the_other_says_the_same():
    assert said("[MAX 2 9 [MIN 4 7 ] 0 ]") == 9 and said("[SM 5 6 [MED 1 8 3 ] ]") == 4
    found = list(expressions(SMALL))
    assert len(found) == 300
    for text, label in found:
        assert str(said(text)) == label
    assert {label for _, label in found} == set("0123456789")
    assert {word for text, _ in found for word in text.split()} == set(WORDS.tolist())


def test_sizes_depth_and_members_are_kept():
    for text, _ in expressions(SMALL):
        words, open_, deepest, members = text.split(), 0, 0, []
        assert 4 <= len(words) <= 60
        for word in words:
            if word == "]":
                open_ -= 1
                assert 2 <= members.pop() <= 5
                continue
            if members:
                members[-1] += 1
            if word.startswith("["):
                open_ += 1
                members.append(0)
                deepest = max(deepest, open_)
        assert deepest <= 4 and not members


def test_a_seed_says_what_is_drawn():
    few, many, other = (list(expressions(ListOps(count=count, sizes=(4, 60), seed=seed))) for count, seed in ((5, 1), (9, 1), (5, 2)))
    assert many[:5] == few != other


def test_the_published_sizes_can_be_drawn():
    found = drawn(ListOps(), np.random.default_rng(0))
    assert found and all(500 <= len(words) <= 2000 for words, _ in found)


@pytest.mark.parametrize("wrong", [{"count": 0}, {"sizes": (9, 4)}, {"sizes": (99, 200), "depth": 2, "most": 3}, {"most": 1}, {"seed": -1}])
def test_what_cannot_be_drawn(wrong):
    with pytest.raises(UsageError, match="there is no such corpus"):
        ListOps(**wrong)
