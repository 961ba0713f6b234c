"""Texts with a label each: from files, of which a line holds both, parted by a tab, or made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

from regard.data.listops import ListOps, expressions
from regard.data.text import read_lines
from regard.errors import DataError, UsageError


@dataclass(frozen=True)
class Labelled:
    """One file with a label and a text in each line, its columns parted by tabs."""

    path: str
    """The file (plain, .gz, .xz or .zst), relative to the data root."""
    columns: tuple[int, int] = (1, 2)
    """Columns of label and text, counted from 1."""
    header: bool = False
    """Whether the first line names the columns."""

    kind: ClassVar[Literal["labelled"]] = "labelled"

    def __post_init__(self):
        if min(self.columns) < 1 or self.columns[0] == self.columns[1]:
            raise UsageError(f"columns = {list(self.columns)}: two of them, counted from 1", where=self.path)


class Texts(NamedTuple):
    """Texts and what each is."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]


def read_labelled(corpora: Sequence[Labelled | ListOps], *, root: str | Path = ".") -> Texts:
    """All of these, in order; every line must have both, for a label that is lost would shift what is learned."""
    texts: list[str] = []
    labels: list[str] = []
    for corpus in corpora:
        if isinstance(corpus, ListOps):
            for text, label in expressions(corpus):
                texts.append(text)
                labels.append(label)
            continue
        for line in read_lines(Path(root, corpus.path)):
            if corpus.header and line.number == 1:
                continue
            cells = line.text.split("\t")
            if line.defect or len(cells) < max(corpus.columns):
                what = line.defect or "a line is a label, a tab and a text"
                raise DataError(what, where=f"{Path(root, corpus.path)}:{line.number}", do="mend the line, or name its columns")
            label, text = (cells[column - 1] for column in corpus.columns)
            if not label.strip():
                raise DataError("the label is empty", where=f"{Path(root, corpus.path)}:{line.number}", do="mend the line")
            texts.append(text)
            labels.append(label.strip())
    return Texts(tuple(texts), tuple(labels))
