"""The course: one text file a theme, of prose and cells that run; its pages, notebooks and class versions are made from that alone."""

from __future__ import annotations

from pathlib import Path

from regard.config.toml import nearest
from regard.errors import UsageError
from regard.lessons.source import Lesson, parse

FOLDER = Path(__file__).parent / "pages"


def names() -> list[str]:
    """In the order of the course, which the numbers of the files give."""
    return [path.stem.partition("-")[2] for path in sorted(FOLDER.glob("*.md"))]


def find(name: str) -> Lesson:
    """The lesson of this name."""
    for path in FOLDER.glob("*.md"):
        if path.stem.partition("-")[2] == name:
            return parse(name, path.read_text("utf-8"))
    raise UsageError(f"there is no lesson {name}", do=nearest(name, names()))
