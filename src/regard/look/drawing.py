"""A drawing as a list of marks, in pixels from the top left corner; printing.py puts it on paper."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, assert_never

INK, FAINT, PALE, GROUND = "#1f2328", "#6a737d", "#e5e8eb", "#ffffff"
SIZE = 15  # of the font
Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True)
class Box:
    """A filled rectangle with round corners."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    corner: float = 0.0
    opacity: float = 1.0


@dataclass(frozen=True)
class Words:
    """One line of text, on its base line."""

    text: str
    x: float
    y: float
    anchor: Anchor = "start"
    fill: str = INK
    size: int = SIZE
    bold: bool = False


@dataclass(frozen=True)
class Curve:
    """From left to right, leaving and arriving level."""

    x1: float
    y1: float
    x2: float
    y2: float
    stroke: str
    opacity: float
    width: float

    @property
    def bend(self) -> float:
        return (self.x2 - self.x1) * 0.42


@dataclass(frozen=True)
class Line:
    """Straight from point to point."""

    points: tuple[tuple[float, float], ...]
    stroke: str
    width: float


Mark = Box | Words | Curve | Line


def moved(mark: Mark, x: float, y: float) -> Mark:
    """The same mark, so much further to the right and down."""
    match mark:
        case Box() | Words():
            return replace(mark, x=mark.x + x, y=mark.y + y)
        case Curve():
            return replace(mark, x1=mark.x1 + x, y1=mark.y1 + y, x2=mark.x2 + x, y2=mark.y2 + y)
        case Line():
            return replace(mark, points=tuple((left + x, top + y) for left, top in mark.points))
        case _:
            assert_never(mark)


@dataclass(frozen=True)
class Drawing:
    """What is drawn, first mark first, and what it is called."""

    name: str
    width: float
    height: float
    marks: tuple[Mark, ...]

    def _repr_svg_(self) -> str:
        """What a notebook shows."""
        from regard.look.printing import svg

        return svg(self)
