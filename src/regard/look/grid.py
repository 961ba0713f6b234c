"""A matrix as a drawing: a square for each number, the stronger the larger it is; negative ones have a colour of their own."""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from regard.look.drawing import FAINT, GROUND, INK, PALE, SIZE, Box, Drawing, Mark, Words
from regard.look.palette import colour

TOP, MARGIN, GAP = 64, 24, 10  # pixels
CELL, LETTER = 46, 8.5
MOST = 560  # pixels of all columns together


def grid(
    title: str, values_RC: Float[Tensor, "R C"], *, rows: Sequence[str] = (), columns: Sequence[str] = (), digits: int | None = 2
) -> Drawing:
    """`digits`: how many of each number are written into its square, if there is room; None: none."""
    listed = values_RC.tolist()
    most = max((abs(value) for row in listed for value in row), default=0) or 1
    width = min(CELL, MOST / len(listed[0]))
    cell, left = max(width, 1.5), MARGIN + max(map(len, rows), default=0) * LETTER + (GAP if rows else 0)
    high = min(cell, 34.0)
    start = TOP + (24 if columns else 0)
    marks: list[Mark] = [Words(title, MARGIN, 34, bold=True)]
    marks += [Words(name, left + cell * (place + 0.5), start - 10, "middle", FAINT, SIZE - 3) for place, name in enumerate(columns)]
    for number, line in enumerate(listed):
        y = start + number * high
        for place, value in enumerate(line):
            box = left + place * cell, y, max(1, cell * 0.96), max(1, high * 0.94)
            marks.append(Box(*box, PALE if not value else colour(value < 0), opacity=0.5 if not value else round(abs(value) / most, 2)))
            if digits is not None and cell >= 30:
                ink = GROUND if abs(value) > 0.6 * most else INK  # to be read on the colour
                marks.append(Words(f"{value:.{digits}f}", left + cell * (place + 0.48), y + high / 2 + 4, "middle", ink, 12))
    marks += [Words(name, left - GAP, start + (number + 0.5) * high + 4, "end", size=SIZE - 2) for number, name in enumerate(rows)]
    wide = max(left + cell * len(listed[0]), MARGIN + LETTER * len(title)) + MARGIN
    return Drawing(title, wide, start + high * len(listed) + MARGIN, tuple(marks))
