"""The picture of attention as a drawing of its own, for a slide or a paper: two columns of tokens and the lines between them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from regard.errors import UsageError
from regard.look.drawing import FAINT, GROUND, SIZE, Box, Curve, Drawing, Mark, Words
from regard.look.palette import colour
from regard.look.trace import Kind, Token, Trace

ROW, TOP, MARGIN, GAP = 28, 84, 24, 12  # pixels
BETWEEN = 300  # from column to column
LEAST = 0.01  # lines of less weight would not be seen
LONGEST = 28  # characters of a token
TITLES = {"enc-self": "input – input", "cross": "input – output", "dec-self": "output – output"}
SIDES = {
    "enc-self": ("looked at", "who looks"),
    "cross": ("source, looked at", "written while looking"),
    "dec-self": ("looked at", "who looks"),
}


def figure(trace: Trace, kind: Kind, layer: int, heads: Sequence[int]) -> Drawing:
    """What is looked at stands on the left, who looks on the right; the heavier the weight, the stronger the line."""
    one = trace.find(kind, layer)
    wrong = [head for head in heads if head not in one.heads]
    if wrong or not heads:
        raise UsageError(
            f"head {wrong[0]} was not recorded" if wrong else "no head is named", do=f"choose of: {', '.join(map(str, one.heads))}"
        )
    weights_HTS = trace.weights(kind, layer)[[one.heads.index(head) for head in heads]]
    left, right = [_shown(token) for token in trace.column_tokens(kind)], [_shown(token) for token in trace.row_tokens(kind)]
    titles = SIDES[kind]
    start = MARGIN + max(*(_width(text) for text in left), _width(titles[0]) * 0.85) + GAP
    end = start + BETWEEN
    width = end + GAP + max(*(_width(text) for text in right), _width(titles[1]) * 0.85) + MARGIN
    height = TOP + ROW * max(len(left), len(right)) + MARGIN
    name = f"Layer {layer}, {TITLES[kind]}, head{'s' if len(heads) > 1 else ''} {', '.join(map(str, heads))}"
    marks: list[Mark] = [
        *_legend(name, heads, width),
        Words(titles[0], start - GAP, TOP - 14, anchor="end", fill=FAINT, size=12),
        Words(titles[1], end + GAP, TOP - 14, fill=FAINT, size=12),
    ]
    for place, head in enumerate(heads):
        spread = (place - (len(heads) - 1) / 2) * min(3.0, ROW * 0.6 / len(heads))  # heads beside each other, not on top
        for row in range(len(right)):
            for column in range(len(left)):
                weight = float(weights_HTS[place, row, column])
                if weight >= LEAST:
                    y1, y2 = _middle(column) + spread, _middle(row) + spread
                    marks.append(Curve(start, y1, end, y2, colour(head), opacity=min(1, weight * 1.1), width=1 + 3 * weight))
    marks += [Words(text, start - GAP, _middle(place) + 5, anchor="end") for place, text in enumerate(left)]
    marks += [Words(text, end + GAP, _middle(place) + 5) for place, text in enumerate(right)]
    return Drawing(name, width, height, tuple(marks))


def _legend(name: str, heads: Sequence[int], width: float) -> list[Mark]:
    """The title, and a square for each head."""
    marks: list[Mark] = [Words(name, MARGIN, 34, bold=True)]
    for place, head in enumerate(heads):
        x = width - MARGIN - 22 * (len(heads) - place) + 4
        marks.append(Box(x, 20, 18, 18, colour(head), corner=4))
        marks.append(Words(str(head), x + 9, 33, anchor="middle", fill=GROUND, size=11))
    return marks


def _middle(place: int) -> float:
    return TOP + ROW * (place + 0.5)


def _shown(token: Token) -> str:
    """Only characters that XML can hold; what is invisible gets a sign, what is long is cut."""
    text = re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", token.text)
    text = re.sub("[\u202a-\u202e\u2066-\u2069]", "", text)  # overrides of direction would turn the neighbours round
    text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return ("·" if token.joins else "") + (text if text.strip() else "␣" * max(1, len(text)))


def _width(text: str) -> float:
    """About how wide the text is: no font is at hand to measure it."""
    return sum(0 if unicodedata.combining(c) else SIZE if unicodedata.east_asian_width(c) in "WF" else 0.58 * SIZE for c in text)
