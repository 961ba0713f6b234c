"""Texts with a label for every word, from files as CoNLL has them: a word and its label in a line, an empty line between texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

from regard.data.text import read_lines
from regard.errors import DataError, UsageError

DOCUMENT = "-DOCSTART-"  # some files mark documents so; it is no word


@dataclass(frozen=True)
class Tagged:
    """One file with a word and its label in each line, parted by tabs or spaces."""

    path: str
    """The file (plain, .gz, .xz or .zst), relative to the data root."""
    columns: tuple[int, int] = (1, -1)
    """Columns of word and label, counted from 1, or from the end: -1 is the last."""

    kind: ClassVar[Literal["tagged"]] = "tagged"

    def __post_init__(self):
        if 0 in self.columns or self.columns[0] == self.columns[1]:
            raise UsageError(f"columns = {list(self.columns)}: two of them, counted from 1 or from the end", where=self.path)


class TaggedText(NamedTuple):
    """The words of one text, and the label of each."""

    words: tuple[str, ...]
    labels: tuple[str, ...]


def read_tagged(corpora: Sequence[Tagged], *, root: str | Path = ".") -> list[TaggedText]:
    """All texts of these files, in order; every line must be whole, for a word that is lost would shift the labels."""
    found: list[TaggedText] = []
    for corpus in corpora:
        words: list[str] = []
        labels: list[str] = []

        def ended(words: list[str] = words, labels: list[str] = labels) -> None:
            if words:
                found.append(TaggedText(tuple(words), tuple(labels)))
            words.clear()
            labels.clear()

        for line in read_lines(Path(root, corpus.path)):
            cells = line.text.split("\t") if "\t" in line.text else line.text.split()
            if not line.defect and (not line.text.strip() or cells[0] == DOCUMENT):
                ended()
                continue
            where = f"{Path(root, corpus.path)}:{line.number}"
            if line.defect or len(cells) < max(abs(column) for column in corpus.columns) or len(cells) < 2:
                raise DataError(line.defect or "a line is a word, a tab and a label", where=where, do="mend the line, or name its columns")
            word, label = (cells[column - 1 if column > 0 else column].strip() for column in corpus.columns)
            if not word or not label or " " in label:
                raise DataError("the word or its label is empty, or the label is several words", where=where, do="mend the line")
            words.append(word)
            labels.append(label)
        ended()
    return found
