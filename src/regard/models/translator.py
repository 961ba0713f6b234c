"""The encoder-decoder: embed, encode, embed, decode, and scores of the next word at every position."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.data.batch import PairBatch, Side
from regard.models.configs import EncoderDecoder
from regard.nn.cache import State
from regard.nn.embed import TokenEmbedding
from regard.nn.outputs import Vocabulary
from regard.nn.tap import tap
from regard.nn.trunk_transformer import TransformerTrunk
from regard.nn.view import Tokens, View


class Translator(nn.Module):
    """forward: teacher forcing, all positions at once. new_state, admit and step: one token after the other, the same numbers."""

    def __init__(
        self,
        config: EncoderDecoder,
        *,
        source: TokenEmbedding,
        encoder: TransformerTrunk,
        target: TokenEmbedding,
        decoder: TransformerTrunk,
        output: Vocabulary,
    ):
        super().__init__()
        self.config = config
        self.source, self.encoder = source, encoder
        self.target, self.decoder, self.output = target, decoder, output

    def forward(self, batch: PairBatch) -> Float[Tensor, "B T D"]:
        memory_BSD = self.encode(batch.source)
        ids, tokens = batch.target.ids, batch.target.tokens
        x_BTD = self.target(ids, tokens, length=_longest(batch.target))
        return self.decoder(x_BTD, View(tokens, (memory_BSD,), (batch.source.tokens,)))

    def encode(self, source: Side) -> Float[Tensor, "B S D"]:
        x_BSD = self.source(source.ids, source.tokens, length=_longest(source))
        return tap(self.encoder(x_BSD, View(source.tokens)), "encoder.memory")

    def new_state(self, rows: int, capacity: int, *, beam: int = 1) -> State:
        return self.decoder.new_state(rows, capacity, beam=beam, device=self.output.table.device)

    def step(self, ids: Int[Tensor, "R T"], tokens: Tokens, source: Tokens, state: State, *, longest: int) -> Float[Tensor, "R T D"]:
        """Take these target tokens in and return their hidden states; `longest` bounds the positions after them."""
        state.slots.write(tokens, longest=longest)
        x_RTD = self.target(ids, tokens, length=longest)
        return self.decoder(x_RTD, View(tokens, (), (source,)), state)

    @property
    def device(self) -> torch.device:
        return self.output.table.device


def _longest(side: Side) -> int:
    spans = side.tokens.spans
    return spans.longest if spans is not None else side.ids.shape[1]
