"""The loss of a model that copies: minus the logarithm of what a word has by all its ways together."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.data.batch import IGNORED, PairBatch
from regard.errors import UsageError
from regard.models.copying import CopyingTranslator
from regard.nn.copying import PointerGenerator
from regard.nn.layout import side_by_side
from regard.train.loss import Besides, CrossEntropy


class CopyObjective(nn.Module):
    """Model and loss as one module: a batch in, the loss summed over its labels out."""

    unreachable: Tensor

    def __init__(self, model: CopyingTranslator, loss: CrossEntropy):
        super().__init__()
        for name, amount in (("smoothing", loss.smoothing), ("r_drop", loss.r_drop)):
            if amount:
                raise UsageError(f"{name} = {amount} is not defined over words that are copied", where="train.loss", do=f"set {name} = 0")
        self.model, self.besides = model, Besides(model, loss)
        copy = model.config.copy
        self.penalty = copy.penalty if isinstance(copy, PointerGenerator) and copy.coverage else 0.0
        self.register_buffer("unreachable", torch.zeros((), dtype=torch.long), persistent=False)  # labels so far that no way led to

    def forward(self, batch: PairBatch) -> Float[Tensor, ""]:
        cells = self.model.cells(batch)
        labels_NL = side_by_side(batch.labels, batch.target.tokens, filling=IGNORED)
        counted_NL = labels_NL != IGNORED
        told_NL, nothing_NL = cells.told(labels_NL)
        if self.training:
            self.unreachable += (nothing_NL & counted_NL).sum()
        loss_NL = -told_NL
        if cells.again is not None and self.training:
            loss_NL = loss_NL + self.penalty * cells.again
        return torch.where(counted_NL, loss_NL, 0.0).sum() + self.besides.of(batch)
