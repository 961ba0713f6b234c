"""`regard bench`: what is worth measuring and no test should time, by name. Each file of `regard/bench` is one.

Such a file has `arguments(parser)` and `run(arguments) -> dict`, as a verb has, and says in its first line what it measures; it imports
what is heavy inside `run`.
"""

from __future__ import annotations

import argparse
import pkgutil
from importlib import import_module
from types import ModuleType
from typing import Any

from regard import bench


def benches() -> dict[str, ModuleType]:
    """Every measurement, by the name of its file."""
    return {one.name: import_module(f"{bench.__name__}.{one.name}") for one in pkgutil.iter_modules(bench.__path__)}


def arguments(parser: argparse.ArgumentParser) -> None:
    names = parser.add_subparsers(dest="name", metavar="NAME", title="what can be measured")
    for name, module in benches().items():
        says = (module.__doc__ or "").splitlines()[0]
        one = names.add_parser(name, help=says, description=says, allow_abbrev=False)
        one.add_argument("--json", action="store_true", help="one JSON object instead of text")
        module.arguments(one)


def run(arguments: argparse.Namespace) -> None:
    import json

    known = benches()
    if not arguments.name:
        for name, module in known.items():
            print(f"{name:16} {(module.__doc__ or '').splitlines()[0]}")
        return
    found = known[arguments.name].run(arguments)
    print(json.dumps(found, ensure_ascii=False) if arguments.json else "\n".join(lines(found)))


def lines(found: dict[str, Any], *, before: str = "") -> list[str]:
    """`name  figure`, those of a table within the table under the names of both."""
    said: list[str] = []
    for name, figure in found.items():
        if isinstance(figure, dict):
            said += lines(figure, before=f"{before}{name}.")
        else:
            said.append(f"{before + name:40} {figure:,}" if isinstance(figure, int) else f"{before + name:40} {figure}")
    return said
