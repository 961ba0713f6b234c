"""From frames of sound to vectors: convolutions with a stride make few vectors of many frames, gated, with sinusoids added (Wang 2020)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.errors import UsageError
from regard.nn.positions import Positions, Sinusoid, build_positions
from regard.nn.tap import tap
from regard.nn.view import Tokens


@dataclass(frozen=True)
class FrameEmbedding:
    """How frames become vectors."""

    convolutions: int = 2
    "How many, one after another; each makes one vector of `stride` frames."
    kernel: int = 5
    "Frames that one vector looks at; odd, so that it has a middle."
    stride: int = 2
    "Frames from one vector to the next."
    width: int = 0
    "Channels between two convolutions; 0: 2 d_model."
    positions: Positions = Sinusoid()
    "What is added to tell the positions apart."
    scale: bool = True
    "Multiply the vectors by sqrt(d_model) before the positions are added."
    dropout: float = 0.1
    "Dropout on the sum."

    def __post_init__(self):
        if self.convolutions < 1 or self.stride < 1 or self.kernel % 2 == 0:
            raise UsageError(
                f"{self.convolutions} convolutions of {self.kernel} frames with a stride of {self.stride}", do="see docs/config.md"
            )


def after(lengths: Int[Tensor, "B"], stride: int) -> Int[Tensor, "B"]:
    """How many vectors a convolution makes of so many frames: one at every place 0, stride, 2 stride, ... that is a frame."""
    return (lengths + stride - 1) // stride


class Frames(nn.Module):
    """drop(GLU(conv(...GLU(conv(frames)))) sqrt(D) + position). Padding is zero before every convolution, as the edge of a row is."""

    layers: Sequence[nn.Conv1d]  # in an nn.ModuleList

    def __init__(self, config: FrameEmbedding, d_model: int, *, mels: int, name: str):
        super().__init__()
        self.config, self.name = config, name
        between = config.width or 2 * d_model
        inward = [mels, *[between // 2] * (config.convolutions - 1)]
        outward = [*[between] * (config.convolutions - 1), 2 * d_model]
        self.layers = nn.ModuleList(  # type: ignore[assignment]
            nn.Conv1d(i, o, config.kernel, stride=config.stride, padding=config.kernel // 2) for i, o in zip(inward, outward)
        )
        self.positions = build_positions(config.positions, d_model)
        self.scale = math.sqrt(d_model) if config.scale else 1.0
        self.dropout = nn.Dropout(config.dropout) if config.dropout else nn.Identity()

    def forward(self, frames_BTM: Float[Tensor, "B T M"], real_BT: Bool[Tensor, "B T"]) -> tuple[Float[Tensor, "B P D"], Tokens]:
        x_BCT = frames_BTM.mT
        for layer in self.layers:
            x_BCT = F.glu(layer(x_BCT.masked_fill(~real_BT[:, None], 0.0)), dim=1)
            real_BT = real_BT[:, :: self.config.stride]
        x_BPD, tokens = tap(x_BCT.mT * self.scale, f"{self.name}.token"), Tokens.padded(real_BT)
        if self.positions is not None:
            self.positions.reach(x_BPD.shape[1])
            x_BPD = x_BPD + tap(self.positions(tokens.positions), f"{self.name}.position").to(x_BPD.dtype)
        return tap(self.dropout(x_BPD), f"{self.name}.sum"), tokens

    def lengths(self, frames: Int[Tensor, "B"]) -> Int[Tensor, "B"]:
        """How many vectors recordings of so many frames become."""
        for _ in self.layers:
            frames = after(frames, self.config.stride)
        return frames
