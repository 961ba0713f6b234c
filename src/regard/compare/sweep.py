"""What is compared: variants of a recipe, each with several seeds. A TOML file says which, and this says what runs that makes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from pathlib import Path
from typing import Any

from regard import recipes
from regard.config.toml import nearest, read_toml, structure
from regard.errors import UsageError
from regard.models.presets import merge
from regard.run import Data, Run, run_of

FOLDER = recipes.FOLDER / "sweeps"
Table = Mapping[str, Any]


@dataclass(frozen=True)
class Head:
    """What a sweep says beside its tables [settings] and [grid]."""

    recipe: str = ""
    "The recipe, or TOML file beside this one, that every variant begins with; a variant may name another one."
    seeds: tuple[int, ...] = (1, 2, 3)
    "Each variant is trained with each of these."
    score: str = ""
    "The score that decides; empty: the first of the reports."
    better: str = ""
    "Whether higher or lower is better; empty: as is usual for the score."


@dataclass(frozen=True)
class Variant:
    """One choice along every axis of the grid, and the run that it is, but for the seed."""

    choices: tuple[str, ...]
    run: Run

    @property
    def name(self) -> str:
        return "-".join(self.choices)

    def seeded(self, seed: int) -> Run:
        return replace(self.run, train=replace(self.run.train, seed=seed))


@dataclass(frozen=True)
class Sweep:
    """A grid, spelled out."""

    name: str
    head: Head
    axes: tuple[str, ...]
    variants: tuple[Variant, ...]


def listed() -> list[tuple[str, str]]:
    """Name and first comment line of every sweep of the package."""
    return [(path.stem, path.read_text("utf-8").splitlines()[0].lstrip("# ")) for path in sorted(FOLDER.glob("*.toml"))]


def find(name: str) -> Path:
    """The file of a sweep of the package, or a TOML file of the user's."""
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    if not path.is_file():
        known = [known for known, _ in listed()]
        do = "check the path" if name.endswith(".toml") else nearest(name, known)
        raise UsageError("there is no such sweep", where=name, do=do)
    return path


def read_sweep(path: Path, *, flags: Mapping[str, str] | None = None, data_root: str = "", seeds: tuple[int, ...] = ()) -> Sweep:
    """recipe < [settings] < the variant's own tables < flag; all variants must be about the same data and metrics."""
    tables = read_toml(path)
    settings, grid = tables.pop("settings", {}), tables.pop("grid", {})
    head = structure(Head, tables, where=str(path))
    if seeds:
        head = replace(head, seeds=seeds)
    if not head.seeds or len(set(head.seeds)) < len(head.seeds):
        raise UsageError(f"seeds = {list(head.seeds)}", where=str(path), do="give one or more, each once")
    if head.better not in ("", "higher", "lower"):
        raise UsageError(f"better = {head.better!r}", where=str(path), do="write higher or lower")
    axes = checked(grid, where=str(path))
    variants = []
    for choices in product(*(axis.items() for axis in axes.values())):
        laid = reduce(merge, [dict(table) for _, table in choices], dict(settings))
        named = str(laid.pop("recipe", head.recipe))
        if not named:
            raise UsageError("no recipe is named", where=str(path), do='write recipe = "NAME" at the top, or in each variant')
        beside = path.parent / named
        base = beside if named.endswith(".toml") and beside.is_file() else recipes.find(named)
        run = run_of(merge(read_toml(base), laid), base, flags=flags, data_root=data_root)
        variants.append(Variant(tuple(name for name, _ in choices), run))
    alike(variants, where=str(path))
    return Sweep(path.stem, head, tuple(axes), tuple(variants))


def checked(grid: object, *, where: str) -> dict[str, dict[str, Table]]:
    """The axes of a grid, each with its variants by name."""
    if not isinstance(grid, dict) or not grid:
        raise UsageError("there is nothing to compare", where=where, do="name variants: [grid.AXIS.NAME] and the keys in which it differs")
    axes = {}
    for axis, variants in grid.items():
        if not isinstance(variants, dict) or not variants or not all(isinstance(table, dict) for table in variants.values()):
            raise UsageError(f"grid.{axis} has no variants", where=where, do=f"write [grid.{axis}.NAME] and the keys in which it differs")
        for name in (axis, *variants):
            if not re.fullmatch(r"[\w.+]([\w.+-]*[\w.+])?", name) or name.startswith("."):
                do = "use letters, digits and _ . + -: it becomes the name of a folder"
                raise UsageError(f"{name!r} is no name of a variant", where=where, do=do)
        axes[axis] = variants
    return axes


def alike(variants: list[Variant], *, where: str) -> None:
    """Figures of different data or under different metrics are not for one table."""
    first = variants[0]
    if len({variant.name for variant in variants}) < len(variants):
        raise UsageError("two variants have one name", where=where, do="name them differently")
    for variant in variants[1:]:
        for what, ours, theirs in (
            ("data", compared(first.run.data), compared(variant.run.data)),
            ("metrics", first.run.metrics, variant.run.metrics),
        ):
            if ours != theirs:
                raise UsageError(f"{first.name} and {variant.name} differ in their {what}", where=where, do="compare what is alike")


def compared(data: Data) -> Data:
    """What decides whether figures may be compared; where its cache lies does not."""
    return replace(data, cache="", workers=0)
