"""Running text: what a document is, which part of a file is read, and the long row of ids made of it."""

from __future__ import annotations

import gzip
import json
import lzma
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import zstandard

from regard.data import documents
from regard.data.documents import Text, read_pieces
from regard.data.marks import BOS
from regard.data.spelling import Bpe, Byte, Character, TokenizerConfig, Unigram, Word
from regard.data.text_cache import TextCache, opening, prepare_text, train_text_tokenizer
from regard.errors import DataError, UsageError

LINES = "one two\r\n\r\nthree\nfour five\n \nsix"
LOSSLESS = [Byte(), Character(), Unigram(size=300, coverage=1.0), Bpe(size=300)]


def texts(corpus: Text, root: Path) -> list[str]:
    found: list[str] = []
    for piece in read_pieces(corpus, root=root):
        found = [*found, piece.text] if piece.opens else [*found[:-1], found[-1] + piece.text]
    return found


@pytest.mark.parametrize(
    ("parted", "expected"),
    [
        ("lines", ["one two", "three", "four five", "six"]),
        ("paragraphs", ["one two", "three\nfour five", "six"]),
        ("whole", [LINES.replace("\r", "")]),
    ],
)
@pytest.mark.parametrize("piece", [3, 1 << 16])
def test_what_a_document_is(parted, expected, piece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(documents, "PIECE", piece)
    (tmp_path / "t").write_bytes(LINES.encode())
    assert [text.rstrip("\n") for text in texts(Text("t", parted), tmp_path)] == expected
    if parted == "whole":
        assert texts(Text("t", parted), tmp_path) == expected


@pytest.mark.parametrize("name", ["t", "t.gz", "t.xz", "t.zst"])
@pytest.mark.parametrize("parted", ["lines", "whole"])
def test_compressed_files_read_alike(name, parted, tmp_path: Path):
    data = LINES.encode()
    made = {"t": data, "t.gz": gzip.compress(data), "t.xz": lzma.compress(data), "t.zst": zstandard.ZstdCompressor().compress(data)}
    (tmp_path / name).write_bytes(made[name])
    (tmp_path / "plain").write_bytes(data)
    assert texts(Text(name, parted), tmp_path) == texts(Text("plain", parted), tmp_path)


def test_parts_of_a_file_meet_at_their_edges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text = "".join(f"line {n} äöü\n" for n in range(333))
    (tmp_path / "t").write_text(text, encoding="utf-8")
    first, second = (texts(Text("t", "whole", start=start, stop=stop), tmp_path)[0] for start, stop in ((0.0, 0.9), (0.9, 1.0)))
    assert first + second == text and len(first) == int(0.9 * len(text))
    some = [texts(Text("t", start=start, stop=stop), tmp_path) for start, stop in ((0.0, 0.5), (0.5, 0.7), (0.7, 1.0))]
    assert sum(some, []) == text.splitlines() and all(some)
    (tmp_path / "p").write_text("\n\n".join(f"{n} one\n{n} two\n{n} three" for n in range(20)))
    monkeypatch.setattr(documents, "PIECE", 4)
    for edge in np.linspace(0.02, 0.98, 49).tolist():
        parts = [texts(Text("p", "paragraphs", start=start, stop=stop), tmp_path) for start, stop in ((0.0, edge), (edge, 1.0))]
        assert sum(parts, []) == texts(Text("p", "paragraphs"), tmp_path)
    counts: Counter[str] = Counter()
    list(read_pieces(Text("t", stop=0.5), counts, root=tmp_path))
    assert counts["read"] == 333 == counts["kept"] + counts["outside of start and stop"] and counts["kept"] == len(some[0])


def test_what_is_no_text_is_counted_or_refused(tmp_path: Path):
    (tmp_path / "t").write_bytes(b"good\nb\xffd\nfine\n")
    counts: Counter[str] = Counter()
    assert [piece.text for piece in read_pieces(Text("t"), counts, root=tmp_path)] == ["good", "fine"]
    assert counts == Counter(read=3, kept=2) + Counter({"invalid UTF-8": 1})
    with pytest.raises(DataError, match="t:2"):
        list(read_pieces(Text("t"), root=tmp_path, strict=True))
    with pytest.raises(DataError, match="UTF-8"):
        list(read_pieces(Text("t", "whole"), root=tmp_path))
    (tmp_path / "cut.xz").write_bytes(lzma.compress(b"some text" * 999)[:-9])
    with pytest.raises(DataError, match="ends early"):
        list(read_pieces(Text("cut.xz", "whole"), root=tmp_path))
    with pytest.raises(UsageError, match="nothing from"):
        Text("t", start=0.5, stop=0.5)


def test_a_file_without_a_single_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(documents, "PIECE", 5)
    (tmp_path / "t").write_text("甲" * 1001, encoding="utf-8")
    pieces = list(read_pieces(Text("t", "whole"), root=tmp_path))
    assert len(pieces) > 3 and "".join(piece.text for piece in pieces) == "甲" * 1001


@pytest.mark.parametrize("config", LOSSLESS, ids=lambda config: config.kind)
@pytest.mark.parametrize("parted", ["lines", "paragraphs", "whole"])
def test_ids_give_the_text_back(config: TokenizerConfig, parted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(documents, "PIECE", 50)
    text = "".join(f"der {n} Hund  sieht\n{'' if n % 3 else ' '}Brot {n}.\n\n" for n in range(20))
    (tmp_path / "t").write_text(text, encoding="utf-8")
    corpora = [Text("t", parted)]
    tokenizer = train_text_tokenizer(config, corpora, root=tmp_path)
    begin = opening(tokenizer, corpora)
    cache = prepare_text(corpora, tokenizer, tmp_path / "cache", begin=begin, root=tmp_path)
    rows = np.split(cache.ids, cache.starts[1:])
    assert all(row[0] == begin for row in rows)
    assert [tokenizer.decode(row[1:].tolist()) for row in rows] == texts(corpora[0], tmp_path)
    told = texts(corpora[0], tmp_path)
    assert cache.characters == sum(map(len, told)) and cache.words == sum(len(one.split()) for one in told)


def test_the_cache_is_found_again_and_made_anew(tmp_path: Path):
    (tmp_path / "t").write_text("a b\nc d\n")
    tokenizer = train_text_tokenizer(Byte(), [Text("t")], root=tmp_path)
    make = lambda **changes: prepare_text([Text("t")], tokenizer, tmp_path / "cache", root=tmp_path, **changes)
    first = make()
    (place,) = (tmp_path / "cache").iterdir()
    facts = json.loads((place / "cache.json").read_text())
    facts["words"] = 99
    (place / "cache.json").write_text(json.dumps(facts))
    assert make().words == 99  # read, not made
    assert make(begin=14).begin == 14 and make(begin=14).fingerprint != first.fingerprint
    (tmp_path / "t").write_text("a b\nc e\n")
    assert make().words == 4


def test_the_mark_before_a_text(tmp_path: Path):
    (tmp_path / "t").write_text("a b\nc d\n")
    for config, whole in ((Character(), True), (Byte(), True), (Word(min_count=1), False)):
        tokenizer = train_text_tokenizer(config, [Text("t")], root=tmp_path)
        assert opening(tokenizer, [Text("t")]) == BOS
        found = opening(tokenizer, [Text("t", "whole")])
        assert tokenizer.decode([found]) == "\n" if whole else found == BOS


def test_holding_out():
    cache = TextCache.of([[5, 6], [7], [8, 9, 10]])
    rest, last = cache.held_out(1)
    assert rest.ids.tolist() == [1, 5, 6, 1, 7] and rest.starts.tolist() == [0, 3]
    assert last.ids.tolist() == [1, 8, 9, 10] and last.starts.tolist() == [0]
    rest, last = TextCache.of([[5, 6, 7, 8]], begin=4).held_out(2)
    assert rest.ids.tolist() == [4, 5, 6] and last.ids.tolist() == [4, 7, 8] and last.starts.tolist() == [0]
    for count in (3, 4):
        with pytest.raises(DataError, match="held out"):
            cache.held_out(count)
