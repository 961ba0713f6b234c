"""Memory does not grow with the corpus; `regard bench memory` shows the same from 100k to 5M pairs."""

from regard.bench.memory import growth


def test_thirty_times_the_pairs_need_no_more_memory():
    found = growth(2_000, 60_000, training_pairs=1_000, batches=50, window=2_048)
    assert found["large"]["cache_mb"] > 15 * found["small"]["cache_mb"]
    assert found["growth_mb"] < 12, found  # the 60,000 pairs as Python lists of ids would be 40 MB
