"""Rows cut from running text: every token once an epoch, what follows each, and the same rows from any point on."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest
import torch

from regard.data.batch import IGNORED
from regard.data.batching import Batching, Cursor
from regard.data.marks import BOS, EOS
from regard.data.text_batches import TextBatches
from regard.data.text_cache import TextCache
from regard.errors import UsageError

DOCUMENTS = [[10, 11, 12], [20], [30, 31, 32, 33, 34, 35, 36, 37], [40, 41], [50]]
CONFIG = Batching(tokens=15, max_length=5, ahead=0)


def cache(begin: int = BOS) -> TextCache:
    return TextCache.of(DOCUMENTS, begin=begin)


def asked(batch) -> list[tuple[int, int]]:
    """Every token and what is said to follow it."""
    real = batch.text.tokens.real
    return list(zip(batch.text.ids[real].tolist(), batch.labels[real].tolist(), strict=True))


def expected(begin: int) -> list[tuple[int, int]]:
    ids = [place for document in DOCUMENTS for place in (begin, *document)]
    if begin == BOS:
        return list(zip(ids, [EOS if place == BOS else place for place in (*ids[1:], BOS)], strict=True))
    return list(pairwise(ids))


@pytest.mark.parametrize("begin", [BOS, 4])
@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("layout", ["packed", "padded"])
@pytest.mark.parametrize("length", [1, 3, 5, 64])
def test_every_token_once_an_epoch_with_what_follows(begin, within, layout, length):
    config = Batching(tokens=3 * length, max_length=length, layout=layout, within=within)
    batches = TextBatches(cache(begin), config)
    for epoch in range(4):
        found = [batches.batch(starts, shift=batches.shift(epoch)) for starts in batches.plan(epoch)]
        assert sorted(pair for batch in found for pair in asked(batch)) == sorted(expected(begin))
        assert all((batch.labels != IGNORED).sum() == batch.target_tokens == len(asked(batch)) for batch in found)
    assert [pair for batch in batches.once() for pair in asked(batch)] == expected(begin)
    assert batches.in_epoch == sum(1 for _ in batches.plan(0))


def test_rows_have_one_length_and_begin_elsewhere_each_epoch():
    batches = TextBatches(TextCache.of([list(range(5, 905))]), Batching(tokens=60, max_length=20))
    shifts = {batches.shift(epoch) for epoch in range(20)}
    assert len(shifts) > 5 and shifts <= set(range(20))
    order = lambda epoch: np.argsort(np.concatenate(list(batches.plan(epoch))))[:40].tolist()
    assert len({str(order(epoch)) for epoch in range(5)}) == 5
    shapes = [tuple(batches.batch(starts, shift=batches.shift(1)).text.ids.shape) for starts in batches.plan(1)]
    assert shapes.count((3, 20)) >= len(shapes) - 3
    assert tuple(batches.largest().text.ids.shape) == (3, 20)


@pytest.mark.parametrize("layout", ["packed", "padded"])
def test_within_documents_positions_begin_anew(layout):
    batches = TextBatches(cache(), Batching(tokens=12, max_length=6, layout=layout, within=True))
    for batch in batches.once():
        tokens = batch.text.tokens
        begun = (batch.text.ids == BOS) & tokens.real
        assert not tokens.positions[begun].any()
        owners = (tokens.documents + torch.arange(len(tokens.real))[:, None])[tokens.real].tolist()
        tens = [place // 10 for place in batch.text.ids[tokens.real].tolist()]
        met = {(owner, ten) for owner, ten in zip(owners, tens, strict=True) if ten}
        assert len({owner for owner, _ in met}) == len(met)  # no two documents of the text share one of the batch


@pytest.mark.parametrize("ahead", [0, 3])
def test_what_follows_a_cursor_is_always_the_same(ahead):
    batches = TextBatches(cache(), Batching(tokens=15, max_length=5, ahead=ahead))
    straight = list(islice(batches.after(), 9))
    assert {cursor.epoch for _, cursor in straight} >= {0, 1, 2}
    for place, (_, cursor) in enumerate(straight[:-1]):
        (again, _) = next(iter(batches.after(cursor)))
        assert asked(again) == asked(straight[place + 1][0]) and again.pairs == straight[place + 1][0].pairs
    other = TextBatches(cache(), CONFIG, seed=2)
    assert [batch.pairs for batch, _ in islice(other.after(), 9)] != [batch.pairs for batch, _ in straight]


def test_ranks_take_turns():
    one = [batch.pairs for batch, _ in islice(TextBatches(cache(), CONFIG).after(), 8)]
    ranks = [[batch.pairs for batch, _ in islice(TextBatches(cache(), CONFIG, rank=rank, world=2).after(Cursor()), 4)] for rank in (0, 1)]
    assert one == [pairs for turn in zip(*ranks, strict=True) for pairs in turn]


def test_a_budget_must_be_there():
    with pytest.raises(UsageError, match="budget"):
        TextBatches(cache(), Batching())
