"""A small handbook in rows of three columns, as the sections of a real one stand in theirs."""

from __future__ import annotations

from itertools import product
from pathlib import Path

THINGS = ("table", "page", "image", "chart", "note", "field", "frame", "list", "link", "sheet")
ACTS = ("insert", "delete", "copy", "print", "sort", "hide", "move", "check", "rename", "format")


def rows() -> list[str]:
    """A hundred sections, each a title, its text, and what belongs to neither."""
    found = ["ui\tFile menu\tDateimenü"]
    for act, thing in product(ACTS, THINGS):
        title = f"{act.capitalize()} the {thing}"
        text = f"This command is used to {act} the {thing} that is selected in the document.\tx"
        found += [
            f"help\t{title}\t-",
            f"help\t{act};{thing}s\t-",
            f"help\t{text}",
            "help\tOK\t-",
            f"help\tThe {thing} may also be changed by hand.\t-",
        ]
    return found


def write(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row}\n" for row in rows()), "utf-8")
    return path
