"""The recipes that come with the package: one run each, with its published figure beside it."""

from __future__ import annotations

from pathlib import Path

from regard.config.toml import nearest
from regard.errors import UsageError

FOLDER = Path(__file__).parent


def listed() -> list[tuple[str, str]]:
    """Name and first comment line of every recipe."""
    return [(path.stem, path.read_text("utf-8").splitlines()[0].lstrip("# ")) for path in sorted(FOLDER.glob("*.toml"))]


def find(name: str) -> Path:
    """The file of a recipe, or a TOML file of the user's."""
    given = Path(name)
    if given.suffix == ".toml":
        if not given.is_file():
            raise UsageError("there is no such file", where=name, do="check the path, or see `regard recipes`")
        return given
    path = FOLDER / f"{name}.toml"
    if not path.is_file():
        raise UsageError(f"there is no recipe {name}", do=nearest(name, [known for known, _ in listed()]))
    return path
