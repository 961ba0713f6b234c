"""An encoder-decoder that may also write the words of its source: its answers are spread over the vocabulary and the places of the source.

A word that the vocabulary lacks comes as an id beyond it, V, V+1, ..., in the source, in the target and in the labels of its own example.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.batch import PairBatch, Side
from regard.data.marks import UNK
from regard.errors import UsageError
from regard.models.translator import Translator
from regard.nn.cache import State
from regard.nn.copying import Cells, Copied, GatedCopying, JointCopying, Original
from regard.nn.layout import end_to_end, side_by_side
from regard.nn.view import Memory, Tokens, View


class CopyingTranslator(Translator):
    """The decoder's vectors as of any translator; what they say of the next word depends on the source besides."""

    def __init__(self, plain: Translator, copying: JointCopying | GatedCopying):
        super().__init__(
            plain.config,
            source=plain.source,
            encoder=plain.encoder,
            target=plain.target,
            decoder=plain.decoder,
            output=plain.output,
            more_encoders=plain.more_encoders,
        )
        if plain.config.source_vocabulary != plain.config.target_vocabulary:
            raise UsageError(
                "a word of the source must have the same id in the target", where="model.copy", do="set tokenizer.joint = true"
            )
        self.copying = copying

    def cells(self, batch: PairBatch) -> Cells:
        """What may follow at every position; documents of a packed row lie side by side."""
        x_BTD, tokens, memories = self.embed(batch.target), batch.target.tokens, self.encode(batch.source)
        hidden_BTD = self.decoder(x_BTD, View(tokens, memories))
        hidden_NLD, x_NLD, real_NL = (side_by_side(values, tokens) for values in (hidden_BTD, x_BTD, tokens.real))
        source = self._original(batch.source, memories[0])
        looked_NS = hidden_NLD.new_zeros(source.ids.shape, dtype=torch.promote_types(hidden_NLD.dtype, torch.float32))
        return self.copying(self.output(hidden_NLD), hidden_NLD, x_NLD, real_NL, source, looked_NS)[0]

    def scores(self, batch: PairBatch) -> Float[Tensor, "B T W"]:
        cells = self.cells(batch)
        return end_to_end(cells.words(width=cells.logits.shape[2] + cells.ids.shape[1]), batch.target.tokens)

    def embed(self, target: Side) -> Float[Tensor, "B T D"]:
        return super().embed(self._known(target))

    def encode(self, source: Side) -> tuple[Memory, ...]:
        return super().encode(self._known(source))

    def new_state(self, rows: int, capacity: int, *, beam: int = 1) -> State:
        state = super().new_state(rows, capacity, beam=beam)
        state.also = (Copied(rows, beam=beam, coverage=self.copying.coverage),)
        return state

    def admit(self, state: State, source: Side, slots: Tensor | None = None) -> None:
        memories = self.encode(source)
        self.decoder.remember(state, memories, slots)
        _copied(state).write(self._original(source, memories[0]), slots)

    def step_scores(self, ids: Int[Tensor, "R T"], tokens: Tokens, state: State, *, longest: int) -> Float[Tensor, "R T W"]:
        state.write(tokens, longest=longest)
        x_RTD = self.target(self._known(Side(ids, tokens)).ids, tokens, length=longest)
        hidden_RTD = self.decoder(x_RTD, View(tokens), state)
        copied = _copied(state)
        source = copied.source
        cells, copied.looked = self.copying(self.output(hidden_RTD), hidden_RTD, x_RTD, tokens.real, source, copied.before())
        return cells.words(width=cells.logits.shape[2] + cells.ids.shape[1])

    def _known(self, side: Side) -> Side:
        """What is beyond the vocabulary enters the model as the unknown word."""
        return Side(side.ids.where(side.ids < len(self.output.table), UNK), side.tokens)

    def _original(self, source: Side, memory: Memory) -> Original:
        if memory.gathered.shape[:2] != source.ids.shape:
            raise UsageError(
                f"the encoder makes {memory.gathered.shape[1]} vectors of {source.ids.shape[1]} words, so none stands for its word",
                where="model.copy",
                do="choose an encoder with a vector for each word",
            )
        states_NSD = side_by_side(memory.gathered, source.tokens)
        ids_NS, real_NS = side_by_side(source.ids, source.tokens), side_by_side(source.tokens.real, source.tokens)
        return Original(states_NSD, self.copying.keys(states_NSD), ids_NS, real_NS)


def _copied(state: State) -> Copied:
    (copied,) = state.also
    assert isinstance(copied, Copied)
    return copied
