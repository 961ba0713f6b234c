"""The class version: no outputs, no answers, no verdicts, and `...` where a line of code is to be found."""

from __future__ import annotations

from dataclasses import replace

from regard.lessons.running import Output, Ran
from regard.lessons.source import Cell, Claim, Lesson, Part, Solution, blanked

ANSWER = "*(Your answer.)*\n"
VERDICT = "(yours, after the check)"


def class_version(lesson: Lesson) -> Ran:
    """Nothing of it runs before somebody has filled it in."""
    parts = tuple(map(_blank, lesson.parts))
    return Ran(replace(lesson, parts=parts), tuple(Output() for part in parts if isinstance(part, Cell)))


def _blank(part: Part) -> Part:
    match part:
        case Cell(code):
            return Cell(blanked(code))
        case Solution():
            return Solution(ANSWER)
        case Claim():
            return replace(part, verdict=VERDICT)
        case _:
            return part
