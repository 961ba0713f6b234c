"""Where a token stands: encodings that are added to the embedding, and the rotation of queries and keys."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, assert_never

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.errors import UsageError


@dataclass(frozen=True)
class Sinusoid:
    """PE[p, 2i] = sin(p / base^(2i/D)), PE[p, 2i+1] = cos(same): bounded, and defined for any length."""

    kind: ClassVar[Literal["sinusoid"]] = "sinusoid"
    base: float = 10_000.0
    "The base N of the wavelengths."
    layout: Literal["interleaved", "halves"] = "interleaved"
    "Sine and cosine side by side (the paper), or all sines before all cosines (tensor2tensor, Marian)."


@dataclass(frozen=True)
class Learned:
    """A table of vectors, one a position; a longer text than the table is an error."""

    kind: ClassVar[Literal["learned"]] = "learned"
    length: int = 1024
    "How many positions the table holds."


@dataclass(frozen=True)
class Integer:
    """The position itself, in every coordinate: never bounded, and beyond what was seen in training nobody knows what it means."""

    kind: ClassVar[Literal["integer"]] = "integer"


@dataclass(frozen=True)
class Fraction:
    """(p + 1) / T in every coordinate, T being the length of the text: bounded, but a step means another distance in every text."""

    kind: ClassVar[Literal["fraction"]] = "fraction"


@dataclass(frozen=True)
class Binary:
    """The position as a binary number, the last bit first, repeated until the vector is full; it repeats itself after 2^bits positions."""

    kind: ClassVar[Literal["binary"]] = "binary"
    bits: int = 10
    "How many, which bounds the length of a text."

    def __post_init__(self):
        if self.bits < 1:
            raise UsageError(f"bits = {self.bits} tells nothing apart", do="take 1 or more")


@dataclass(frozen=True)
class NoPositions:
    """Nothing is added: the model sees a set, unless attention itself brings order."""

    kind: ClassVar[Literal["none"]] = "none"


@dataclass(frozen=True)
class Rotary:
    """Queries and keys are turned by an angle proportional to their position: scores then depend on the distance alone."""

    kind: ClassVar[Literal["rotary"]] = "rotary"
    base: float = 10_000.0
    "The base of the wavelengths."


@dataclass(frozen=True)
class NoRotation:
    """Queries and keys stay as they are."""

    kind: ClassVar[Literal["none"]] = "none"


Positions = Sinusoid | Learned | Integer | Fraction | Binary | NoPositions
Rotation = NoRotation | Rotary


def sinusoid(positions: Int[Tensor, "..."], width: int, config: Sinusoid) -> Float[Tensor, "... D"]:
    """The encoding of these positions; an odd width ends on a sine."""
    pairs = (width + 1) // 2
    frequency = torch.exp(torch.arange(pairs, device=positions.device) * (-2 * math.log(config.base) / width))
    angle = positions[..., None].float() * frequency
    if config.layout == "halves":
        return torch.cat([angle.sin(), angle.cos()[..., : width - pairs]], dim=-1)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)[..., :width]


class SinusoidTable(nn.Module):
    """The sinusoid, computed once and grown when a longer text comes; not a parameter, not saved."""

    table: Tensor

    def __init__(self, config: Sinusoid, d_model: int, *, length: int = 512):
        super().__init__()
        self.config, self.d_model = config, d_model
        self.register_buffer("table", sinusoid(torch.arange(length), d_model, config), persistent=False)

    def reach(self, length: int) -> None:
        """Make sure that positions below `length` are there."""
        if length > len(self.table):
            grown = max(length, 2 * len(self.table))
            self.table = sinusoid(torch.arange(grown, device=self.table.device), self.d_model, self.config).to(self.table.dtype)

    def forward(self, positions: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        return self.table[positions]


class LearnedTable(nn.Module):
    def __init__(self, config: Learned, d_model: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(config.length, d_model).normal_(std=d_model**-0.5))

    def reach(self, length: int) -> None:
        if length > len(self.weight):
            raise UsageError(
                f"a text of {length} tokens, but the model learned {len(self.weight)} positions",
                do="cut or split the text, or train with sinusoid or rotary positions",
            )

    def forward(self, positions: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        return self.weight[positions]


class Counted(nn.Module):
    """Numbers that are worked out from the position alone."""

    def __init__(self, config: Integer | Binary, d_model: int):
        super().__init__()
        self.config, self.d_model = config, d_model

    def reach(self, length: int) -> None:
        if isinstance(self.config, Binary) and length > 2**self.config.bits:
            raise UsageError(
                f"a text of {length} tokens, but {self.config.bits} bits tell {2**self.config.bits} positions apart",
                do="cut or split the text, or give more bits",
            )

    def forward(self, positions: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        return code(self.config, positions, self.d_model)


def code(config: Integer | Fraction | Binary, positions: Int[Tensor, "..."], width: int, *, length: int = 0) -> Float[Tensor, "... D"]:
    """The vector of each position; fractions are of a text of this length."""
    match config:
        case Integer():
            return positions[..., None].float().expand(*positions.shape, width)
        case Fraction():
            return ((positions[..., None] + 1) / length).expand(*positions.shape, width)
        case Binary():
            bit = torch.arange(width, device=positions.device) % config.bits
            return ((positions[..., None] >> bit) & 1).float()
        case _:
            assert_never(config)


def build_positions(config: Positions, d_model: int) -> SinusoidTable | LearnedTable | Counted | None:
    match config:
        case Integer() | Binary():
            return Counted(config, d_model)
        case Fraction():
            raise UsageError(
                "a fraction of the length cannot be added while a text is being written: nobody knows its length yet",
                where="positions",
                do="choose sinusoid, rotary, learned, integer or binary ones",
            )
        case Sinusoid():
            return SinusoidTable(config, d_model)
        case Learned():
            return LearnedTable(config, d_model)
        case NoPositions():
            return None
        case _ if hasattr(config, "build"):  # a kind from outside
            return config.build(d_model)
        case _:
            assert_never(config)


def rotate(x_BHTE: Float[Tensor, "B H T E"], positions: Int[Tensor, "B T"], config: Rotary) -> Float[Tensor, "B H T E"]:
    """Turn each pair (i, i + E/2) of the vector by position / base^(2i/E)."""
    width = x_BHTE.shape[-1]
    if width % 2:
        raise UsageError(f"rotary positions turn pairs of coordinates, but heads are {width} wide", do="choose an even d_head")
    frequency = torch.exp(torch.arange(width // 2, device=x_BHTE.device) * (-2 * math.log(config.base) / width))
    angle = positions[:, None, :, None].float() * frequency
    cos, sin = angle.cos().to(x_BHTE.dtype), angle.sin().to(x_BHTE.dtype)
    first, second = x_BHTE.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
