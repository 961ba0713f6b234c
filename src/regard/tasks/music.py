"""Music: a language model over the pitches of several voices, judged by what each note cost it and by what copying would have cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.data.batching import Batching
from regard.data.marks import BOS, EOS
from regard.data.music import Music, copying_floor, read_music
from regard.data.music_batches import MusicBatches, music_cache
from regard.data.prepare import digest
from regard.data.spelling import Pitches
from regard.data.text_cache import TextCache
from regard.data.tokenise import train_tokenizer
from regard.data.words import PitchVocabulary
from regard.errors import DataError, UsageError
from regard.evaluate.measure import Score
from regard.models.configs import LanguageModel
from regard.models.saved import Saved, as_writer, save_model
from regard.run import Run, files_of, root_of
from regard.tasks.language_modelling import LanguageModelling
from regard.tasks.protocol import Check
from regard.tasks.refusing import no_metrics, only
from regard.tasks.telling import readme
from regard.tasks.tokenizers import kept
from regard.train.device import Machine
from regard.train.parallel import Ranks


@dataclass(frozen=True, eq=False)
class Composing(LanguageModelling):
    """A run's pieces, ready to be read. Its loss is that of the notes: the end of a piece is learned, but not counted."""

    floor: float = 0.0
    """What copying alone would cost on the test."""

    @property
    def grid(self) -> PitchVocabulary:
        vocabulary = self.tokenizer.vocabulary
        assert isinstance(vocabulary, PitchVocabulary)
        return vocabulary

    def read(self, cache: TextCache, batching: Batching, *, seed: int = 1, rank: int = 0, world: int = 1) -> MusicBatches:
        transpose = self.run.tokenizer.transpose if isinstance(self.run.tokenizer, Pitches) else 0
        return MusicBatches(cache, batching, voices=self.grid.voices, transpose=transpose, seed=seed, rank=rank, world=world)

    def sample(self, model: nn.Module) -> Callable[[int], Sequence[tuple[str, str]]] | None:
        """Music is not shown in a line."""
        return None

    def save(self, folder: Path, model: nn.Module) -> None:
        page = readme(
            "A model of music",
            learned=f"{len(self.train) - len(self.train.starts):,} notes of {len(self.train.starts):,} pieces",
            corpora=self.run.data.train,
            use="regard generate FOLDER --prompt BEGINNING.mid --midi OUT.mid",
        )
        save_model(folder, model, self.config, tokenizers={"text": self.tokenizer}, tables={}, readme=page)

    def score(self, model: nn.Module, machine: Machine, batching: Batching, check: Check) -> dict[str, dict[str, Any]]:
        if self.test is None:
            return {}
        with torch.no_grad():
            total, notes = self._loss(model, self.test, machine, batching, check)
        signature = f"notes:{notes}|voices:{self.grid.voices}|steps:{self.grid.steps}|rests:counted|repeats:counted"
        row = f"|rows:{self.read(self.test, batching).length}"
        scores = [Score("note-nll", total / notes, signature + row), Score("copy-floor", self.floor, signature)]
        return {score.name: score.json() for score in scores}


def open_music(run: Run, config: LanguageModel, out: Path, *, ranks: Ranks, warm: Saved | None = None) -> Composing:
    """All pieces, in memory."""
    no_metrics(run)
    asked = run.tokenizer
    assert isinstance(asked, Pitches)
    if config.recalls:
        do = "choose another slot than transformer-xl"
        raise UsageError("pieces are read whole, and a model that remembers reads on from row to row", where="model.trunk.own", do=do)
    make = lambda: {"text": as_writer(warm).text if warm else train_tokenizer(asked, [])}
    (tokenizer,) = kept(out, ("text",), make, ranks=ranks)
    grid, root = tokenizer.vocabulary, root_of(run.data)
    if not isinstance(grid, PitchVocabulary) or (grid.voices, grid.steps) != (asked.voices, asked.steps):
        raise UsageError("the model to begin with stands on another grid", where="tokenizer", do="give the voices and steps that it has")
    parts = {part: only(getattr(run.data, part), (Music,), part=part, reader="a model of music") for part in ("train", "valid", "test")}
    pieces = {part: read_music(corpora, voices=grid.voices, steps=grid.steps, root=root) for part, corpora in parts.items()}
    held = run.data.hold_out if not parts["valid"] else 0
    if held >= len(pieces["train"]):
        raise DataError(f"{held} cannot be held out of {len(pieces['train'])} pieces", where="data.hold_out", do="hold out fewer")
    if held:
        pieces["train"], pieces["valid"] = pieces["train"][:-held], pieces["train"][-held:]
    files = [(repr(corpus), _files(corpus, root)) for corpus in parts["train"]]
    caches = {part: music_cache(some, grid, fingerprint=digest(files)) if some else None for part, some in pieces.items()}
    learned = caches["train"]
    assert learned is not None
    config = replace(config, begin=BOS, end=EOS, vocabulary=tokenizer.size)
    floor = copying_floor(pieces["train"], pieces["test"]) if pieces["test"] else 0.0
    return Composing(run, config, tokenizer, learned, caches["valid"], caches["test"], floor=floor)


def _files(corpus: Music, root: Path) -> list[Path]:
    """The files that are read, those of a folder one by one."""
    (path,) = files_of(corpus, root=root)
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
