"""Masks as pictures, drawn from the predicates that the kernels themselves ask: a square for each key that a query may see."""

from __future__ import annotations

from collections.abc import Mapping

from jaxtyping import Bool
from torch import Tensor

from regard.errors import UsageError
from regard.look.drawing import FAINT, Box, Drawing, Mark, Words
from regard.look.palette import colour
from regard.nn.attention.predicate import Predicate
from regard.nn.attention.sight import Sight
from regard.nn.view import Tokens

MARGIN, TOP, GAP, SIDE = 24, 84, 36, 260  # pixels; the last is that of a whole mask
MOST = 256  # positions, of which each still gets a pixel
SEEN, UNSEEN = "#", "."
HIDDEN = "#eef0f3"


def mask(pattern: Predicate, length: int, *, keys: int = 0, head: int = 0) -> Bool[Tensor, "T S"]:
    """True where the query at this place may see the key; `keys`: how many there are, if not as many as queries."""
    if not 1 <= max(length, keys) <= MOST:
        raise UsageError(f"a mask of {max(length, keys)} positions cannot be drawn", do=f"take 1 to {MOST}")
    queries = Tokens.plain(1, length)
    asked = Tokens.plain(1, keys) if keys and keys != length else queries
    sight = Sight(queries, asked, pattern, lengths=(length, keys or length), heads=head + 1, device=queries.real.device)
    seen_BHTS = sight.allowed()
    return seen_BHTS[0, head if seen_BHTS.shape[1] > 1 else 0].expand(length, keys or length)


def text(seen_TS: Bool[Tensor, "T S"]) -> str:
    """A line for each query."""
    return "".join(" ".join(SEEN if one else UNSEEN for one in row) + "\n" for row in seen_TS.tolist())


def picture(masks: Mapping[str, Bool[Tensor, "T S"]]) -> Drawing:
    """The masks side by side, each under its name: queries from top to bottom, keys from left to right."""
    marks: list[Mark] = [
        Words("who may see whom", MARGIN, 34, bold=True),
        Words("queries: rows; keys: columns", MARGIN, 54, fill=FAINT, size=12),
    ]
    left = MARGIN
    for place, (name, seen_TS) in enumerate(masks.items()):
        cell = SIDE / max(seen_TS.shape)
        marks.append(Words(name, left, TOP - 8, size=12))
        for row, line in enumerate(seen_TS.tolist()):
            for column, one in enumerate(line):
                box = left + column * cell, TOP + row * cell, max(1.0, 0.92 * cell), max(1.0, 0.92 * cell)
                marks.append(Box(*box, fill=colour(place) if one else HIDDEN))
        left += SIDE + GAP
    return Drawing("masks: " + ", ".join(masks), left - GAP + MARGIN, TOP + SIDE + MARGIN, tuple(marks))
