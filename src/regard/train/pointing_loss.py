"""Cross-entropy of the next point: what smoothing takes from the right one is spread over the points of the same set and the end."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.data.batch import IGNORED
from regard.data.point_batch import PointBatch
from regard.errors import UsageError
from regard.models.pointer_network import Pointer
from regard.train.loss import Besides, CrossEntropy


class PointingObjective(nn.Module):
    """Model and loss as one module: a batch in, the loss summed over its labels out."""

    def __init__(self, model: Pointer, loss: CrossEntropy):
        super().__init__()
        if loss.r_drop or loss.convention != "torch":
            what = "r_drop and other conventions than torch's are for words"
            raise UsageError(what, where="train.loss", do="leave them out")
        self.model, self.smoothing, self.besides = model, loss.smoothing, Besides(model, loss)

    def forward(self, batch: PointBatch) -> Float[Tensor, ""]:
        log_probs_BTS = self.model(batch).log_softmax(-1)
        asked_BT = batch.labels != IGNORED
        told_BT = log_probs_BTS.gather(2, batch.labels.clamp_min(0)[..., None]).squeeze(2)
        loss_BT = -(1 - self.smoothing) * told_BT
        if self.smoothing:
            among_B = batch.lengths + 1
            there_B1S = torch.arange(log_probs_BTS.shape[2], device=among_B.device) < among_B[:, None, None]
            all_BT = log_probs_BTS.where(there_B1S, 0.0).sum(2)
            loss_BT = loss_BT - self.smoothing * all_BT / among_B[:, None]
        return loss_BT.where(asked_BT, 0.0).sum() + self.besides.of(batch)
