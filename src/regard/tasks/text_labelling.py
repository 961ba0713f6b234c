"""Texts and their labels: what a classifier of texts learns."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from regard.data.images import natural
from regard.data.labelled import Labelled, Texts, read_labelled
from regard.data.listops import ListOps
from regard.data.ragged import Ragged
from regard.data.text_batch import TextBatch, labelled_texts
from regard.data.tokenise import Tokenizer, train_tokenizer
from regard.errors import DataError
from regard.models.configs import TextClassifier
from regard.models.saved import Saved
from regard.models.text_classifier import TextLabeller
from regard.run import Run, root_of
from regard.tasks.labelling import Labelling, parted
from regard.tasks.refusing import no_metrics, only
from regard.tasks.tokenizers import kept
from regard.train.loss import CrossEntropy, Objective
from regard.train.parallel import Ranks


@dataclass(frozen=True, eq=False)
class TextExamples:
    """Texts as examples; each costs its tokens, the mark before it included."""

    ids: Ragged
    labels: NDArray[np.int64]
    names: tuple[str, ...]

    @staticmethod
    def of(texts: Texts, tokenizer: Tokenizer, names: tuple[str, ...], *, longest: int) -> TextExamples:
        ids = Ragged.of([tokenizer.encode(text)[: longest - 1] for text in texts.texts])
        return TextExamples(ids, np.array([names.index(label) for label in texts.labels], np.int64), names)

    @property
    def costs(self) -> NDArray[np.int64]:
        return np.diff(self.ids.offsets) + 1

    @property
    def answers(self) -> list[str]:
        return [self.names[label] for label in self.labels.tolist()]

    def batch(self, places: NDArray[np.int64]) -> TextBatch:
        return labelled_texts([self.ids.row(place) for place in places.tolist()], torch.from_numpy(self.labels[places]), places.tolist())

    def some(self, places: NDArray[np.int64]) -> TextExamples:
        values, lengths = self.ids.take(places)
        return replace(self, ids=Ragged(values, np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])), labels=self.labels[places])


def open_texts(run: Run, config: TextClassifier, out: Path, *, ranks: Ranks, warm: Saved | None = None) -> Labelling:
    """Longer texts than `batching.max_length` are cut there."""
    no_metrics(run)
    root = root_of(run.data)
    parts = [
        read_labelled(only(getattr(run.data, part), (Labelled, ListOps), part=part, reader="a classifier of texts"), root=root)
        for part in ("train", "valid", "test")
    ]
    names = tuple(sorted(set(parts[0].labels), key=natural))
    for part, some in zip(("valid", "test"), parts[1:]):
        if unknown := set(some.labels) - set(names):
            raise DataError(f"no training text has the label {min(unknown)!r}", where=f"data.{part}")

    def made() -> dict[str, Tokenizer]:
        lines = parts[0].texts[: run.tokenizer.training_pairs]
        known = warm.tokenizers.get("text") if warm is not None else None
        return {"text": known or train_tokenizer(run.tokenizer, lines, language=run.tokenizer.surface.source_language)}

    (tokenizer,) = kept(out, ("text",), made, ranks=ranks)
    train, valid, test = (
        TextExamples.of(texts, tokenizer, names, longest=run.batching.max_length) if texts.texts else None for texts in parts
    )
    if train is None:
        raise DataError("there is no text to learn from", where="data.train")
    learned, held = parted(run, train)
    return Labelling(
        run=run,
        config=replace(config, labels=names, vocabulary=tokenizer.size, longest=run.batching.max_length),
        train=learned,
        valid=valid or held,
        test=test,
        fingerprint=hashlib.blake2b(learned.ids.values.tobytes() + learned.labels.tobytes()).hexdigest()[:32],
        what="texts",
        goal=_goal,
        read=answers,
        on_cpu=2048,
        tokenizers={"text": tokenizer},
    )


def _goal(model: nn.Module, loss: CrossEntropy) -> nn.Module:
    return Objective(model, loss)  # type: ignore[arg-type]


def answers(model: nn.Module, batch: TextBatch) -> list[str]:
    """The likeliest label of each text."""
    assert isinstance(model, TextLabeller)
    return [model.config.labels[place] for place in model.output(model(batch)).argmax(-1).tolist()]
