"""A sentence for a picture: an encoder over patches, and a decoder that writes and looks at them by cross-attention."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from regard.data.caption_batch import CaptionBatch
from regard.models.image_classifier import PictureEncoder
from regard.nn.augment import augment
from regard.nn.cache import State
from regard.nn.embed import TokenEmbedding
from regard.nn.outputs import Vocabulary
from regard.nn.trunk import Trunk
from regard.nn.view import Memory, Tokens, View


class Captioner(nn.Module):
    """forward: all words at once, the right ones before them. new_state, admit and step_scores: one after the other, the same numbers."""

    packs = False  # pictures are rows

    def __init__(self, config, *, body: PictureEncoder, target: TokenEmbedding, decoder: Trunk, output: Vocabulary):
        super().__init__()
        self.config = config
        self.body, self.target, self.decoder, self.output = body, target, decoder, output

    def forward(self, batch: CaptionBatch) -> Float[Tensor, "B T D"]:
        tokens = batch.target.tokens
        return self.decoder(self.target(batch.target.ids, tokens), View(tokens, (self.encode(batch.pixels),)))

    def encode(self, pixels: UInt8[Tensor, "B C Y X"]) -> Memory:
        """What the decoder looks at: a vector for each patch."""
        image_BCYX = pixels.float() / 127.5 - 1
        if self.training:
            image_BCYX = augment(image_BCYX, self.config.augmentation)
        states_BPD = self.body.encode(image_BCYX)
        return Memory(states_BPD, Tokens.plain(*states_BPD.shape[:2], device=states_BPD.device))

    def new_state(self, rows: int, capacity: int, *, beam: int = 1) -> State:
        return self.decoder.new_state(rows, capacity, beam=beam, device=self.device)

    def admit(self, state: State, pixels: UInt8[Tensor, "B C Y X"], slots: Tensor | None = None) -> None:
        """Look at these pictures, which are all of them or come into these slots."""
        self.decoder.remember(state, (self.encode(pixels),), slots)

    def step_scores(self, ids: Int[Tensor, "R T"], tokens: Tokens, state: State, *, longest: int) -> Float[Tensor, "R T V"]:
        """Take these words in and score what comes next; `longest` bounds the positions after them."""
        state.write(tokens, longest=longest)
        return self.output(self.decoder(self.target(ids, tokens, length=longest), View(tokens), state))

    @property
    def device(self) -> torch.device:
        return self.output.table.device
