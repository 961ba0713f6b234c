"""A batch of sentence pairs as the model sees it: packed into one row, or padded; the numbers come out the same."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from regard.nn.view import Tokens

IGNORED = -100  # the label of a place without loss, as torch's cross-entropy has it


@dataclass(frozen=True, eq=False)
class Side:
    """One side of the batch: token ids and the facts about them."""

    ids: Int[Tensor, "B T"]
    tokens: Tokens

    def to(self, device: torch.device | str) -> Side:
        return Side(self.ids.to(device, non_blocking=True), self.tokens.to(device))


@dataclass(frozen=True, eq=False)
class PairBatch:
    """Source, decoder input (begins with the start mark) and labels (end with the end mark; IGNORED where nothing is asked)."""

    source: Side
    target: Side
    labels: Int[Tensor, "B T"]
    pairs: tuple[int, ...]  # which pairs of the corpus these are, to name a batch that went wrong
    source_tokens: int  # real ones, end mark included
    target_tokens: int  # labels that count; the loss of a step is divided by their sum

    def to(self, device: torch.device | str) -> PairBatch:
        return replace(self, source=self.source.to(device), target=self.target.to(device), labels=self.labels.to(device, non_blocking=True))
