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

    def twice(self) -> Side:
        return Side(self.ids.repeat(*_side_by_side(self.tokens)), self.tokens.twice())


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

    def twice(self) -> PairBatch:
        """Every pair once more, behind all of them: two draws of dropout at the price of one larger batch."""
        return replace(
            self,
            source=self.source.twice(),
            target=self.target.twice(),
            labels=self.labels.repeat(*_side_by_side(self.target.tokens)),
            pairs=self.pairs * 2,
            source_tokens=2 * self.source_tokens,
            target_tokens=2 * self.target_tokens,
        )


def _side_by_side(tokens: Tokens) -> tuple[int, int]:
    """How often rows, and what is in a row, are repeated when all documents come twice."""
    return (2, 1) if tokens.spans is None else (1, 2)
