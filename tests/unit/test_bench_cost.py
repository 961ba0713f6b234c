"""What layers cost by length: the arithmetic of where two cross, and a short run of every part."""

import pytest

from regard.bench.cost import CROSSINGS, FORMULAS, crossing, expected, measure


def test_where_two_cross():
    straight, square = [(n, 8.0 * n) for n in (2, 4, 8, 16, 32)], [(n, 1.0 * n * n) for n in (2, 4, 8, 16, 32)]
    assert crossing(square, straight) == pytest.approx(8)
    assert crossing(square, [(n, 6.0 * n) for n in (2, 4, 8, 16)]) == pytest.approx(6)
    assert crossing(straight, [(n, 2 * took) for n, took in straight]) is None
    assert crossing(straight, [(n, took / 2) for n, took in straight]) == 2
    assert crossing(straight, square) is None  # dearer at first, and then no more


def test_by_the_formulas():
    found = {(one, other): expected(one, other, 512) for one, other in CROSSINGS}
    assert found == {
        ("core", "rnn"): 512,
        ("core", "lstm"): 2048,
        ("attention", "feed-forward"): 1024,
        ("attention", "rnn"): 0,
        ("attention", "lstm"): 1024,
    }
    assert FORMULAS["attention"](10, 64) == FORMULAS["one-head"](10, 64)


@pytest.mark.parametrize("part", FORMULAS)
def test_every_part_is_measured(part):
    found = measure(part, [16, 32], d_model=64, rows=2, seconds=60, device="cpu")
    assert [length for length, _ in found] == [16, 32] and all(took > 0 for _, took in found)
