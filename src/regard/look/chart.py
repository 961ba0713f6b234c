"""Lines over an axis as a drawing: a line for each name, which stands below with its colour."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from regard.look.drawing import FAINT, INK, PALE, SIZE, Drawing, Line, Mark, Words
from regard.look.palette import colour

WIDTH, HEIGHT, MARGIN, LEGEND = 640, 360, 56, 22  # pixels
TICKS = 4

Points = Sequence[tuple[float, float]]


def chart(title: str, lines: Mapping[str, Points], *, logarithmic: bool = False, dots: Points = ()) -> Drawing:
    """From the least to the largest of both axes, the lower one from 0 on if nothing is below; `dots` are marked besides. A logarithmic
    chart has its ticks at powers of ten, and leaves out what is not above 0."""
    kept = {name: [(x, y) for x, y in line if not logarithmic or y > 0] for name, line in lines.items()}
    points = [point for line in kept.values() for point in line] + list(dots)
    first, last = min(0, *(x for x, _ in points)), max(x for x, _ in points)
    scale = math.log10 if logarithmic else float
    low, high = min(scale(y) for _, y in points), max(scale(y) for _, y in points)
    if logarithmic:
        low, high = math.floor(low), math.ceil(high)
    high = high if high > low else low + 1

    def at(x: float, height: float) -> tuple[float, float]:
        return (
            MARGIN + (x - first) / ((last - first) or 1) * (WIDTH - 2 * MARGIN),
            MARGIN + (high - height) / (high - low) * (HEIGHT - 2 * MARGIN),
        )

    marks: list[Mark] = [Words(title, MARGIN, MARGIN / 2, bold=True)]
    step = max(1, math.ceil((high - low) / 8))
    heights = range(int(low), int(high) + 1, step) if logarithmic else [low + (high - low) * tick / TICKS for tick in range(TICKS + 1)]
    for height in heights:
        marks.append(Line((at(first, height), at(last, height)), PALE, 1))
        marks.append(Words(f"1e{height}" if logarithmic else f"{height:.3g}", MARGIN - 8, at(first, height)[1] + 5, "end", FAINT, SIZE - 3))
    for tick in range(TICKS + 1):
        x = first + (last - first) * tick / TICKS
        shown = f"{x:,.0f}" if last - first >= TICKS * 2 else f"{x:.3g}"
        marks.append(Words(shown, at(x, low)[0], at(x, low)[1] + 20, "middle", FAINT, SIZE - 3))
    for number, (name, line) in enumerate(kept.items()):
        y = HEIGHT + number * LEGEND
        marks.append(Line(tuple(at(x, scale(height)) for x, height in line), colour(number), 2))
        marks += [Line(((MARGIN, y - 5), (MARGIN + 24, y - 5)), colour(number), 2), Words(name, MARGIN + 32, y)]
    for x, height in dots:
        across, down = at(x, scale(height))
        marks += [Line(((across - 4, down), (across + 4, down)), INK, 2), Line(((across, down - 4), (across, down + 4)), INK, 2)]
    return Drawing(title, WIDTH, HEIGHT + len(kept) * LEGEND, tuple(marks))
