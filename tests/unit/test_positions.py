"""Positions by numbers, fractions and bits, and the five demands as they are worked out."""

from pathlib import Path

import pytest
import torch

from regard.errors import UsageError
from regard.nn.demands import demands, table
from regard.nn.positions import Binary, Fraction, Integer, Learned, NoPositions, Sinusoid, build_positions, code

PAGE = Path(__file__).parents[2] / "docs" / "positions.md"
KINDS = {
    "integer": Integer(),
    "fraction": Fraction(),
    "binary, 3 bits": Binary(3),
    "binary, 6 bits": Binary(6),
    "learned, 64": Learned(64),
    "sinusoid": Sinusoid(),
}


def test_the_table_of_the_page_is_what_is_worked_out():
    assert table(KINDS) in PAGE.read_text("utf-8")


def test_numbers_and_fractions_of_seven_and_eight_words():
    seven, eight = (code(Fraction(), torch.arange(length), 1, length=length)[:, 0] for length in (7, 8))
    torch.testing.assert_close(seven, torch.tensor([1, 2, 3, 4, 5, 6, 7]) / 7)
    assert [round(float(step), 3) for step in seven] == [0.143, 0.286, 0.429, 0.571, 0.714, 0.857, 1.0]
    assert eight.tolist() == [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0]
    assert code(Integer(), torch.tensor([[0, 3]]), 2).tolist() == [[[0, 0], [3, 3]]]


def test_three_bits_repeat_themselves_at_eight():
    codes = code(Binary(3), torch.arange(16), 3)
    assert codes[:4].tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]
    assert torch.equal(codes[:8], codes[8:]) and len({tuple(row) for row in codes.tolist()}) == 8
    assert code(Binary(3), torch.tensor([5]), 7).tolist() == [[1, 0, 1, 1, 0, 1, 1]]  # the bits again until the vector is full


def test_what_cannot_be_is_refused():
    with pytest.raises(UsageError, match="nobody knows its length yet"):
        build_positions(Fraction(), 8)
    few = build_positions(Binary(3), 8)
    assert few is not None
    few.reach(8)
    with pytest.raises(UsageError, match="9 tokens, but 3 bits tell 8 positions apart"):
        few.reach(9)
    with pytest.raises(UsageError, match="bits = 0"):
        Binary(0)
    with pytest.raises(UsageError, match="none encodes no positions"):
        demands(NoPositions())
    assert build_positions(NoPositions(), 8) is None


def test_other_bases_and_widths_keep_the_demands_of_the_sinusoid():
    found = demands(Sinusoid(base=1000.0), width=32)
    assert found.unique and found.consistent and found.longer and found.bounded and found.deterministic and found.invariant
