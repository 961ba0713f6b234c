"""The rival of attention over frames: stages of small convolutions over time, each at half the pace of the one before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.nn.embed_frames import after
from regard.nn.view import Tokens


@dataclass(frozen=True)
class FrameStages:
    """Convolutions over time with layer norm and ReLU, two to a stage; the largest of two neighbours goes on to the next stage."""

    kind: ClassVar[Literal["convolution"]] = "convolution"
    stages: int = 3
    "How many; each halves the pace."
    kernel: int = 5
    "Frames that a convolution looks at; odd."
    dropout: float = 0.1
    "Dropout on the vectors of the last stage."


class SpeechStages(nn.Module):
    """Frames in, fewer vectors out. Padding is zero before each convolution, as the edge of a row is, and never a maximum."""

    layers: Sequence[nn.Conv1d]  # in nn.ModuleLists
    norms: Sequence[nn.LayerNorm]

    def __init__(self, config: FrameStages, d_model: int, *, mels: int):
        super().__init__()
        inward = [mels, *[d_model] * (2 * config.stages - 1)]
        self.layers = nn.ModuleList(nn.Conv1d(i, d_model, config.kernel, padding=config.kernel // 2) for i in inward)  # type: ignore[assignment]
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in inward)  # type: ignore[assignment]
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, frames_BTM: Float[Tensor, "B T M"], real_BT: Bool[Tensor, "B T"]) -> tuple[Float[Tensor, "B P D"], Tokens]:
        x_BTD = frames_BTM
        for number, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            if number and number % 2 == 0:  # between two stages; what is real is positive or zero, so zero is never larger
                x_BTD = F.max_pool1d(x_BTD.masked_fill(~real_BT[..., None], 0.0).mT, 2, ceil_mode=True).mT
                real_BT = real_BT[:, ::2]
            x_BTD = norm(layer(x_BTD.masked_fill(~real_BT[..., None], 0.0).mT).mT).relu()
        return self.dropout(x_BTD), Tokens.padded(real_BT)

    def lengths(self, frames: Int[Tensor, "B"]) -> Int[Tensor, "B"]:
        """How many vectors recordings of so many frames become."""
        for _ in range(len(self.layers) // 2 - 1):
            frames = after(frames, 2)
        return frames
