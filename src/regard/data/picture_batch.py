"""A batch of pictures with their labels, as bytes: what is done to them is done on the device."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Int, UInt8
from torch import Tensor


@dataclass(frozen=True, eq=False)
class PictureBatch:
    """Pictures of one size, and a label for each."""

    pixels: UInt8[Tensor, "B C Y X"]
    labels: Int[Tensor, "B"]
    pairs: tuple[int, ...]

    @property
    def source_tokens(self) -> int:
        return len(self.pixels)

    @property
    def target_tokens(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device | str) -> PictureBatch:
        return replace(self, pixels=self.pixels.to(device, non_blocking=True), labels=self.labels.to(device, non_blocking=True))

    def part(self, wanted: range) -> PictureBatch:
        some = slice(wanted.start, wanted.stop)
        return PictureBatch(self.pixels[some], self.labels[some], self.pairs[some])
