"""The encoder-decoder: embed, encode, embed, decode, and scores of the next word at every position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.data.batch import PairBatch, Side
from regard.models.configs import EncoderDecoder
from regard.nn.cache import State
from regard.nn.embed import TokenEmbedding
from regard.nn.layout import Rows
from regard.nn.outputs import Vocabulary
from regard.nn.tap import tap
from regard.nn.trunk import Trunk
from regard.nn.view import Memory, Tokens, View


class Translator(nn.Module):
    """forward: all positions at once, the right words before them. new_state, admit and step: one after the other, the same numbers."""

    more_encoders: Sequence[Trunk]  # in an nn.ModuleList

    def __init__(
        self,
        config: EncoderDecoder,
        *,
        source: TokenEmbedding,
        encoder: Trunk,
        target: TokenEmbedding,
        decoder: Trunk,
        output: Vocabulary,
        more_encoders: Sequence[Trunk] = (),
    ):
        super().__init__()
        self.config = config
        self.source, self.encoder = source, encoder
        self.more_encoders = nn.ModuleList(more_encoders)  # type: ignore[assignment]
        self.target, self.decoder, self.output = target, decoder, output

    def forward(self, batch: PairBatch) -> Float[Tensor, "B T D"]:
        if self.training and self.decoder.forcing < 1:
            return self.go_on(batch)
        return self.decoder(self.embed(batch.target), View(batch.target.tokens, self.encode(batch.source)))

    def go_on(self, batch: PairBatch) -> Float[Tensor, "B T D"]:
        """`forward`, but the decoder draws before which steps it is told the right last word; before the others it takes its own."""
        rows, memories = Rows.of(batch.target.tokens), self.encode(batch.source)
        ids_NL, facts = rows.take(batch.target.ids), Tokens.padded(rows.real)
        state = self.new_state(*ids_NL.shape)
        self.decoder.remember(state, memories)
        told, pieces = self.decoder.draw(ids_NL.shape[1]), []
        for step in range(ids_NL.shape[1]):
            now = slice(step, step + 1)
            own = step and not told[step]
            ids = self.output(pieces[-1].detach()).argmax(-1) if own else ids_NL[:, now]
            tokens = Tokens(facts.positions[:, now], facts.documents[:, now], facts.real[:, now])
            pieces.append(self.step(ids, tokens, state, longest=step + 1))
        return rows.put(torch.cat(pieces, 1))

    def scores(self, batch: PairBatch) -> Float[Tensor, "B T V"]:
        """What may follow at every position: logarithms of the shares, up to a constant."""
        return self.output(self(batch))

    def embed(self, target: Side) -> Float[Tensor, "B T D"]:
        return self.target(target.ids, target.tokens, length=_longest(target))

    def encode(self, source: Side) -> tuple[Memory, ...]:
        """What the decoder may look at: a memory of each encoder."""
        x_BSD = self.source(source.ids, source.tokens, length=_longest(source))
        first = self.encoder.read(x_BSD, source.tokens)
        first = replace(first, states=tap(first.states, "encoder.memory"))
        return (first, *(encoder.read(x_BSD, source.tokens) for encoder in self.more_encoders))

    def new_state(self, rows: int, capacity: int, *, beam: int = 1) -> State:
        return self.decoder.new_state(rows, capacity, beam=beam, device=self.device)

    def admit(self, state: State, source: Side, slots: Tensor | None = None) -> None:
        """Read these sources, which are all of them or come into these slots."""
        self.decoder.remember(state, self.encode(source), slots)

    def step(self, ids: Int[Tensor, "R T"], tokens: Tokens, state: State, *, longest: int) -> Float[Tensor, "R T D"]:
        """Take these target tokens in and return their hidden states; `longest` bounds the positions after them."""
        state.write(tokens, longest=longest)
        x_RTD = self.target(ids, tokens, length=longest)
        return self.decoder(x_RTD, View(tokens), state)

    def step_scores(self, ids: Int[Tensor, "R T"], tokens: Tokens, state: State, *, longest: int) -> Float[Tensor, "R T V"]:
        """`scores`, of a step."""
        return self.output(self.step(ids, tokens, state, longest=longest))

    @property
    def packs(self) -> bool:
        """Whether rows of many documents suit all its trunks."""
        return all(trunk.packs for trunk in (self.encoder, *self.more_encoders, self.decoder))

    @property
    def device(self) -> torch.device:
        return self.output.table.device


def _longest(side: Side) -> int:
    spans = side.tokens.spans
    return spans.longest if spans is not None else side.ids.shape[1]
