"""Writes corpora again without what is wrong in them: lines mended, bad pairs left out on both sides together, never shifted."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

from regard.data.defects import CURES, inspect, mend, unusable
from regard.data.doctor import bare, ending, grouped
from regard.data.examine import REASONS, Examination, examine, pairs_of
from regard.data.parallel import Lines, Tsv
from regard.data.text import read_lines
from regard.errors import DataError, UsageError


def clean(files: Sequence[str | Path], out: str | Path, *, examples: int = 3, seed: int = 1) -> dict[str, Any]:
    """Write the cleaned files into the folder `out`, uncompressed and under their names, with report.json; returns the report."""
    folder, listed = Path(out), [Path(file) for file in files]
    _refuse(listed, folder)
    corpora = grouped(listed)
    found = examine(corpora, examples=examples, seed=seed)
    for one in found:
        if one.stopped:
            raise DataError(one.stopped, do="mend this first; nothing was written")
        if not one.parallel:
            raise DataError("the two sides do not look like translations of each other", where=str(one.files[0]), do="see `regard check`")
    paired = {path for one in found for path in one.files}
    alone = [path for path in listed if path not in paired]
    folder.mkdir(parents=True, exist_ok=True)
    with Drafts(folder) as drafts:
        report: dict[str, Any] = {"corpora": [_written(one, drafts) for one in found], "alone": [_mended(path, drafts) for path in alone]}
        with drafts.open("report.json") as stream:
            stream.write(json.dumps(report, ensure_ascii=False, indent=1) + "\n")
    return report


class Drafts:
    """Files written beside their places, and put there when all of them are whole; if not all can be, none is, and what was there stays."""

    def __init__(self, folder: Path):
        self.folder, self.drafts = folder, dict[Path, Path]()

    def open(self, name: str) -> TextIO:
        draft = self.folder / f"{name}.tmp-{os.getpid()}"
        self.drafts[draft] = self.folder / name
        return draft.open("w", encoding="utf-8", newline="\n")

    def __enter__(self) -> Drafts:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        for draft, place in self.drafts.items():
            if error is None:
                draft.replace(place)
            else:
                draft.unlink(missing_ok=True)
        if isinstance(error, OSError) and not error.filename:
            error.filename = str(self.folder)  # a stream does not know its name


def _refuse(listed: Sequence[Path], folder: Path) -> None:
    """What would lose data, or cannot be read, before anything is written."""
    names = [bare(path) for path in listed]
    for path, name in zip(listed, names):
        if names.count(name) > 1:
            raise UsageError(f"two files are called {name}", do="clean them into two folders")
        if (folder / name).resolve() == path.resolve():
            raise UsageError("this would be written over itself", where=str(path), do="choose another --out")
        for finding in inspect(path, tabs=ending(path) == ".tsv"):
            if CURES[finding.kind] == "stop" and finding.kind != "all lines identical":
                place = f"{path}:{finding.line}" if finding.line else str(path)
                raise DataError(finding.kind, where=place, do=finding.says or "nothing was written")


def _written(one: Examination, drafts: Drafts) -> dict[str, Any]:
    """One corpus, written by rows: both sides or none."""
    kept = 0
    with ExitStack() as stack:
        streams = [stack.enter_context(drafts.open(bare(path))) for path in one.files]
        for reason, (_, source, target, _) in zip(one.reasons.tolist(), pairs_of(one.corpus), strict=True):
            if reason and (not one.held_out or REASONS[reason] == "broken"):  # a test set is not to be made easier
                continue
            kept += 1
            for stream, text in zip(streams, _rows(one, source, target), strict=True):
                stream.write(text + "\n")
    return {
        "files": [str(drafts.folder / bare(path)) for path in one.files],
        "read": len(one.reasons),
        "kept": kept,
        "left_out": one.counts if not one.held_out else {"broken": one.counts["broken"]},
        "examples": {reason: [example._asdict() for example in few] for reason, few in one.examples.items()},
    }


def _rows(one: Examination, source: str, target: str) -> Iterator[str]:
    """The line that goes into each file of the corpus."""
    match one.corpus:
        case Lines():
            yield source
            yield target
        case Tsv():
            yield f"{source}\t{target}"
        case _:
            yield json.dumps({"source": source, "target": target}, ensure_ascii=False)


def _mended(path: Path, drafts: Drafts) -> dict[str, Any]:
    """A file that belongs to no corpus: its lines mended, those that are none left out."""
    read = kept = 0
    with drafts.open(bare(path)) as stream:
        for line in read_lines(path):
            read += 1
            if not line.defect and not unusable(line.text):
                kept += 1
                stream.write(mend(line.text) + "\n")
    return {"files": [str(drafts.folder / bare(path))], "read": read, "kept": kept}
