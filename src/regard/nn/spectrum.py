"""From sound to frames: short windows, their power at each frequency, gathered into bands as the ear does, and its logarithm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import UsageError

FLOOR = 1e-10  # of the power: the logarithm of digital silence


@dataclass(frozen=True)
class LogMel:
    """How a recording becomes frames."""

    rate: int = 16_000
    "Samples a second; recordings of another rate are refused."
    window: float = 0.025
    "Seconds that one frame looks at."
    hop: float = 0.010
    "Seconds from one frame to the next."
    mels: int = 80
    "Bands."
    lowest: float = 20.0
    "Frequency at which the lowest band begins, in Hz."
    highest: float = 0.0
    "Frequency at which the highest band ends; 0: half the rate."
    transform: int = 0
    "Points of the Fourier transform; 0: the first power of two that holds the window."
    normalise: Literal["recording", "none"] = "recording"
    "recording: each band has mean 0 and deviation 1 over the recording, so that loudness and microphone matter less."

    @property
    def samples(self) -> int:
        """Of a window."""
        return round(self.window * self.rate)

    @property
    def step(self) -> int:
        """Samples from one frame to the next."""
        return round(self.hop * self.rate)

    @property
    def points(self) -> int:
        return self.transform or 1 << (self.samples - 1).bit_length()

    @property
    def top(self) -> float:
        return self.highest or self.rate / 2

    def __post_init__(self):
        if self.samples < 2 or self.step < 1:
            raise UsageError(f"a window of {self.samples} samples, moved by {self.step}", do="give longer windows and hops")
        if self.points < self.samples:
            raise UsageError(f"a transform of {self.points} points does not hold a window of {self.samples} samples")
        if not 0 <= self.lowest < self.top <= self.rate / 2:
            raise UsageError(f"bands from {self.lowest} to {self.top} Hz do not lie between 0 and {self.rate / 2} Hz")

    def frames(self, samples: int) -> int:
        """How many frames so many samples give: only whole windows count."""
        return max(0, 1 + (samples - self.samples) // self.step)


def mel(frequency: float) -> float:
    """The pitch that is heard, in mel: nearly linear below 700 Hz, logarithmic above (O'Shaughnessy 1987)."""
    return 2595 * math.log10(1 + frequency / 700)


def frequency_of(mels: float) -> float:
    return 700 * (10 ** (mels / 2595) - 1)


@lru_cache(maxsize=8)
def filters(config: LogMel) -> Float[Tensor, "F M"]:
    """Triangles over the bins of the transform: each band rises from the middle of the one before to its own, and falls to the next.

    1        /\\  /\\    /\\
    0 ______/  \\/  \\__/  \\___  middles at equal distances in mel, further and further apart in Hz
    """
    low, high = mel(config.lowest), mel(config.top)
    corners = [frequency_of(low + (high - low) * place / (config.mels + 1)) for place in range(config.mels + 2)]
    bins_F = torch.arange(config.points // 2 + 1, dtype=torch.float64) * config.rate / config.points
    left, middle, right = (torch.tensor(corners[start : start + config.mels], dtype=torch.float64) for start in range(3))
    rising = (bins_F[:, None] - left) / (middle - left)
    falling = (right - bins_F[:, None]) / (right - middle)
    filters_FM = torch.minimum(rising, falling).clamp_min(0)
    if not bool((filters_FM.sum(0) > 0).all()):
        empty = int((filters_FM.sum(0) > 0).long().argmin()) + 1
        what = f"band {empty} of {config.mels} lies between two bins of a transform of {config.points} points"
        raise UsageError(what, where="features", do="take fewer mels, or more points for the transform")
    return filters_FM.float()


def log_mel(samples_N: Float[Tensor, "N"], config: LogMel) -> Float[Tensor, "T M"]:
    """log(power of each frame in each band). A recording shorter than one window has no frame."""
    if len(samples_N) < config.samples:
        return samples_N.new_zeros(0, config.mels)
    windows_TN = samples_N.unfold(0, config.samples, config.step) * torch.hann_window(config.samples, device=samples_N.device)
    power_TF = torch.fft.rfft(windows_TN, n=config.points).abs().square()
    bands_TM = (power_TF @ filters(config).to(samples_N.device)).clamp_min(FLOOR).log()
    return normalised(bands_TM) if config.normalise == "recording" else bands_TM


def normalised(bands_TM: Float[Tensor, "T M"]) -> Float[Tensor, "T M"]:
    """Each band with mean 0 and deviation 1 over the recording."""
    spread_1M = bands_TM.std(0, keepdim=True, correction=0)
    return (bands_TM - bands_TM.mean(0, keepdim=True)) / spread_1M.clamp_min(1e-5)
