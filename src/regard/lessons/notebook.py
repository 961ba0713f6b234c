"""A lesson as a notebook of version 4.5, written by ourselves: nothing of Jupyter is needed before somebody opens it."""

from __future__ import annotations

import json
from typing import Any

from regard.lessons.markdown import words
from regard.lessons.running import Output, Ran
from regard.lessons.show import Frames
from regard.lessons.source import Cell, solved
from regard.look.printing import svg


def notebook(ran: Ran) -> str:
    """With its outputs, if it was run."""
    head = f"# {ran.lesson.title}\n\n*{ran.lesson.summary}*\n"
    cells = [_markdown(head)]
    for part, output in ran.parts():
        cells.append(
            _code(solved(part.code), output, len(cells)) if isinstance(part, Cell) else _markdown(words(part).replace(".md)", ".ipynb)"))
        )
    for place, cell in enumerate(cells):
        cell["id"] = f"{ran.lesson.name}-{place}"[-64:]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def _markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": _lines(text)}


def _code(code: str, output: Output, count: int) -> dict[str, Any]:
    outputs: list[dict[str, Any]] = []
    if output.text:
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(output.text)})
    if isinstance(output.figure, Frames):
        outputs.append(_display("text/html", output.figure._repr_html_(), output.figure.name))
    elif output.figure:
        outputs.append(_display("image/svg+xml", svg(output.figure), output.figure.name))
    return {"cell_type": "code", "metadata": {}, "execution_count": count if outputs else None, "outputs": outputs, "source": _lines(code)}


def _display(kind: str, text: str, name: str) -> dict[str, Any]:
    return {"output_type": "display_data", "metadata": {}, "data": {kind: _lines(text), "text/plain": [name]}}


def _lines(text: str) -> list[str]:
    return text.rstrip("\n").splitlines(keepends=True)
