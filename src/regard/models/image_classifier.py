"""Which label a picture has: a Vision Transformer, or the stages of convolutions that are its rival, and the labels' scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, assert_never

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from regard.data.picture_batch import PictureBatch
from regard.errors import UsageError
from regard.nn.augment import Augmentation, augment
from regard.nn.embed_patches import PatchEmbedding, Patches
from regard.nn.feedforward import FeedForward
from regard.nn.init import Init, Xavier, initialise
from regard.nn.label import Label, Pool, pooled
from regard.nn.norms import LayerNorm
from regard.nn.stages_image import ConvolutionStages, ImageStages
from regard.nn.tap import tap
from regard.nn.trunk_transformer import Transformer, TransformerTrunk
from regard.nn.view import Tokens, View


@dataclass(frozen=True)
class VisionTransformer:
    """Patches as the words of a picture, read by an encoder."""

    kind: ClassVar[Literal["patches"]] = "patches"
    embedding: PatchEmbedding = PatchEmbedding()
    "How the picture becomes a row of vectors."
    encoder: Transformer = Transformer(
        layers=6, heads=4, placement="pre", norm=LayerNorm(), feed_forward=FeedForward(d_ff=128, activation="gelu")
    )
    "The trunk that reads it."
    pool: Pool = "first"
    "What stands for the whole picture: a token of its own, put first, or the mean of all patches."
    init: Init = Xavier()
    "First values of the parameters."


@dataclass(frozen=True)
class ImageClassifier:
    """A label for a picture."""

    kind: ClassVar[Literal["image-classifier"]] = "image-classifier"
    d_model: int = 64
    "Width of the vectors."
    body: VisionTransformer | ImageStages = VisionTransformer()
    "What turns the picture into one vector."
    hidden: int = 0
    "Width of a hidden layer between that vector and the labels; 0: none."
    augmentation: Augmentation = Augmentation()
    "What is done to the pictures of training."
    channels: int = 0
    "1: grey, 3: colours; 0: taken from the data."
    size: tuple[int, int] = (0, 0)
    "Height and width of the pictures, in pixels; 0: taken from the data."
    labels: tuple[str, ...] = ()
    "Names of the labels; empty: taken from the data."


class ImageLabeller(nn.Module):
    """forward: one vector a picture; output: the scores of its labels."""

    packs = False  # pictures are rows

    def __init__(self, config: ImageClassifier):
        super().__init__()
        if not (config.channels and all(config.size) and config.labels):
            raise UsageError("the model does not know its pictures", where="model", do="give channels, size and labels")
        self.config = config
        match config.body:
            case VisionTransformer():
                self.body = PictureEncoder(config.body, config.d_model, channels=config.channels, size=config.size)
            case ImageStages():
                self.body = ConvolutionStages(config.body, config.d_model, channels=config.channels)
            case _:
                assert_never(config.body)
        self.output = Label(config.d_model, len(config.labels), hidden=config.hidden)

    def forward(self, batch: PictureBatch) -> Float[Tensor, "B D"]:
        return self.body(self.seen(batch.pixels))

    def seen(self, pixels: UInt8[Tensor, "B C Y X"]) -> Float[Tensor, "B C Y X"]:
        """Bytes as numbers from -1 to 1, changed at random in training."""
        image_BCYX = pixels.float() / 127.5 - 1
        return augment(image_BCYX, self.config.augmentation) if self.training else image_BCYX

    @property
    def device(self) -> torch.device:
        return self.output.outer.weight.device


class PictureEncoder(nn.Module):
    """Embed the patches, let them attend to each other, and take one vector for all."""

    def __init__(self, config: VisionTransformer, d_model: int, *, channels: int, size: tuple[int, int]):
        super().__init__()
        token: Literal["class", "none"] = "class" if config.pool == "first" else "none"
        self.embedding = Patches(config.embedding, d_model, channels=channels, size=size, token=token, name="patches")
        self.encoder = TransformerTrunk(config.encoder, d_model, causal=False, name="encoder")
        self.pool: Pool = config.pool
        initialise(self.encoder, config.init, layers=config.encoder.layers)

    def forward(self, image_BCYX: Float[Tensor, "B C Y X"]) -> Float[Tensor, "B D"]:
        return pooled(self.encode(image_BCYX), pool=self.pool)

    def encode(self, image_BCYX: Float[Tensor, "B C Y X"]) -> Float[Tensor, "B P D"]:
        """Every patch with what it has learned of the others."""
        x_BPD = self.embedding(image_BCYX)
        tokens = Tokens.plain(x_BPD.shape[0], x_BPD.shape[1], device=x_BPD.device)
        return tap(self.encoder(x_BPD, View(tokens)), "encoder.memory")
