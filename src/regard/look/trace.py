"""What was seen of one reading, as a value and as a file: tokens, attention maps, the choice of each word, the answers."""

from __future__ import annotations

import base64
import contextlib
import json
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float, UInt8

from regard.config.toml import structure, unstructure
from regard.errors import DataError, UsageError
from regard.models.folder import replace_text

Kind = Literal["enc-self", "cross", "dec-self"]
KINDS: tuple[Kind, ...] = get_args(Kind)
VERSION = 2
KNOWN = (1, 2)  # the first had no pictures, and both source and target
LARGEST_FILE = 1 << 28  # bytes
MOST_CELLS = 1 << 28  # weights of one map: 8 heads of 4,096 x 4,096 and some


@dataclass(frozen=True)
class Token:
    """One token as it is shown."""

    text: str
    "What is written of it; any string at all."
    id: int = -1
    "Its place in the vocabulary; -1: unknown."
    special: bool = False
    "A mark such as the end of the sentence, which no text contains."
    joins: bool = False
    "It goes on with the word of the token before it."


@dataclass(frozen=True)
class Choice:
    """A word that may come next."""

    token: Token
    log_prob: float


@dataclass(frozen=True)
class NextWord:
    """One step of decoding: what was written, and the words that the model held most probable."""

    chosen: Choice
    top: tuple[Choice, ...]
    "Most probable first."


@dataclass(frozen=True)
class Answer:
    """One candidate translation."""

    text: str
    score: float
    "What the search ranked it by."
    log_prob: float
    "Sum over its tokens and the end mark."


@dataclass(frozen=True)
class Map:
    """The weights of some heads of one layer, [heads, rows, columns], as bytes q = round(255 sqrt(weight))."""

    kind: Kind
    layer: int
    heads: tuple[int, ...]
    weights: str
    "The bytes, zlib-deflated, in base64."


@dataclass(frozen=True)
class Picture:
    """The picture whose patches are the tokens, the last grid[0] * grid[1] of `source`, row by row."""

    size: tuple[int, int]
    "Height and width, in pixels."
    grid: tuple[int, int]
    "Rows and columns of patches."
    patch: int
    "Side of a patch, in pixels."
    pixels: str
    "Bytes, height x width x channels (1 or 3), zlib-deflated, in base64."

    @staticmethod
    def of(pixels_CYX: UInt8[np.ndarray, "C Y X"], *, grid: tuple[int, int], patch: int) -> Picture:
        raw = np.ascontiguousarray(pixels_CYX.transpose(1, 2, 0)).tobytes()
        size = (pixels_CYX.shape[1], pixels_CYX.shape[2])
        return Picture(size, grid, patch, base64.b64encode(zlib.compress(raw, 9)).decode("ascii"))

    def unpacked(self) -> UInt8[np.ndarray, "Y X C"]:
        """The pixels, which must be exactly as many as the size says."""
        if min(*self.size, *self.grid, self.patch) < 1 or self.size[0] * self.size[1] > MOST_CELLS:
            raise DataError("the picture has a wrong size or grid")
        for channels in (1, 3):
            with contextlib.suppress(DataError):
                return inflated(self.pixels, (*self.size, channels), name="the picture")
        raise DataError(f"the picture does not hold {self.size[0]} x {self.size[1]} pixels of 1 or 3 bytes")


@dataclass(frozen=True)
class Trace:
    """A row of a map is who looks, a column what is looked at. Columns of enc-self and cross are `source`; those of dec-self are `target`.
    A model that only reads, a classifier, has no target and no steps; one that only writes, a language model, has no source.

    `target` is what the decoder was given, begin mark first; `steps[i]` is what it wrote after `target[i]`, having looked as row i says.
    """

    text: str
    source: tuple[Token, ...]
    target: tuple[Token, ...]
    steps: tuple[NextWord, ...]
    answers: tuple[Answer, ...]
    "Candidates, best first: the steps and maps are those of the first."
    maps: tuple[Map, ...]
    about: dict[str, str]
    "What was looked at, and by what: free words for the reader."
    pictures: tuple[Picture, ...] = ()
    "The one whose patches were read, where that is what was read."

    def __post_init__(self):
        """What types cannot say: every map is whole, and everything that must fit fits."""
        if not (self.source or self.target) or not self.answers:
            raise DataError("a trace needs tokens, of a source or of a target, and an answer")
        if len(self.steps) != len(self.target):
            raise DataError(f"{len(self.steps)} steps for {len(self.target)} target tokens")
        numbers = [choice.log_prob for step in self.steps for choice in (step.chosen, *step.top)]
        numbers += [number for answer in self.answers for number in (answer.score, answer.log_prob)]
        if not all(map(math.isfinite, numbers)):
            raise DataError("a log-probability or a score is not a finite number")
        if len({(one.kind, one.layer) for one in self.maps}) != len(self.maps):
            raise DataError("two maps are of the same kind and layer")
        for one in self.maps:
            unpack(one, shape=self.shape(one.kind))
        if len(self.pictures) > 1:
            raise DataError("a trace has at most one picture")
        for picture in self.pictures:
            picture.unpacked()
            if picture.grid[0] * picture.grid[1] > len(self.source):
                raise DataError("the picture has more patches than there are tokens of the source")

    def shape(self, kind: Kind) -> tuple[int, int]:
        """Rows and columns of the maps of this kind."""
        rows = self.source if kind == "enc-self" else self.target
        columns = self.target if kind == "dec-self" else self.source
        return len(rows), len(columns)

    def row_tokens(self, kind: Kind) -> tuple[Token, ...]:
        """Who looks: in cross-attention that is the word about to be written."""
        return {"enc-self": self.source, "dec-self": self.target, "cross": tuple(step.chosen.token for step in self.steps)}[kind]

    def column_tokens(self, kind: Kind) -> tuple[Token, ...]:
        """What is looked at."""
        return self.target if kind == "dec-self" else self.source

    def find(self, kind: Kind, layer: int) -> Map:
        """The map of this kind and layer."""
        for one in self.maps:
            if (one.kind, one.layer) == (kind, layer):
                return one
        there = ", ".join(str(one.layer) for one in self.maps if one.kind == kind)
        raise UsageError(f"layer {layer} of {kind} was not recorded", do=f"choose one of: {there}" if there else "choose another kind")

    def weights(self, kind: Kind, layer: int) -> Float[np.ndarray, "H T S"]:
        """The weights of the recorded heads of this layer, as near as a byte can say."""
        return expand(unpack(self.find(kind, layer), shape=self.shape(kind)))

    def _repr_html_(self) -> str:
        from regard.look.page import frame

        return frame(self)


def compress(weights_HTS: Float[np.ndarray, "H T S"]) -> UInt8[np.ndarray, "H T S"]:
    """Bytes of the square root, so that small weights keep their digits: off by at most 0.5/255 in the root."""
    return np.rint(255 * np.sqrt(weights_HTS.clip(0, 1))).astype(np.uint8)


def expand(bytes_HTS: UInt8[np.ndarray, "H T S"]) -> Float[np.ndarray, "H T S"]:
    return np.square(bytes_HTS.astype(np.float32) / 255)


def pack(kind: Kind, layer: int, heads: tuple[int, ...], *, weights: Float[np.ndarray, "H T S"]) -> Map:
    """A map of these weights."""
    return Map(kind, layer, heads, base64.b64encode(zlib.compress(compress(weights).tobytes(), 9)).decode("ascii"))


def unpack(one: Map, *, shape: tuple[int, int]) -> UInt8[np.ndarray, "H T S"]:
    """The bytes of a map, which must be exactly as many as its heads, rows and columns; a file may claim anything."""
    name = f"the map {one.kind} of layer {one.layer}"
    if one.layer < 0 or not one.heads or min(one.heads) < 0 or len(set(one.heads)) != len(one.heads):
        raise DataError(f"{name} has wrong numbers of layer or heads")
    count = len(one.heads) * shape[0] * shape[1]
    if count > MOST_CELLS:
        raise DataError(f"{name} has {count} weights, more than the {MOST_CELLS} that are read")
    return inflated(one.weights, (len(one.heads), *shape), name=name)


def inflated(packed: str, shape: tuple[int, int, int], *, name: str) -> UInt8[np.ndarray, "H T S"]:
    """Bytes of exactly this shape; no more than that is ever unpacked."""
    count = shape[0] * shape[1] * shape[2]
    try:
        inflating = zlib.decompressobj()
        raw = inflating.decompress(base64.b64decode(packed, validate=True), count + 1)
    except (ValueError, zlib.error):
        raise DataError(f"{name} cannot be unpacked") from None
    if len(raw) != count or not inflating.eof:
        raise DataError(f"{name} does not hold {shape[0]} heads of {shape[1]} x {shape[2]} weights")
    return np.frombuffer(raw, np.uint8).reshape(shape)


def as_json(trace: Trace) -> dict:
    """The plain values of the file."""
    return {"format": "regard-trace", "version": VERSION, **unstructure(trace)}


def save(trace: Trace, path: str | Path) -> None:
    """Write the file that docs/traces.md describes."""
    replace_text(Path(path), json.dumps(as_json(trace)) + "\n")


def load(path: str | Path) -> Trace:
    """Read a trace from anybody: whatever is not as docs/traces.md says is an error, and nothing in it is ever run."""
    where = str(path)
    try:
        if Path(path).stat().st_size > LARGEST_FILE:
            raise DataError(f"is larger than {LARGEST_FILE} bytes", where=where, do="record fewer layers or heads")
        value = json.loads(Path(path).read_bytes().decode("utf-8"), parse_constant=_no_number)
    except FileNotFoundError:
        raise DataError("there is no such file", where=where) from None
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"is not JSON ({str(error)[:80]})", where=where, do="a trace is made by `regard look MODEL TEXT --save FILE`"
        ) from None
    if not isinstance(value, dict) or value.pop("format", None) != "regard-trace":
        raise DataError("is not a trace", where=where, do="a trace is made by `regard look MODEL TEXT --save FILE`")
    version = value.pop("version", None)
    if version is True or version not in KNOWN:
        raise DataError(f"is a trace of version {str(version)[:20]}, not {VERSION}", where=where, do="write it again with this regard")
    try:
        return structure(Trace, value, where=where)
    except (UsageError, OverflowError) as error:
        what = error.what if isinstance(error, UsageError) else str(error)
        raise DataError(what, where=where, do="docs/traces.md says what a trace holds") from None


def _no_number(word: str):
    raise ValueError(f"{word} is no number")
