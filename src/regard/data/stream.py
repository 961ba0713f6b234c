"""A corpus tokenised once into files that are mapped, not read: whatever its size, memory holds only the pages in use."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.ragged import Ragged
from regard.data.sampling import choices


@dataclass(frozen=True)
class Draw:
    """Which spellings a batch gets: those of an epoch of a seed. A pair that they would make longer than `limit` keeps its best one."""

    seed: int
    epoch: int
    limit: int = 1 << 30


@dataclass(frozen=True, eq=False)
class SideCache:
    """One side of all pairs. With sampling its units are words and pieces; `spellings` has the best spelling of each, then the draws."""

    units: Ragged
    lengths: NDArray[np.int32]
    side: int
    spellings: Ragged | None = None
    draws: int = 0

    def take(self, pairs: NDArray[np.int64], draw: Draw | None = None) -> tuple[NDArray, NDArray[np.int64]]:
        """The ids of these pairs end to end, without marks, and their lengths; the best spellings unless drawn."""
        units, counts = self.units.take(pairs)
        if self.spellings is None:
            return units, counts
        rows = self._rows(pairs, units, counts, draw)
        ids, spelled = self.spellings.take(rows)
        return ids, _sums(spelled, counts)

    def drawn_lengths(self, pairs: NDArray[np.int64], draw: Draw) -> NDArray[np.int64]:
        """How long these pairs are as drawn."""
        if self.spellings is None:
            return self.lengths[pairs].astype(np.int64)
        parts = []
        for start in range(0, len(pairs), 4096):  # in parts, so that a window's units are never all in memory
            some = pairs[start : start + 4096]
            units, counts = self.units.take(some)
            parts.append(_sums(self._spelled(self._rows(some, units, counts, draw)), counts))
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def _rows(self, pairs: NDArray[np.int64], units: NDArray, counts: NDArray[np.int64], draw: Draw | None) -> NDArray[np.int64]:
        """The row of each unit in the table of spellings."""
        best = units.astype(np.int64) * (self.draws + 1)
        if draw is None:
            return best
        starts = np.cumsum(counts) - counts
        places = np.arange(len(units)) - np.repeat(starts, counts)
        chosen = choices(np.repeat(pairs, counts), places, draws=self.draws, seed=draw.seed, epoch=draw.epoch, side=self.side)
        too_long = _sums(self._spelled(best + chosen), counts) > draw.limit
        return best + np.where(np.repeat(too_long, counts), 0, chosen)

    def _spelled(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        assert self.spellings is not None
        return self.spellings.offsets[rows + 1] - self.spellings.offsets[rows]


@dataclass(frozen=True)
class Part:
    """The pairs of one corpus: which they are, and the corpus's share of the mixture (0 = by size)."""

    start: int
    stop: int
    share: float = 0.0


@dataclass(frozen=True, eq=False)
class PairCache:
    """All pairs by index, both sides as ids without marks."""

    sides: tuple[SideCache, SideCache]
    parts: tuple[Part, ...]
    counts: Counter[str]
    """Pairs read, kept, and left out by reason."""
    fingerprint: str = ""
    """A hash of the files and of what was done to them; the same data gives the same hash."""

    @staticmethod
    def of(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], *, parts: Sequence[Part] = ()) -> PairCache:
        """From lists of ids, in memory."""
        rows = Ragged.of(sources), Ragged.of(targets)
        one, other = (SideCache(ragged, np.diff(ragged.offsets).astype(np.int32), side) for side, ragged in enumerate(rows))
        whole = (Part(0, len(sources)),)
        return PairCache((one, other), tuple(parts) or whole, Counter(read=len(sources), kept=len(sources)))

    @staticmethod
    def load(folder: str | Path) -> PairCache:
        """From a folder that `regard.data.prepare` wrote."""
        folder = Path(folder)
        facts = json.loads((folder / "cache.json").read_text(encoding="utf-8"))
        one, other = (_side(folder, name, side, facts[name]) for side, name in enumerate(("source", "target")))
        parts = tuple(Part(**part) for part in facts["parts"])
        return PairCache((one, other), parts, Counter(facts["counts"]), facts["fingerprint"])

    def __len__(self) -> int:
        return len(self.sides[0].units)

    @property
    def source_lengths(self) -> NDArray[np.int32]:
        return self.sides[0].lengths

    @property
    def target_lengths(self) -> NDArray[np.int32]:
        return self.sides[1].lengths

    @cached_property
    def sampled(self) -> bool:
        """Whether spellings are drawn anew each epoch."""
        return any(side.spellings is not None for side in self.sides)

    def source(self, pair: int) -> NDArray:
        """Source ids of one pair, by its best spelling."""
        return self.sides[0].take(np.array([pair]))[0]

    def target(self, pair: int) -> NDArray:
        """Target ids of one pair, by its best spelling."""
        return self.sides[1].take(np.array([pair]))[0]


def _side(folder: Path, name: str, side: int, facts: dict) -> SideCache:
    units = Ragged.mapped(folder, name, facts["dtype"])
    lengths = np.memmap(folder / f"{name}.lengths", dtype=np.int32, mode="r") if len(units) else np.zeros(0, np.int32)
    spellings = Ragged.mapped(folder, f"{name}.spellings", "int32") if facts["draws"] else None
    return SideCache(units, lengths, side, spellings, facts["draws"])


def _sums(values: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums of consecutive stretches of these counts (0 for an empty one)."""
    summed = np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])
    ends = np.cumsum(counts)
    return summed[ends] - summed[ends - counts]
