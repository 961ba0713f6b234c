"""A batch of pictures with their sentences, as the decoder is given them and as it should write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from regard.data.batch import IGNORED, Side
from regard.data.layouts import rectangle, rectangle_side
from regard.data.marks import BOS, EOS


@dataclass(frozen=True, eq=False)
class CaptionBatch:
    """Pictures of one size; sentences begin with their mark, labels end with theirs."""

    pixels: UInt8[Tensor, "B C Y X"]
    target: Side
    labels: Int[Tensor, "B T"]
    pairs: tuple[int, ...]
    target_tokens: int

    @staticmethod
    def of(pixels: UInt8[Tensor, "B C Y X"], captions: Sequence[Sequence[int]], pairs: Sequence[int]) -> CaptionBatch:
        lengths = np.array([len(one) + 1 for one in captions], np.int64)
        begun = np.array([place for one in captions for place in (BOS, *one)], np.int64)
        ended = np.array([place for one in captions for place in (*one, EOS)], np.int64)
        labels = rectangle(ended, lengths, IGNORED)
        return CaptionBatch(pixels, rectangle_side(begun, lengths), labels, tuple(pairs), len(ended))

    @property
    def source_tokens(self) -> int:
        return len(self.pixels)

    def to(self, device: torch.device | str) -> CaptionBatch:
        pixels, labels = (moved.to(device, non_blocking=True) for moved in (self.pixels, self.labels))
        return replace(self, pixels=pixels, target=self.target.to(device), labels=labels)

    def part(self, wanted: range) -> CaptionBatch:
        some = slice(wanted.start, wanted.stop)
        facts = self.target.tokens
        target = Side(self.target.ids[some], type(facts)(facts.positions[some], facts.documents[some], facts.real[some]))
        labels = self.labels[some]
        return CaptionBatch(self.pixels[some], target, labels, self.pairs[some], int((labels != IGNORED).sum()))
