"""Attention over a picture as a drawing: the picture, and beside it, for each head, the patches that one token looks at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, UInt8

from regard.errors import UsageError
from regard.look.drawing import FAINT, Box, Drawing, Mark, Words
from regard.look.palette import colour
from regard.look.trace import Kind, Picture, Trace

SIDE, MOST = 224, 56  # pixels of one picture on paper, and at most so many squares of a side
MARGIN, TOP, GAP = 24, 84, 28
TINT = 0.85  # of the colour, where the weight is the largest


def over_picture(trace: Trace, kind: Kind, layer: int, heads: Sequence[int], *, looks: str | None = None) -> Drawing:
    """Who looks is the class, or the patch of a row and a column (`looks`), or a word of the sentence while it is written; the stronger the
    tint, the larger the weight."""
    picture, one = trace.pictures[0], trace.find(kind, layer)
    if wrong := [head for head in heads if head not in one.heads]:
        raise UsageError(f"head {wrong[0]} was not recorded", do=f"choose of: {', '.join(map(str, one.heads))}")
    names = [token.text for token in trace.row_tokens(kind)]
    if looks is not None and looks not in names:
        raise UsageError(f"there is no patch or word {looks}", where="--from", do=f"they are: {' '.join(names)}")
    row = names.index(looks) if looks is not None else 0
    weights_HS = trace.weights(kind, layer)[[one.heads.index(head) for head in heads], row]
    patches_HP = weights_HS[:, len(trace.source) - picture.grid[0] * picture.grid[1] :]
    colours_YXC = coloured(picture)
    cell = max(1, SIDE // max(colours_YXC.shape[:2]))
    name = f"Layer {layer}, what {names[row]} looks at"
    marks: list[Mark] = [Words(name, MARGIN, 34, bold=True), Words(trace.answers[0].text, MARGIN, 56, fill=FAINT, size=12)]
    left, grid = float(MARGIN), (len(colours_YXC), colours_YXC.shape[1])
    marks += _squares(colours_YXC, left, cell)
    for head, patches_P in zip(heads, patches_HP, strict=True):
        left += grid[1] * cell + GAP
        marks.append(Words(f"head {head}, at most {patches_P.max():.2f}", left, TOP - 10, fill=FAINT, size=12))
        marks += _squares(tinted(colours_YXC, spread(patches_P, picture, grid), colour(head)), left, cell)
    return Drawing(name, left + grid[1] * cell + MARGIN, TOP + grid[0] * cell + MARGIN, tuple(marks))


def coloured(picture: Picture) -> Float[np.ndarray, "Y X 3"]:
    """The picture in colours from 0 to 255, thinned out where there are more pixels than can be drawn."""
    pixels_YXC: UInt8[np.ndarray, "Y X C"] = picture.unpacked()
    step = -(-max(pixels_YXC.shape[:2]) // MOST)
    return np.broadcast_to(pixels_YXC[::step, ::step], (*pixels_YXC[::step, ::step].shape[:2], 3)).astype(np.float32)


def spread(patches_P: Float[np.ndarray, "P"], picture: Picture, grid: tuple[int, int]) -> Float[np.ndarray, "Y X"]:
    """The weight of the patch that each square of the drawing lies in."""
    step = -(-max(picture.size) // MOST)
    rows, columns = (np.arange(count) * step // picture.patch for count in grid)
    return patches_P.reshape(picture.grid)[np.ix_(rows, columns)]


def tinted(colours_YXC: Float[np.ndarray, "Y X 3"], weights_YX: Float[np.ndarray, "Y X"], tint: str) -> Float[np.ndarray, "Y X 3"]:
    """Mixed with this colour, most where the weight is largest."""
    share_YX1 = TINT * (weights_YX / max(float(weights_YX.max()), 1e-9))[..., None]
    ink = np.array([int(tint[place : place + 2], 16) for place in (1, 3, 5)], np.float32)
    return colours_YXC * (1 - share_YX1) + ink * share_YX1


def _squares(colours_YXC: Float[np.ndarray, "Y X 3"], left: float, cell: int) -> list[Mark]:
    return [
        Box(left + x * cell, TOP + y * cell, cell, cell, "#{:02x}{:02x}{:02x}".format(*one.round().astype(int)))
        for y, row in enumerate(colours_YXC)
        for x, one in enumerate(row)
    ]
