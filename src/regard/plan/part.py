"""A part of a model and what it costs: leaves carry numbers, groups carry parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Amount = Literal["parameters", "maps", "core", "step", "once", "kept", "cache"]


@dataclass(frozen=True)
class Load:
    """What passes through the model at once, and where."""

    batch: int = 1
    """Rows, each of the lengths below."""
    source: int = 128
    """Tokens of what the encoder reads, where there is one."""
    target: int = 128
    """Tokens of what is written, or of the only side there is."""
    width: int = 4
    """Bytes of a number."""
    device: str = "cpu"
    """Where it runs; the kernel depends on it."""
    packed: bool = True
    """Whether the rows of a batch lie end to end."""
    training: bool = True
    """Whether gradients are wanted."""


@dataclass(frozen=True)
class Part:
    """One line of the model's summary. A multiply-add counts as two FLOPs; the numbers are those of the whole load."""

    name: str
    shape: str = ""
    """What leaves it."""
    parameters: int = 0
    maps: float = 0.0
    """Forward FLOPs of what has parameters: two for each parameter and token."""
    core: float = 0.0
    """Forward FLOPs between positions: scores and weighted sums, recurrences along the length."""
    step: float = 0.0
    """FLOPs of writing one more token of one row, when the target's length stands in the cache."""
    once: float = 0.0
    """FLOPs of what is done for a source before the first token of its target, in a part that also takes steps."""
    kept: float = 0.0
    """Bytes kept for the backward pass."""
    cache: float = 0.0
    """Bytes that decoding keeps for one row."""
    note: str = ""
    kernel: str = ""
    """Of attention: the kernel that is chosen, and why."""
    times: int = 1
    """So many alike, in a row."""
    parts: tuple[Part, ...] = ()

    def total(self, amount: Amount) -> float:
        """The sum over the part and all below it."""
        return self.times * (getattr(self, amount) + sum(part.total(amount) for part in self.parts))

    @property
    def size(self) -> int:
        return int(self.total("parameters"))

    @property
    def forward(self) -> float:
        return self.total("maps") + self.total("core")

    def walk(self, path: str = "", depth: int = 0) -> Iterator[tuple[str, int, Part]]:
        """Every part with its dotted name and depth, from above."""
        name = f"{path}.{self.name}" if path else self.name
        yield name, depth, self
        for part in self.parts:
            yield from part.walk(name, depth + 1)
