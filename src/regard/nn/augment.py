"""Pictures changed at random while a model learns, all at once on the device: shifted, mirrored, partly covered."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Augmentation:
    """What is done to the pictures of training; nothing by default."""

    shift: int = 0
    "Most pixels by which a picture is moved, up or down and left or right; black comes in."
    mirror: bool = False
    "Left and right change places in every other picture."
    cover: float = 0.0
    "Probability that a rectangle of up to a quarter of the picture is replaced by noise (random erasing)."


def augment(image_BCYX: Float[Tensor, "B C Y X"], config: Augmentation) -> Float[Tensor, "B C Y X"]:
    """Each picture by its own draw. Black is the smallest value that a picture can have, -1."""
    if config.shift:
        image_BCYX = _shifted(image_BCYX, config.shift)
    if config.mirror:
        turned_B = torch.rand(len(image_BCYX), device=image_BCYX.device) < 0.5
        image_BCYX = torch.where(turned_B[:, None, None, None], image_BCYX.flip(-1), image_BCYX)
    if config.cover:
        image_BCYX = _covered(image_BCYX, config.cover)
    return image_BCYX


def _shifted(image_BCYX: Tensor, most: int) -> Tensor:
    B, _, Y, X = image_BCYX.shape
    padded = F.pad(image_BCYX, (most, most, most, most), value=-1.0)
    by_B2 = torch.randint(0, 2 * most + 1, (B, 2), device=image_BCYX.device)
    rows_BY = by_B2[:, :1] + torch.arange(Y, device=image_BCYX.device)
    columns_BX = by_B2[:, 1:] + torch.arange(X, device=image_BCYX.device)
    picture = torch.arange(B, device=image_BCYX.device)
    return padded.permute(0, 2, 3, 1)[picture[:, None, None], rows_BY[:, :, None], columns_BX[:, None, :]].permute(0, 3, 1, 2)


def _covered(image_BCYX: Tensor, probability: float) -> Tensor:
    B, _, Y, X = image_BCYX.shape
    device = image_BCYX.device
    middle, half = torch.rand(B, 2, device=device), 0.25 * torch.rand(B, 2, device=device)
    rows_Y, columns_X = (torch.arange(size, device=device).add(0.5) / size for size in (Y, X))
    in_rows = (rows_Y - middle[:, :1]).abs() < half[:, :1]
    in_columns = (columns_X - middle[:, 1:]).abs() < half[:, 1:]
    chosen_B = torch.rand(B, device=device) < probability
    inside = (in_rows[:, :, None] & in_columns[:, None, :] & chosen_B[:, None, None])[:, None]
    return torch.where(inside, torch.rand_like(image_BCYX) * 2 - 1, image_BCYX)
