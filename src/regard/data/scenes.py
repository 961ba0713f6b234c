"""Pictures with a sentence for each: from files, or scenes put together of small pictures and described by a small grammar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from regard.data.images import ImageCorpus, read_picture, read_pictures
from regard.data.text import read_lines
from regard.errors import DataError, UsageError

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
ROWS = {1: ("",), 2: ("top", "bottom"), 3: ("top", "middle", "bottom")}
COLUMNS = {1: ("",), 2: ("left", "right"), 3: ("left", "middle", "right")}


@dataclass(frozen=True)
class Captions:
    """A file with the path of a picture, a tab and its sentence in each line."""

    kind: ClassVar[Literal["captions"]] = "captions"
    path: str
    "The file (plain, .gz, .xz or .zst); paths in it are relative to its folder."
    size: tuple[int, int] = (0, 0)
    "Height and width to which all pictures are scaled; 0: those of the first."


@dataclass(frozen=True)
class Scenes:
    """Made of small pictures: each scene is a grid with a picture, or none, in each cell, and says what stands where."""

    kind: ClassVar[Literal["scenes"]] = "scenes"
    pictures: ImageCorpus
    "Where the small pictures come from."
    count: int = 4000
    "How many scenes."
    grid: tuple[int, int] = (2, 2)
    "Rows and columns, up to three of each."
    empty: float = 0.4
    "The chance of a cell to stay empty; one at least is not."
    names: tuple[str, ...] = ()
    "The words for the labels, in their order; empty: the labels themselves, numbers from zero to nine as words."
    seed: int = 1
    "Of what is drawn."

    def __post_init__(self):
        if self.count < 1 or not set(self.grid) <= {1, 2, 3} or not 0 <= self.empty < 1:
            raise UsageError("there is no such corpus", where="scenes", do="give count >= 1, a grid of 1 to 3 by 1 to 3, and empty below 1")


@dataclass(frozen=True, eq=False)
class Captioned:
    """Pictures of one size, in memory as bytes, and what is said of each."""

    pixels: UInt8[Tensor, "N C Y X"]
    captions: tuple[str, ...]


def read_captioned(corpora: Sequence[Captions | Scenes], *, root: Path) -> Captioned:
    """All of them, in order."""
    found = [_made(corpus, root) if isinstance(corpus, Scenes) else _read(corpus, root) for corpus in corpora]
    if len({tuple(one.pixels.shape[1:]) for one in found}) > 1:
        raise DataError("the corpora have pictures of different shapes", where="data", do="scale them to one size")
    return Captioned(torch.cat([one.pixels for one in found]), tuple(caption for one in found for caption in one.captions))


def caption(labels: Sequence[str | None], grid: tuple[int, int]) -> str:
    """What stands in each cell, row by row: "a two at the top left and a five at the bottom left"."""
    said = []
    for place, label in enumerate(labels):
        if label is not None:
            where = f"{ROWS[grid[0]][place // grid[1]]} {COLUMNS[grid[1]][place % grid[1]]}".strip()
            article = "an" if label[0] in "aeiou" and label != "one" else "a"
            said.append(f"{article} {label} at the {where}" if where else f"{article} {label}")
    return " and ".join(said)


def _made(corpus: Scenes, root: Path) -> Captioned:
    small = read_pictures(corpus.pictures, root=root)
    names = corpus.names or tuple(DIGITS[int(name)] if name.isdigit() and int(name) < len(DIGITS) else name for name in small.names)
    if len(names) != len(small.names):
        raise DataError(f"{len(names)} names for {len(small.names)} labels", where="scenes.names")
    random, cells = np.random.default_rng([corpus.seed, corpus.count]), corpus.grid[0] * corpus.grid[1]
    filled = random.random((corpus.count, cells)) >= corpus.empty
    filled[np.arange(corpus.count), random.integers(0, cells, corpus.count)] = True
    drawn = random.integers(0, len(small), (corpus.count, cells))
    shown = small.pixels[torch.from_numpy(drawn)] * torch.from_numpy(filled)[..., None, None, None]
    rows, columns = corpus.grid
    scenes = shown.unflatten(1, (rows, columns)).permute(0, 3, 1, 4, 2, 5).flatten(4, 5).flatten(2, 3)
    said = [
        caption([names[label] if there else None for label, there in zip(labels, cells_, strict=True)], corpus.grid)
        for labels, cells_ in zip(small.labels[torch.from_numpy(drawn)].tolist(), filled.tolist(), strict=True)
    ]
    return Captioned(scenes.contiguous(), tuple(said))


def _read(corpus: Captions, root: Path) -> Captioned:
    file = root / corpus.path
    pixels, said = [], []
    for line in read_lines(file):
        path, tab, text = line.text.partition("\t")
        if line.defect or not tab or not text.strip():
            raise DataError(line.defect or "a line is a path, a tab and a sentence", where=f"{file}:{line.number}", do="mend the line")
        size = corpus.size if all(corpus.size) else (pixels[0].shape[1:] if pixels else None)
        pixels.append(read_picture(file.parent / path, size=size))
        said.append(text.strip())
    if not pixels:
        raise DataError("there is no picture in it", where=str(file))
    stacked = torch.stack(pixels)
    grey = bool((stacked == stacked[:, :1]).all())
    return Captioned(stacked[:, :1].clone() if grey else stacked, tuple(said))
