"""The loss of letters without places (Graves 2006): minus the logarithm of all paths together that spell the text."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.data.frame_batch import FrameBatch
from regard.errors import UsageError
from regard.models.speech import Listener
from regard.train.loss import Besides, CrossEntropy


class CtcObjective(nn.Module):
    """Model and loss as one module: a batch in, the loss summed over its recordings out. A text longer than its places counts nothing."""

    def __init__(self, model: Listener, loss: CrossEntropy):
        super().__init__()
        for name, amount in (("smoothing", loss.smoothing), ("r_drop", loss.r_drop)):
            if amount:
                raise UsageError(f"{name} = {amount} is not defined over all paths", where="train.loss", do=f"set {name} = 0")
        self.model, self.besides = model, Besides(model, loss)

    def forward(self, batch: FrameBatch) -> Float[Tensor, ""]:
        scores_BPV = self.model.output(self.model(batch)).float().log_softmax(-1)
        places = self.model.lengths(batch.lengths)
        loss = F.ctc_loss(scores_BPV.transpose(0, 1), batch.labels, places, batch.spelled, reduction="sum", zero_infinity=True)
        return loss + self.besides.of(batch)
