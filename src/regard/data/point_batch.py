"""A batch of sets of points, padded, and for each set the points that answer it, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from regard.data.batch import IGNORED

END = 0  # the label of the end; that of a point is one more than its place


@dataclass(frozen=True, eq=False)
class PointBatch:
    """The points of each set, and the labels: points as they follow each other, then the end."""

    points: Float[Tensor, "B S 2"]
    lengths: Int[Tensor, "B"]
    labels: Int[Tensor, "B T"]
    pairs: tuple[int, ...]
    source_tokens: int
    target_tokens: int

    @staticmethod
    def of(sets: Sequence[np.ndarray], answers: Sequence[np.ndarray], pairs: Sequence[int]) -> PointBatch:
        """The batch of these sets, padded to the largest."""
        labels = [torch.tensor([*(answer + 1).tolist(), END]) for answer in answers]
        return PointBatch(
            points=pad_sequence([torch.from_numpy(one) for one in sets], batch_first=True),
            lengths=torch.tensor([len(one) for one in sets]),
            labels=pad_sequence(labels, batch_first=True, padding_value=IGNORED),
            pairs=tuple(pairs),
            source_tokens=sum(map(len, sets)),
            target_tokens=sum(map(len, labels)),
        )

    @property
    def real(self) -> Bool[Tensor, "B S"]:
        return torch.arange(self.points.shape[1], device=self.points.device) < self.lengths[:, None]

    def to(self, device: torch.device | str) -> PointBatch:
        moved = {name: getattr(self, name).to(device, non_blocking=True) for name in ("points", "lengths", "labels")}
        return replace(self, **moved)

    def part(self, wanted: range) -> PointBatch:
        some = slice(wanted.start, wanted.stop)
        lengths, labels = self.lengths[some], self.labels[some]
        counts = (labels != IGNORED).sum(1)
        points, labels = self.points[some, : int(lengths.max())], labels[:, : int(counts.max())]
        return PointBatch(points, lengths, labels, self.pairs[some], int(lengths.sum()), int(counts.sum()))
