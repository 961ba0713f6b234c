"""Dirty files of every kind: no traceback, the right line in the report, and after cleaning every source still beside its target.

REGARD_TORTURE=1 makes a thousand files of each kind instead of a few.
"""

from __future__ import annotations

import gzip
import lzma
import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from regard.data.clean import clean
from regard.data.defects import CURES
from regard.data.doctor import check
from regard.errors import DataError, RegardError, UsageError

FILES = 1000 if os.environ.get("REGARD_TORTURE") else 4  # of each kind
LINES = 41

Dirt = Callable[[bytes, random.Random], bytes]


def amid(piece: bytes) -> Dirt:
    """Puts a piece in place of the space between two words."""

    def put(line: bytes, rng: random.Random) -> bytes:
        words = line.split(b" ")
        place = rng.randrange(3, len(words))  # after the number of the pair
        return b" ".join(words[:place]) + piece + b" ".join(words[place:])

    return put


def instead(line: bytes) -> Dirt:
    return lambda _, rng: line


DIRT: dict[str, tuple[str, Dirt]] = {  # name -> what the doctor must call it, and how it comes about
    "broken byte": ("invalid UTF-8", amid(b"\xff")),
    "cut character": ("invalid UTF-8", amid(b"\xe2\x82 ")),
    "Latin-1": ("invalid UTF-8", amid("schön".encode("latin-1"))),
    "overlong": ("invalid UTF-8", amid(b"\xc0\xaf")),
    "beyond Unicode": ("invalid UTF-8", amid(b"\xf5\x80\x80\x80")),
    "surrogate": ("lone surrogate", amid(b"\xed\xb2\x80")),
    "NUL": ("NUL", amid(b"\0")),
    "replacement": ("replacement character", amid("\ufffd".encode())),
    "no character": ("no character", amid("\uffff".encode())),
    "1 MB": ("longer than 1 MB", lambda line, rng: line + b" x" * 600_000),
    "empty": ("empty line", instead(b"")),
    "spaces": ("only whitespace", instead(b"   ")),
    "ideographic space": ("only whitespace", instead("\u3000".encode())),
    "CRLF": ("CRLF", lambda line, rng: line + b"\r"),
    "carriage return": ("carriage return", amid(b"\r")),
    "line separator": ("U+2028", amid("\u2028".encode())),
    "paragraph separator": ("U+2029", amid("\u2029".encode())),
    "next line": ("U+0085", amid("\u0085".encode())),
    "vertical tab": ("vertical tab", amid(b"\v")),
    "form feed": ("form feed", amid(b"\f")),
    "file separator": ("control character", amid(b"\x1c")),
    "bell": ("control character", amid(b" \x07")),
    "tab": ("tab", amid(b"\t")),
    "doubled space": ("doubled space", amid(b"   ")),
    "space before": ("space at an end", lambda line, rng: b" " + line),
    "mark inside": ("byte order mark", amid(" \ufeff".encode())),
    "zero width": ("zero-width character", amid(" \u200b".encode())),
    "right to left": ("direction mark", amid(" \u202e".encode())),
    "soft hyphen": ("soft hyphen", amid(" \u00ad".encode())),
    "decomposed": ("not NFC", amid(" e\u0301 ".encode())),
    "twice encoded": ("double-encoded UTF-8", amid(" schÃ¶n ".encode())),
    "private use": ("private use", amid(" \ue123 ".encode())),
    "HTML": ("HTML", amid(b" &nbsp; ")),
    "many words": ("over 250 words", lambda line, rng: line + b" x y" * 130),
    "again and again": ("one word over and over", amid(b" " + b"again " * 7)),
}


def lines(rng: random.Random) -> list[list[bytes]]:
    """Two sides whose lines carry the number of their pair."""
    words = ["ein", "Hund", "läuft", "über", "den", "Weg", "und", "wir", "sehen", "ihm", "nach"]
    return [[f"pair {number} {' '.join(rng.sample(words, 7))} {side}".encode() for number in range(LINES)] for side in "st"]


def write(path: Path, content: list[bytes]) -> None:
    raw = b"\n".join(content) + b"\n"
    pack = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.ZstdCompressor().compress}.get(path.suffix, bytes)
    path.write_bytes(pack(raw))


def numbers(path: Path) -> list[int]:
    """The number of the pair in each line, split on newlines alone."""
    content = path.read_bytes().decode("utf-8")
    found = [re.match(r"pair (\d+) ", line) for line in content.removesuffix("\n").split("\n")]
    return [int(match[1]) if match else -1 for match in found]


def test_there_are_at_least_25_kinds():
    assert len({kind for kind, _ in DIRT.values()}) >= 25 and {kind for kind, _ in DIRT.values()} <= set(CURES)


@pytest.mark.parametrize("name", DIRT)
def test_each_kind_is_reported_at_its_line_and_no_pair_is_shifted(name: str, tmp_path: Path):
    kind, dirt = DIRT[name]
    for number in range(FILES):
        rng = random.Random(number)
        sides = lines(rng)
        places = sorted(rng.sample(range(1, LINES), rng.choice([1, 2, 3])))
        side = rng.randrange(2)
        for place in places:
            sides[side][place] = dirt(sides[side][place], rng)
        ending = rng.choice(["", "", "", ".gz", ".xz", ".zst"])
        files = [tmp_path / f"train.{language}{ending}" for language in ("de", "en")]
        for file, content in zip(files, sides, strict=True):
            write(file, content)
        report = check(files, examples=LINES)
        assert [one.line for one in report.findings[str(files[side]), kind]] == [place + 1 for place in places]
        assert report.code == (0 if CURES[kind] == "note" else 3)
        others = {found for path, found in report.counts if path == str(files[1 - side])}
        assert not others, f"the other file was clean, but: {others}"
        told = clean(files, tmp_path / "out")
        kept = [numbers(tmp_path / "out" / f"train.{language}") for language in ("de", "en")]
        dropped = set(places) if CURES[kind] == "drop" else set()
        assert kept[0] == kept[1] == [place for place in range(LINES) if place not in dropped]
        assert told["corpora"][0]["kept"] == LINES - len(dropped)
        for language in ("de", "en"):  # what was written has nothing left to mend
            left = check([tmp_path / "out" / f"train.{language}"])
            assert not [found for _, found in left.counts if CURES[found] != "note"]


@pytest.mark.parametrize("number", range(FILES * 3))
def test_all_kinds_at_once_on_both_sides(number: int, tmp_path: Path):
    rng = random.Random(number)
    sides = lines(rng)
    expected, gone = [], set()
    for place in range(1, LINES):
        if rng.random() < 0.5:
            side, (kind, dirt) = rng.randrange(2), rng.choice(list(DIRT.values()))
            sides[side][place] = dirt(sides[side][place], rng)
            expected.append((side, kind, place + 1))
            gone |= {place} if CURES[kind] == "drop" else set()
    files = [tmp_path / "train.de", tmp_path / "train.en"]
    for file, content in zip(files, sides, strict=True):
        write(file, content)
    report = check(files, examples=LINES)
    for side, kind, line in expected:
        assert line in [one.line for one in report.findings[str(files[side]), kind]]
    clean(files, tmp_path / "out")
    kept = [numbers(tmp_path / "out" / f"train.{language}") for language in ("de", "en")]
    assert kept[0] == kept[1] == [place for place in range(LINES) if place not in gone]


@pytest.mark.parametrize("content", [b"", b"\n", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n\r\n", b"x", b"\t\n\t\n", b"\x1f\x8b\x08"])
@pytest.mark.parametrize("name", ["train.de", "train.tsv", "train.jsonl", "train.gz", "train.xz", "train.zst"])
def test_small_files_of_nothing_much(name: str, content: bytes, tmp_path: Path):
    (tmp_path / name).write_bytes(content)
    report = check([tmp_path / name])
    assert report.text() and report.data()["code"] == report.code
    try:
        clean([tmp_path / name], tmp_path / "out")
    except RegardError as error:
        assert str(tmp_path / name) in str(error)


@pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
@pytest.mark.parametrize("number", range(FILES))
def test_archives_cut_short_or_damaged_are_named_and_never_used(ending: str, number: int, tmp_path: Path):
    rng = random.Random(number)
    sides = lines(rng)
    files = [tmp_path / f"train.de{ending}", tmp_path / "train.en"]
    for file, content in zip(files, sides, strict=True):
        write(file, content)
    whole = files[0].read_bytes()
    files[0].write_bytes(whole[: rng.randrange(1, len(whole) - 9)])
    report = check(files)
    assert report.code == 3 and (str(files[0]), "damaged archive") in report.counts
    with pytest.raises(DataError, match=re.escape(str(files[0]))):
        clean(files, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_unequal_counts_stop_everything_with_both_counts(tmp_path: Path):
    sides = lines(random.Random(1))
    files = [tmp_path / "train.de", tmp_path / "train.en"]
    write(files[0], sides[0])
    write(files[1], sides[1][:-3])
    report = check(files)
    found = report.findings[str(files[0]), "mismatched counts"][0]
    assert (found.line, report.code) == (LINES - 2, 3) and "41 lines" in found.says and "38" in found.says
    with pytest.raises(DataError, match="41"):
        clean(files, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_columns_and_json_that_are_missing_are_named_by_line(tmp_path: Path):
    (tmp_path / "train.tsv").write_bytes(b"a b\tc d\nno column\ne f\tg h\tmore\n")
    (tmp_path / "train.jsonl").write_bytes(b'{"source": "a", "target": "b"}\n{"source": "a"\n{"source": "a", "target": 3}\n')
    report = check([tmp_path / "train.tsv", tmp_path / "train.jsonl"])
    places = {(Path(path).name, kind): [one.line for one in few] for (path, kind), few in report.findings.items()}
    assert places["train.tsv", "missing column"] == [2]
    assert places["train.jsonl", "not JSON"] == [2] and places["train.jsonl", "missing text"] == [3]
    told = clean([tmp_path / "train.tsv", tmp_path / "train.jsonl"], tmp_path / "out")
    assert [one["kept"] for one in told["corpora"]] == [2, 1]
    assert (tmp_path / "out" / "train.tsv").read_bytes() == b"a b\tc d\ne f\tg h\n"
    assert (tmp_path / "out" / "train.jsonl").read_bytes() == b'{"source": "a", "target": "b"}\n'


def test_nothing_is_written_over_itself_or_over_another(tmp_path: Path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "train.de", lines(random.Random(1))[0])
    with pytest.raises(UsageError, match="over itself"):
        clean([tmp_path / "a" / "train.de"], tmp_path / "a")
    with pytest.raises(UsageError, match="two files are called"):
        clean([tmp_path / "a" / "train.de", tmp_path / "b" / "train.de"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_alone_is_mended_line_by_line(tmp_path: Path):
    (tmp_path / "text").write_bytes(b"\xef\xbb\xbfone\r\n\n two\n\xff\nthree")
    told = clean([tmp_path / "text"], tmp_path / "out")
    assert (tmp_path / "out" / "text").read_bytes() == b"one\ntwo\nthree\n"
    assert told["alone"] == [{"files": [str(tmp_path / "out" / "text")], "read": 5, "kept": 3}]
