"""How probable is a given target, given its source? The sum of what teacher forcing says of each token, the end mark's included."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.batch import IGNORED, PairBatch
from regard.data.layouts import Rows, padded
from regard.data.tokenise import Tokenizer, lending

Pair = tuple[Sequence[int], Sequence[int]]  # ids of source and target, without marks


@dataclass(frozen=True)
class PairScore:
    """The log-probabilities of the target's tokens and of the end mark."""

    log_probs: tuple[float, ...]

    @property
    def log_prob(self) -> float:
        return sum(self.log_probs)

    @property
    def tokens(self) -> int:
        return len(self.log_probs)


def encoded(tokenizers: tuple[Tokenizer, Tokenizer], pair: tuple[str, str], *, copies: bool) -> Pair:
    """The ids of both sides, for a model that can copy words that it does not know, or for one that cannot."""
    source, target = lending(*tokenizers, pair[0]) if copies else tokenizers
    return source.encode(pair[0]), target.encode(pair[1])


def score_pairs(
    logits: Callable[[PairBatch], Float[Tensor, "B T V"]],
    pairs: Sequence[Pair],
    *,
    device: torch.device | str = "cpu",
    tokens: int = 4096,
    layout: Callable[[Rows, Rows, np.ndarray], PairBatch] = padded,
) -> list[PairScore]:
    """A score for each pair, in order. `logits` is the model as it is trained; `tokens` bounds the target tokens of a batch."""
    found: list[PairScore] = [PairScore(())] * len(pairs)
    with torch.inference_mode():
        for numbers in _batches(pairs, tokens):
            batch = layout(_rows([pairs[n][0] for n in numbers]), _rows([pairs[n][1] for n in numbers]), np.array(numbers)).to(device)
            for number, score in zip(numbers, score_batch(logits(batch), batch), strict=True):
                found[number] = score
    return found


def score_batch(logits_BTV: Float[Tensor, "B T V"], batch: PairBatch) -> list[PairScore]:
    """The scores of the pairs of one batch, packed or padded."""
    counted_BT = batch.labels != IGNORED
    log_probs_NV = logits_BTV[counted_BT].float().log_softmax(-1)
    log_probs_N = log_probs_NV.gather(1, batch.labels[counted_BT][:, None])[:, 0]
    rows_B1 = torch.arange(len(batch.labels), device=batch.labels.device)[:, None]
    owners_N = (batch.target.tokens.documents + rows_B1)[counted_BT]  # rows when padded, documents when packed: the other is 0
    parts: list[list[float]] = [[] for _ in batch.pairs]
    for owner, log_prob in zip(owners_N.tolist(), log_probs_N.tolist(), strict=True):
        parts[owner].append(log_prob)
    return [PairScore(tuple(part)) for part in parts]


def _batches(pairs: Sequence[Pair], tokens: int) -> Iterator[list[int]]:
    """Places of pairs of like length, so that padding is little."""
    batch: list[int] = []
    for number in sorted(range(len(pairs)), key=lambda n: (len(pairs[n][1]), len(pairs[n][0]))):
        longest = max(len(pairs[number][0]), len(pairs[number][1])) + 1
        if batch and (len(batch) + 1) * longest > tokens:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def _rows(sides: Sequence[Sequence[int]]) -> Rows:
    return Rows(
        np.array([token for side in sides for token in side], dtype=np.int64), np.array([len(side) for side in sides], dtype=np.int64)
    )
