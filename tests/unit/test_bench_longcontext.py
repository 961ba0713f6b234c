"""The measurement of long rows: its arithmetic, and a short run of every kind."""

import pytest

from regard.bench.longcontext import KINDS, exponent, measure, too_long


def test_exponents_are_slopes_of_the_logarithms():
    assert exponent([(x, 7 * x**1.5) for x in (1, 2, 4, 8)]) == pytest.approx(1.5)
    assert exponent([(1, 1), (2, 4), (4, 4)]) == pytest.approx(1.0)


def test_a_length_that_would_take_too_long_is_left_out():
    assert too_long([(10, 1.0)], 20, 3.9) and not too_long([(10, 1.0)], 20, 4.1)
    assert not too_long([(10, 1.0), (20, 2.0)], 40, 4.1) and too_long([(10, 1.0), (20, 8.0)], 40, 60)
    assert len(measure("window", [64, 128, 256], d_model=8, seconds=0.0, device="cpu")) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_measured(kind):
    found = measure(kind, [96, 192], d_model=8, seconds=60, device="cpu")
    assert [length for length, _, _ in found] == [96, 192]
    assert all(took > 0 and peak > -1 for _, took, peak in found)
