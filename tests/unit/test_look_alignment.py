"""Alignments small enough to draw."""

import pytest
import torch

from regard.look.alignment import align, error_rate, mean_of_heads, symmetrise

# s\t 0 1 2 3      F forward only, B backward only, X both
#  0  X . . .
#  1  F X . .
#  2  . . . B
#  3  . F . .
FORWARD, BACKWARD = {(0, 0), (1, 1), (1, 0), (3, 1)}, {(0, 0), (1, 1), (2, 3)}


def test_ways_of_joining():
    assert symmetrise(FORWARD, BACKWARD, way="intersection") == ((0, 0), (1, 1))
    assert symmetrise(FORWARD, BACKWARD, way="union") == ((0, 0), (1, 0), (1, 1), (2, 3), (3, 1))
    assert symmetrise(FORWARD, BACKWARD, way="argmax") == tuple(sorted(FORWARD))
    assert symmetrise(FORWARD, BACKWARD, way="grow-diag") == ((0, 0), (1, 1))  # 1-0 touches, but brings no new word
    assert symmetrise(FORWARD, BACKWARD, way="grow-diag-final") == ((0, 0), (1, 1), (2, 3), (3, 1))


def test_growing_goes_round_corners_and_on():
    assert symmetrise({(0, 0), (1, 1), (2, 2)}, {(0, 0)}, way="grow-diag") == ((0, 0), (1, 1), (2, 2))
    assert symmetrise({(0, 0), (1, 1), (2, 2)}, {(2, 2)}, way="grow-diag") == ((0, 0), (1, 1), (2, 2))
    assert symmetrise({(0, 2), (1, 1), (2, 0)}, {(1, 1)}, way="grow-diag") == ((0, 2), (1, 1), (2, 0))
    assert symmetrise({(0, 0), (2, 2)}, {(0, 0)}, way="grow-diag") == ((0, 0),)


def test_attention_both_ways():
    attention = torch.tensor([[0.6, 0.3, 0.1], [0.5, 0.2, 0.3], [0.1, 0.1, 0.8]])
    assert align(attention) == ((0, 0), (0, 1), (2, 2))
    assert align(attention, way="intersection") == ((0, 0), (2, 2))  # backwards: 0-0, 1-0, 2-2
    assert align(attention, way="union") == ((0, 0), (0, 1), (1, 0), (2, 2))
    assert align(attention, way="grow-diag") == ((0, 0), (0, 1), (1, 0), (2, 2))


def test_chosen_heads():
    weights = torch.rand(2, 3, 5, 7)
    assert torch.equal(mean_of_heads(weights, [(1, 2)]), weights[1, 2])
    assert torch.allclose(mean_of_heads(weights, [(0, 1), (1, 0)]), (weights[0, 1] + weights[1, 0]) / 2)


def test_error_rate_by_hand():
    sure, possible = {(0, 0), (1, 1)}, {(1, 2), (2, 2)}
    assert error_rate(sure, sure=sure, possible=possible) == 0
    assert error_rate(sure | possible, sure=sure, possible=possible) == 0
    assert error_rate({(0, 0), (1, 2), (5, 5)}, sure=sure, possible=possible) == pytest.approx(1 - (1 + 2) / (3 + 2))
    assert error_rate(set(), sure=sure) == 1 and error_rate(set(), sure=set()) == 0
