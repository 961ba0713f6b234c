"""The language model: embed, one causal trunk, and scores of the next word at every position."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.data.batch import Side
from regard.data.text_batch import TextBatch
from regard.errors import UsageError
from regard.models.configs import LanguageModel
from regard.nn.cache import State
from regard.nn.embed import TokenEmbedding
from regard.nn.outputs import Vocabulary
from regard.nn.trunk import Trunk
from regard.nn.view import Tokens, View


class Writer(nn.Module):
    """forward: all positions at once, the right words before them. new_state and step: one after the other, the same numbers."""

    def __init__(self, config: LanguageModel, *, embedding: TokenEmbedding, trunk: Trunk, output: Vocabulary):
        super().__init__()
        if trunk.forcing < 1:
            raise UsageError("a language model learns from the right words alone", where="model.trunk", do="set forcing = 1")
        self.config = config
        self.embedding, self.trunk, self.output = embedding, trunk, output

    def forward(self, batch: TextBatch) -> Float[Tensor, "B T D"]:
        tokens = batch.text.tokens
        length = tokens.spans.longest if tokens.spans is not None else batch.text.ids.shape[1]
        return self.trunk(self.embedding(batch.text.ids, tokens, length=length), View(tokens))

    def new_state(self, rows: int, capacity: int, *, beam: int = 1) -> State:
        return self.trunk.new_state(rows, capacity, beam=beam, device=self.device)

    def step(self, ids: Int[Tensor, "R T"], tokens: Tokens, state: State, *, longest: int) -> Float[Tensor, "R T D"]:
        """Take these tokens in and return their hidden states; `longest` bounds the positions after them."""
        state.write(tokens, longest=longest)
        return self.trunk(self.embedding(ids, tokens, length=longest), View(tokens), state)

    def go_on(self, text: Side, state: State, *, longest: int) -> Float[Tensor, "R T D"]:
        """The next segment of each row, of a trunk that remembers; `longest` bounds the positions."""
        return self.trunk(self.embedding(text.ids, text.tokens, length=longest), View(text.tokens), state)

    @property
    def packs(self) -> bool:
        """Whether rows of many documents suit its trunk."""
        return self.trunk.packs

    @property
    def device(self) -> torch.device:
        return self.output.table.device
