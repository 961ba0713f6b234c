"""Recordings and what is said in them: a label for each, or its letters."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from torch import nn

from regard.data.audio import Recordings, labels_of, read_speech
from regard.data.audio import Speech as Said
from regard.data.frame_batch import FrameBatch
from regard.decode.ctc import greedy
from regard.errors import DataError
from regard.evaluate.accuracy import letter_errors
from regard.evaluate.measure import Score
from regard.models.speech import Listener, Speech
from regard.run import Run, root_of
from regard.tasks.labelling import Labelling, parted, rightly
from regard.tasks.refusing import no_metrics, only
from regard.train.ctc_loss import CtcObjective
from regard.train.loss import CrossEntropy, Objective


@dataclass(frozen=True, eq=False)
class SpeechExamples:
    """Recordings as examples; each costs its frames. `names` are the labels or, where `spells`, the letters, which count from 1."""

    said: Said
    names: tuple[str, ...]
    spells: bool

    @property
    def costs(self) -> NDArray[np.int64]:
        return np.array([len(frames) for frames in self.said.frames], np.int64)

    @property
    def answers(self) -> tuple[str, ...]:
        return self.said.said

    def batch(self, places: NDArray[np.int64]) -> FrameBatch:
        texts = [self.said.said[place] for place in places.tolist()]
        labels = [[self.names.index(letter) + 1 for letter in text] if self.spells else [self.names.index(text)] for text in texts]
        return FrameBatch.of([self.said.frames[place] for place in places.tolist()], labels, places.tolist())

    def some(self, places: NDArray[np.int64]) -> SpeechExamples:
        frames, said, files = (tuple(all_[place] for place in places) for all_ in (self.said.frames, self.said.said, self.said.files))
        return replace(self, said=Said(frames, said, files))


class LabelObjective(Objective):
    """One label for a whole recording."""

    def forward(self, batch: FrameBatch):  # pyright: ignore[reportIncompatibleMethodOverride]
        return super().forward(replace(batch, labels=batch.labels.flatten()))


def open_speech(run: Run, config: Speech) -> Labelling:
    no_metrics(run)
    root, spells = root_of(run.data), config.output == "ctc"
    parts: list[Said | None] = []
    for part in ("train", "valid", "test"):
        corpora = only(getattr(run.data, part), (Recordings,), part=part, reader="a model of speech")
        parts.append(read_speech(corpora, config.features, root=root) if corpora else None)
    if parts[0] is None:
        raise DataError("there is no recording to learn from", where="data.train")
    names = tuple(sorted({letter for text in parts[0].said for letter in text})) if spells else labels_of(parts[0])
    examples = [SpeechExamples(said, names, spells) if said is not None else None for said in parts]
    for part, some in zip(("valid", "test"), examples[1:]):
        unknown = set("".join(some.said.said) if spells else some.said.said) - set(names) if some is not None else ()
        if unknown:
            raise DataError(f"{sorted(unknown)[0]!r} is never said in the training recordings", where=f"data.{part}")
    assert examples[0] is not None
    learned, held = parted(run, examples[0])
    digest = hashlib.blake2b(digest_size=16)
    for frames, said in zip(learned.said.frames, learned.said.said):
        digest.update(frames.numpy().tobytes() + said.encode())
    return Labelling(
        run=run,
        config=replace(config, labels=names),
        train=learned,
        valid=examples[1] or held,
        test=examples[2],
        fingerprint=digest.hexdigest(),
        what="recordings",
        goal=_goal,
        read=spelled if spells else labelled,
        on_cpu=6000,
        judge=by_letters if spells else rightly,
    )


def by_letters(found: Sequence[str], examples: SpeechExamples) -> list[Score]:
    """An answer may be nearly right."""
    return [*rightly(found, examples), letter_errors(found, examples.answers)]


def _goal(model: nn.Module, loss: CrossEntropy) -> nn.Module:
    assert isinstance(model, Listener)
    return CtcObjective(model, loss) if model.config.output == "ctc" else LabelObjective(model, loss)


def labelled(model: nn.Module, batch: FrameBatch) -> list[str]:
    """The likeliest label of each recording."""
    assert isinstance(model, Listener)
    return [model.config.labels[place] for place in model.output(model(batch)).argmax(-1).tolist()]


def spelled(model: nn.Module, batch: FrameBatch) -> list[str]:
    """The text of the best path of each recording."""
    assert isinstance(model, Listener)
    log_probs_BPV = model.output(model(batch)).float().log_softmax(-1)
    found = greedy(log_probs_BPV, model.lengths(batch.lengths))
    return ["".join(model.config.labels[letter - 1] for letter in text.letters) for text in found]
