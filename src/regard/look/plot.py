"""Lines and dots over two axes, as a drawing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from regard.look.drawing import FAINT, PALE, SIZE, Box, Drawing, Line, Mark, Words
from regard.look.palette import colour

WIDTH, HEIGHT, LEGEND = 640, 360, 22  # pixels; the last is the height of a line below the picture
LEFT, TOP, BELOW, RIGHT = 64, 56, 56, 24
DOT = 9
TICKS = 5

Points = Sequence[tuple[float, float]]


def plot(
    title: str,
    lines: Mapping[str, Points],
    *,
    dots: Mapping[str, Points] | None = None,
    across: str = "",
    up: str = "",
    span: tuple[float, float] | None = None,
    logarithmic: bool = False,
) -> Drawing:
    """Every line, then every set of dots, in the next colour. `across`, `up`: what the axes count; `span`: where the upright one ends. That
    one may be logarithmic, from power of ten to power of ten; what is not above 0 is then left out."""
    lines, dots = (_raised(some) if logarithmic else some for some in (lines, dots or {}))
    points = [point for several in (*lines.values(), *dots.values()) for point in several]
    (left, right), (low, high) = _ends([x for x, _ in points]), span or _ends([y for _, y in points])
    if logarithmic:
        low, high = math.floor(low), math.ceil(high)
    bottom = HEIGHT - BELOW

    def at(x: float, y: float) -> tuple[float, float]:
        return LEFT + (x - left) / (right - left) * (WIDTH - LEFT - RIGHT), bottom - (y - low) / (high - low) * (bottom - TOP)

    marks: list[Mark] = [Words(title, 24, 28, bold=True)]
    for y in _ticks(low, high):
        if not logarithmic or y == round(y):
            name = f"1e{y:g}" if logarithmic else _short(y)
            marks += [Line((at(left, y), at(right, y)), PALE, 1), Words(name, LEFT - 8, at(left, y)[1] + 5, "end", FAINT, SIZE - 3)]
    marks += [Words(_short(x), at(x, low)[0], bottom + 18, "middle", FAINT, SIZE - 3) for x in _ticks(left, right)]
    marks += [Words(across, WIDTH - RIGHT, bottom + 38, "end", FAINT, SIZE - 2), Words(up, 24, TOP - 10, "start", FAINT, SIZE - 2)]
    for place, line in enumerate(lines.values()):
        marks.append(Line(tuple(at(*point) for point in line), colour(place), 2))
    for place, several in enumerate(dots.values(), len(lines)):
        marks += [_dot(*at(*point), colour(place)) for point in several]
    for place, name in enumerate([*lines, *dots]):
        y = HEIGHT + place * LEGEND
        marks.append(
            Line(((LEFT, y - 5), (LEFT + 24, y - 5)), colour(place), 2) if place < len(lines) else _dot(LEFT + 12, y - 5, colour(place))
        )
        marks.append(Words(name, LEFT + 32, y))
    return Drawing(title, WIDTH, HEIGHT + (len(lines) + len(dots)) * LEGEND, tuple(marks))


def _raised(lines: Mapping[str, Points]) -> dict[str, Points]:
    return {name: [(x, math.log10(y)) for x, y in line if y > 0] for name, line in lines.items()}


def _dot(x: float, y: float, fill: str) -> Box:
    return Box(x - DOT / 2, y - DOT / 2, DOT, DOT, fill, corner=DOT / 2)


def _ends(values: list[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _ticks(low: float, high: float) -> Iterator[float]:
    """Round numbers between the ends."""
    rough = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * nice for nice in (1, 2, 5, 10) if power * nice >= rough * 0.999)
    for count in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1):
        yield count * step


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def bars(title: str, values: Mapping[str, float], *, most: float = 1.0) -> Drawing:
    """One line for each name, as long as its number; `most` fills the width."""
    start, room, row = 24 + 8.5 * max(map(len, values)) + 12, 320, 28
    marks: list[Mark] = [Words(title, 24, 34, bold=True)]
    for place, (name, value) in enumerate(values.items()):
        y = 62 + row * place
        marks += [Words(name, start - 12, y + 14, "end"), Box(start, y, room, row - 8, PALE, corner=4)]
        if (width := room * value / most) >= 0.5:
            marks.append(Box(start, y, width, row - 8, colour(0), corner=min(4.0, width / 2)))
        marks.append(Words(f"{value:.3f}", start + room + 10, y + 14, size=SIZE - 2))
    return Drawing(title, start + room + 80, 62 + row * len(values) + 16, tuple(marks))
