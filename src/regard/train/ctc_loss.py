"""The loss of letters without places (Graves 2006): minus the logarithm of all paths together that spell the text."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.data.frame_batch import FrameBatch
from regard.errors import UsageError
from regard.models.speech import Listener
from regard.train.loss import CrossEntropy


class CtcObjective(nn.Module):
    """Model and loss as one module: a batch in, the loss summed over its recordings out. A text longer than its places counts nothing."""

    def __init__(self, model: Listener, loss: CrossEntropy):
        super().__init__()
        if loss.r_drop:
            raise UsageError("r_drop is for sentence pairs", where="train.loss", do="set r_drop = 0")
        self.model = model

    def forward(self, batch: FrameBatch) -> Float[Tensor, ""]:
        scores_BPV = self.model.output(self.model(batch)).float().log_softmax(-1)
        places = self.model.lengths(batch.lengths)
        return F.ctc_loss(scores_BPV.transpose(0, 1), batch.labels, places, batch.spelled, reduction="sum", zero_infinity=True)
