"""A lesson as one HTML page that asks nothing of any network, in the colours of day or of night."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from regard.lessons.markup import inline, markup
from regard.lessons.running import Output, Ran
from regard.lessons.show import Frames
from regard.lessons.source import Cell, Claim, Part, Prose, Solution, solved
from regard.look.drawing import FAINT, GROUND, INK, PALE
from regard.look.masks import HIDDEN
from regard.look.page import policy
from regard.look.palette import DARK, LIGHT
from regard.look.printing import svg

NIGHT = {INK: "#e8e6e0", FAINT: "#979ca8", GROUND: "#191c23", PALE: "#2b303a", HIDDEN: "#232833", **dict(zip(LIGHT, DARK, strict=True))}


class Page(NamedTuple):
    """A page and what the browser may do for it."""

    text: str
    policy: str


def page(ran: Ran, *, before: str = "", after: str = "", contents: bool = False) -> Page:
    """`before` and `after`: the names of the neighbours, where there are pages of them; `contents`: there is a page of contents."""
    body = [f"<h1>{html.escape(ran.lesson.title)}</h1>", f"<p class=summary>{inline(ran.lesson.summary)}</p>"]
    body += [_part(part, output) for part, output in ran.parts()]
    if not contents:  # it stands alone, and what it speaks of is not beside it
        return _whole(ran.lesson.title, [re.sub('<a href="[^"]+">(.*?)</a>', r"\1", part) for part in body])
    links = [(before, "← before"), ("index", "all lessons"), (after, "next →")]
    body.append("<nav>" + " ".join(f'<a href="{name}.html">{says}</a>' for name, says in links if name) + "</nav>")
    return _whole(ran.lesson.title, body)


def index(lessons: Sequence[tuple[str, str, str]]) -> Page:
    """The page of contents, from names, titles and summaries."""
    items = "".join(f'<li><a href="{name}.html">{html.escape(title)}</a><br>{inline(says)}</li>' for name, title, says in lessons)
    return _whole("A course that runs", ["<h1>A course that runs</h1>", f"<ol class=contents>{items}</ol>"])


def slider_page(frames: Frames) -> str:
    """Nothing but one figure with its slider."""
    return _whole(frames.name, [_figure(frames)]).text


def _whole(title: str, body: list[str]) -> Page:
    """The script stands in each page, and is the only one that may run there."""
    script = _asset("slider.js")
    rules = policy(script)
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{html.escape(rules)}">'
    head += f"<title>{html.escape(title)}</title>"
    head += '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
    text = f'<!doctype html>\n<html lang="en"><head>{head}\n<style>{_asset("lesson.css")}{night()}</style></head>\n<body>\n'
    return Page(text + "\n".join(body) + f"\n<script>{script}</script>\n</body></html>\n", rules)


def night() -> str:
    """The colours of figures in the dark: a rule for each colour that drawings are made of."""
    rules = "".join(f'svg [{what}="{day}"]{{{what}:{dark}}}' for day, dark in NIGHT.items() for what in ("fill", "stroke"))
    return f"@media (prefers-color-scheme:dark){{{rules}}}\n"


def _asset(name: str) -> str:
    return (files("regard.lessons") / "page" / name).read_text("utf-8")


def _part(part: Part, output: Output) -> str:
    match part:
        case Prose(text):
            return markup(text)
        case Solution(text):
            return f"<details><summary>Answer</summary>{markup(text)}</details>"
        case Claim(deck, claim, verdict, check):
            rows = {f"Deck {deck} says": claim, "Verdict": verdict, "Check": check}
            return "<dl class=claim>" + "".join(f"<dt>{name}</dt><dd>{inline(says)}</dd>" for name, says in rows.items()) + "</dl>"
        case Cell(code):
            said = f"<pre class=output>{html.escape(output.text.rstrip())}</pre>" if output.text else ""
            shown = f"<pre class=code><code>{html.escape(solved(code).rstrip())}</code></pre>"
            return f"<div class=cell>{shown}{said}{_figure(output.figure)}</div>"


def _figure(figure) -> str:
    if figure is None:
        return ""
    if not isinstance(figure, Frames):
        return f"<figure>{svg(figure)}</figure>"
    values = list(figure.frames)
    states = "".join(
        f'<div class=state data-value="{html.escape(value)}"{"" if value == figure.first else " hidden"}>{svg(drawing)}</div>'
        for value, drawing in figure.frames.items()
    )
    slider = (
        f'<input type=range min=0 max={len(values) - 1} step=1 value={values.index(figure.first)} aria-label="{html.escape(figure.name)}">'
    )
    name = f"<label>{html.escape(figure.name)} = <output>{html.escape(figure.first)}</output>{slider}</label>"
    return f"<figure class=slider>{states}{name}</figure>"
