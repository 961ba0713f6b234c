"""Kinds of one's own: a file of Python whose dataclasses join the unions that they belong to, for as long as the file is passed.

Nothing that was saved names code: a run or a model remembers the file's name and hash, and whoever opens it passes the file again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from regard.config.toml import ADDED, kind_of
from regard.errors import UsageError

PREFIX = "extension_of_regard_"


@dataclass(frozen=True)
class Extension:
    """One file of the user's, imported."""

    path: Path
    sha256: str
    module: ModuleType
    kinds: Mapping[str, type]


_active: dict[str, Extension] = {}


def active() -> dict[str, str]:
    """Name and hash of every file that is passed now."""
    return {name: one.sha256 for name, one in _active.items()}


def check_passed(made_with: Mapping[str, str], *, where: str) -> list[str]:
    """The files that something was made with are all passed, or it is an error that names them; which of them have changed since."""
    if missing := [name for name in made_with if name not in _active]:
        raise UsageError(f"it was made with {missing[0]}, which was not passed", where=where, do=f"give --extend {missing[0]}")
    return [name for name, sha256 in made_with.items() if _active[name].sha256 != sha256]


def read_extension(path: str | Path) -> Extension:
    """The dataclasses of this file that have a `kind`. The file is run: it is the user's own program."""
    path = Path(path)
    try:
        source = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot be read ({error.strerror})", where=str(path), do="name a file of Python") from None
    name = PREFIX + path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError("is no file of Python", where=str(path), do="give it the ending .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their types there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"cannot be imported: {type(error).__name__}: {error}", where=str(path), do="mend it") from error
    kinds = {kind: cls for cls in vars(module).values() if own(cls, name) and (kind := kind_of(cls))}
    if not kinds:
        do = 'write a frozen dataclass with kind: ClassVar[str] = "my-score"; docs/extend.md has an example'
        raise UsageError("it defines no kind", where=str(path), do=do)
    return Extension(path, hashlib.sha256(source).hexdigest(), module, kinds)


def own(value: object, module: str) -> bool:
    return isinstance(value, type) and dataclasses.is_dataclass(value) and value.__module__ == module


@contextlib.contextmanager
def extended(paths: Sequence[str | Path]) -> Iterator[list[Extension]]:
    """While the block runs, files of TOML may speak of the kinds of these files."""
    before, files = dict(ADDED), dict(_active)
    try:
        found = [extend(path) for path in paths]
        yield found
    finally:
        ADDED.clear()
        ADDED.update(before)
        _active.clear()
        _active.update(files)


def extend(path: str | Path) -> Extension:
    """From now on, files of TOML may speak of the kinds of this file."""
    one = read_extension(path)
    for kind in one.kinds:
        if kind in ADDED and one.path.name not in _active:
            raise UsageError(f"another file brings the kind {kind} too", where=str(path), do="name one of them differently")
    ADDED.update(one.kinds)
    _active[one.path.name] = one
    return one
