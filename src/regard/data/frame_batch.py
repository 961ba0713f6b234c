"""A batch of recordings as frames, padded, with a label or a text for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence


@dataclass(frozen=True, eq=False)
class FrameBatch:
    """Frames of several recordings, and for each what was said: one label, or letters (0 where there are none)."""

    frames: Float[Tensor, "B T M"]
    lengths: Int[Tensor, "B"]
    labels: Int[Tensor, "B U"]
    spelled: Int[Tensor, "B"]
    pairs: tuple[int, ...]
    source_tokens: int
    target_tokens: int

    @staticmethod
    def of(frames: Sequence[Float[Tensor, "T M"]], labels: Sequence[Sequence[int]], pairs: Sequence[int]) -> FrameBatch:
        """The batch of these recordings, padded to the longest."""
        spelled = [len(one) for one in labels]
        return FrameBatch(
            frames=pad_sequence(list(frames), batch_first=True),
            lengths=torch.tensor([len(one) for one in frames]),
            labels=pad_sequence([torch.tensor(one, dtype=torch.long) for one in labels], batch_first=True),
            spelled=torch.tensor(spelled),
            pairs=tuple(pairs),
            source_tokens=sum(len(one) for one in frames),
            target_tokens=sum(spelled),
        )

    @property
    def real(self) -> Bool[Tensor, "B T"]:
        return torch.arange(self.frames.shape[1], device=self.frames.device) < self.lengths[:, None]

    def to(self, device: torch.device | str) -> FrameBatch:
        moved = {name: getattr(self, name).to(device, non_blocking=True) for name in ("frames", "lengths", "labels", "spelled")}
        return replace(self, **moved)

    def part(self, wanted: range) -> FrameBatch:
        some = slice(wanted.start, wanted.stop)
        lengths, spelled = self.lengths[some], self.spelled[some]
        longest, most = int(lengths.max()), int(spelled.max())
        return FrameBatch(
            self.frames[some, :longest],
            lengths,
            self.labels[some, :most],
            spelled,
            self.pairs[some],
            int(lengths.sum()),
            int(spelled.sum()),
        )
