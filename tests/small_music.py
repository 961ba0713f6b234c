"""Small pieces that follow a rule: one voice climbs a scale by two steps at a time, the other repeats it an octave and two steps below."""

from __future__ import annotations

import json
from pathlib import Path

SCALE = (0, 2, 4, 5, 7, 9, 11, 12)


def pieces(count: int, *, voices: int = 2, steps: int = 12) -> list[list[list[int]]]:
    made = []
    for number in range(count):
        high = [60 + SCALE[(number + step // 2) % 8] for step in range(steps)]
        voice = lambda part, high=high, number=number: [60 + SCALE[number % 8] - 12 * part] * (2 * part) + [p - 12 * part for p in high]
        made.append([list(row) for row in zip(*(voice(part)[:steps] for part in range(voices)), strict=True)])
    return made


def write(path: Path, *, voices: int = 2, steps: int = 12) -> None:
    """A file with train, valid and test."""
    parts = {"train": pieces(16, voices=voices, steps=steps), "valid": pieces(3, voices=voices), "test": pieces(4, voices=voices)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(parts), encoding="utf-8")
