"""A model that sees all of a text and says something of every place in it: the word that was hidden there, or a label."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.data.text_batch import TextBatch
from regard.models.configs import MaskedLanguageModel, Tagger
from regard.nn.embed import TokenEmbedding
from regard.nn.label import Label
from regard.nn.outputs import Vocabulary
from regard.nn.tap import tap
from regard.nn.trunk import Trunk


class Reader(nn.Module):
    """forward: a vector for each place; output: the scores of the words (of a masked language model) or of the labels (of a tagger)."""

    def __init__(self, config: MaskedLanguageModel | Tagger, *, embedding: TokenEmbedding, encoder: Trunk, output: Vocabulary | Label):
        super().__init__()
        self.config = config
        self.embedding, self.encoder, self.output = embedding, encoder, output

    def forward(self, batch: TextBatch) -> Float[Tensor, "B T D"]:
        ids, tokens = batch.text.ids, batch.text.tokens
        length = tokens.spans.longest if tokens.spans is not None else ids.shape[1]
        return tap(self.encoder.read(self.embedding(ids, tokens, length=length), tokens).states, "encoder.memory")

    @property
    def packs(self) -> bool:
        """Whether rows of many documents suit its trunk."""
        return self.encoder.packs

    @property
    def device(self) -> torch.device:
        return self.embedding.table.device
