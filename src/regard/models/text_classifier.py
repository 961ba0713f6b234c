"""Which label a text has: embed, one trunk that sees all of it, one vector for the whole, and the labels' scores."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.data.text_batch import TextBatch
from regard.models.configs import TextClassifier
from regard.nn.embed import TokenEmbedding
from regard.nn.label import Label, pooled
from regard.nn.tap import tap
from regard.nn.trunk import Trunk


class TextLabeller(nn.Module):
    """forward: one vector a text; output: the scores of its labels."""

    packs = False  # one label for each row

    def __init__(self, config: TextClassifier, *, embedding: TokenEmbedding, encoder: Trunk):
        super().__init__()
        self.config, self.embedding, self.encoder = config, embedding, encoder
        self.output = Label(encoder.width, len(config.labels), hidden=config.hidden)

    def forward(self, batch: TextBatch) -> Float[Tensor, "B D"]:
        ids, tokens = batch.text.ids, batch.text.tokens
        x_BTD = self.encoder.read(self.embedding(ids, tokens), tokens).states
        return pooled(tap(x_BTD, "encoder.memory"), tokens.real, pool=self.config.pool)

    @property
    def device(self) -> torch.device:
        return self.output.outer.weight.device
