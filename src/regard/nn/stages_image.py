"""The rival of attention over patches: stages of small convolutions, each at half the resolution of the one before."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal

from jaxtyping import Float
from torch import Tensor, nn


@dataclass(frozen=True)
class ImageStages:
    """3 x 3 convolutions with batch norm and ReLU, two to a stage; the mean over all places at the end."""

    kind: ClassVar[Literal["convolution"]] = "convolution"
    stages: int = 3
    "How many; each halves the resolution and doubles the width, the last one has d_model."
    dropout: float = 0.1
    "Dropout on the mean."


class ConvolutionStages(nn.Module):
    def __init__(self, config: ImageStages, d_model: int, *, channels: int):
        super().__init__()
        widths = [channels, *(max(8, d_model >> (config.stages - 1 - stage)) for stage in range(config.stages))]
        layers: list[nn.Module] = []
        for stage, (inward, outward) in enumerate(pairwise(widths)):
            for d_in in (inward, outward):
                layers += [nn.Conv2d(d_in, outward, 3, padding=1, bias=False), nn.BatchNorm2d(outward), nn.ReLU()]
            if stage < config.stages - 1:
                layers.append(nn.MaxPool2d(2, ceil_mode=True))
        self.layers = nn.Sequential(*layers)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, image_BCYX: Float[Tensor, "B C Y X"]) -> Float[Tensor, "B D"]:
        return self.dropout(self.layers(image_BCYX).mean((2, 3)))
