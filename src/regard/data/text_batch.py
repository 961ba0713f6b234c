"""A batch of running text: at every place the word that follows is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from regard.data.batch import IGNORED, Side
from regard.data.layouts import rectangle_side
from regard.data.marks import BOS


@dataclass(frozen=True, eq=False)
class TextBatch:
    """Rows of text (begun by their mark where a document begins), and what follows each token or, of a classifier, the row's label."""

    text: Side
    labels: Int[Tensor, "B *T"]
    pairs: tuple[int, ...]  # where each row begins in the corpus
    target_tokens: int

    @property
    def source_tokens(self) -> int:
        return self.target_tokens

    def to(self, device: torch.device | str) -> Self:
        return replace(self, text=self.text.to(device), labels=self.labels.to(device, non_blocking=True))

    def part(self, wanted: range) -> Self:
        text, places = self.text.part(wanted)
        labels = self.labels[places] if isinstance(places, slice) else self.labels[:, places]
        told = int((labels != IGNORED).sum())
        return replace(self, text=text, labels=labels, pairs=self.pairs[wanted.start : wanted.stop], target_tokens=told)


def labelled_texts(ids: Sequence[Sequence[int] | NDArray], labels: Int[Tensor, "B"], pairs: Sequence[int]) -> TextBatch:
    """Texts side by side, each with its mark before it and one label."""
    lengths = np.array([len(one) + 1 for one in ids], np.int64)
    flat = np.array([place for one in ids for place in (BOS, *one)], np.int64)
    return TextBatch(rectangle_side(flat, lengths), labels, tuple(pairs), len(labels))
