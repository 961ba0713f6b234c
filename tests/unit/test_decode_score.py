"""Scores of given pairs: packed, padded and by hand."""

import itertools

import pytest
import torch

from regard.data.batch import PairBatch
from regard.data.layouts import packed, padded
from regard.decode.score import score_pairs

V = 11
TABLE = torch.randn(V, V, generator=torch.Generator().manual_seed(0))
PAIRS = [([4, 5], [6, 7, 8]), ([4], []), ([9, 9, 9, 9], [10]), ([5, 6], [4, 4, 4, 4, 4, 4, 4])]


def bigrams(batch: PairBatch) -> torch.Tensor:
    """A model in which the next token hangs on the last one only."""
    return TABLE[batch.target.ids]


def by_hand(target: list[int]) -> list[float]:
    chain = [1, *target, 2]
    return [TABLE[before].log_softmax(0)[after].item() for before, after in itertools.pairwise(chain)]


@pytest.mark.parametrize("layout", [padded, packed])
@pytest.mark.parametrize("tokens", [1, 9, 4096])
def test_each_pair_gets_its_own_log_probabilities(layout, tokens):
    found = score_pairs(bigrams, PAIRS, tokens=tokens, layout=layout)
    for score, (_, target) in zip(found, PAIRS, strict=True):
        assert score.log_probs == pytest.approx(by_hand(target), abs=1e-5)
        assert score.log_prob == pytest.approx(sum(by_hand(target)), abs=1e-5)
        assert score.tokens == len(target) + 1


def test_batches_stay_within_their_tokens():
    sizes: list[int] = []

    def watching(batch: PairBatch) -> torch.Tensor:
        sizes.append(batch.labels.numel())
        return bigrams(batch)

    score_pairs(watching, PAIRS * 5, tokens=24)
    assert len(sizes) > 3 and max(sizes) <= 24


def test_nothing_to_score():
    assert score_pairs(bigrams, []) == []
