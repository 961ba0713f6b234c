r"""Lines of text files, read as bytes and split on \n alone; what is no text is named by file and line."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import zstandard

from regard.errors import DataError

LONGEST_LINE = 1 << 20  # bytes; beyond it a line is a defect, and memory stays flat while it is skipped
BROKEN = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, zstandard.ZstdError)


class Line(NamedTuple):
    """One line of a file, numbered from 1. With a defect there is no text, but the line still counts."""

    number: int
    text: str
    defect: str = ""


class Defect(NamedTuple):
    """A line that cannot be used, and why."""

    path: str
    number: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.number}: {self.reason}"


def read_lines(path: str | Path) -> Iterator[Line]:
    """Every line of a plain, .gz, .xz or .zst file; a defective one is yielded too, so that line-aligned files stay aligned."""
    with open_bytes(path) as stream:
        yield from lines_of(stream, name=str(path))


def lines_of(stream: BinaryIO, *, name: str) -> Iterator[Line]:
    """Every line of an open stream, such as standard input."""
    number = 0
    try:
        while raw := stream.readline(LONGEST_LINE + 2):
            number += 1
            if len(raw) > LONGEST_LINE + 1 or (len(raw) > LONGEST_LINE and not raw.endswith(b"\n")):
                _skip_rest(stream, raw)
                yield Line(number, "", "longer than 1 MB")
                continue
            if number == 1:
                if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
                    raise DataError("this file is UTF-16", where=name, do="convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)")
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            yield _line(number, raw.removesuffix(b"\n").removesuffix(b"\r"))
    except BROKEN as broken:
        raise DataError(
            f"the archive is damaged or ends early ({type(broken).__name__})", where=f"{name}:{number + 1}", do="fetch the file again"
        ) from None
    except OSError as error:
        raise unreadable(name, error) from None


def defect_of(text: str) -> str:
    """Why a decoded string is no usable text ("" when it is)."""
    if "\0" in text:
        return "NUL character"
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        return "lone surrogate"
    return ""


@contextmanager
def open_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """The decompressed bytes of a file, by its ending."""
    path = Path(path)
    try:
        raw = open(path, "rb")  # noqa: SIM115 (closed below; the error of opening is the one to translate)
    except OSError as error:
        raise unreadable(path, error) from None
    with raw:
        match path.suffix:
            case ".gz":
                yield io.BufferedReader(gzip.GzipFile(fileobj=raw))  # pyright: ignore[reportArgumentType]
            case ".xz":
                yield io.BufferedReader(lzma.LZMAFile(raw))  # noqa: SIM115  # pyright: ignore[reportArgumentType]
            case ".zst":
                yield io.BufferedReader(_Zstandard(raw))
            case _:
                yield raw


def unreadable(path: str | Path, error: OSError) -> DataError:
    """What to say of a file that cannot be opened."""
    return DataError((error.strerror or "cannot be read").lower(), where=str(path), do="check the path and the data root")


def _line(number: int, raw: bytes) -> Line:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return Line(number, "", f"invalid UTF-8 at byte {error.start + 1}")
    return Line(number, "", "NUL character") if "\0" in text else Line(number, text)


def _skip_rest(stream: BinaryIO, raw: bytes) -> None:
    while raw and not raw.endswith(b"\n"):
        raw = stream.readline(LONGEST_LINE)


class _Zstandard(io.RawIOBase):
    """Frames of a .zst file one after another. The library's own reader takes a file cut in mid-frame for a complete one; this does not."""

    def __init__(self, raw: BinaryIO):
        self._raw, self._frame, self._ready = raw, zstandard.ZstdDecompressor().decompressobj(), b""
        self._begun = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        while not self._ready:
            rest = self._frame.unused_data if self._frame.eof else b""
            data = rest or self._raw.read(1 << 16)
            if not data:
                if self._begun and not self._frame.eof:
                    raise EOFError
                return 0
            if self._frame.eof:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            self._begun = True
            self._ready = self._frame.decompress(data)
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count
