import gzip
import os
import random
import signal

import numpy as np
import pytest

from regard.data.parallel import Filters, Lines, Tsv
from regard.data.prepare import DRAWS, fingerprint, ordered_map, prepare_pairs
from regard.data.stream import Draw
from regard.data.tokenise import Bpe, Unigram, Word, train_tokenizers
from regard.errors import DataError, OutOfMemory

WORDS = ["haus", "baum", "hund", "katze", "laufen", "springen", "schnell", "langsam", "über", "äpfel", "weltmeisterschaft", "kind"]


@pytest.fixture
def corpora(tmp_path):
    noise = random.Random(11)
    sides = [[" ".join(noise.choices(WORDS, k=noise.randint(1, 9))) for _ in range(503)] for _ in range(2)]
    (tmp_path / "a.de").write_text("\n".join(sides[0]) + "\n")
    (tmp_path / "a.en.gz").write_bytes(gzip.compress(("\n".join(sides[1]) + "\n").encode()))
    (tmp_path / "b.tsv").write_text("rare word\tund\n\tdropped\nhaus haus\tbaum\n")
    return [Lines("a.de", "a.en.gz"), Tsv("b.tsv", tag="<b>")]


def pairs_of(corpora, root):
    from regard.data.parallel import read_pairs

    return [pair for corpus in corpora for pair in read_pairs(corpus, root=root)]


@pytest.mark.parametrize(
    "config", [Word(), Bpe(size=333), Bpe(size=333, dropout=0.2), Unigram(size=333, sampling=0.3)], ids=lambda c: repr(c)[:12]
)
def test_the_cache_holds_what_the_tokenizers_say(tmp_path, corpora, config):
    tokenizers = train_tokenizers(config, corpora, root=tmp_path)
    told = []
    cache = prepare_pairs(corpora, tokenizers, tmp_path / "cache", root=tmp_path, progress=lambda done, part: told.append((done, part)))
    pairs = pairs_of(corpora, tmp_path)
    assert len(cache) == len(pairs) == 505 and cache.counts == {"read": 506, "kept": 505, "empty source": 1}
    assert [(part.start, part.stop) for part in cache.parts] == [(0, 503), (503, 505)]
    for place, (source, target) in enumerate(pairs):
        assert cache.source(place).tolist() == tokenizers[0].encode(source)
        assert cache.target(place).tolist() == tokenizers[1].encode(target)
        assert cache.source_lengths[place] == len(cache.source(place)) and cache.target_lengths[place] == len(cache.target(place))
    assert told[-1][0] == 505 and all(0 <= part <= 1 for _, part in told)


def test_drawn_spellings_decode_to_the_text_and_change_with_the_epoch(tmp_path, corpora):
    tokenizers = train_tokenizers(Bpe(size=333, dropout=0.2), corpora, root=tmp_path)
    cache = prepare_pairs(corpora, tokenizers, tmp_path / "cache", root=tmp_path)
    assert cache.sampled
    rows = np.array([504, 3, 77])
    texts = [pairs_of(corpora, tmp_path)[row][0] for row in rows]
    seen = set()
    for epoch in range(5):
        ids, lengths = cache.sides[0].take(rows, Draw(seed=1, epoch=epoch))
        assert lengths.tolist() == cache.sides[0].drawn_lengths(rows, Draw(seed=1, epoch=epoch)).tolist()
        stretches = np.split(ids, np.cumsum(lengths)[:-1])
        assert [tokenizers[0].decode(stretch.tolist()) for stretch in stretches] == texts
        again, _ = cache.sides[0].take(rows[1:], Draw(seed=1, epoch=epoch))
        assert (again == np.concatenate(stretches[1:])).all()  # the draw knows nothing of its neighbours
        seen.add(tuple(ids.tolist()))
    assert len(seen) == 5


def test_a_draw_longer_than_the_limit_falls_back_on_the_best_spelling(tmp_path, corpora):
    tokenizers = train_tokenizers(Bpe(size=333, dropout=0.5), corpora, root=tmp_path)
    side = prepare_pairs(corpora, tokenizers, tmp_path / "cache", root=tmp_path).sides[1]
    rows = np.arange(505)
    free = side.drawn_lengths(rows, Draw(1, 0))
    bound = side.drawn_lengths(rows, Draw(1, 0, limit=9))
    assert (free > 9).any() and (bound == np.where(free > 9, side.lengths, free)).all()


def test_a_second_run_reuses_and_a_change_is_noticed(tmp_path, corpora):
    tokenizers = train_tokenizers(Word(), corpora, root=tmp_path)
    first = prepare_pairs(corpora, tokenizers, tmp_path / "cache", root=tmp_path)
    told = []
    again = prepare_pairs(corpora, tokenizers, tmp_path / "cache", root=tmp_path, progress=lambda *facts: told.append(facts))
    assert again.fingerprint == first.fingerprint and not told
    filtered = prepare_pairs(corpora, tokenizers, tmp_path / "cache", root=tmp_path, filters=Filters(max_words=3))
    assert filtered.fingerprint != first.fingerprint and filtered.counts["too many words"] > 0
    before = fingerprint(corpora, root=tmp_path)
    text = (tmp_path / "a.de").read_text()
    (tmp_path / "a.de").write_text(text.replace("haus", "maus", 1))
    assert fingerprint(corpora, root=tmp_path) != before
    assert prepare_pairs(corpora, tokenizers, tmp_path / "cache", root=tmp_path).fingerprint != first.fingerprint


def test_a_torn_cache_is_built_again(tmp_path, corpora):
    tokenizers = train_tokenizers(Word(), corpora, root=tmp_path)
    cache = prepare_pairs(corpora, tokenizers, tmp_path / "cache", root=tmp_path)
    kept = cache.source(3).tolist()
    torn = tmp_path / "cache" / cache.fingerprint / "source.values"
    torn.write_bytes(torn.read_bytes()[:-2])
    assert prepare_pairs(corpora, tokenizers, tmp_path / "cache", root=tmp_path).source(3).tolist() == kept


def test_stopped_half_way_it_leaves_nothing(tmp_path, corpora):
    tokenizers = train_tokenizers(Word(), corpora, root=tmp_path)

    def stop(done, part):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare_pairs(corpora, tokenizers, tmp_path / "cache", root=tmp_path, progress=stop)
    assert list((tmp_path / "cache").iterdir()) == []


def test_worker_processes_make_the_same_cache(tmp_path, corpora):
    tokenizers = train_tokenizers(Bpe(size=333, dropout=0.2), corpora, root=tmp_path)
    one = prepare_pairs(corpora, tokenizers, tmp_path / "one", root=tmp_path, workers=1)
    two = prepare_pairs(corpora, tokenizers, tmp_path / "two", root=tmp_path, workers=2)
    for path in sorted((tmp_path / "one" / one.fingerprint).iterdir()):
        assert path.read_bytes() == (tmp_path / "two" / two.fingerprint / path.name).read_bytes()
    assert one.sides[0].draws == DRAWS


def test_an_unwritable_folder_and_a_missing_corpus_are_data_errors(tmp_path, corpora):
    tokenizers = train_tokenizers(Word(), corpora, root=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="the cache cannot be written"):
        prepare_pairs(corpora, tokenizers, tmp_path / "file", root=tmp_path)
    with pytest.raises(DataError, match="no such file"):
        prepare_pairs([Tsv("nowhere.tsv")], tokenizers, tmp_path / "cache", root=tmp_path)


def test_only_a_few_items_are_under_way():
    taken = []

    def items():
        for item in range(100):
            taken.append(item)
            yield item

    results = ordered_map(_square, items(), setup=_nothing, given=None, workers=2)
    assert [next(results) for _ in range(3)] == [0, 1, 4]
    assert len(taken) < 20
    results.close()


def test_a_killed_worker_is_one_clear_line():
    with pytest.raises(OutOfMemory, match="worker process was killed"):
        list(ordered_map(_die, [1, 2, 3], setup=_nothing, given=None, workers=2))


def _die(value: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _square(value: int) -> int:
    return value * value


def _nothing(given) -> None: ...
