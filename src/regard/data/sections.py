"""Sections of a handbook and their titles: a small stand-in for summarisation, cut out of a file of paragraphs in their order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from regard.data.text import read_lines
from regard.errors import UsageError

EVERY = 20  # of so many sections in a row the last is for the test, and the one before it for validation
TITLE = (2, 10)  # words of a title
SENTENCE = 4  # words of a paragraph, at least


@dataclass(frozen=True)
class Sections:
    """The text of each section as the source, its title as the target. A title is a short line that ends like no sentence does."""

    kind: ClassVar[Literal["sections"]] = "sections"
    path: str
    "File of tab-parted columns, a paragraph or title a row in the order of the book (plain, .gz, .xz or .zst), relative to the data root."
    column: int = 1
    "The column of the text, counted from 1."
    area: str = ""
    "Only rows whose first column is this; empty: all."
    split: Literal["train", "valid", "test"] = "train"
    "Which sections: of every twenty the last is for the test, the one before it for validation."
    words: int = 200
    "Most words of a text; the rest of it is left out."
    least: int = 12
    "Sections with fewer words have nothing to be summarised and are left out."
    share: float = 0.0
    "This corpus's part of the mixture, relative to the other shares; 0 everywhere = by size, each pair once an epoch."
    tag: str = ""
    "An ordinary token put before each source, such as <2de>."

    def __post_init__(self):
        if self.column < 1 or not 0 < self.least <= self.words:
            raise UsageError("columns are counted from 1, and 0 < least <= words", where=self.path)


def sections(corpus: Sections, *, root: str | Path = ".") -> Iterator[tuple[str, str]]:
    """Text and title of each section of this split."""
    kept = {"test": (EVERY - 1,), "valid": (EVERY - 2,), "train": tuple(range(EVERY - 2))}[corpus.split]
    for number, (text, title) in enumerate(_all(corpus, root=root)):
        if number % EVERY in kept:
            yield " ".join(text[: corpus.words]), title


def _all(corpus: Sections, *, root: str | Path) -> Iterator[tuple[list[str], str]]:
    title, words = "", []
    for line in read_lines(Path(root, corpus.path)):
        cells = line.text.split("\t")
        if line.defect or len(cells) < corpus.column or (corpus.area and cells[0] != corpus.area):
            continue
        text = cells[corpus.column - 1].strip()
        if is_title(text):
            if title and len(words) >= corpus.least:
                yield words, title
            title, words = text, []
        elif text.endswith((".", "!", "?", ":")) and len(text.split()) >= SENTENCE:
            words += text.split()
    if title and len(words) >= corpus.least:
        yield words, title


def is_title(text: str) -> bool:
    """A few words that begin with a capital letter and end like no sentence; lists of keywords and lines of code are none."""
    least, most = TITLE
    worded = least <= len(text.split()) <= most and text[0].isupper()
    return worded and bool(re.search(r"[\w)\"']$", text)) and not re.search(r"[;=|\\{}]", text)
