"""What `regard generate` does beside text where the model is one of music: MIDI files in and out."""

from __future__ import annotations

from pathlib import Path

from regard.data.music import ENDINGS, cells_of, midi_of, piece_of_midi, text_of
from regard.data.text import open_bytes
from regard.data.words import PitchVocabulary
from regard.errors import DataError, UsageError
from regard.models.folder import replace_bytes


def grid_of(vocabulary: object, *, midi: str, where: str) -> PitchVocabulary | None:
    """The grid that the model writes on, if it writes music; `midi`: which file is to be written."""
    if isinstance(vocabulary, PitchVocabulary):
        return vocabulary
    if midi:
        raise UsageError("it writes text, and no music", where=where, do="leave out --midi")
    return None


def prompt_of(prompt: str, grid: PitchVocabulary | None) -> str:
    """The prompt as text: of a MIDI file its pitches."""
    if grid is None or Path(prompt).suffix.lower() not in ENDINGS:
        return prompt
    with open_bytes(prompt) as stream:
        return text_of(piece_of_midi(stream.read(), voices=grid.voices, steps=grid.steps, where=prompt))


class MidiFiles:
    """Pieces to be written, the first to this file; where there are several, they are numbered."""

    def __init__(self, path: str, grid: PitchVocabulary, *, several: bool):
        self.path, self.grid, self.several, self.number = Path(path), grid, several, 0
        if self.path.suffix.lower() not in ENDINGS:
            raise UsageError(f"{path} does not end in {' or '.join(ENDINGS)}", where="--midi", do="name a MIDI file")
        if not self.path.parent.is_dir():
            raise UsageError("there is no such folder", where=str(self.path.parent), do="make it first")

    def write(self, text: str) -> Path:
        """The file that holds these pitches now."""
        cells = cells_of(text, voices=self.grid.voices)
        if not len(cells):
            raise DataError("not one whole step was written", where=str(self.path), do="raise --max-length")
        self.number += 1
        path = self.path.with_stem(f"{self.path.stem}-{self.number}") if self.several else self.path
        replace_bytes(path, midi_of(cells, steps=self.grid.steps))
        return path
