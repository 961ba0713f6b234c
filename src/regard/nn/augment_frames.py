"""Frames changed at random while a model learns, all at once on the device: bands and stretches of time hidden (SpecAugment, Park 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class FrameMasks:
    """What is hidden of the recordings of training; nothing by default."""

    bands: int = 0
    "Most neighbouring bands that are set to 0, their mean."
    share: float = 0.0
    "Most of a recording's frames, next to each other, that are set to 0."


def mask_frames(frames_BTM: Float[Tensor, "B T M"], lengths_B: Int[Tensor, "B"], config: FrameMasks) -> Float[Tensor, "B T M"]:
    """Each recording by its own draw of how much and where."""
    B, T, M = frames_BTM.shape
    if config.bands:
        hidden_BM = _stretch(frames_BTM.new_full((B,), M), frames_BTM.new_full((B,), config.bands), M)
        frames_BTM = frames_BTM.masked_fill(hidden_BM[:, None], 0.0)
    if config.share:
        hidden_BT = _stretch(lengths_B.to(frames_BTM.dtype), lengths_B * config.share, T)
        frames_BTM = frames_BTM.masked_fill(hidden_BT[..., None], 0.0)
    return frames_BTM


def _stretch(length_B: Float[Tensor, "B"], most_B: Float[Tensor, "B"], places: int) -> Bool[Tensor, "B N"]:
    """A stretch of at most so many places within a length, for each row."""
    draws_2B = torch.rand(2, len(length_B), device=length_B.device)
    wide_B = (draws_2B[0] * (most_B + 1)).floor().minimum(length_B)
    first_B = (draws_2B[1] * (length_B - wide_B + 1)).floor()
    place_N = torch.arange(places, device=length_B.device)
    return (place_N >= first_B[:, None]) & (place_N < (first_B + wide_B)[:, None])
