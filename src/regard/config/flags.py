"""Flags over a config: every scalar field of a value, by its dotted name, read as strictly as the file is."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

from regard.config.bounds import refused
from regard.config.docs import field_docs
from regard.config.toml import WORDS, Place, built, hints, members, nearest, read
from regard.errors import UsageError

T = TypeVar("T")


@dataclass(frozen=True)
class Flag:
    """One scalar field: `--name`, what it holds now, what it may hold and what it means."""

    name: str
    value: bool | int | float | str | Path
    hint: Any
    help: str


def flags(obj: object) -> list[Flag]:
    """All scalar fields below a config, depth first. Kinds are chosen in the file; their fields appear here once chosen."""
    return list(_walk(obj, ""))


def _walk(obj: object, prefix: str) -> Iterator[Flag]:
    docs = field_docs(type(obj))
    for name, hint in hints(type(obj)).items():
        value = getattr(obj, name)
        if dataclasses.is_dataclass(value):
            yield from _walk(value, f"{prefix}{name}.")
        elif isinstance(value, bool | int | float | str | Path):
            yield Flag(f"{prefix}{name}", value, hint, docs.get(name, ""))


def apply(obj: T, given: Mapping[str, str], *, where: str = "") -> T:
    """A copy with these fields set from their texts: `apply(run, {"train.steps": "100"})`."""
    known = {flag.name: flag for flag in flags(obj)}
    values = {}
    for name, text in given.items():
        if name not in known:
            raise UsageError(f"--{name} is not a setting", where=where, do=nearest(name, known))
        place = Place(where, f"--{name}")
        values[name] = read(known[name].hint, toml_value(known[name].hint, text), place)
        if do := refused(name.rpartition(".")[2], values[name]):
            place.fail(f"--{name} = {text} makes no sense", do)
    return _replaced(obj, values, Place(where))


def _replaced(obj: Any, values: Mapping[str, Any], place: Place) -> Any:
    own: dict[str, Any] = {name: value for name, value in values.items() if "." not in name}
    below: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        first, dot, rest = name.partition(".")
        if dot:
            below.setdefault(first, {})[rest] = value
    for name, inner in below.items():
        own[name] = _replaced(getattr(obj, name), inner, place.at(name))
    kept = {name: getattr(obj, name) for name in hints(type(obj))}
    return built(type(obj), kept | own, place)


def toml_value(hint: Any, text: str) -> bool | int | float | str:
    """The text of a flag as the TOML value that its type asks for; what fits none stays a string, and is refused with a reason."""
    choices = members(hint)
    literals = [item for choice in choices if get_origin(choice) is Literal for item in get_args(choice)]
    sorts = {choice for choice in choices if choice in WORDS} | {type(item) for item in literals}
    if bool in sorts and text in ("true", "false"):
        return text == "true"
    if int in sorts and re.fullmatch(r"[+-]?\d+(_\d+)*", text):
        return int(text)
    if float in sorts:
        try:
            return float(text)
        except ValueError:
            pass
    return text
