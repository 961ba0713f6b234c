"""Many short rows of numbers as one long array and its offsets, in memory or mapped from files, gathered without a loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Ragged:
    """Row i is values[offsets[i] : offsets[i + 1]]."""

    values: NDArray
    offsets: NDArray[np.int64]

    @staticmethod
    def of(rows: Sequence[Sequence[int]]) -> Ragged:
        """From lists, in memory."""
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        return Ragged(np.array([value for row in rows for value in row], np.int32), offsets)

    @staticmethod
    def mapped(folder: Path, name: str, dtype: str) -> Ragged:
        """From the files that `RaggedWriter` wrote; pages are read when they are touched."""
        return Ragged(_mapped(folder / f"{name}.values", dtype), _mapped(folder / f"{name}.offsets", "int64"))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def row(self, place: int) -> NDArray:
        return self.values[self.offsets[place] : self.offsets[place + 1]]

    def take(self, rows: NDArray[np.int64]) -> tuple[NDArray, NDArray[np.int64]]:
        """These rows end to end, and their lengths."""
        starts = self.offsets[rows]
        lengths = self.offsets[rows + 1] - starts
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        return self.values[np.repeat(starts - ends + lengths, lengths) + np.arange(total)], lengths


class RaggedWriter:
    """Appends rows to files, in memory that does not grow."""

    def __init__(self, folder: Path, name: str, dtype: str):
        self.dtype, self._end = dtype, 0
        self._values, self._offsets = open(folder / f"{name}.values", "wb"), open(folder / f"{name}.offsets", "wb")  # noqa: SIM115
        self._offsets.write(np.zeros(1, np.int64).tobytes())

    def append(self, values: NDArray, lengths: NDArray) -> None:
        """Rows end to end, and their lengths."""
        ends = self._end + np.cumsum(lengths, dtype=np.int64)
        self._end = int(ends[-1]) if len(ends) else self._end
        self._values.write(values.astype(self.dtype).tobytes())
        self._offsets.write(ends.tobytes())

    def close(self) -> None:
        self._values.close()
        self._offsets.close()


def _mapped(path: Path, dtype: str) -> NDArray:
    if path.stat().st_size == 0:  # what has no bytes cannot be mapped
        return np.zeros(0, dtype)
    return np.memmap(path, dtype=dtype, mode="r")
