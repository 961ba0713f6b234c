"""A lesson as it is written: Markdown, in which some fences mean something.

```python   a cell, which runs; a line that ends in `#? hint` loses its right-hand side in the class version
```answer   what the question before it has to be answered with; left out of the class version
```claim    `deck:`, `claim:` and `verdict:` of something that a lecture says; the cell after it is the check
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from regard.errors import UsageError


@dataclass(frozen=True)
class Prose:
    """Markdown that is shown as it is."""

    text: str


@dataclass(frozen=True)
class Cell:
    """Python that is shown, run, and followed by what it says."""

    code: str


@dataclass(frozen=True)
class Solution:
    """Markdown that a reader opens after having thought."""

    text: str


@dataclass(frozen=True)
class Claim:
    """What a deck says, what is to be thought of it, and how one sees that."""

    deck: str
    claim: str
    verdict: str
    check: str


Part = Prose | Cell | Solution | Claim


@dataclass(frozen=True)
class Lesson:
    """One theme."""

    name: str
    title: str
    summary: str
    "One line on what it shows."
    parts: tuple[Part, ...]


FENCE = re.compile(r"^```(python|answer|claim)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
BLANK = re.compile(r"^(\s*)(?:(print\()(.*)\)|((?:return |[\w., \[\]:]+ \+?= ))(.*?))  #\?(?: (.*))?$")


def parse(name: str, text: str) -> Lesson:
    head = re.match(r"# (.+)\n\n\*(.+)\*\n", text)
    if not head:
        raise UsageError("a lesson begins with its title and a line of what it shows", where=name)
    parts: list[Part] = []
    rest, end = text[head.end() :], 0
    for found in FENCE.finditer(rest):
        parts += _prose(rest[end : found.start()])
        parts.append(_fenced(found[1], found[2], name))
        end = found.end()
    return Lesson(name, head[1], head[2], (*parts, *_prose(rest[end:])))


def _prose(text: str) -> list[Part]:
    return [Prose(text.strip() + "\n")] if text.strip() else []


def _fenced(kind: str, text: str, name: str) -> Part:
    match kind:
        case "python":
            return Cell(text.strip("\n") + "\n")
        case "answer":
            return Solution(text.strip() + "\n")
        case _:
            fields = dict(re.findall(r"^(\w+): (.*(?:\n(?!\w+: ).+)*)", text, flags=re.MULTILINE))
            if not {"deck", "claim", "verdict"} <= set(fields) <= {"deck", "claim", "verdict", "check"}:
                raise UsageError("a claim has a deck, a claim and a verdict", where=name)
            joined = {key: " ".join(value.split()) for key, value in fields.items()}
            return Claim(joined["deck"], joined["claim"], joined["verdict"], joined.get("check", "the next cell."))


def solved(code: str) -> str:
    """A cell as it runs: without the marks."""
    return "\n".join(line.partition("  #?")[0] for line in code.split("\n"))


def blanked(code: str) -> str:
    """A cell of the class version: what is marked becomes `...`, and its hint a comment."""
    return "\n".join(BLANK.sub(_dots, line) for line in code.split("\n"))


def _dots(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2] or found[4]}...{')' if found[2] else ''}  # {found[6] or 'yours'}"
