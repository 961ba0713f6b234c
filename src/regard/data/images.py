"""Pictures and their labels from files: idx (MNIST's own), tables, arrays, or PNG and JPEG in folders or a list; in memory as bytes."""

from __future__ import annotations

import csv
import io
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, assert_never

import numpy as np
import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from regard.data.graph import read_arrays
from regard.data.text import BROKEN, open_bytes
from regard.errors import DataError, UsageError

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")
IDX_BYTES = 0x08  # idx's code for unsigned bytes, the only type that pictures come in


@dataclass(frozen=True)
class Idx:
    """Two files as MNIST has them: the pictures, and a label for each."""

    kind: ClassVar[Literal["idx"]] = "idx"
    images: str
    "The pictures (plain, .gz or .xz), relative to the data root."
    labels: str
    "Their labels."


@dataclass(frozen=True)
class Folder:
    """Pictures in folders, each named as its label; or a list of them with labels."""

    kind: ClassVar[Literal["folder"]] = "folder"
    path: str
    "The folder, relative to the data root."
    manifest: str = ""
    "A file inside it with a path and a label in each row, parted by a tab; empty: the folders' names are the labels."


@dataclass(frozen=True)
class Table:
    """Rows of numbers: the pixels of a grey picture, line by line, and its label last."""

    kind: ClassVar[Literal["table"]] = "table"
    path: str
    "The file (comma-separated; plain, .gz or .xz), relative to the data root."
    height: int = 8
    "Lines of a picture."
    width: int = 8
    "Pixels of a line."
    white: int = 16
    "The number that stands for white."
    first: int = 0
    "The first row that is read, from 0."
    last: int = 0
    "The row before which to stop; 0 = the end."


@dataclass(frozen=True)
class Arrays:
    """A .npz of plain arrays: images (pictures x height x width, or with channels last) and labels."""

    kind: ClassVar[Literal["arrays"]] = "arrays"
    path: str
    "The file, relative to the data root."
    images: str = "images"
    "Name of the array of pictures."
    labels: str = "labels"
    "Name of the array of labels."


ImageCorpus = Idx | Folder | Table | Arrays


@dataclass(frozen=True, eq=False)
class Pictures:
    """All pictures of a corpus, one size, in memory as bytes; small sets never make a GPU wait for files."""

    pixels: UInt8[Tensor, "N C Y X"]
    labels: Int[Tensor, "N"]
    names: tuple[str, ...]  # of the classes

    def __len__(self) -> int:
        return len(self.pixels)


def read_pictures(corpus: ImageCorpus, *, root: str | Path = ".") -> Pictures:
    """Every picture of one corpus."""
    root = Path(root)
    match corpus:
        case Idx():
            pixels = read_idx(root / corpus.images, axes=3)[:, None]
            pictures = _numbered(pixels, read_idx(root / corpus.labels, axes=1), where=corpus.labels)
        case Folder():
            pictures = _folder(root / corpus.path, corpus.manifest)
        case Table():
            pictures = _table(corpus, root / corpus.path)
        case Arrays():
            arrays = read_arrays(root / corpus.path, (corpus.images, corpus.labels))
            pixels = torch.as_tensor(arrays[corpus.images])
            if pixels.dtype != torch.uint8 or pixels.ndim not in (3, 4):
                what = f"it holds {pixels.dtype} of shape {tuple(pixels.shape)}"
                raise DataError(what, where=f"{corpus.path}: {corpus.images}", do="give bytes: pictures x height x width [x channels]")
            pixels = pixels[:, None] if pixels.ndim == 3 else pixels.permute(0, 3, 1, 2)
            pictures = _numbered(pixels, torch.as_tensor(arrays[corpus.labels]), where=f"{corpus.path}: {corpus.labels}")
        case _:
            assert_never(corpus)
    if not len(pictures):
        raise DataError("there is no picture in it", where=str(getattr(corpus, "path", getattr(corpus, "images", ""))))
    return pictures


def join_pictures(parts: Sequence[Pictures]) -> Pictures:
    """Several corpora as one; their classes are matched by name."""
    if len(parts) == 1:
        return parts[0]
    sizes = {tuple(part.pixels.shape[1:]) for part in parts}
    if len(sizes) > 1:
        raise DataError(f"the corpora have pictures of different shapes, {' and '.join(map(str, sorted(sizes)))}", where="data")
    names = tuple(sorted({name for part in parts for name in part.names}, key=natural))
    number = {name: place for place, name in enumerate(names)}
    labels = [torch.tensor([number[name] for name in part.names])[part.labels] for part in parts]
    return Pictures(torch.cat([part.pixels for part in parts]), torch.cat(labels), names)


def read_idx(path: Path, *, axes: int) -> UInt8[Tensor, "..."]:
    """An idx file: two zero bytes, type, number of axes, their sizes (big-endian), then the bytes."""
    with open_bytes(path) as stream:
        try:
            data = stream.read()
        except BROKEN as error:
            raise DataError(f"the archive is damaged or ends early ({type(error).__name__})", where=str(path)) from None
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] != IDX_BYTES or data[3] != axes:
        raise DataError(f"it is no idx file of bytes with {axes} axes (it begins {data[:4].hex(' ')})", where=str(path))
    start = 4 + 4 * axes
    shape = struct.unpack(f">{axes}I", data[4:start]) if len(data) >= start else (0,)
    expected = int(np.prod(shape, dtype=object))
    if len(data) - start != expected:
        raise DataError(f"it says {' x '.join(map(str, shape))} bytes, but holds {max(0, len(data) - start)}", where=str(path))
    return (
        torch.frombuffer(bytearray(data), dtype=torch.uint8, offset=start).view(shape)
        if expected
        else torch.empty(shape, dtype=torch.uint8)
    )


def read_picture(path: str | Path | bytes, *, channels: int = 3, size: tuple[int, int] | None = None) -> UInt8[Tensor, "C Y X"]:
    """One PNG, JPEG or other picture, grey (1) or in colours (3), scaled to a size (height, width) if one is given."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        do = 'install it with pip install "regard[vision]"'
        raise UsageError("to read PNG or JPEG, Pillow is needed", where="vision", do=do) from None
    where = str(path) if not isinstance(path, bytes) else "the picture"
    try:
        with Image.open(io.BytesIO(path) if isinstance(path, bytes) else path) as picture:
            picture = picture.convert("L" if channels == 1 else "RGB")
            if size is not None and picture.size != (size[1], size[0]):
                picture = picture.resize((size[1], size[0]), Image.Resampling.BICUBIC)
            pixels = np.asarray(picture)
    except FileNotFoundError:
        raise DataError("there is no such file", where=where, do="check the path") from None
    except UnidentifiedImageError:
        raise DataError("it is no picture that can be read", where=where, do="give a PNG or JPEG") from None
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"the picture is damaged or cut short ({error})", where=where, do="fetch the file again") from None
    return torch.from_numpy(pixels.copy()).view(*pixels.shape[:2], channels).permute(2, 0, 1)


def natural(name: str) -> tuple[int, int, str]:
    """Numbers in the order of numbers, before words."""
    return (0, int(name), "") if name.isascii() and name.isdigit() else (1, 0, name)


def _folder(folder: Path, manifest: str) -> Pictures:
    if not folder.is_dir():
        raise DataError("there is no such folder", where=str(folder), do="check the path, or give --data-root")
    if manifest:
        with open(folder / manifest, encoding="utf-8", newline="") as file:
            rows = [row for row in csv.reader(file, delimiter="\t") if row]
        if wrong := next((number for number, row in enumerate(rows, 1) if len(row) != 2), 0):
            raise DataError("a row is a path, a tab and a label", where=f"{folder / manifest}:{wrong}")
        labelled = [(folder / path, label) for path, label in rows]
    else:
        labelled = [(path, path.parent.name) for path in sorted(folder.glob("*/*")) if path.suffix.lower() in PICTURES]
    if not labelled:
        raise DataError("there is no picture in it", where=str(folder), do="put them into folders named as their labels")
    pixels = [read_picture(path) for path, _ in labelled]
    if odd := next((place for place, one in enumerate(pixels) if one.shape != pixels[0].shape), 0):
        what = f"it is {_size(pixels[odd])}, and {labelled[0][0].name} is {_size(pixels[0])}"
        raise DataError(what, where=str(labelled[odd][0]), do="scale all to one size")
    names = tuple(sorted({label for _, label in labelled}, key=natural))
    number = {name: place for place, name in enumerate(names)}
    stacked = torch.stack(pixels)
    if bool((stacked == stacked[:, :1]).all()):
        stacked = stacked[:, :1].clone()  # grey pictures that were saved in colours
    return Pictures(stacked, torch.tensor([number[label] for _, label in labelled]), names)


def _table(corpus: Table, path: Path) -> Pictures:
    with open_bytes(path) as stream:
        try:
            rows = stream.read().decode().splitlines()
        except (*BROKEN, UnicodeDecodeError) as error:
            raise DataError(f"the file is damaged ({type(error).__name__})", where=str(path)) from None
    rows = rows[corpus.first : corpus.last or None]
    expected = corpus.height * corpus.width + 1
    numbers = np.zeros((len(rows), expected), dtype=np.float32)
    for number, row in enumerate(rows):
        try:
            numbers[number] = np.array(row.split(","), dtype=np.float32)
        except ValueError:
            what = f"a row is {expected} numbers, the pixels and the label"
            raise DataError(what, where=f"{path}:{corpus.first + number + 1}") from None
    pixels = (torch.from_numpy(numbers[:, :-1]) * (255 / corpus.white)).round().clamp(0, 255).to(torch.uint8)
    return _numbered(pixels.view(-1, 1, corpus.height, corpus.width), torch.from_numpy(numbers[:, -1]), where=str(path))


def _numbered(pixels: Tensor, labels: Tensor, *, where: str) -> Pictures:
    if len(pixels) != len(labels):
        raise DataError(f"{len(labels)} labels for {len(pixels)} pictures", where=where)
    labels = labels.long()
    return Pictures(pixels.contiguous(), labels, tuple(str(number) for number in range(int(labels.max()) + 1 if len(labels) else 0)))


def _size(pixels: Tensor) -> str:
    return f"{pixels.shape[-1]} x {pixels.shape[-2]}"
