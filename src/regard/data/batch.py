"""What training asks of any batch, and the batch of sentence pairs: packed into one row, or padded; the numbers come out the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, Self, TypeVar

import torch
from jaxtyping import Int
from torch import Tensor

from regard.nn.view import Tokens

IGNORED = -100  # the label of a place without loss, as torch's cross-entropy has it


class Batch(Protocol):
    """Examples on their way through a step."""

    @property
    def pairs(self) -> tuple[int, ...]:
        """Which examples of the corpus these are, to name a batch that went wrong."""
        ...

    @property
    def source_tokens(self) -> int:
        """How much is read, counted as the corpus counts: words, frames, pictures."""
        ...

    @property
    def target_tokens(self) -> int:
        """Labels that count; the loss of a step is divided by their sum."""
        ...

    def to(self, device: torch.device | str) -> Self: ...

    def part(self, wanted: range) -> Self:
        """Some of the examples, as a batch of their own."""
        ...


class Labelled(Batch, Protocol):
    """A batch with a label at every place, or one for every row."""

    @property
    def labels(self) -> Int[Tensor, "B *T"]: ...


B = TypeVar("B", bound=Batch)


def halve(batch: B) -> tuple[B, ...]:
    """Two batches of half the examples each, which together have the gradient of the whole; itself where it holds a single one."""
    count = len(batch.pairs)
    return (batch.part(range(count // 2)), batch.part(range(count // 2, count))) if count > 1 else (batch,)


@dataclass(frozen=True, eq=False)
class Side:
    """One side of the batch: token ids and the facts about them."""

    ids: Int[Tensor, "B T"]
    tokens: Tokens

    def to(self, device: torch.device | str) -> Side:
        return Side(self.ids.to(device, non_blocking=True), self.tokens.to(device))

    def part(self, wanted: range) -> tuple[Side, Tensor | slice]:
        """Some of its documents, numbered from 0 again, and where they stood: places of a packed row, or rows."""
        facts = self.tokens
        if len(self.ids) > 1:
            rows = slice(wanted.start, wanted.stop)
            return Side(self.ids[rows], replace(facts.each(lambda fact: fact[rows]), upright=facts.upright)), rows
        documents = facts.documents[0]
        places = torch.nonzero((documents >= wanted.start) & (documents < wanted.stop) & facts.real[0]).flatten()
        lengths = torch.bincount(documents[places] - wanted.start, minlength=len(wanted)).cpu()
        return Side(self.ids[:, places], Tokens.packed(lengths).to(self.ids.device)), places

    def twice(self) -> Side:
        return Side(self.ids.repeat(*_side_by_side(self.tokens)), self.tokens.twice())


@dataclass(frozen=True, eq=False)
class PairBatch:
    """Source, decoder input (begins with the start mark) and labels (end with the end mark; IGNORED where nothing is asked)."""

    source: Side
    target: Side
    labels: Int[Tensor, "B T"]
    pairs: tuple[int, ...]
    source_tokens: int  # real ones, end mark included
    target_tokens: int

    def to(self, device: torch.device | str) -> PairBatch:
        return replace(self, source=self.source.to(device), target=self.target.to(device), labels=self.labels.to(device, non_blocking=True))

    def part(self, wanted: range) -> PairBatch:
        source, _ = self.source.part(wanted)
        target, places = self.target.part(wanted)
        labels = self.labels[places] if isinstance(places, slice) else self.labels[:, places]
        pairs = self.pairs[wanted.start : wanted.stop]
        return PairBatch(source, target, labels, pairs, int(source.tokens.real.sum()), int((labels != IGNORED).sum()))

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
