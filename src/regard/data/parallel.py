"""Sentence pairs from files: a pair stays together or goes together, and every one that goes is counted by its reason."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, assert_never

from regard.data.sections import Sections, sections
from regard.data.strings import Strings, made
from regard.data.text import Defect, Line, defect_of, read_lines
from regard.errors import DataError, UsageError


@dataclass(frozen=True)
class Lines:
    """Two files aligned line by line."""

    source: str
    """File of source sentences (plain, .gz, .xz or .zst), relative to the data root."""
    target: str
    """File of target sentences, one for each source line."""
    share: float = 0.0
    """This corpus's part of the mixture, relative to the other shares; 0 everywhere = by size, each pair once an epoch."""
    tag: str = ""
    """An ordinary token put before each source, such as <2de>."""

    kind: ClassVar[Literal["lines"]] = "lines"


@dataclass(frozen=True)
class Tsv:
    """One file with a pair in each row, its columns parted by tabs."""

    path: str
    """The file (plain, .gz, .xz or .zst), relative to the data root."""
    columns: tuple[int, int] = (1, 2)
    """Columns of source and target, counted from 1."""
    share: float = 0.0
    """This corpus's part of the mixture, relative to the other shares; 0 everywhere = by size, each pair once an epoch."""
    tag: str = ""
    """An ordinary token put before each source, such as <2de>."""

    kind: ClassVar[Literal["tsv"]] = "tsv"


@dataclass(frozen=True)
class Jsonl:
    """One file with a JSON object in each line."""

    path: str
    """The file (plain, .gz, .xz or .zst), relative to the data root."""
    keys: tuple[str, str] = ("source", "target")
    """Keys of source and target; a dot steps into an object, as in translation.de."""
    share: float = 0.0
    """This corpus's part of the mixture, relative to the other shares; 0 everywhere = by size, each pair once an epoch."""
    tag: str = ""
    """An ordinary token put before each source, such as <2de>."""

    kind: ClassVar[Literal["jsonl"]] = "jsonl"


Corpus = Lines | Tsv | Jsonl | Strings | Sections


@dataclass(frozen=True)
class Filters:
    """Which pairs are left out. A pair with an empty side always is."""

    min_words: int = 1
    """Fewest words (parted by spaces) on either side."""
    max_words: int = 0
    """Most words on either side; 0 = any number."""
    max_characters: int = 0
    """Most characters on either side; 0 = any number. For scripts without spaces."""
    ratio: float = 0.0
    """Largest ratio of the longer side to the shorter, in characters; 0 = any."""
    on_bad_line: Literal["skip", "fail"] = "skip"
    """Whether a line that is no text (broken UTF-8, NUL, over 1 MB, a missing column) is skipped with its pair, or ends the run."""

    def reason(self, source: str, target: str) -> str:
        """Why this pair is left out ("" when it stays)."""
        if not source or source.isspace():
            return "empty source"
        if not target or target.isspace():
            return "empty target"
        if self.min_words > 1 or self.max_words:
            fewest, most = sorted((len(source.split()), len(target.split())))
            if fewest < self.min_words:
                return "too few words"
            if self.max_words and most > self.max_words:
                return "too many words"
        if self.max_characters or self.ratio:
            shorter, longer = sorted((len(source), len(target)))
            if self.max_characters and longer > self.max_characters:
                return "too many characters"
            if self.ratio and longer > self.ratio * shorter:
                return "length ratio"
        return ""


class Row(NamedTuple):
    """A pair where it stands in its corpus, or the defects that keep it from being one."""

    number: int
    source: str
    target: str
    defects: tuple[Defect, ...] = ()


def read_pairs(
    corpus: Corpus,
    counts: Counter[str] | None = None,
    *,
    root: str | Path = ".",
    filters: Filters | None = None,
    on_defect: Callable[[Defect], None] | None = None,
) -> Iterator[tuple[str, str]]:
    """The usable pairs of a corpus, in order, the tag before the source. `counts` gets "read", "kept" and each reason of dropping."""
    counts, filters = Counter() if counts is None else counts, filters or Filters()
    opening = f"{corpus.tag} " if corpus.tag else ""
    for row in read_rows(corpus, root=root):
        counts["read"] += 1
        for defect in row.defects:
            if filters.on_bad_line == "fail":
                raise DataError(defect.reason, where=f"{defect.path}:{defect.number}", do="mend the line, or set on_bad_line = skip")
            if on_defect:
                on_defect(defect)
        reason = row.defects[0].reason.split(" at ")[0] if row.defects else filters.reason(row.source, row.target)
        counts[reason or "kept"] += 1
        if not reason:
            yield opening + row.source, row.target


def read_rows(corpus: Corpus, *, root: str | Path = ".") -> Iterator[Row]:
    """Every row of a corpus with its number, the defective ones too: what the data doctor reads."""
    match corpus:
        case Lines():
            return _aligned(*paths(corpus, root=root))
        case Tsv():
            if min(corpus.columns) < 1:
                raise UsageError(f"columns = {list(corpus.columns)}: columns are counted from 1")
            return _rows(paths(corpus, root=root)[0], lambda text: _columns(text, corpus.columns))
        case Jsonl():
            return _rows(paths(corpus, root=root)[0], lambda text: _values(text, corpus.keys))
        case Strings():
            return (Row(number, *pair) for number, pair in enumerate(made(corpus), 1))
        case Sections():
            return (Row(number, *pair) for number, pair in enumerate(sections(corpus, root=root), 1))
        case _ if hasattr(corpus, "pairs"):  # a kind from outside
            return (Row(number, *pair) for number, pair in enumerate(corpus.pairs(Path(root)), 1))
        case _:
            assert_never(corpus)


def paths(corpus: Corpus, *, root: str | Path = ".") -> tuple[Path, ...]:
    """The files of a corpus."""
    match corpus:
        case Lines():
            return Path(root, corpus.source), Path(root, corpus.target)
        case Tsv() | Jsonl() | Sections():
            return (Path(root, corpus.path),)
        case Strings():
            return ()
        case _ if hasattr(corpus, "pairs"):
            return tuple(corpus.files(Path(root)))
        case _:
            assert_never(corpus)


def _aligned(source: Path, target: Path) -> Iterator[Row]:
    sources = targets = 0
    for source_line, target_line in zip_longest(read_lines(source), read_lines(target)):
        sources, targets = sources + (source_line is not None), targets + (target_line is not None)
        if source_line is None or target_line is None:
            continue  # only counting on, so that the error can name both counts
        defects = tuple(_defects(source, source_line)) + tuple(_defects(target, target_line))
        yield Row(source_line.number, source_line.text, target_line.text, defects)
    if sources != targets:
        raise DataError(
            f"{sources:,} lines, but {target} has {targets:,}", where=str(source), do="the two files must be aligned line by line"
        )


def _rows(path: Path, parse: Callable[[str], tuple[str, str] | str]) -> Iterator[Row]:
    for line in read_lines(path):
        parsed = line.defect or parse(line.text)
        if isinstance(parsed, str):
            yield Row(line.number, "", "", (Defect(str(path), line.number, parsed),))
        else:
            yield Row(line.number, *parsed)


def _defects(path: Path, line: Line) -> Iterator[Defect]:
    if line.defect:
        yield Defect(str(path), line.number, line.defect)


def _columns(text: str, columns: tuple[int, int]) -> tuple[str, str] | str:
    cells = text.split("\t")
    if len(cells) < max(columns):
        return "missing column"
    return cells[columns[0] - 1], cells[columns[1] - 1]


def _values(text: str, keys: tuple[str, str]) -> tuple[str, str] | str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return "not JSON"
    sides = []
    for key in keys:
        side = value
        for step in key.split("."):
            side = side.get(step) if isinstance(side, dict) else None
        if not isinstance(side, str):
            return f"no text under the key {key}"
        if reason := defect_of(side):
            return reason
        sides.append(side)
    return sides[0], sides[1]
