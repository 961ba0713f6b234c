"""Sets of points and their answers, made when they are asked for: what a set holds follows from its seed and number alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from regard.data.plane import hulls, tours
from regard.data.point_batch import PointBatch
from regard.data.text import lines_of, read_lines
from regard.errors import DataError, UsageError

Problem = Literal["hull", "tour"]
MOST_OF_A_TOUR = 12  # the table of all sets doubles with each point


@dataclass(frozen=True)
class Points:
    """Points drawn evenly from the unit square, with their convex hull or their shortest round tour; made, so it needs no files."""

    kind: ClassVar[Literal["points"]] = "points"
    problem: Problem = "hull"
    "hull: the corners of the convex hull; tour: all points, as the shortest round tour visits them."
    count: int = 1000
    "How many sets."
    sizes: tuple[int, int] = (5, 5)
    "Fewest and most points of a set; all sizes between come equally often."
    seed: int = 1
    "Of what is drawn; every corpus needs one of its own."

    def __post_init__(self):
        least, most = self.sizes
        if self.count < 1 or self.seed < 0 or not 3 <= least <= most:
            raise UsageError("there is no such corpus", where="points", do="give count >= 1, seed >= 0 and sizes from 3 up")
        if self.problem == "tour" and most > MOST_OF_A_TOUR:
            what = f"the best tour of {most} points cannot be found in time"
            raise UsageError(what, where="points.sizes", do=f"give at most {MOST_OF_A_TOUR}")


@dataclass(frozen=True, eq=False)
class PointExamples:
    """Sets of points as examples; each costs its points. An answer is the places of its points, parted by spaces."""

    problem: Problem
    costs: NDArray[np.int64]
    keys: NDArray[np.int64]
    """Seed and number of each set."""

    @staticmethod
    def of(corpora: Sequence[Points]) -> PointExamples:
        sizes, keys = [], []
        for corpus in corpora:
            numbers = np.arange(corpus.count)
            sizes.append(corpus.sizes[0] + numbers % (corpus.sizes[1] - corpus.sizes[0] + 1))
            keys.append(np.stack([np.full_like(numbers, corpus.seed), numbers], 1))
        return PointExamples(corpora[0].problem, np.concatenate(sizes), np.concatenate(keys))

    @property
    def answers(self) -> Sequence[str]:
        return self._answers

    @cached_property
    def _answers(self) -> tuple[str, ...]:
        return tuple(spelled(answer) for answer in self.solved([self.points(place) for place in range(len(self.costs))]))

    def points(self, place: int) -> NDArray[np.float32]:
        """The points of one set; sets of two sizes have none in common."""
        size = int(self.costs[place])
        return np.random.default_rng([*self.keys[place].tolist(), size]).random((size, 2)).astype(np.float32)

    def solved(self, sets: Sequence[NDArray[np.float32]]) -> list[NDArray[np.int64]]:
        """The answer to each of these sets."""
        solve = hulls if self.problem == "hull" else tours
        sizes = np.array([len(points) for points in sets])
        found: list[NDArray[np.int64]] = [np.zeros(0, np.int64)] * len(sets)
        for size in np.unique(sizes):  # all sets of a size at once
            where = np.flatnonzero(sizes == size).tolist()
            for place, answer in zip(where, solve(np.stack([sets[place] for place in where])), strict=True):
                found[place] = answer
        return found

    def batch(self, places: NDArray[np.int64]) -> PointBatch:
        sets = [self.points(place) for place in places.tolist()]
        return PointBatch.of(sets, self.solved(sets), places.tolist())

    def some(self, places: NDArray[np.int64]) -> PointExamples:
        return PointExamples(self.problem, self.costs[places], self.keys[places])


def read_points(source: str | Path | bytes) -> NDArray[np.float32]:
    """The points of one set: two numbers a line, parted by a space, a tab or a comma."""
    name = "the points" if isinstance(source, bytes) else str(source)
    found = []
    for line in lines_of(BytesIO(source), name=name) if isinstance(source, bytes) else read_lines(source):
        try:
            x, y = map(float, line.text.replace(",", " ").split())
            if not np.isfinite([x, y]).all():
                raise ValueError
        except ValueError:
            raise DataError(line.defect or "this is no point", where=f"{name}:{line.number}", do="give two numbers a line") from None
        found.append((x, y))
    if not found:
        raise DataError("there is no point in it", where=name, do="give two numbers a line")
    return np.array(found, dtype=np.float32)


def spelled(answer: NDArray[np.int64] | Sequence[int]) -> str:
    return " ".join(map(str, answer))


def read_back(answer: str) -> NDArray[np.int64]:
    return np.array(answer.split(), dtype=np.int64)
