"""What is said in a recording: frames made fewer by convolutions, an encoder (or convolutions alone), then a label or letters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, assert_never

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.data.frame_batch import FrameBatch
from regard.errors import UsageError
from regard.nn.augment_frames import FrameMasks, mask_frames
from regard.nn.embed_frames import FrameEmbedding, Frames
from regard.nn.feedforward import FeedForward
from regard.nn.init import Init, Xavier, initialise
from regard.nn.label import Label, pooled
from regard.nn.spectrum import LogMel
from regard.nn.stages_speech import FrameStages, SpeechStages
from regard.nn.tap import tap
from regard.nn.trunk_transformer import Transformer, TransformerTrunk
from regard.nn.view import Tokens, View


@dataclass(frozen=True)
class SpeechTransformer:
    """Convolutions with a stride, and an encoder over what they make of the frames."""

    kind: ClassVar[Literal["transformer"]] = "transformer"
    embedding: FrameEmbedding = FrameEmbedding()
    "How frames become a row of vectors."
    encoder: Transformer = Transformer(layers=4, heads=4, placement="pre", feed_forward=FeedForward(d_ff=256))
    "The trunk that reads it."
    init: Init = Xavier()
    "First values of the parameters."


@dataclass(frozen=True)
class Speech:
    """A label for a recording, or the letters of what was said."""

    kind: ClassVar[Literal["speech"]] = "speech"
    d_model: int = 128
    "Width of the vectors."
    features: LogMel = LogMel()
    "How a recording becomes frames."
    body: SpeechTransformer | FrameStages = SpeechTransformer()
    "What turns frames into vectors."
    output: Literal["label", "ctc"] = "label"
    "label: one for the whole recording, from the mean of its vectors; ctc: a letter or none at every vector (Graves 2006)."
    masks: FrameMasks = FrameMasks()
    "What is hidden of the recordings of training."
    labels: tuple[str, ...] = ()
    "Names of the labels, or the letters; empty: taken from the data."


class Listener(nn.Module):
    """forward: a vector for each recording (label) or each place in it (ctc); output: the scores of labels, or of none and letters."""

    packs = False  # recordings are rows

    def __init__(self, config: Speech):
        super().__init__()
        if not config.labels:
            raise UsageError("the model does not know what can be said", where="model", do="give labels")
        self.config = config
        mels = config.features.mels
        match config.body:
            case SpeechTransformer():
                self.body = SpeechEncoder(config.body, config.d_model, mels=mels)
            case FrameStages():
                self.body = SpeechStages(config.body, config.d_model, mels=mels)
            case _:
                assert_never(config.body)
        self.output = Label(config.d_model, len(config.labels) + (config.output == "ctc"))

    def forward(self, batch: FrameBatch) -> Float[Tensor, "B *P D"]:
        x_BPD, tokens = self.encode(batch)
        return pooled(x_BPD, tokens.real, pool="mean") if self.config.output == "label" else x_BPD

    def encode(self, batch: FrameBatch) -> tuple[Float[Tensor, "B P D"], Tokens]:
        """A vector for every few frames, and which of them are real."""
        frames_BTM = mask_frames(batch.frames, batch.lengths, self.config.masks) if self.training else batch.frames
        return self.body(frames_BTM, batch.real)

    def lengths(self, frames: Int[Tensor, "B"]) -> Int[Tensor, "B"]:
        """How many vectors recordings of so many frames become."""
        return self.body.lengths(frames)

    @property
    def device(self) -> torch.device:
        return self.output.outer.weight.device


class SpeechEncoder(nn.Module):
    """Embed the frames, and let what comes of them attend to each other."""

    def __init__(self, config: SpeechTransformer, d_model: int, *, mels: int):
        super().__init__()
        self.embedding = Frames(config.embedding, d_model, mels=mels, name="frames")
        self.encoder = TransformerTrunk(config.encoder, d_model, causal=False, name="encoder")
        initialise(self.encoder, config.init, layers=config.encoder.layers)

    def forward(self, frames_BTM: Float[Tensor, "B T M"], real_BT: Tensor) -> tuple[Float[Tensor, "B P D"], Tokens]:
        x_BPD, tokens = self.embedding(frames_BTM, real_BT)
        return tap(self.encoder(x_BPD, View(tokens)), "encoder.memory"), tokens

    def lengths(self, frames: Int[Tensor, "B"]) -> Int[Tensor, "B"]:
        return self.embedding.lengths(frames)
