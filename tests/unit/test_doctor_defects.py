"""Each kind of defect of a line: found, named, and mended where that is possible."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.defects import CURES, PATTERNS, defects_of, inspect, mend, unusable

GOOD = "Der Hund, den wir 3-mal sahen: „ja“!"


def kinds(raw: bytes, *, tabs: bool = False) -> list[str]:
    return [kind for kind, _ in defects_of(raw, tabs=tabs)]


@pytest.mark.parametrize(
    "text", [GOOD, "plain words, and more; (all) well?", "a b", "日本語の文。", "x\u00a0!", "«\u202fça va\u202f»", "R & D < 3"]
)
def test_good_lines_have_no_defect(text: str):
    assert kinds(text.encode()) == [] and mend(text) == text and unusable(text) == ""


@pytest.mark.parametrize(
    ("raw", "kind", "mended"),
    [
        (b"ab\xffcd", "invalid UTF-8", None),
        (b"ab\xc0\xaf", "invalid UTF-8", None),
        (b"ab\xed\xa0\x80", "lone surrogate", None),
        (b"a\0b", "NUL", None),
        ("a\ufffdb".encode(), "replacement character", None),
        ("a\ufffeb".encode(), "no character", None),
        (b"", "empty line", None),
        (b"  \t ", "only whitespace", None),
        ("\u3000\u2009".encode(), "only whitespace", None),
        (b"ab\r", "CRLF", "ab"),
        (b"a\rb", "carriage return", "a b"),
        ("\ufeffab".encode(), "byte order mark", "ab"),
        ("a\u2028b".encode(), "U+2028", "a b"),
        ("a\u2029b".encode(), "U+2029", "a b"),
        ("a\u0085b".encode(), "U+0085", "a b"),
        (b"a\vb", "vertical tab", "a b"),
        (b"a\fb", "form feed", "a b"),
        (b"a\x1cb", "control character", "a b"),
        (b"a\x07b", "control character", "ab"),
        ("a\u200bb".encode(), "zero-width character", "ab"),
        ("a\u202eb".encode(), "direction mark", "ab"),
        ("a\u00adb".encode(), "soft hyphen", "ab"),
        (b"a\tb", "tab", "a b"),
        (b" ab", "space at an end", "ab"),
        (b"a  b", "doubled space", "a b"),
        ("e\u0301".encode(), "not NFC", "é"),
        ("e\u200b\u0301".encode(), "zero-width character", "é"),
        ("schÃ¶n".encode(), "double-encoded UTF-8", "schÃ¶n"),
        ("a\ue000b".encode(), "private use", "a\ue000b"),
        (b"a &amp; b", "HTML", "a &amp; b"),
        (b"<b>a</b>", "HTML", "<b>a</b>"),
        (b"a " * 251 + b"b", "over 250 words", None),
        (b"very very very very very very good", "one word over and over", "very very very very very very good"),
        (b"1,000 !", "no letter", "1,000 !"),
    ],
)
def test_each_kind(raw: bytes, kind: str, mended: str | None):
    assert kind in kinds(raw)
    if CURES[kind] == "mend":
        text = raw.removesuffix(b"\r").decode()
        assert mend(text) == mended
        assert kinds((mended or "").encode()) == []


def test_every_kind_has_a_cure():
    assert set(PATTERNS) <= set(CURES)


def test_tabs_that_part_columns_are_no_defect():
    assert kinds(b"a\tb", tabs=True) == [] and kinds(b"a\tb") == ["tab"]


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=40) | st.text(max_size=30).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_judged_and_what_is_mended_stays_mended(raw: bytes):
    line = raw.split(b"\n")[0]
    found = kinds(line)
    assert all(kind in CURES for kind in found)
    try:
        text = line.removesuffix(b"\r").decode()
    except UnicodeDecodeError:
        assert set(found) & {"invalid UTF-8", "lone surrogate"}
        return
    if not unusable(text):
        again = mend(text)
        assert mend(again) == again
        assert not [kind for kind in kinds(again.encode()) if CURES[kind] == "mend"]


def file_kinds(path: Path, content: bytes) -> list[tuple[int, str]]:
    path.write_bytes(content)
    return [(found.line, found.kind) for found in inspect(path)]


def test_files_as_a_whole(tmp_path: Path):
    assert file_kinds(tmp_path / "a", b"") == [(0, "empty file")]
    assert file_kinds(tmp_path / "a", b"one\ntwo") == [(2, "no newline at the end")]
    assert file_kinds(tmp_path / "a", b"one\none\none\n") == [(1, "all lines identical")]
    assert file_kinds(tmp_path / "a", "one\n".encode("utf-16")) == [(1, "UTF-16")]
    assert file_kinds(tmp_path / "a", gzip.compress(b"one\n")) == [(1, "archive without its ending")]
    assert file_kinds(tmp_path / "a", b"one\n" + b"x" * 3_000_000 + b"\ntwo\n\n") == [(2, "longer than 1 MB"), (4, "empty line")]
    packed = gzip.compress(bytes(range(97, 123)) * 99 + b"\nend\n")
    assert file_kinds(tmp_path / "a.gz", packed[:-9])[-1][1] == "damaged archive"
    assert [found.kind for found in inspect(tmp_path / "none")] == ["missing file"]
    assert [found.kind for found in inspect(tmp_path)] == ["unreadable file"]
