"""Words that are hidden: how many, what stands in their place, and that they are drawn anew."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regard.data.batch import IGNORED
from regard.data.batching import Batching, Cursor
from regard.data.masking import MaskedBatches, Masking, Words
from regard.data.text_cache import TextCache
from regard.errors import UsageError

WORDS = Words(mask=50, last=50)


def test_fifteen_in_a_hundred_and_of_these_eighty_ten_ten():
    ids = torch.randint(4, 50, (20, 1000), generator=torch.Generator().manual_seed(1))
    found, labels = WORDS.hidden(ids, Masking(), np.random.default_rng(2))
    asked = labels != IGNORED
    assert int(asked.sum()) == 3000 and torch.equal(labels[asked], ids[asked]) and torch.equal(found[~asked], ids[~asked])
    masked, kept = float((found[asked] == 50).float().mean()), float((found[asked] == ids[asked]).float().mean())
    assert masked == pytest.approx(0.8, abs=0.025)
    assert kept == pytest.approx(0.1 + 0.1 / 46, abs=0.02)  # a word drawn by lot is now and then the same
    others = found[asked][(found[asked] != 50) & (found[asked] != ids[asked])]
    assert len(others.unique()) > 40 and others.min() >= 4 and others.max() < 50


def test_marks_and_what_is_no_word_are_never_asked_for():
    ids = torch.tensor([[1, 3, 0, 2, 50, 51, 7]])  # begin, unknown, padding, end, the mask, another tag, a word
    for seed in range(20):
        found, labels = WORDS.hidden(ids, Masking(share=1.0), np.random.default_rng(seed))
        assert labels.tolist() == [[IGNORED] * 6 + [7]] and found[0, :6].tolist() == ids[0, :6].tolist()
    found, labels = WORDS.hidden(ids[:, :5], Masking(), np.random.default_rng(1))
    assert (labels == IGNORED).all() and torch.equal(found, ids[:, :5])


def test_one_word_at_least_is_asked_for():
    labels = WORDS.hidden(torch.tensor([[1, 7, 8]]), Masking(share=0.01), np.random.default_rng(1))[1]
    assert int((labels != IGNORED).sum()) == 1


def batches(**axes) -> MaskedBatches:
    random = np.random.default_rng(5)
    cache = TextCache.of([random.integers(4, 50, 30).tolist() for _ in range(12)])
    return MaskedBatches(cache, Batching(tokens=60, max_length=20, ahead=0), Masking(), WORDS, **axes)


def of_epoch(made: MaskedBatches, epoch: int) -> dict[int, int]:
    """The places of the corpus that are hidden in an epoch, and what was there."""
    found, stream = {}, made.after(Cursor(epoch, 0))
    while True:
        batch, cursor = next(stream)
        for row, start in zip(batch.labels, batch.pairs, strict=True):
            found |= {start + place: word for place, word in enumerate(row.tolist()) if word != IGNORED}
        if cursor.epoch != epoch:
            return found


def test_each_epoch_hides_other_words_and_a_run_goes_on_with_the_same():
    made = batches(seed=3)
    first, second = of_epoch(made, 0), of_epoch(made, 1)
    assert first and second and len(first.keys() & second.keys()) < 0.4 * len(first)
    assert all(word == int(made.cache.ids[place]) for place, word in first.items())
    assert of_epoch(batches(seed=3), 1) == second != of_epoch(batches(seed=4), 1)


def test_what_is_counted_is_what_is_asked_for():
    for batch in batches().once():
        assert batch.target_tokens == int((batch.labels != IGNORED).sum()) > 0
    one, other = ([batch.text.ids.tolist() for batch in batches().once()] for _ in range(2))
    assert one == other  # the same words are hidden whenever a model is evaluated


@pytest.mark.parametrize("wrong", [{"share": 0.0}, {"share": 1.5}, {"masked": 0.95}, {"random": -0.1}])
def test_shares_that_are_none(wrong: dict):
    with pytest.raises(UsageError, match="at most 1 together"):
        Masking(**wrong)
