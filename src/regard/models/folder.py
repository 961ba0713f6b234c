"""Folders that appear whole or not at all: written beside their place, flushed, listed with their hashes, and renamed into it."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from regard.errors import ModelError

MANIFEST = "manifest.json"
FORMAT = 1
JSON_LIMIT = 2**26  # bytes
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
Pieces = Iterable[bytes | memoryview]


def publish(folder: Path, files: Mapping[str, Pieces], *, facts: Mapping[str, Any] | None = None, expected: int = 0) -> None:
    """Write the files as `folder`: a reader finds all of them there, or nothing. `facts` go into the manifest.

    The order is the promise: every file is on the disk before the manifest, the manifest before the name.
    """
    if expected and shutil.disk_usage(folder.parent).free < expected * 3 // 2:
        raise OSError(errno.ENOSPC, f"less than 1.5 x {expected} bytes are free", str(folder.parent))
    draft = folder.with_name(f"{folder.name}.tmp-{os.getpid()}")
    if draft.exists():
        shutil.rmtree(draft)
    try:
        os.mkdir(draft)
        listed = {name: _write(draft / name, pieces) for name, pieces in files.items()}
        _write(draft / MANIFEST, [_signed({"format": FORMAT, **(facts or {}), "files": listed})])
        _flush(draft)
        if folder.exists():  # a rename onto it would fail
            os.rename(folder, folder.with_name(f"{folder.name}.old-{os.getpid()}"))
        os.rename(draft, folder)
        _flush(folder.parent)
    except BaseException as error:
        shutil.rmtree(draft, ignore_errors=True)
        _name(error, folder)
        raise
    shutil.rmtree(folder.with_name(f"{folder.name}.old-{os.getpid()}"), ignore_errors=True)


def replace_text(path: Path, text: str) -> None:
    """Replace a small text file as `replace_bytes` does."""
    replace_bytes(path, text.encode())


def replace_bytes(path: Path, data: bytes) -> None:
    """Replace a small file in one instant; its mode stays what it was, or follows the umask. A pipe or device is written to as it is."""
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    draft = path.with_name(f"{path.name}.tmp-{os.getpid()}")
    try:
        _write(draft, [data])
        if path.exists():
            os.chmod(draft, path.stat().st_mode & 0o7777)
        os.rename(draft, path)
        _flush(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        _name(error, path)
        raise


def verify(folder: Path) -> dict[str, Any]:
    """The manifest of a folder whose every file is what it says; else a ModelError that names the file."""
    manifest = read_manifest(folder)
    listed = manifest.get("files")
    if not isinstance(listed, dict):
        raise ModelError("it lists no files", where=str(folder / MANIFEST))
    for name, entry in listed.items():
        if "/" in name or not isinstance(entry, dict):
            raise ModelError("it lists a file outside its folder", where=str(folder / MANIFEST))
        path = folder / name
        try:
            size, digest = path.stat().st_size, _digest(path)
        except OSError as error:
            raise ModelError(f"it cannot be read: {error.strerror}", where=str(path)) from error
        if size != entry.get("bytes") or digest != entry.get("sha256"):
            raise ModelError(f"it is damaged ({size} bytes, sha256 {digest[:12]}...)", where=str(path))
    return manifest


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest, if it is as it was written, to the byte."""
    path = folder / MANIFEST
    manifest = read_json(path)
    if isinstance(manifest, dict) and isinstance(newer := manifest.get("format"), int) and newer > FORMAT:
        raise ModelError(f"it is of format {newer}, and this regard reads format {FORMAT}", where=str(path), do="update regard")
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelError("it is no manifest of this format", where=str(path))
    if _signed({key: value for key, value in manifest.items() if key != "sha256"}) != path.read_bytes():
        raise ModelError("it is damaged", where=str(path))
    return manifest


def read_json(path: Path) -> Any:
    """Strict JSON: of bounded size, without NaN."""
    try:
        if path.stat().st_size > JSON_LIMIT:
            raise ModelError("it is too large", where=str(path))
        return json.loads(path.read_bytes(), parse_constant=_no_constant)
    except OSError as error:
        raise ModelError(f"it cannot be read: {error.strerror}", where=str(path)) from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"it is not JSON: {error}", where=str(path)) from error


def sweep(parent: Path) -> list[Path]:
    """Remove what dead processes left half-written; what they had moved aside comes back if nothing took its place."""
    swept = []
    for path in sorted(parent.glob("*.old-*")):
        name, _, process = path.name.rpartition(".old-")
        if not _lives(process):
            if (parent / name).exists():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(FileNotFoundError):  # another rank was quicker
                    os.rename(path, parent / name)
            swept.append(path)
    for path in sorted(parent.glob("*.tmp-*")):
        if not _lives(path.name.rpartition(".tmp-")[2]):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
            swept.append(path)
    return swept


def _write(path: Path, pieces: Pieces) -> dict[str, Any]:
    """Write a file and wait until the disk has it; its entry of the manifest."""
    digest, size = hashlib.sha256(), 0
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        for piece in pieces:
            rest = memoryview(piece).cast("B")
            digest.update(rest)
            size += len(rest)
            while rest:
                rest = rest[os.write(file, rest) :]
        os.fsync(file)
    finally:
        os.close(file)
    return {"bytes": size, "sha256": digest.hexdigest()}


def _name(error: BaseException, path: Path) -> None:
    """A failed write is that of the file that was wanted; nobody knows its draft."""
    if isinstance(error, OSError):
        error.filename = str(path)


def _signed(facts: Mapping[str, Any]) -> bytes:
    """The text of a manifest, with the hash of what it would be without that hash."""
    digest = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
    return json.dumps({**facts, "sha256": digest}, indent=1, allow_nan=False).encode()


def _flush(folder: Path) -> None:
    """Names are on the disk only when their folder was flushed."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _no_constant(name: str):
    raise ValueError(f"{name} is not JSON")


def _lives(process: str) -> bool:
    """Whether another process of this number runs; leftovers of our own are dead, since nobody else writes now."""
    if not process.isdigit() or int(process) == os.getpid():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
