"""Which pairs of a corpus are better left out, and why: read twice, a reason for each row, in memory that does not hold the texts."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from regard.data import alignment, holdout, language
from regard.data.defects import mend, unusable
from regard.data.parallel import Corpus, paths, read_rows
from regard.errors import DataError

REASONS = ("", "broken", "copied source", "duplicate", "in held-out", "wrong script", "wrong language", "misaligned")
BLOCK = 100_000  # pairs judged together: languages and translations are learned from each block
COPIED = 3  # words from which a target equal to its source is suspicious; names and numbers stay the same
HELD_OUT = re.compile(r"(^|[^a-z])(test|dev|val|valid|validation|heldout|held[-_]out|eval)", re.IGNORECASE)

Codes = npt.NDArray[np.uint8]
Keys = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]  # of sources and of targets


class Example(NamedTuple):
    """A pair that is better left out, where it stands."""

    line: int
    source: str
    target: str
    says: str = ""


@dataclass(eq=False)
class Examination:
    """One corpus: for each row the reason against it (an index into REASONS, 0 for none), and a few examples of each."""

    corpus: Corpus
    files: tuple[Path, ...]
    reasons: Codes = field(default_factory=lambda: np.zeros(0, np.uint8))
    examples: dict[str, list[Example]] = field(default_factory=dict)
    keys: Keys = (np.zeros(0, np.int64), np.zeros(0, np.int64))
    told_apart: float = 1.0
    stopped: str = ""  # why it could not be read as pairs to its end

    @property
    def counts(self) -> dict[str, int]:
        return {name: int((self.reasons == code).sum()) for code, name in enumerate(REASONS) if code}

    @property
    def held_out(self) -> bool:
        return any(HELD_OUT.search(path.name) for path in self.files)

    @property
    def parallel(self) -> bool:
        return self.told_apart >= alignment.PARALLEL


def examine(corpora: Sequence[Corpus], *, root: str | Path = ".", examples: int = 3, seed: int = 1) -> list[Examination]:
    """Judge the pairs of each corpus; what is in a held-out one (told by its name: test, dev, ...) counts against those that train."""
    found = [_keyed(corpus, root, examples) for corpus in corpora]
    held = [one for one in found if one.held_out]
    for one in found:
        others = [] if one.held_out else held
        sources, targets = (np.concatenate([np.zeros(0, np.int64), *(other.keys[side] for other in others)]) for side in (0, 1))
        _compare_keys(one, (sources, targets))
        _judge(one, root, examples, seed)
    return found


def pairs_of(corpus: Corpus, *, root: str | Path = ".") -> Iterator[tuple[int, str, str, str]]:
    """Line, source, target and what is wrong with the row (or nothing), both texts mended; in order, none left out."""
    for row in read_rows(corpus, root=root):
        wrong = row.defects[0].reason if row.defects else unusable(row.source) or unusable(row.target)
        yield row.number, mend(row.source), mend(row.target), wrong


def _keyed(corpus: Corpus, root: str | Path, examples: int) -> Examination:
    """First reading: the keys of both sides, and the reasons that a pair carries in itself."""
    one = Examination(corpus, paths(corpus, root=root))
    sources, targets, codes = array("q"), array("q"), bytearray()
    try:
        for line, source, target, wrong in pairs_of(corpus, root=root):
            sources.append(holdout.key(source))
            targets.append(holdout.key(target))
            copied = sources[-1] == targets[-1] and len(source.split()) >= COPIED
            reason = "broken" if wrong else "copied source" if copied else ""
            codes.append(REASONS.index(reason))
            if reason:
                _show(one, reason, Example(line, source[:200], target[:200], wrong), examples)
    except DataError as error:
        one.stopped = str(error)
    one.reasons = np.frombuffer(bytes(codes), dtype=np.uint8).copy()
    one.keys = np.array(sources, dtype=np.int64), np.array(targets, dtype=np.int64)
    return one


def _compare_keys(one: Examination, held: Keys) -> None:
    """Marks what came before in the same corpus, and what has a side in common with a held-out pair."""
    source, target = one.keys
    free = one.reasons == 0
    seen = np.isin(source, held[0]) | np.isin(target, held[1])
    both = np.where(free, _mixed(source, target), -1 - np.arange(len(source)))
    _, first = np.unique(both, return_index=True)
    again = np.ones(len(source), bool)
    again[first] = False
    one.reasons[free & again] = REASONS.index("duplicate")
    one.reasons[free & ~again & seen] = REASONS.index("in held-out")


def _mixed(source: npt.NDArray[np.int64], target: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """One key of two; the top bit is left free."""
    mixed = source.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ (target.view(np.uint64) >> np.uint64(1))
    return (mixed >> np.uint64(1)).astype(np.int64)


def _judge(one: Examination, root: str | Path, examples: int, seed: int) -> None:
    """Second reading, by blocks: languages, then translations, of what is still free."""
    total = len(one.reasons)
    if not total:
        return
    ends = np.linspace(0, total, max(1, round(total / BLOCK)) + 1).astype(int)[1:].tolist()
    block, told, judged = [], [], 0
    rows = pairs_of(one.corpus, root=root)
    for index in range(total):
        line, source, target, _ = next(rows)
        name = REASONS[one.reasons[index]]
        if not name:
            block.append((index, line, source, target))
        elif name in ("duplicate", "in held-out"):
            _show(one, name, Example(line, source, target), examples)
        if index + 1 == ends[0]:
            ends.pop(0)
            told.append((_judge_block(one, block, examples, seed), len(block)))
            judged += len(block)
            block = []
    one.told_apart = sum(share * count for share, count in told) / judged if judged else 1.0


def _judge_block(one: Examination, block: list[tuple[int, int, str, str]], examples: int, seed: int) -> float:
    sides = [row[2] for row in block], [row[3] for row in block]
    foreign = language.foreign(sides[0], sides[1]), language.foreign(sides[1], sides[0])
    good = []
    for row, source_is, target_is in zip(block, *foreign):
        if said := source_is or target_is:
            reason = "wrong script" if said in language.SCRIPTS else "wrong language"
            one.reasons[row[0]] = REASONS.index(reason)
            _show(one, reason, Example(row[1], row[2], row[3], f"{'source' if source_is else 'target'}: {said}"), examples)
        else:
            good.append(row)
    verdict = alignment.judge([(row[2], row[3]) for row in good], seed=seed)
    for row, bad in zip(good, verdict.bad.tolist()):
        if bad > alignment.DOUBT:
            one.reasons[row[0]] = REASONS.index("misaligned")
            _show(one, "misaligned", Example(row[1], row[2], row[3], f"{bad:.2f}"), examples)
    return verdict.told_apart


def _show(one: Examination, reason: str, example: Example, most: int) -> None:
    few = one.examples.setdefault(reason, [])
    if len(few) < most:
        few.append(example)
