import gzip
import lzma
from pathlib import Path

import pytest
import zstandard

from regard.data.text import LONGEST_LINE, Line, defect_of, read_lines
from regard.errors import DataError

PACK = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.compress}


def written(folder: Path, data: bytes, ending: str = "") -> Path:
    path = folder / f"text{ending}"
    path.write_bytes(PACK[ending](data))
    return path


def texts(path: Path) -> list[str]:
    return [line.text for line in read_lines(path)]


@pytest.mark.parametrize("ending", PACK)
def test_every_compression_gives_the_same_lines(tmp_path, ending):
    lines = [f"Zeile {number} äöü" for number in range(1013)]
    path = written(tmp_path, "\n".join(lines).encode() + b"\n", ending)
    assert texts(path) == lines


@pytest.mark.parametrize("ending", [".gz", ".zst", ".xz"])
def test_an_archive_cut_short_is_an_error_with_its_line(tmp_path, ending):
    import random

    noise = random.Random(7)
    data = b"".join(f"{noise.random()}\n".encode() for _ in range(20_011))
    path = tmp_path / f"text{ending}"
    packed = PACK[ending](data)
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match=r"text\.\w+:\d+: the archive is damaged or ends early"):
        texts(path)


def test_zst_frames_follow_one_another(tmp_path):
    path = tmp_path / "text.zst"
    path.write_bytes(zstandard.compress(b"a\nb\n") + zstandard.compress(b"c\n"))
    assert texts(path) == ["a", "b", "c"]


def test_only_the_line_feed_splits(tmp_path):
    inside = "a\u2028b\u2029c\x85d\x0be\x0cf\rg\x1ch"
    assert texts(written(tmp_path, f"{inside}\nnext\n".encode())) == [inside, "next"]


def test_carriage_return_of_crlf_goes_and_others_stay(tmp_path):
    assert texts(written(tmp_path, b"one\r\ntwo\r\r\nth\rree\r\n")) == ["one", "two\r", "th\rree"]


def test_bom_goes_only_at_the_start(tmp_path):
    assert texts(written(tmp_path, "\ufeffone\n\ufefftwo\n".encode())) == ["one", "\ufefftwo"]


def test_the_last_line_needs_no_end_and_an_empty_file_no_lines(tmp_path):
    assert texts(written(tmp_path, b"one\n\ntwo")) == ["one", "", "two"]
    assert texts(written(tmp_path, b"")) == []


def test_defects_are_named_and_do_not_move_the_count(tmp_path):
    long = b"x" * (LONGEST_LINE + 1)
    data = b"fine\nbro\xffken\nn\0ul\n" + long + b"\n\xed\xa0\x80\nlast\n"
    assert list(read_lines(written(tmp_path, data))) == [
        Line(1, "fine"),
        Line(2, "", "invalid UTF-8 at byte 4"),
        Line(3, "", "NUL character"),
        Line(4, "", "longer than 1 MB"),
        Line(5, "", "invalid UTF-8 at byte 1"),  # a surrogate in UTF-8's clothes
        Line(6, "last"),
    ]


@pytest.mark.parametrize("ending", [b"\n", b""])
def test_a_line_of_exactly_the_limit_is_no_defect(tmp_path, ending):
    (line,) = read_lines(written(tmp_path, b"x" * LONGEST_LINE + ending))
    assert not line.defect and len(line.text) == LONGEST_LINE
    (line,) = read_lines(written(tmp_path, b"x" * (5 * LONGEST_LINE) + ending))
    assert line.defect


def test_utf16_is_called_by_its_name(tmp_path):
    with pytest.raises(DataError, match="UTF-16"):
        texts(written(tmp_path, "hello\n".encode("utf-16")))


def test_a_missing_file_and_a_folder_are_errors(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        texts(tmp_path / "nowhere")
    with pytest.raises(DataError, match="directory"):
        texts(tmp_path)


def test_defects_of_decoded_strings():
    assert defect_of("a\0") == "NUL character"
    assert defect_of("a\ud800") == "lone surrogate"
    assert defect_of("plain 😀") == ""
