"""Small recordings made here: tones that tell labels apart, written as WAV by the standard library."""

from __future__ import annotations

import io
import math
import tarfile
import wave
from pathlib import Path

import numpy as np

RATE = 8000


def tone(pitch: float, seconds: float = 0.3, *, noise: float = 0.02, seed: int = 0) -> np.ndarray:
    """A sine with two overtones in noise, from -1 to 1."""
    random = np.random.default_rng(seed)
    time = np.arange(round(seconds * RATE)) / RATE
    phase = random.uniform(0, 2 * math.pi)
    sound = sum(np.sin(2 * math.pi * pitch * overtone * time + phase) / overtone for overtone in (1, 2, 3))
    return 0.3 * sound + noise * random.standard_normal(len(time))


def wav(samples: np.ndarray, *, rate: int = RATE, channels: int = 1, width: int = 2) -> bytes:
    """The bytes of a WAV file; the same sound in every channel."""
    scale = 2 ** (8 * width - 1)
    whole = np.clip(np.round(samples * scale), -scale, scale - 1).astype(np.int64)
    if width == 1:
        whole += 128
    raw = np.repeat(whole, channels).astype("<i8").view(np.uint8).reshape(-1, 8)[:, :width].tobytes()
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(channels)
        out.setsampwidth(width)
        out.setframerate(rate)
        out.writeframes(raw)
    return file.getvalue()


def digits(takes: int, *, names: str = "0123456789") -> dict[str, bytes]:
    """Recordings as NAME_anna_TAKE.wav: a pitch for each name, of lengths that differ."""
    return {
        f"{name}_anna_{take}.wav": wav(tone(200 * 1.3**place, 0.2 + 0.03 * ((take * 7 + place) % 5), noise=0.05, seed=place + 100 * take))
        for place, name in enumerate(names)
        for take in range(takes)
    }


def archive(path: Path, files: dict[str, bytes]) -> Path:
    """The files in recordings/ of a .tar.xz."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:xz") as out:
        for name, content in files.items():
            member = tarfile.TarInfo(f"recordings/{name}")
            member.size = len(content)
            out.addfile(member, io.BytesIO(content))
    return path
