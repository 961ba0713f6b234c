"""Cross-entropy of the next word: smoothed, summed over the labels that count, in fp32 without ever holding fp32 logits for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, assert_never

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from regard.data.batch import IGNORED, Batch, Labelled, PairBatch
from regard.errors import UsageError
from regard.models.protocol import Trainable
from regard.nn.experts import Routed

PADDING = 0  # the class that the "annotated" convention leaves out
AT_ONCE = 2**20  # logits turned into fp32 at a time on the CPU: four megabytes stay in its cache; a GPU prefers fewer, larger launches
AT_ONCE_GPU = 2**27


@dataclass(frozen=True)
class CrossEntropy:
    """The loss of every model that predicts words."""

    kind: ClassVar[Literal["cross-entropy"]] = "cross-entropy"
    smoothing: float = 0.1
    "Share of the probability that is taken from the right word and spread over the others."
    convention: Literal["torch", "fairseq", "annotated"] = "torch"
    "Who gets it: each of the V words eps/V, each wrong word eps/(V-1), or each wrong word but padding eps/(V-2)."
    r_drop: float = 0.0
    "R-Drop: the batch goes twice through dropout and the two answers are drawn together with this strength (the paper's alpha); 0 = off."
    l2: float = 0.0
    "Half of this times the squares of all matrices is added to the mean loss: what papers with plain Adam call weight decay."
    held: int = 2**28
    "Logits kept for the backward pass; a batch that has more computes them again, piece by piece."


class Besides:
    """What every objective adds to its mean loss in training: the fines of routers, and the squares of matrices."""

    def __init__(self, model: Any, loss: CrossEntropy):
        self.model, self.l2 = model, loss.l2
        self.routed = [part for part in model.modules() if isinstance(part, Routed)]

    def __call__(self) -> list[Tensor]:
        if not self.model.training:
            return []
        found = [part.fine for part in self.routed if part.fine is not None]
        if self.l2:
            squares = [parameter.square().sum() for parameter in self.model.parameters() if parameter.ndim > 1]
            found.append(self.l2 / 2 * torch.stack(squares).sum())
        return found

    def of(self, batch: Batch) -> Tensor | float:
        """Their sum for the labels of a batch, to be added to a summed loss."""
        return sum((batch.target_tokens * extra for extra in self()), 0.0)


class Objective(nn.Module):
    """Model and loss as one module: a batch in, the loss summed over its labels out."""

    def __init__(self, model: Trainable, loss: CrossEntropy):
        super().__init__()
        self.model, self.loss = model, loss
        self.besides = Besides(model, loss)

    def forward(self, batch: Labelled) -> Float[Tensor, ""]:
        labels_N = real_rows(batch.labels, batch)
        if self.loss.r_drop and self.training:
            if not isinstance(batch, PairBatch):
                raise UsageError("r_drop is for sentence pairs", where="train.loss", do="set r_drop = 0")
            batch = batch.twice()
        hidden_ND = list(real_rows(self.model(batch), batch).split(len(labels_N)))
        return summed(self.model.output, hidden_ND, labels_N, loss=self.loss, besides=self.besides())  # pyright: ignore[reportCallIssue]  # torch types disable loosely


def real_rows(values: Tensor, batch: Labelled) -> Tensor:
    """The rows whose label counts, end to end. Their number is known beforehand, so that a GPU need not be waited for."""
    rows = values.flatten(0, batch.labels.ndim - 1)
    labels = batch.labels.flatten()
    if batch.target_tokens == len(labels):
        return rows
    places = torch.nonzero_static(labels != IGNORED, size=batch.target_tokens).squeeze(1)
    return rows.index_select(0, places)


@torch.compiler.disable  # its pieces depend on sizes, and it is written by hand already
def summed(
    output: nn.Module, hidden_ND: list[Tensor], labels_N: Int[Tensor, "N"], *, loss: CrossEntropy, besides: Sequence[Tensor] = ()
) -> Float[Tensor, ""]:
    """The loss of all rows, and what comes to its mean besides; in pieces whose logits are computed again in the backward pass where
    they would not fit."""
    width = _classes(output, hidden_ND[0])
    size = max(1, loss.held // (width * len(hidden_ND)))

    def of_piece(labels: Tensor, *hidden: Tensor) -> Tensor:
        logits = [output(rows) for rows in hidden]
        entropies = [smoothed(scores, labels, smoothing=loss.smoothing, convention=loss.convention) for scores in logits]
        # half of the paper's (CE + CE) + alpha/2 (KL + KL), so that its alpha keeps its meaning and the size of the loss does not change
        return entropies[0] if len(logits) == 1 else torch.stack(entropies).mean() + loss.r_drop / 4 * symmetric_divergence(*logits)

    if len(labels_N) <= size or not torch.is_grad_enabled():
        pieces = [of_piece(labels, *rows) for labels, *rows in zip(labels_N.split(size), *(h.split(size) for h in hidden_ND))]
    else:
        pieces = [
            checkpoint(of_piece, labels, *rows, use_reentrant=False, preserve_rng_state=False)
            for labels, *rows in zip(labels_N.split(size), *(h.split(size) for h in hidden_ND))
        ]
    return torch.stack([*pieces, *(len(labels_N) * extra for extra in besides)]).sum()


def shares(classes: int, *, smoothing: float, convention: Literal["torch", "fairseq", "annotated"]) -> tuple[float, float, float]:
    """What the smoothed target gives to the right word, to each wrong one, and to padding."""
    match convention:
        case "torch":
            wrong = smoothing / classes
            return 1 - smoothing + wrong, wrong, wrong
        case "fairseq":
            wrong = smoothing / (classes - 1)
            return 1 - smoothing, wrong, wrong
        case "annotated":
            return 1 - smoothing, smoothing / (classes - 2), 0.0
        case _:
            assert_never(convention)


def smoothed(
    logits_NV: Float[Tensor, "N V"], labels_N: Int[Tensor, "N"], *, smoothing: float, convention: Literal["torch", "fairseq", "annotated"]
) -> Float[Tensor, ""]:
    """-sum_v target(v) log softmax(logits)(v), summed over the rows; the arithmetic is fp32 whatever the logits are."""
    right, wrong, padding = shares(logits_NV.shape[1], smoothing=smoothing, convention=convention)
    return _Smoothed.apply(logits_NV, labels_N, right, wrong, padding)  # type: ignore[no-any-return]


class _Smoothed(torch.autograd.Function):
    """The gradient, softmax - target, is written down at once, in the logits' own type: no fp32 copy of them outlives its piece."""

    @staticmethod
    def forward(ctx, logits_NV: Tensor, labels_N: Tensor, right: float, wrong: float, padding: float) -> Tensor:  # type: ignore[override]
        size, classes = _rows_at_once(logits_NV), logits_NV.shape[1]
        total = logits_NV.new_zeros((), dtype=torch.float32)
        for piece_NV, labels in zip(logits_NV.split(size), labels_N.split(size)):
            told_N = piece_NV.log_softmax(1, dtype=torch.float32).gather(1, labels[:, None]).squeeze(1)
            normaliser_N = piece_NV.gather(1, labels[:, None]).squeeze(1).float() - told_N
            total -= (right - wrong) * told_N.sum()
            if wrong:  # the sum of all log-probabilities, from the logits themselves: they are half as wide
                total -= wrong * (piece_NV.sum(1, dtype=torch.float32) - classes * normaliser_N).sum()
            if padding != wrong:
                total -= (padding - wrong) * (piece_NV[:, PADDING].float() - normaliser_N).sum()
        ctx.save_for_backward(logits_NV, labels_N)
        ctx.shares = right, wrong, padding
        return total

    @staticmethod
    def backward(ctx, gradient: Tensor):  # type: ignore[override]
        logits_NV, labels_N = ctx.saved_tensors
        right, wrong, padding = ctx.shares
        size = _rows_at_once(logits_NV)
        result_NV = torch.empty_like(logits_NV)
        for piece_NV, labels, result in zip(logits_NV.split(size), labels_N.split(size), result_NV.split(size)):
            slope_NV = piece_NV.softmax(1, dtype=torch.float32)
            slope_NV.scatter_add_(1, labels[:, None], slope_NV.new_full((len(labels), 1), wrong - right))
            if padding != wrong:
                slope_NV[:, PADDING] += wrong - padding
            torch.addcmul(-wrong * gradient, slope_NV, gradient, out=result)  # (slope - wrong) x gradient, rounded once
        return result_NV, None, None, None, None


def symmetric_divergence(first_NV: Float[Tensor, "N V"], second_NV: Float[Tensor, "N V"]) -> Float[Tensor, ""]:
    """KL(p1 || p2) + KL(p2 || p1) = sum (p1 - p2) (log p1 - log p2), summed over the rows."""
    first, second = first_NV.float().log_softmax(1), second_NV.float().log_softmax(1)
    return ((first.exp() - second.exp()) * (first - second)).sum()


def _rows_at_once(logits_NV: Tensor) -> int:
    return max(1, (AT_ONCE if logits_NV.device.type == "cpu" else AT_ONCE_GPU) // logits_NV.shape[1])


def _classes(output: nn.Module, hidden_ND: Tensor) -> int:
    """How many words the output scores, whatever it is made of."""
    with torch.no_grad():
        return output(hidden_ND[:1]).shape[-1]
