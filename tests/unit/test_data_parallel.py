import json
from collections import Counter

import pytest

from regard.config.toml import structure
from regard.data.parallel import Corpus, Filters, Jsonl, Lines, Tsv, read_pairs, read_rows
from regard.errors import DataError, UsageError


def lines_corpus(folder, source: bytes, target: bytes) -> Lines:
    (folder / "a.de").write_bytes(source)
    (folder / "a.en").write_bytes(target)
    return Lines("a.de", "a.en")


def test_pairs_stay_aligned_past_defects_and_every_loss_is_counted(tmp_path):
    corpus = lines_corpus(tmp_path, b"1\n\xff\n3\n4\n\n6\n7\n", b"one\ntwo\nth\0ree\nfour\nfive\n  \nseven\n")
    counts, defects = Counter(), []
    assert list(read_pairs(corpus, counts, root=tmp_path, on_defect=defects.append)) == [("1", "one"), ("4", "four"), ("7", "seven")]
    assert counts == {"read": 7, "kept": 3, "invalid UTF-8": 1, "NUL character": 1, "empty source": 1, "empty target": 1}
    assert [str(defect).removeprefix(f"{tmp_path}/") for defect in defects] == ["a.de:2: invalid UTF-8 at byte 1", "a.en:3: NUL character"]


def test_a_bad_line_can_end_the_run(tmp_path):
    corpus = lines_corpus(tmp_path, b"1\n\xff\n", b"one\ntwo\n")
    with pytest.raises(DataError, match=r"a\.de:2: invalid UTF-8"):
        list(read_pairs(corpus, root=tmp_path, filters=Filters(on_bad_line="fail")))


@pytest.mark.parametrize("lengths", [(3, 5), (5, 3), (0, 2)])
def test_unequal_files_name_both_counts(tmp_path, lengths):
    corpus = lines_corpus(tmp_path, b"x\n" * lengths[0], b"y\n" * lengths[1])
    with pytest.raises(DataError, match=rf"a\.de: {lengths[0]} lines, but .*a\.en has {lengths[1]}"):
        list(read_pairs(corpus, root=tmp_path))


def test_tsv_columns_and_short_rows(tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"en\tde\tx\r\nonly one\nhello\thallo\ty\n")
    corpus, counts = Tsv("a.tsv", (2, 1), tag="<2en>"), Counter()
    assert list(read_pairs(corpus, counts, root=tmp_path)) == [("<2en> de", "en"), ("<2en> hallo", "hello")]
    assert counts["missing column"] == 1
    with pytest.raises(UsageError, match="counted from 1"):
        list(read_rows(Tsv("a.tsv", (0, 1)), root=tmp_path))


def test_jsonl_keys_step_into_objects(tmp_path):
    rows = [{"t": {"de": "eins", "en": "one"}}, {"t": {"de": "zwei"}}, {"t": {"de": 3, "en": "x"}}, {"t": {"de": "\ud800", "en": "x"}}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\nnot json\n[1]\n")
    counts = Counter()
    assert list(read_pairs(Jsonl("a.jsonl", ("t.de", "t.en")), counts, root=tmp_path)) == [("eins", "one")]
    assert counts == {
        "read": 6,
        "kept": 1,
        "no text under the key t.en": 1,
        "no text under the key t.de": 2,
        "lone surrogate": 1,
        "not JSON": 1,
    }


@pytest.mark.parametrize(
    ("filters", "source", "target", "reason"),
    [
        (Filters(), "a", "b", ""),
        (Filters(), "\u2028", "b", "empty source"),
        (Filters(max_words=3), "a b c", "d e f g", "too many words"),
        (Filters(max_words=3), "a b c", "d", ""),
        (Filters(min_words=2), "a b", "d", "too few words"),
        (Filters(max_characters=5), "abcdef", "d", "too many characters"),
        (Filters(ratio=2.0), "abcd", "xy", ""),
        (Filters(ratio=2.0), "xy", "abcde", "length ratio"),
    ],
)
def test_filters(filters, source, target, reason):
    assert filters.reason(source, target) == reason


def test_corpora_by_kind():
    assert structure(Corpus, {"kind": "tsv", "path": "x.tsv", "columns": [2, 1], "share": 3}) == Tsv("x.tsv", (2, 1), share=3.0)
    assert structure(Corpus, {"kind": "lines", "source": "a", "target": "b"}) == Lines("a", "b")
