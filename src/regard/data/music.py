"""Music in several voices on a grid of steps: from chorales in JSON or from MIDI files, as text of pitches, and back to MIDI."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Int
from numpy.typing import NDArray

from regard.data.midi import DIVISION, Midi, Note, midi_bytes, read_midi
from regard.data.text import BROKEN, open_bytes
from regard.errors import DataError

ENDINGS = (".mid", ".midi")
REST = -1
SILENCE = "-"  # a rest, as text

Cells = Int[NDArray, "steps voices"]
"""The pitch of each voice in each step, from the highest voice to the lowest; REST where it is silent."""


@dataclass(frozen=True)
class Music:
    """Pieces in several voices."""

    path: str
    """A .json file (plain, .gz, .xz, .zst) of pieces that are lists of steps, each with the pitch of every voice or -1; a MIDI file; or a
    folder of MIDI files."""
    part: str = ""
    """Which of the lists of a JSON file that has several, such as train, valid and test."""

    kind: ClassVar[Literal["music"]] = "music"


def read_music(corpora: Sequence[Music], *, voices: int, steps: int, root: str | Path = ".") -> list[Cells]:
    """Every piece of these corpora; `steps` of a quarter note, for files that have notes of any length."""
    return [piece for corpus in corpora for piece in _pieces(corpus, Path(root, corpus.path), voices=voices, steps=steps)]


def text_of(cells: Cells) -> str:
    """Pitches by their numbers, voice after voice and step after step."""
    return " ".join(SILENCE if pitch == REST else str(pitch) for pitch in cells.flatten().tolist())


def cells_of(text: str, *, voices: int) -> Cells:
    """The grid that a text of pitches fills; a last step that is not whole is left out."""
    pitches = [REST if word == SILENCE else int(word) for word in text.split() if word == SILENCE or word.isdecimal()]
    whole = len(pitches) // voices * voices
    return np.array(pitches[:whole], np.int64).reshape(-1, voices)


def midi_of(cells: Cells, *, steps: int) -> bytes:
    """A MIDI file with a track for each voice; a pitch that stays is one note."""
    notes, length = [], DIVISION // steps
    for voice in range(cells.shape[1]):
        pitches = cells[:, voice]
        edges = [0, *(np.flatnonzero(np.diff(pitches)) + 1).tolist(), len(pitches)]
        for start, end in pairwise(edges):
            if start < end and pitches[start] != REST:
                notes.append(Note(start * length, end * length, int(pitches[start]), (voice, voice)))
    return midi_bytes(Midi(DIVISION, tuple(sorted(notes))))


def cells_of_midi(midi: Midi, *, voices: int, steps: int) -> Cells:
    """The notes on the grid, each from the step that is nearest to its start to the one nearest to its end, at least one.

    Where there are as many parts as voices each is one, the highest first. Otherwise the notes that sound together are handed out from
    above, the lowest to the last voice.
    """
    tick = midi.division / steps
    spans = [(start := round(note.start / tick), max(start + 1, round(note.end / tick)), note) for note in midi.notes]
    cells = np.full((max((end for _, end, _ in spans), default=0), voices), REST, np.int64)
    parts: dict[tuple[int, int], list[int]] = {}
    for note in midi.notes:
        parts.setdefault(note.part, []).append(note.pitch)
    if len(parts) == voices:
        order = sorted(parts, key=lambda part: -float(np.mean(parts[part])))
        for start, end, note in spans:
            column = cells[start:end, order.index(note.part)]
            np.maximum(column, note.pitch, out=column)
        return cells
    sounding: list[set[int]] = [set() for _ in cells]
    for start, end, note in spans:
        for step in range(start, end):
            sounding[step].add(note.pitch)
    for row, pitches in zip(cells, sounding, strict=True):
        high = sorted(pitches, reverse=True)
        if len(high) >= voices:
            high = [*high[: voices - 1], high[-1]]
        row[: len(high)] = high
    return cells


def piece_of_midi(data: bytes, *, voices: int, steps: int, where: str) -> Cells:
    """The piece that a MIDI file holds."""
    cells = cells_of_midi(read_midi(data, where=where), voices=voices, steps=steps)
    if not len(cells):
        raise DataError("there is no note in it", where=where, do="leave it out")
    return cells


def _pieces(corpus: Music, path: Path, *, voices: int, steps: int) -> Iterator[Cells]:
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in ENDINGS)
        if not files:
            raise DataError("there is no MIDI file in it", where=str(path), do=f"give files that end in {' or '.join(ENDINGS)}")
        for file in files:
            yield piece_of_midi(_content(file), voices=voices, steps=steps, where=str(file))
    elif path.suffix.lower() in ENDINGS:
        yield piece_of_midi(_content(path), voices=voices, steps=steps, where=str(path))
    else:
        yield from _listed(corpus, path, voices=voices)


def _listed(corpus: Music, path: Path, *, voices: int) -> Iterator[Cells]:
    try:
        found: Any = json.load(io.BytesIO(_content(path)))
    except ValueError as error:
        raise DataError(f"it is no JSON ({error})", where=str(path), do="give a JSON file of pieces, or MIDI files") from None
    if corpus.part:
        if not isinstance(found, dict) or corpus.part not in found:
            has = ", ".join(found) if isinstance(found, dict) else "one list alone"
            raise DataError(f"there is no part {corpus.part} in it", where=str(path), do=f"it has {has}")
        found = found[corpus.part]
    if not isinstance(found, list) or not found:
        raise DataError("it is no list of pieces", where=str(path), do="name the part, such as train")
    for number, piece in enumerate(found, 1):
        where = f"{path}, piece {number}"
        try:
            cells = np.array(piece, np.float64)
        except (ValueError, TypeError):
            cells = np.empty(0)
        if cells.ndim != 2 or cells.size != len(cells) * voices or not cells.size:
            what = f"a piece is a list of steps with {voices} pitches each"
            raise DataError(what, where=where, do="set tokenizer.voices, or mend the file")
        if not ((cells == np.round(cells)) & (cells >= REST) & (cells < 128)).all():
            raise DataError("a pitch is a whole number from 0 to 127, or -1 for silence", where=where, do="mend the file")
        yield cells.astype(np.int64)


def _content(path: Path) -> bytes:
    try:
        with open_bytes(path) as stream:
            return stream.read()
    except BROKEN as error:
        raise DataError(f"the archive is damaged or ends early ({type(error).__name__})", where=str(path), do="fetch it again") from None


def copying_floor(learned: Sequence[Cells], asked: Sequence[Cells]) -> float:
    """Nats a note of a guess that knows nothing but how often a voice stays where it is: that share for the pitch of the step before, and
    the rest by lot among all other pitches that are heard at all. The first step of a piece goes by lot."""
    stays = Counter[bool]()
    for piece in learned:
        stays.update((piece[1:] == piece[:-1]).flatten().tolist())
    share, kinds = stays[True] / max(1, stays.total()), len(np.unique(np.concatenate([piece.flatten() for piece in learned])))
    if not 0 < share < 1 or kinds < 2:
        raise DataError("its voices never move, or never stay", where="data.train", do="give other pieces")
    total = cells = 0.0
    for piece in asked:
        same = piece[1:] == piece[:-1]
        total -= same.sum() * np.log(share) + (~same).sum() * np.log((1 - share) / (kinds - 1)) - piece.shape[1] * np.log(kinds)
        cells += piece.size
    return float(total / cells)
