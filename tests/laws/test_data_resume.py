"""Whatever comes after a cursor is what the straight stream had there, bit for bit, across epoch edges."""

import random
from itertools import islice

import pytest
import torch

from regard.data.batching import Batches, Batching
from regard.data.parallel import Tsv
from regard.data.prepare import prepare_pairs
from regard.data.tokenise import Bpe, Unigram, Word, train_tokenizers

SYLLABLES = ["ba", "do", "ki", "lu", "ne", "sho", "tra", "wim"]


@pytest.fixture(scope="module", params=[Word(), Bpe(size=317, dropout=0.2), Unigram(size=317, sampling=0.3)], ids=lambda c: c.kind)
def cache(request, tmp_path_factory):
    folder, noise = tmp_path_factory.mktemp("resume"), random.Random(3)

    def sentence():
        return " ".join("".join(noise.choices(SYLLABLES, k=noise.randint(1, 4))) for _ in range(noise.randint(1, 6)))

    (folder / "a.tsv").write_text("".join(f"{sentence()}\t{sentence()}\n" for _ in range(149)))
    corpora = [Tsv("a.tsv")]
    return prepare_pairs(corpora, train_tokenizers(request.param, corpora, root=folder), folder / "cache", root=folder)


@pytest.mark.parametrize("shape", [{}, {"layout": "padded"}, {"static": True}, {"window": 31, "block": 3}], ids=str)
@pytest.mark.parametrize("ahead", [0, 2])
def test_any_cursor_continues_the_straight_stream(cache, shape, ahead):
    config = Batching(tokens=127, ahead=ahead, **shape)
    per_epoch = len(list(Batches(cache, config, seed=4).plan(0)))
    stream = Batches(cache, config, seed=4).after()
    straight = list(islice(stream, 2 * per_epoch + 5))
    stream.close()
    for place in (0, 1, per_epoch // 2, per_epoch - 2, per_epoch - 1, per_epoch, per_epoch + 3, 2 * per_epoch - 1):
        resumed = Batches(cache, config, seed=4).after(straight[place][1])
        for (batch, cursor), (again, found) in zip(straight[place + 1 : place + 6], islice(resumed, 5)):
            assert batch.pairs == again.pairs and cursor == found
            assert torch.equal(batch.source.ids, again.source.ids)
            assert torch.equal(batch.target.ids, again.target.ids) and torch.equal(batch.labels, again.labels)
        resumed.close()


def test_sampling_changes_the_spelling_and_never_the_pairs(cache):
    batches = Batches(cache, Batching(tokens=127), seed=4)
    for epoch in range(3):
        pairs = sorted(pair for some in batches.plan(epoch) for pair in some.tolist())
        assert pairs == list(range(149))
    some = next(batches.plan(0))
    spelled = {tuple(batches.batch(some, epoch=epoch).source.ids.flatten().tolist()) for epoch in range(4)}
    assert len(spelled) == (4 if cache.sampled else 1)
