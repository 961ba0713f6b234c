"""Runs the cells of a lesson, all in one namespace, as a notebook would: what is printed, and the value of a last expression."""

from __future__ import annotations

import ast
import io
import threading
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

import torch

from regard.lessons.show import Frames
from regard.lessons.source import Cell, Lesson, Part, solved
from regard.look.drawing import Drawing

Value = Drawing | Frames
LAST = "_"  # where the value of a cell's last expression is kept, as the interpreter does
ONE = threading.Lock()  # what is printed is caught for the whole process


@dataclass(frozen=True)
class Output:
    """What one cell said and drew."""

    text: str = ""
    figure: Value | None = None


@dataclass(frozen=True)
class Ran:
    """A lesson and the output of each of its cells, in their order."""

    lesson: Lesson
    outputs: tuple[Output, ...]

    def parts(self) -> list[tuple[Part, Output]]:
        """Each part of the page; only cells have an output."""
        rest = iter(self.outputs)
        return [(part, next(rest) if isinstance(part, Cell) else Output()) for part in self.lesson.parts]


def run(lesson: Lesson) -> Ran:
    """The same numbers each time: the generator is seeded, and what was set for the lesson is undone."""
    cells = [part for part in lesson.parts if isinstance(part, Cell)]
    space: dict[str, Any] = {"__name__": lesson.name}
    dtype = torch.get_default_dtype()
    with ONE, torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        try:
            return Ran(lesson, tuple(_output(cell, space, f"{lesson.name}, cell {number}") for number, cell in enumerate(cells, 1)))
        finally:
            torch.set_default_dtype(dtype)


def _output(cell: Cell, space: dict[str, Any], where: str) -> Output:
    tree = ast.parse(solved(cell.code), where)
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        tree.body[-1] = ast.copy_location(ast.Assign([ast.Name(LAST, ast.Store())], last.value), last)
    space[LAST] = None
    said = io.StringIO()
    with redirect_stdout(said):
        exec(compile(ast.fix_missing_locations(tree), where, "exec"), space)
    value = space[LAST]
    if isinstance(value, Value):
        return Output(said.getvalue(), value)
    return Output(said.getvalue() + (f"{value!r}\n" if value is not None else ""))
