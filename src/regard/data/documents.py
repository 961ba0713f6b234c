"""Running text from files: documents, in pieces small enough for any memory."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

from regard.data.text import BROKEN, open_bytes, read_lines
from regard.errors import DataError, UsageError

PIECE = 1 << 16  # characters of a document that are handed on at once


@dataclass(frozen=True)
class Text:
    """A file of text to learn to go on with."""

    path: str
    """The file (plain, .gz, .xz or .zst), relative to the data root."""
    documents: Literal["lines", "paragraphs", "whole"] = "lines"
    """What a document is: a line, the lines between two empty ones, or the whole file."""
    start: float = 0.0
    """The part of the file's characters before the first that counts: 0.9 for the last tenth."""
    stop: float = 1.0
    """The part of the file's characters where it ends; a document belongs where its first character is."""

    kind: ClassVar[Literal["text"]] = "text"

    def __post_init__(self):
        if not 0 <= self.start < self.stop <= 1:
            raise UsageError(f"there is nothing from {self.start} to {self.stop}", where=self.path, do="give parts of the file, 0 to 1")


class Piece(NamedTuple):
    """Some text of a document, and whether the document begins with it. Line ends inside a document belong to it."""

    text: str
    opens: bool


def read_pieces(corpus: Text, counts: Counter[str] | None = None, *, root: str | Path = ".", strict: bool = False) -> Iterator[Piece]:
    """The corpus's part of the file. `counts` gets what was read (documents of any part) and kept, and each reason of dropping."""
    counts = Counter() if counts is None else counts
    path = Path(root, corpus.path)
    whole = corpus.documents == "whole"
    read = (lambda: _characters(path)) if whole else (lambda: _documents(path, corpus.documents, Counter(), strict=strict))
    length = sum(len(piece.text) for piece in read()) if corpus.start > 0 or corpus.stop < 1 else 0
    start, stop = int(corpus.start * length), int(corpus.stop * length) if length else 1 << 62
    pieces = _characters(path) if whole else _documents(path, corpus.documents, counts, strict=strict)
    counts["read"] += whole
    seen, inside, opens = 0, False, True
    for piece in pieces:
        if whole:
            text = piece.text[max(0, start - seen) : max(0, stop - seen)]
            if text:
                yield Piece(text, opens)
                counts["kept"] += opens
                opens = False
        else:
            inside = start <= seen < stop if piece.opens else inside
            if piece.opens and not inside:
                counts["outside of start and stop"] += 1
            if inside:
                counts["kept"] += piece.opens
                yield piece
        seen += len(piece.text)


def _documents(path: Path, parted: Literal["lines", "paragraphs", "whole"], counts: Counter[str], *, strict: bool) -> Iterator[Piece]:
    held: list[str] = []
    size, opens = 0, True
    for line in read_lines(path):
        if line.defect:
            if strict:
                raise DataError(line.defect, where=f"{path}:{line.number}", do="mend the line, or set on_bad_line = skip")
            counts["read"] += parted == "lines"
            counts[line.defect.split(" at ")[0]] += 1
        elif not line.text or line.text.isspace():
            if held:
                yield Piece("\n".join(held), opens)
            held, size, opens = [], 0, True
        elif parted == "lines":
            counts["read"] += 1
            yield Piece(line.text, True)
        else:
            counts["read"] += opens and not held
            held.append(line.text)
            size += len(line.text) + 1
            if size > PIECE:
                yield Piece("\n".join(held) + "\n", opens)
                held, size, opens = [], 0, False
    if held:
        yield Piece("\n".join(held), opens)


def _characters(path: Path) -> Iterator[Piece]:
    """The file as it is, cut before spaces or after line ends, so that no word is cut."""
    opens, rest = True, ""
    with open_bytes(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline=None)  # pyright: ignore[reportArgumentType]
        try:
            while some := text.read(PIECE):
                if "\0" in some:
                    raise DataError("NUL character", where=str(path), do="give a file of plain text")
                rest += some
                edge = max(rest.rfind("\n") + 1, rest.rfind(" "))
                if edge > 0:
                    yield Piece(rest[:edge], opens)
                    opens, rest = False, rest[edge:]
                elif len(rest) > 16 * PIECE:  # a script without spaces
                    yield Piece(rest, opens)
                    opens, rest = False, ""
        except UnicodeDecodeError as error:
            raise DataError(f"invalid UTF-8 ({error.reason})", where=str(path), do="convert it to UTF-8") from None
        except BROKEN as broken:
            raise DataError(
                f"the archive is damaged or ends early ({type(broken).__name__})", where=str(path), do="fetch it again"
            ) from None
    if rest:
        yield Piece(rest, opens)
