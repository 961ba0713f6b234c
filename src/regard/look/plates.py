"""Drawings that need no model, by name: what attention does in the plane, kernel regression by attention, the sinusoid's table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float

from regard.data.plane import hull
from regard.look.drawing import FAINT, Box, Drawing, Mark, Words
from regard.look.plot import plot
from regard.nn.attention.attend import attend
from regard.nn.attention.normalise import Epanechnikov, Normaliser, Softmax
from regard.nn.attention.scores import Gaussian, NegativeDistance, ScaledDot
from regard.nn.positions import Sinusoid, sinusoid

VALUES = ((0.5, 1.0), (4.0, 0.3), (5.5, 3.0), (2.5, 4.6), (0.2, 3.2))  # any five points of which all are corners
QUERIES = 60
X, Y, ASKED = (1.36, 3.40, 6.05), (1.79, -1.77, -2.17), 4.21  # the deck's three points and its question
KERNELS: dict[str, tuple[Gaussian | NegativeDistance, Normaliser]] = {
    "negative distance": (NegativeDistance(), Softmax()),
    "Gaussian, width 0.5": (Gaussian(0.5), Softmax()),
    "Gaussian, width 2": (Gaussian(2.0), Softmax()),
    "Epanechnikov, width 2": (NegativeDistance(), Epanechnikov(2.0)),
}
POSITIONS, WIDTH, CELL = 48, 32, 12
MARGIN, TOP = 56, 76
COLD, HOT = np.array((47, 102, 208)), np.array((212, 96, 26))


def outputs() -> Float[np.ndarray, "T 2"]:
    """What queries drawn by lot gather from five values in the plane."""
    noise = torch.Generator().manual_seed(1)
    query, key = (3 * torch.randn(1, 1, count, 4, generator=noise) for count in (QUERIES, len(VALUES)))
    return attend(query, key, torch.tensor(VALUES)[None, None], score=ScaledDot())[0, 0].numpy()


def regression(kernel: str, x: Sequence[float]) -> Float[np.ndarray, "T"]:
    """Nadaraya and Watson's estimate at these places from the deck's three points: one call of `attend`."""
    score, normalise = KERNELS[kernel]
    query, key, value = (torch.tensor(numbers)[None, None, :, None] for numbers in (list(x), X, Y))
    return attend(query, key, value, score=score, normalise=normalise)[0, 0, :, 0].numpy()


def draw_hull() -> Drawing:
    corners = [VALUES[place] for place in hull(np.array(VALUES)).tolist()]
    found = [(float(x), float(y)) for x, y in outputs()]
    outline = {"hull of five values": [*corners, corners[0]]}
    return plot("What attention gathers lies within the hull of the values", outline, dots={"outputs of sixty queries": found})


def draw_regression() -> Drawing:
    x = np.linspace(0, 7.5, 301).tolist()
    lines = {
        f"{kernel}: {regression(kernel, [ASKED])[0]:.4f} at {ASKED}": list(zip(x, regression(kernel, x).tolist(), strict=True))
        for kernel in KERNELS
    }
    return plot("Kernel regression through three points, by attention", lines, dots={"the points": list(zip(X, Y, strict=True))})


def draw_sinusoid() -> Drawing:
    """Positions from top to bottom, coordinates from left to right; blue is -1, white 0, orange 1."""
    table_PD = sinusoid(torch.arange(POSITIONS), WIDTH, Sinusoid()).numpy()
    marks: list[Mark] = [
        Words(f"The sinusoid: {POSITIONS} positions (down) of width {WIDTH} (across)", MARGIN, 34, bold=True),
        Words("blue -1, white 0, orange 1", MARGIN, 54, fill=FAINT, size=12),
    ]
    for position in range(0, POSITIONS, 16):
        marks.append(Words(str(position), MARGIN - 8, TOP + position * CELL + CELL, "end", FAINT, 12))
    for column in range(0, WIDTH, 8):
        marks.append(Words(str(column), MARGIN + column * CELL, TOP + POSITIONS * CELL + 16, fill=FAINT, size=12))
    for row, numbers in enumerate(table_PD):
        marks += [Box(MARGIN + column * CELL, TOP + row * CELL, CELL, CELL, shade(float(number))) for column, number in enumerate(numbers)]
    return Drawing("sinusoid", 2 * MARGIN + WIDTH * CELL, TOP + POSITIONS * CELL + 32, tuple(marks))


def shade(number: float) -> str:
    """From blue at -1 over white at 0 to orange at 1."""
    mixed = 255 + abs(number) * ((HOT if number > 0 else COLD) - 255)
    return "#{:02x}{:02x}{:02x}".format(*mixed.round().astype(int))


PLATES: dict[str, Callable[[], Drawing]] = {"hull": draw_hull, "regression": draw_regression, "sinusoid": draw_sinusoid}
