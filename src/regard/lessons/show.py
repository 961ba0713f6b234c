"""What lessons show besides pictures: tables of rounded numbers, and pictures with a slider."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from regard.look.drawing import Drawing


@dataclass(frozen=True)
class Frames:
    """One picture in several states, and a slider to choose among them."""

    name: str
    "What the slider changes."
    frames: Mapping[str, Drawing]
    "The states by their values."
    first: str
    "The state that is seen before anybody slides, and on paper."

    def _repr_html_(self) -> str:
        """In a notebook: a frame of its own, since scripts in its cells may not run."""
        from regard.lessons.web import slider_page

        height = max(drawing.height for drawing in self.frames.values()) + 90
        page = html.escape(slider_page(self))
        return f'<iframe sandbox="allow-scripts" style="width:100%;height:{height:.0f}px;border:0" srcdoc="{page}"></iframe>'


def number(value: float, digits: int = 2) -> str:
    """Rounded, and never a minus before nothing."""
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if set(text) <= set("-0.") else text


def table(values: Tensor | Sequence[Sequence[float]], *, rows: Sequence[str] = (), columns: Sequence[str] = (), digits: int = 2) -> None:
    """Print numbers in rows and columns, under the names that there are."""
    cells = [[number(value, digits) for value in row] for row in (values.tolist() if isinstance(values, Tensor) else values)]
    lines = [[name, *row] for name, row in zip(rows or [""] * len(cells), cells, strict=True)]
    lines = [["", *columns], *lines] if columns else lines
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for name, *line in lines:
        cut = [cell.rjust(width) for cell, width in zip(line, widths[1:], strict=True)]
        print("  ".join([name.ljust(widths[0]), *cut] if rows else cut))
