"""What the fields mean, read from the line below each one: the text of `docs/config.md` and of the flags' help."""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import inspect
import itertools
import re
import sys
import typing
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin

from regard.config.toml import WORDS, hints, kind_of, members

TITLE = """# Configuration

Generated from the docstrings of the configs by `make docs`; a test compares. Do not edit.

A run is a TOML file, or a recipe by name. What is left out keeps its default:

```toml
preset = "tiny"

[data]
train = [{ kind = "tsv", path = "train.tsv" }]
valid = [{ kind = "tsv", path = "valid.tsv" }]

[model.decoder]
own = { pattern = { kind = "window", reach = 128 }, bias = "alibi" }

[train]
steps = 20_000
optimiser = { kind = "muon", rate = 1e-2 }
```

- A kind is chosen with `kind = "name"` in its table, or by the bare string `"name"` where every other key has a default.
- A list of one may be written without its brackets. Several patterns in a list mean *and*.
- A flag sets a single value over the file's: `regard train mine.toml --train.steps 100`. Default < preset < file < flag.
- Paths are relative to the file, or to `--data-root`.
- An unknown key is an error that names the nearest known one.
- `regard train mine.toml --dry-run` prints the merged configuration; `run.toml` in the run's folder keeps it.
"""


@cache
def field_docs(cls: type) -> dict[str, str]:
    """The docstring below each field of a dataclass, those it inherited included."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not dataclasses.is_dataclass(base):
            continue
        node = _classes(base.__module__).get(base.__qualname__)
        body = node.body if node else []
        for field, below in itertools.pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and (text := _string(below)):
                docs[field.target.id] = text
    return docs


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    """The classes of a module's source by qualified name; none where there is no source."""
    spec = importlib.util.find_spec(module) if module not in sys.modules else None
    origin = spec.origin if spec else getattr(sys.modules.get(module), "__file__", None)
    if not origin or not origin.endswith(".py"):
        return {}

    def walk(nodes: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.ClassDef]]:
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                yield prefix + node.name, node
                yield from walk(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef):
                yield from walk(node.body, f"{prefix}{node.name}.<locals>.")

    return dict(walk(ast.parse(Path(origin).read_text(encoding="utf-8")).body, ""))


def _string(node: ast.stmt) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return " ".join(node.value.value.split())
    return ""


def document(root: type) -> str:
    """The whole of docs/config.md: one section for each dataclass that a file may speak of, in the order in which it comes up."""
    titles = headings(reachable(root))
    return TITLE + "".join(_section(cls, titles) for cls in titles)


def headings(classes: Sequence[type]) -> dict[type, str]:
    """A heading of its own for each: its name, and its file's beside it where two are called alike."""
    counts = Counter(cls.__name__ for cls in classes)
    return {cls: cls.__name__ if counts[cls.__name__] == 1 else f"{cls.__name__} ({_file(cls)})" for cls in classes}


def _file(cls: type) -> str:
    return cls.__module__.rpartition(".")[2]


def reachable(root: type) -> list[type]:
    """The root and every dataclass below it, breadth first, each once."""
    found, at = [root], 0
    while at < len(found):
        found += [cls for hint in hints(found[at]).values() for cls in _dataclasses(hint) if cls not in found]
        found = list(dict.fromkeys(found))
        at += 1
    return found


def _dataclasses(hint: Any) -> list[type]:
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return [hint]
    return [cls for item in get_args(hint) for cls in _dataclasses(item)] if get_origin(hint) is not Literal else []


def _section(cls: type, titles: Mapping[type, str]) -> str:
    kind, docs = kind_of(cls), field_docs(cls)
    sentences = [f'`kind = "{kind}"`.'] if kind else []
    title = f"## {titles[cls]}\n\n{' '.join([*sentences, _summary(cls)]).strip()}\n"
    rows = [
        f"| `{name}` | {type_text(hint, titles=titles)} | {_default(cls, name)} | {docs.get(name, '')} |"
        for name, hint in hints(cls).items()
    ]
    table = "\n| key | type | default | meaning |\n|---|---|---|---|\n" + "\n".join(rows) + "\n" if rows else ""
    return f"\n{title}{table}"


def _summary(cls: type) -> str:
    text = cls.__dict__.get("__doc__") or ""
    return "" if text.startswith(f"{cls.__name__}(") else " ".join(inspect.cleandoc(text).split("\n\n")[0].split())  # not dataclass's own


def type_text(hint: Any, *, titles: Mapping[type, str] = MappingProxyType({})) -> str:
    """A type in the words of the file: kinds with links to their sections, literals in quotes."""

    def text(inner: Any) -> str:
        return type_text(inner, titles=titles)

    if len(members(hint)) > 1:
        return ", ".join(map(text, members(hint)))
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        anchor = re.sub(r"[^\w -]", "", titles.get(hint, hint.__name__)).lower().replace(" ", "-")
        return f"[{kind_of(hint) or hint.__name__}](#{anchor})"
    match get_origin(hint):
        case typing.Literal:
            return ", ".join(f'`"{item}"`' if isinstance(item, str) else f"`{item}`" for item in get_args(hint))
        case origin if origin is tuple:
            inner = get_args(hint)
            return f"list of {text(inner[0])}" if inner[-1] is Ellipsis else "list: " + ", ".join(map(text, inner))
        case origin if origin is not None:
            return f"table of {text(get_args(hint)[1])}"
    return WORDS[hint].replace("an ", "").replace("a ", "").replace(" in quotes", "")


def _default(cls: type, name: str) -> str:
    field = next(field for field in dataclasses.fields(cls) if field.name == name)
    if field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    elif field.default is not dataclasses.MISSING:
        value = field.default
    else:
        return "required"
    return f"`{_written(value)}`"


def _written(value: Any) -> str:
    """A default in the words of the file, short: a table shows only what differs from its own defaults."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = kind_of(type(value))
        shown = [f"{name} = {_written(getattr(value, name))}" for name in hints(type(value)) if _differs(value, name)]
        if kind and not shown:
            return f'"{kind}"'
        return "{ " + ", ".join([*([f'kind = "{kind}"'] if kind else []), *shown]) + " }" if shown else "{}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | Path):
        return f'"{value}"'
    return str(value)


def _differs(obj: Any, name: str) -> bool:
    field = next(field for field in dataclasses.fields(obj) if field.name == name)
    default = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
    return default != getattr(obj, name)
