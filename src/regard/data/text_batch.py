"""A batch of running text: at every place the word that follows is asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from regard.data.batch import IGNORED, Side


@dataclass(frozen=True, eq=False)
class TextBatch:
    """Rows of text (begun by their mark where a document begins), and what follows each token."""

    text: Side
    labels: Int[Tensor, "B T"]
    pairs: tuple[int, ...]  # where each row begins in the corpus
    target_tokens: int

    @property
    def source_tokens(self) -> int:
        return self.target_tokens

    def to(self, device: torch.device | str) -> TextBatch:
        return replace(self, text=self.text.to(device), labels=self.labels.to(device, non_blocking=True))

    def part(self, wanted: range) -> TextBatch:
        text, places = self.text.part(wanted)
        labels = self.labels[places] if isinstance(places, slice) else self.labels[:, places]
        return TextBatch(text, labels, self.pairs[wanted.start : wanted.stop], int((labels != IGNORED).sum()))
