import threading
from collections import Counter
from itertools import islice

import numpy as np
import pytest

from regard.data.batching import Batches, Batching, Cursor
from regard.data.order import Budget, cut, windows
from regard.data.prefetch import prefetch
from regard.data.stream import PairCache, Part
from regard.errors import DataError, UsageError


def cache_of(count: int = 307, *, longest: int = 23, parts=()) -> PairCache:
    """Pair i has its own number as its first source and target id, so that no pair can be taken for another."""
    noise = np.random.default_rng(5)
    lengths = noise.integers(1, longest, (count, 2))
    sources = [[10 + pair, *noise.integers(4, 10, one - 1)] for pair, (one, _) in enumerate(lengths)]
    targets = [[10 + pair, *noise.integers(4, 10, other - 1)] for pair, (_, other) in enumerate(lengths)]
    return PairCache.of(sources, targets, parts=parts)


SHAPES = [
    {"layout": "packed"},
    {"layout": "packed", "order": "random"},
    {"layout": "padded"},
    {"layout": "padded", "order": "random"},
    {"layout": "packed", "static": True},
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_each_pair_once_an_epoch_within_the_budget(shape):
    batches = Batches(cache_of(), Batching(tokens=101, block=7, window=53, **shape))
    seen = Counter()
    for pairs in batches.plan(0):
        batch = batches.batch(pairs, epoch=0)
        seen.update(batch.pairs)
        assert max(batch.source.ids.numel(), batch.target.ids.numel()) <= 101
        if shape.get("static"):
            assert batch.source.ids.shape == batch.target.ids.shape == (1, 101)
        first = batch.source.tokens.positions == 0
        sources = batch.source.ids[first & batch.source.tokens.real].tolist()[: len(batch.pairs)]
        labels = batch.labels[batch.target.tokens.positions == 0].tolist()
        if shape["layout"] == "packed":
            assert sources == [10 + pair for pair in batch.pairs] and labels[: len(batch.pairs)] == sources
        else:
            assert batch.source.ids[:, 0].tolist() == batch.labels[:, 0].tolist() == [10 + pair for pair in batch.pairs]
    assert seen == Counter(range(307))


def test_a_model_that_goes_word_by_word_gets_rows():
    """What was asked for by name stays, and what need not change is not written down."""
    assert Batching().suited(packs=False).layout == "padded"
    assert Batching().suited(packs=True) == Batching()
    assert Batching(layout="packed").suited(packs=False).layout == "packed"


def test_budgets_are_used():
    """A budget that is kept by tiny batches would be no budget: nearly all packed batches are nearly full."""
    batches = Batches(cache_of(2003), Batching(tokens=211))
    full = [max(made.source_tokens, made.target_tokens) for made in (batches.batch(pairs, epoch=0) for pairs in batches.plan(0))]
    assert np.mean(full) > 0.9 * 211
    assert batches.padding_share == 0.0
    padded = Batches(cache_of(2003), Batching(tokens=211, layout="padded"))
    loose = Batches(cache_of(2003), Batching(tokens=211, layout="padded", order="random"))
    for some in (padded, loose):
        for pairs in some.plan(0):
            some.batch(pairs)
    assert 0 < padded.padding_share < 0.15 < loose.padding_share


def test_cut_by_hand():
    source, target = np.array([2, 3, 1, 6]), np.array([1, 4, 4, 2])
    assert cut(source, target, Budget(8, "packed")) == [0, 2, 4]  # targets 1+4, sources 1+6
    assert cut(source, target, Budget(8, "padded")) == [0, 2, 3, 4]  # 2 x 4, then 4, then 6
    assert cut(source, target, Budget(99, "packed", documents=3)) == [0, 3, 4]
    assert cut(source, target, Budget(99, "padded", documents=3)) == [0, 3, 4]


def test_epochs_and_seeds_differ_and_repeat():
    cache = cache_of()

    def plan(seed, epoch):
        return [pairs.tolist() for pairs in Batches(cache, Batching(tokens=101), seed=seed).plan(epoch)]

    assert plan(1, 0) == plan(1, 0)
    assert plan(1, 0) != plan(1, 1) and plan(1, 0) != plan(2, 0)


def test_too_long_pairs_are_left_out_and_counted():
    cache = PairCache.of([[5] * 9, [5], [5] * 3], [[6], [6], [6] * 4])
    batches = Batches(cache, Batching(tokens=100, max_length=5))
    assert batches.left_out == 1 and sorted(np.concatenate(list(batches.plan(0)))) == [1, 2]
    assert Batches(cache, Batching(tokens=4)).left_out == 2
    with pytest.raises(DataError, match="all 3 are longer than 1 tokens"):
        Batches(cache, Batching(tokens=1))
    with pytest.raises(DataError, match="no pairs"):
        Batches(PairCache.of([], []), Batching(tokens=9))
    with pytest.raises(UsageError, match="token budget"):
        Batches(cache, Batching())


def test_evaluation_is_in_order_and_complete():
    cache = cache_of(101)
    seen = [pair for batch in Batches(cache, Batching(tokens=97)).once() for pair in batch.pairs]
    assert seen == list(range(101))
    halves = [[batch.pairs for batch in Batches(cache, Batching(tokens=97), rank=rank, world=2).once()] for rank in (0, 1)]
    assert sorted(pair for half in halves for pairs in half for pair in pairs) == list(range(101))


def longest_of(batch) -> int:
    return max(side.tokens.spans.longest if side.tokens.spans else side.ids.shape[1] for side in (batch.source, batch.target))


def test_the_largest_batch_bounds_all_others():
    for shape in SHAPES:
        batches = Batches(cache_of(), Batching(tokens=101, **shape))
        largest = longest_of(batches.largest())
        assert all(largest >= longest_of(batches.batch(pairs)) for pairs in batches.plan(0))
    few = Batches(PairCache.of([[5, 6]], [[7]]), Batching(tokens=30)).largest()
    assert few.source.ids.numel() == 30


def test_ranks_take_turns_and_agree_on_the_cursor():
    cache, config = cache_of(), Batching(tokens=101, ahead=0)
    single = [batch.pairs for batch, _ in islice(Batches(cache, config).after(), 120)]
    ranks = [list(islice(Batches(cache, config, rank=rank, world=3).after(), 40)) for rank in range(3)]
    assert [ranks[turn % 3][turn // 3][0].pairs for turn in range(120)] == single
    for turn in zip(*ranks):
        assert len({cursor for _, cursor in turn}) == 1
    cursor = ranks[0][17][1]  # three ranks stop, one goes on
    assert [batch.pairs for batch, _ in islice(Batches(cache, config).after(cursor), 60)] == single[54:114]


def test_shares_mix_and_over_epochs_every_pair_comes_equally_often():
    parts = (Part(0, 60, 1.0), Part(60, 67, 1.0), Part(67, 67, 5.0))
    seen, epochs = Counter(), 7
    for epoch in range(epochs):
        pairs = np.concatenate(list(windows(parts, seed=1, epoch=epoch, block=3, window=11)))
        assert (pairs < 60).sum() == (pairs >= 60).sum() == round(67 / 7)
        seen.update(pairs.tolist())
    small = [seen[pair] for pair in range(60, 67)]
    assert max(small) - min(small) <= 1 and max(seen[pair] for pair in range(60)) - min(seen[pair] for pair in range(60)) <= 1
    with pytest.raises(UsageError, match="every corpus a share"):
        list(windows((Part(0, 5, 1.0), Part(5, 9)), seed=1, epoch=0, block=3, window=11))


def test_windows_mix_distant_blocks():
    first = next(windows((Part(0, 10_007),), seed=1, epoch=0, block=16, window=1000))
    assert 900 < len(first) <= 1000 and np.ptp(first) > 8000


def test_the_thread_passes_errors_on_and_ends_cleanly():
    def broken():
        yield 1
        raise DataError("gone")

    stream = prefetch(broken)
    assert next(stream) == 1
    with pytest.raises(DataError, match="gone"):
        next(stream)
    assert list(prefetch(lambda: iter("abc"), ahead=1)) == ["a", "b", "c"]
    endless = Batches(cache_of(), Batching(tokens=101)).after()
    next(endless)
    endless.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "regard-prefetch"]


def test_the_thread_runs_ahead_but_not_far():
    made = []

    def count():
        for number in range(1000):
            made.append(number)
            yield number

    stream = prefetch(count, ahead=3)
    next(stream)
    while len(made) < 4:
        pass
    assert len(made) <= 6
    stream.close()


def test_the_cursor_at_the_end_of_an_epoch_is_the_next_ones_beginning():
    batches = Batches(cache_of(), Batching(tokens=101, ahead=0))
    count = len(list(batches.plan(0)))
    cursors = [cursor for _, cursor in islice(batches.after(), count + 1)]
    assert cursors[-3:] == [Cursor(0, count - 1), Cursor(1, 0), Cursor(1, 1)]
