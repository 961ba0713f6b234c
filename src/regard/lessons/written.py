"""Lessons as files: which renderer makes what, under which name."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from regard.lessons import find, names, web
from regard.lessons import markdown as paper
from regard.lessons.blanks import class_version
from regard.lessons.notebook import notebook
from regard.lessons.running import Ran, run
from regard.models.folder import replace_text

Kind = Literal["html", "notebook", "markdown"]
Files = dict[str, str]  # texts by the names of their files


def lesson(name: str, kind: Kind, *, blanks: bool = False, course: bool = False) -> Files:
    """One lesson; as part of a course its page leads to the others."""
    return rendered(class_version(find(name)) if blanks else run(find(name)), kind, course=course)


def rendered(ran: Ran, kind: Kind, *, course: bool = False) -> Files:
    name = ran.lesson.name
    match kind:
        case "html":
            return {f"{name}.html": _page(ran, course=course).text}
        case "notebook":
            return {f"{name}.ipynb": notebook(ran)}
        case "markdown":
            return paper.files(ran)


def contents(kind: Kind) -> Files:
    """The list of the course."""
    listed = [(one.name, one.title, one.summary) for one in map(find, names())]
    return {"index.html": web.index(listed).text} if kind == "html" else {"README.md": paper.index(listed)}


def page(name: str, *, blanks: bool) -> web.Page:
    """A lesson of the served course, or its index."""
    if name == "index":
        return web.index([(one.name, one.title, one.summary) for one in map(find, names())])
    return _page(class_version(find(name)) if blanks else run(find(name)), course=True)


def write(folder: Path, texts: Files) -> list[Path]:
    """Where they are now."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        replace_text(folder / name, text)
    return [folder / name for name in texts]


def _page(ran: Ran, *, course: bool) -> web.Page:
    if not course:
        return web.page(ran)
    around = ["", *names(), ""]
    place = around.index(ran.lesson.name)
    return web.page(ran, before=around[place - 1], after=around[place + 1], contents=True)
