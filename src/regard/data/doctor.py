"""The data doctor: what is wrong in these files, where, in which line; and which pairs are better left out, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.data.defects import CURES, Finding, inspect
from regard.data.examine import Examination, examine
from regard.data.parallel import Corpus, Jsonl, Lines, Tsv, paths, read_rows
from regard.data.text import read_lines
from regard.errors import UsageError

ARCHIVES = (".gz", ".xz", ".zst")


@dataclass(eq=False)
class Report:
    """Everything that was found; `code` is the exit status: 3 where something should be mended or left out."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)  # (path, kind of defect)
    findings: dict[tuple[str, str], list[Finding]] = field(default_factory=dict)  # the first few of each
    corpora: list[Examination] = field(default_factory=list)

    @property
    def code(self) -> int:
        lines = any(CURES[kind] != "note" for _, kind in self.counts)
        pairs = any(not one.parallel or one.stopped or any(one.counts.values()) for one in self.corpora)
        return 3 if lines or pairs else 0

    def text(self) -> str:
        """For people: each defect with its count and first lines, then each corpus with its reasons and examples."""
        says = []
        for (path, kind), count in self.counts.items():
            first = self.findings[path, kind]
            where = (
                f"line {', '.join(str(one.line) for one in first)}{', ...' if count > len(first) else ''}" if first[0].line else "the file"
            )
            detail = f" ({first[0].says})" if first[0].says else ""
            says.append(f"{path}: {kind}{detail}: {count:,} x, {where} [{CURES[kind]}]")
        for one in self.corpora:
            says += _told(one)
        if self.code:
            says.append("`regard clean` mends the lines marked [mend], and leaves out those marked [drop] and the pairs counted above")
        return "\n".join(says or ["nothing is wrong"]) + "\n"

    def data(self) -> dict[str, Any]:
        """The same for programs."""
        defects = [
            {"path": path, "kind": kind, "count": count, "cure": CURES[kind], "lines": [one.line for one in self.findings[path, kind]]}
            for (path, kind), count in self.counts.items()
        ]
        corpora = [
            {
                "files": [str(path) for path in one.files],
                "pairs": len(one.reasons),
                "left_out": one.counts,
                "told_apart": round(one.told_apart, 4),
                "stopped": one.stopped,
                "examples": {reason: [example._asdict() for example in few] for reason, few in one.examples.items()},
            }
            for one in self.corpora
        ]
        return {"defects": defects, "corpora": corpora, "code": self.code}


def check(files: Sequence[str | Path], *, examples: int = 3, seed: int = 1) -> Report:
    """Look at every line of every file, then at the pairs they make."""
    report = Report()
    corpora = grouped(files)
    for path in map(Path, files):
        for finding in inspect(path, tabs=ending(path) == ".tsv"):
            _note(report, finding, examples)
    stopped = {path for path, kind in report.counts if CURES[kind] == "stop" and kind != "all lines identical"}
    readable = [corpus for corpus in corpora if not stopped & {str(path) for path in paths(corpus)}]
    for corpus in readable:
        for finding in rows_wrong(corpus):
            _note(report, finding, examples)
    report.corpora = examine(readable, examples=examples, seed=seed)
    return report


def grouped(files: Sequence[str | Path]) -> list[Corpus]:
    """The corpora that these files make: train.de and train.en belong together by name; two files alone, whatever they are called."""
    listed = [Path(file) for file in files]
    corpora: list[Corpus] = []
    sides: dict[Path, list[Path]] = {}
    for path in listed:
        match ending(path):
            case ".tsv":
                corpora.append(Tsv(str(path)))
            case ".jsonl":
                corpora.append(Jsonl(str(path)))
            case last:
                sides.setdefault(path.with_name(bare(path).removesuffix(last)), []).append(path)
    if sum(map(len, sides.values())) == 2:
        sides = {listed[0]: [path for group in sides.values() for path in group]}
    for stem, group in sides.items():
        if len(group) > 2:
            raise UsageError(f"{len(group)} files are called {stem.name}.*, and a corpus has two sides", do="name two of them at a time")
    return corpora + [Lines(str(group[0]), str(group[1])) for group in sides.values() if len(group) == 2]


def bare(path: Path) -> str:
    """The name of a file without what its compression added."""
    return path.stem if path.suffix in ARCHIVES else path.name


def ending(path: Path) -> str:
    return Path(bare(path)).suffix


def rows_wrong(corpus: Corpus) -> Iterator[Finding]:
    """What is wrong with rows as rows: columns, JSON, or one of two aligned files being longer."""
    if isinstance(corpus, Lines):
        counts = [sum(1 for _ in read_lines(path)) for path in paths(corpus)]
        if counts[0] != counts[1]:
            says = f"{counts[0]:,} lines in {corpus.source}, {counts[1]:,} in {corpus.target}"
            yield Finding((corpus.source, corpus.target)[counts[0] < counts[1]], min(counts) + 1, "mismatched counts", says)
        return
    for row in read_rows(corpus):
        for defect in row.defects:
            if defect.reason in CURES:
                yield Finding(defect.path, defect.number, defect.reason)
            elif defect.reason.startswith("no text"):
                yield Finding(defect.path, defect.number, "missing text", defect.reason)


def _note(report: Report, finding: Finding, examples: int) -> None:
    report.counts[finding.path, finding.kind] += 1
    few = report.findings.setdefault((finding.path, finding.kind), [])
    if len(few) < examples:
        few.append(finding)


def _told(one: Examination) -> Iterator[str]:
    name = " + ".join(str(path) for path in one.files)
    yield f"{name}: {len(one.reasons):,} pairs{' (held out)' if one.held_out else ''}"
    if one.stopped:
        yield f"  cannot be read as pairs to the end: {one.stopped}"
    if not one.parallel:
        yield "  the two sides do not look like translations of each other at all; are these files of the same corpus, in the same order?"
    for reason, count in one.counts.items():
        if count:
            yield f"  {reason}: {count:,} ({100 * count / len(one.reasons):.2f} %)"
            yield from (
                f"    line {shown.line}{f' [{shown.says}]' if shown.says else ''}: {shown.source[:80]} ||| {shown.target[:80]}"
                for shown in one.examples.get(reason, [])
            )
