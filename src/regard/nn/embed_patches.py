"""From a picture to vectors (Dosovitskiy 2020): patches, each flattened and mapped, a token for the class, and learned places on a grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import UsageError
from regard.nn.tap import tap


@dataclass(frozen=True)
class PatchEmbedding:
    """How a picture becomes a row of vectors."""

    patch: int = 4
    "Side of a patch, in pixels."
    uneven: Literal["reject", "pad"] = "reject"
    "What to do with a picture that patches do not cover evenly: say so, or add black at the right and below."
    dropout: float = 0.1
    "Dropout on the sum of patch and place."


class Patches(nn.Module):
    """drop([class token; patches W] + places). For a picture of another size the grid of places is interpolated."""

    def __init__(
        self, config: PatchEmbedding, d_model: int, *, channels: int, size: tuple[int, int], token: Literal["class", "none"], name: str
    ):
        super().__init__()
        self.config, self.name = config, name
        self.project = nn.Conv2d(channels, d_model, config.patch, stride=config.patch)
        self.grid = self.grid_of(size)
        self.first = nn.Parameter(torch.zeros(d_model)) if token == "class" else None
        places = self.grid[0] * self.grid[1] + (token == "class")
        self.places = nn.Parameter(torch.empty(places, d_model).normal_(std=0.02))
        self.dropout = nn.Dropout(config.dropout) if config.dropout else nn.Identity()
        fan_in = channels * config.patch**2
        nn.init.trunc_normal_(self.project.weight, std=fan_in**-0.5)
        assert self.project.bias is not None
        nn.init.zeros_(self.project.bias)

    def forward(self, image_BCYX: Float[Tensor, "B C Y X"]) -> Float[Tensor, "B P D"]:
        image_BCYX, grid = self._covered(image_BCYX)
        x_BPD = tap(self.project(image_BCYX).flatten(2).mT, f"{self.name}.token")
        if self.first is not None:
            x_BPD = torch.cat([self.first.expand(len(x_BPD), 1, -1), x_BPD], dim=1)
        places_PD = tap(self.at(grid), f"{self.name}.position")
        return tap(self.dropout(x_BPD + places_PD), f"{self.name}.sum")

    def grid_of(self, size: tuple[int, int]) -> tuple[int, int]:
        """Rows and columns of patches of a picture of this size (height, width)."""
        patch = self.config.patch
        if min(size) < 1:
            raise UsageError(f"a picture of {size[1]} x {size[0]} pixels", where="image")
        if self.config.uneven == "reject" and (size[0] % patch or size[1] % patch):
            what = f"patches of {patch} x {patch} do not cover a picture of {size[1]} x {size[0]} pixels evenly"
            raise UsageError(what, where="embedding.patch", do='scale or cut the picture, or set uneven = "pad"')
        return -(-size[0] // patch), -(-size[1] // patch)

    def at(self, grid: tuple[int, int]) -> Float[Tensor, "P D"]:
        """The places of a grid: those learned, or, for another grid, the bicubic surface through them. The class keeps its own."""
        if grid == self.grid:
            return self.places
        own, rest = self.places[: self.first is not None], self.places[self.first is not None :]
        surface_1DYX = rest.unflatten(0, self.grid).permute(2, 0, 1)[None]
        surface_1DYX = F.interpolate(surface_1DYX.float(), size=grid, mode="bicubic", align_corners=False).to(rest.dtype)
        return torch.cat([own, surface_1DYX[0].flatten(1).mT])

    def _covered(self, image_BCYX: Tensor) -> tuple[Tensor, tuple[int, int]]:
        size = (image_BCYX.shape[2], image_BCYX.shape[3])
        grid, patch = self.grid_of(size), self.config.patch
        missing = (grid[0] * patch - size[0], grid[1] * patch - size[1])
        return (F.pad(image_BCYX, (0, missing[1], 0, missing[0])) if any(missing) else image_BCYX), grid
