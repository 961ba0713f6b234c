"""TOML to frozen dataclasses and back, strictly: an unknown key, a wrong type or an unknown kind is an error that names its place."""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
import tomllib
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin, overload

import tomli_w

from regard.config.bounds import refused
from regard.errors import RegardError, UsageError

T = TypeVar("T")
MANY = 24  # names beyond which a list helps nobody
Extra = Mapping[str, type]  # kinds brought by the user: added to the unions at run time, forgotten afterwards
ADDED: dict[str, type] = {}  # those of the files that were passed to this process; extend.py puts them there

WORDS = {bool: "true or false", int: "an integer", float: "a number", str: "a string", Path: "a path in quotes"}


@dataclass(frozen=True)
class Place:
    """Where in the file we are, for errors, and which kinds were added to the unions."""

    file: str = ""
    path: str = ""
    extra: Extra = dataclasses.field(default_factory=dict)

    def at(self, key: str | int) -> Place:
        step = f"[{key}]" if isinstance(key, int) else f".{key}" if self.path else key
        return replace(self, path=self.path + step)

    @property
    def name(self) -> str:
        return self.path or "the file"

    def fail(self, what: str, do: str = "") -> NoReturn:
        raise UsageError(what, where=self.file, do=do)


@overload
def structure(cls: type[T], value: object, *, where: str = "", extra: Extra | None = None) -> T: ...
@overload
def structure(cls: Any, value: object, *, where: str = "", extra: Extra | None = None) -> Any: ...
def structure(cls: Any, value: object, *, where: str = "", extra: Extra | None = None) -> Any:
    """The object that `value` (what TOML gives: dicts, lists, scalars) describes. `where` is the file's name, for errors."""
    return read(cls, value, Place(where, "", ADDED if extra is None else extra))


def load(cls: type[T], path: str | Path, *, extra: Extra | None = None) -> T:
    """The object that a TOML file describes."""
    return structure(cls, read_toml(path), where=str(path), extra=extra)


def read_toml(path: str | Path) -> dict[str, Any]:
    """The tables of a file, before anybody says what they mean."""
    try:
        text = Path(path).read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        raise UsageError("there is no such file", where=str(path), do="check the path") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot be read (no UTF-8 at byte {error.start + 1})", where=str(path), do="save it as UTF-8") from None
    except OSError as error:
        raise UsageError(f"cannot be read ({error.strerror})", where=str(path), do="check the path and its permissions") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        raise UsageError(f"is not TOML: {error}", where=f"{path}:{line[1]}" if line else str(path)) from None


def dumps(obj: object) -> str:
    """The TOML text of a config, defaults included: what `load` reads back as an equal object."""
    return tomli_w.dumps(unstructure(obj))


def unstructure(obj: object) -> dict[str, Any]:
    """The dicts, lists and scalars that `structure` makes this dataclass from."""
    table = {field.name: _plain(getattr(obj, field.name)) for field in dataclasses.fields(obj)}  # pyright: ignore[reportArgumentType]
    kind = kind_of(type(obj))
    return {"kind": kind, **table} if kind else table


def _plain(value: object) -> Any:
    if dataclasses.is_dataclass(value):
        table = unstructure(value)
        return table["kind"] if list(table) == ["kind"] else table  # `pattern = "causal"` reads better than a table of one
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a config cannot hold {value!r}: TOML has no word for it")


def kind_of(cls: Any) -> str | None:
    """The name by which a union tells this class apart."""
    kind = getattr(cls, "kind", None)
    return kind if isinstance(kind, str) else None


@cache
def hints(cls: type) -> dict[str, Any]:
    """The types of the fields of a dataclass, in their order."""
    resolved = typing.get_type_hints(cls)
    return {field.name: resolved[field.name] for field in dataclasses.fields(cls) if field.init}


def members(hint: Any) -> tuple[Any, ...]:
    """The members of a union, or the one type itself."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def nearest(word: str, known: Iterable[str]) -> str:
    """The advice of an unknown name: the one it resembles, and all there are."""
    known = list(known)
    close = difflib.get_close_matches(word, known, n=1)
    listed = f"(known: {', '.join(known)})" if known else "(there are none)"
    if close and len(known) > MANY:
        return f"did you mean {close[0]}?"
    return f"did you mean {close[0]}? {listed}" if close else f"choose one {listed}"


def read(hint: Any, value: object, place: Place, *, usual: str = "") -> Any:
    """One value of one type, whatever the type. `usual` is the kind of the field's default."""
    if len(members(hint)) > 1:
        return _union(members(hint), value, place, usual=usual)
    if dataclasses.is_dataclass(hint):
        return _table(hint, value, place)
    match get_origin(hint):
        case typing.Literal:
            return _literal((hint,), value, place)
        case origin if origin is tuple:
            return _tuple(get_args(hint), value, place)
        case origin if origin in (dict, Mapping):
            if not isinstance(value, dict):
                place.fail(f"{place.name} must be a table, not {said(value)}")
            return {key: read(get_args(hint)[1], item, place.at(key)) for key, item in value.items()}
    if hint in WORDS:
        return _scalar(hint, value, place)
    raise TypeError(f"{place.name}: the type {hint} has no form in TOML")


def _scalar(cls: type, value: object, place: Place) -> Any:
    if cls is Path and isinstance(value, str):
        return Path(value)
    if cls is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not cls or (isinstance(value, float) and math.isnan(value)):  # exactly: a bool is an int to Python, not to us
        place.fail(f"{place.name} must be {WORDS[cls]}, not {said(value)}")
    return value


def _literal(hints: Iterable[Any], value: object, place: Place) -> Any:
    choices = [choice for hint in hints for choice in get_args(hint)]
    for choice in choices:
        if type(value) is type(choice) and value == choice:
            return choice
    place.fail(f"{place.name} cannot be {said(value)}", nearest(str(value), map(str, choices)))


def _tuple(of: tuple[Any, ...], value: object, place: Place) -> tuple[Any, ...]:
    items = value if isinstance(value, list) else [value]  # a tuple of one may be written without its brackets
    if of[-1] is Ellipsis:
        of = of[:1] * len(items)
    if len(of) != len(items):
        place.fail(f"{place.name} must have {len(of)} items, not {len(items)}")
    return tuple(read(hint, item, place.at(index)) for index, (hint, item) in enumerate(zip(of, items)))


def _union(choices: tuple[Any, ...], value: object, place: Place, *, usual: str = "") -> Any:
    """By `kind` among the dataclasses; by what TOML gave among the rest. The kind of the field's default may be left out, as long as
    something in the table is a key of it."""
    kinds = {kind: choice for choice in choices if dataclasses.is_dataclass(choice) and (kind := kind_of(choice))}
    if kinds:
        brought = {kind: cls for kind, cls in place.extra.items() if joins(cls, choices)}
        for kind in kinds.keys() & brought.keys():
            place.fail(f"{place.name} has a kind {kind} of its own", "give yours another name")
        kinds |= brought
    value = _in_full(value, {short: kind for kind, cls in kinds.items() if (short := getattr(cls, "short", ""))})
    scalars = [choice for choice in choices if choice in WORDS]
    literals = [choice for choice in choices if get_origin(choice) is Literal]
    if str in scalars and kinds:
        raise TypeError(f"{place.name}: a union of kinds cannot also hold str, for a string names a kind")
    for choice in choices:
        if get_origin(choice) is tuple and isinstance(value, list):
            return _tuple(get_args(choice), value, place)
    if isinstance(value, dict) and kinds:
        kind = value.get("kind")
        if kind is None and usual in kinds and (not value or value.keys() & hints(kinds[usual])):
            kind = usual
        if kind is None:
            place.fail(f"{place.name} needs a kind", nearest("", kinds))
        if not isinstance(kind, str) or kind not in kinds:
            place.fail(f"{place.name} has no kind {said(kind)}", nearest(str(kind), kinds))
        return _table(kinds[kind], value, place)
    if any(value == item and type(value) is type(item) for choice in literals for item in get_args(choice)):
        return value
    if isinstance(value, str) and value in kinds:
        return _table(kinds[value], value, place)
    for scalar in scalars:
        if type(value) is scalar or (scalar is float and type(value) is int) or (scalar is Path and isinstance(value, str)):
            return _scalar(scalar, value, place)
    if isinstance(value, str) and (kinds or literals):
        known = [*kinds, *(str(item) for choice in literals for item in get_args(choice))]
        place.fail(f"{place.name} cannot be {said(value)}", nearest(value, known))
    forms = [*(WORDS[scalar] for scalar in scalars), *(f'"{item}"' for choice in literals for item in get_args(choice))]
    forms += [f"a table with a kind ({', '.join(kinds)})"] if kinds else []
    place.fail(f"{place.name} must be {' or '.join(forms)}, not {said(value)}")


def _in_full(value: object, short: Mapping[str, str]) -> object:
    """A kind by its name, where it was called by the short one that papers have for it."""
    if isinstance(value, str):
        return short.get(value, value)
    if isinstance(value, dict) and isinstance(kind := value.get("kind"), str):
        return {**value, "kind": short.get(kind, kind)}
    return value


def joins(cls: type, choices: tuple[Any, ...]) -> bool:
    """Whether a class of the user's belongs to this union: it names one of its members as `extends`, or has a base with one in common."""
    if extends := getattr(cls, "extends", None):
        return extends in choices
    return any(set(cls.__mro__[:-1]) & set(choice.__mro__[:-1]) for choice in choices if isinstance(choice, type))


def _table(cls: Any, value: object, place: Place) -> Any:
    kind, fields = kind_of(cls), hints(cls)
    if isinstance(value, str) and kind and value == kind:
        value = {}
    if not isinstance(value, dict):
        place.fail(f"{place.name} must be a table ({', '.join(fields) or 'without keys'}), not {said(value)}")
    given = {key: item for key, item in value.items() if not (key == "kind" and kind and "kind" not in fields)}
    if kind and value.get("kind", kind) != kind:
        place.fail(f"{place.name} is of kind {kind}, not {said(value['kind'])}")
    for key in given:
        if key not in fields:
            place.fail(f"{place.at(key).path} is not a key of {cls.__name__}", nearest(key, fields))
    for field in dataclasses.fields(cls):
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if field.name in fields and required and field.name not in given:
            place.fail(f"{place.at(field.name).path} is missing", f"{cls.__name__} needs it")
    usual = {field.name: _usual(field) for field in dataclasses.fields(cls)}
    read_fields = {key: read(fields[key], item, place.at(key), usual=usual[key]) for key, item in given.items()}
    found = built(cls, read_fields, place)
    for key, item in read_fields.items():
        if do := refused(key, item):
            place.fail(f"{place.at(key).path} = {item} makes no sense", do)
    return found


def _usual(field: dataclasses.Field) -> str:
    """The kind of a field's default; none where it has no default, or one without a kind."""
    default = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
    return kind_of(type(default)) or ""


def built(cls: Any, fields: dict[str, Any], place: Place) -> Any:
    """The object; what its own __post_init__ refuses is told with the place."""
    try:
        return cls(**fields)
    except RegardError as error:
        if error.where:
            raise
        raise type(error)(f"{place.name}: {error.what}", where=place.file, do=error.do) from None
    except ValueError as error:
        place.fail(f"{place.name}: {error}")


def said(value: object) -> str:
    """A value as the user wrote it, told by its sort."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'the string "{value if len(value) <= 60 else value[:57] + "..."}"'
        case dict():
            return "a table"
        case list():
            return "a list"
        case _:
            return f"{value}"
