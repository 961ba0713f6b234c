"""Texts with a label for every word: what a tagger learns, and how many of the entities in them it finds."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import nn

from regard.data.batch import IGNORED
from regard.data.images import natural
from regard.data.ragged import Ragged
from regard.data.spelled_words import SpelledWords, spelled_words
from regard.data.tagged import Tagged, TaggedText, read_tagged
from regard.data.text_batch import TextBatch
from regard.data.tokenise import Tokenizer, train_tokenizer
from regard.errors import DataError
from regard.evaluate.accuracy import accuracy
from regard.evaluate.entities import OUTSIDE, entity_f1
from regard.evaluate.measure import Score
from regard.models.configs import Tagger
from regard.models.reader import Reader
from regard.models.saved import Saved
from regard.run import Run, root_of
from regard.tasks.labelling import Labelling, Things, parted
from regard.tasks.refusing import no_metrics, only
from regard.tasks.tokenizers import kept
from regard.train.loss import CrossEntropy, Objective
from regard.train.parallel import Ranks


@dataclass(frozen=True, eq=False)
class TaggedExamples:
    """Texts as examples; each costs its tokens, the mark before it included."""

    spelled: Sequence[SpelledWords]
    labels: Ragged
    """Of the words."""
    names: tuple[str, ...]

    @staticmethod
    def of(texts: Sequence[TaggedText], tokenizer: Tokenizer, names: tuple[str, ...], *, longest: int) -> TaggedExamples:
        number = {name: place for place, name in enumerate(names)}
        labels = Ragged.of([[number[label] for label in text.labels] for text in texts])
        return TaggedExamples([SpelledWords.of(text.words, tokenizer, longest=longest) for text in texts], labels, names)

    @property
    def costs(self) -> NDArray[np.int64]:
        return np.array([len(one.ids) + 1 for one in self.spelled], np.int64)

    @property
    def answers(self) -> list[str]:
        """The labels of each text, with spaces between."""
        return [" ".join(self.names[label] for label in self.labels.row(place).tolist()) for place in range(len(self.spelled))]

    def batch(self, places: NDArray[np.int64]) -> TextBatch:
        some = [self.spelled[place] for place in places.tolist()]
        return spelled_words(some, [self.labels.row(place) for place in places.tolist()], places.tolist())

    def some(self, places: NDArray[np.int64]) -> TaggedExamples:
        labels = Ragged.of([self.labels.row(place).tolist() for place in places.tolist()])
        return replace(self, spelled=[self.spelled[place] for place in places.tolist()], labels=labels)


def open_tagging(run: Run, config: Tagger, out: Path, *, ranks: Ranks, warm: Saved | None = None) -> Labelling:
    """Of texts with more tokens than `batching.max_length` the last words get no label, and count as outside where they are scored."""
    no_metrics(run)
    root = root_of(run.data)
    corpora = [only(getattr(run.data, part), (Tagged,), part=part, reader="a tagger") for part in ("train", "valid", "test")]
    parts = [read_tagged(some, root=root) for some in corpora]
    if not parts[0]:
        raise DataError("there is no text to learn from", where="data.train")
    names = config.labels or tuple(sorted({label for text in parts[0] for label in text.labels}, key=natural))
    for part, some in zip(("train", "valid", "test"), parts):
        if unknown := {label for text in some for label in text.labels} - set(names):
            raise DataError(f"{min(unknown)!r} is none of the labels {', '.join(names)}", where=f"data.{part}", do="see model.labels")

    def made() -> dict[str, Tokenizer]:
        lines = [" ".join(text.words) for text in parts[0][: run.tokenizer.training_pairs]]
        known = warm.tokenizers.get("text") if warm is not None else None
        return {"text": known or train_tokenizer(run.tokenizer, lines, language=run.tokenizer.surface.source_language)}

    (tokenizer,) = kept(out, ("text",), made, ranks=ranks)
    train, valid, test = (TaggedExamples.of(some, tokenizer, names, longest=run.batching.max_length) if some else None for some in parts)
    assert train is not None
    learned, held = parted(run, train)
    ids = np.concatenate([np.array(one.ids, np.int64) for one in learned.spelled])
    entities = any(name.startswith(("B-", "I-")) for name in names)
    return Labelling(
        run=run,
        config=replace(config, labels=names, vocabulary=tokenizer.size, longest=run.batching.max_length),
        train=learned,
        valid=valid or held,
        test=test,
        fingerprint=hashlib.blake2b(ids.tobytes() + learned.labels.values.tobytes()).hexdigest()[:32],
        what="texts",
        goal=_goal,
        read=tags,
        on_cpu=2048,
        judge=partial(judged, entities=entities),
        makes="A tagger",
        usual="f1" if entities else "accuracy",
        tokenizers={"text": tokenizer},
    )


def judged(found: Sequence[str], things: Things, *, entities: bool) -> list[Score]:
    """Words that are right and, where labels name entities, those found."""
    right = [text.split() for text in things.answers]
    mine = [(text.split() + [OUTSIDE] * len(labels))[: len(labels)] for text, labels in zip(found, right, strict=True)]
    scores = [accuracy([label for text in mine for label in text], [label for text in right for label in text])]
    return [*scores, entity_f1(mine, right)] if entities else scores


def tags(model: nn.Module, batch: TextBatch) -> list[str]:
    """The likeliest label of each word that was asked for, with spaces between."""
    assert isinstance(model, Reader) and isinstance(model.config, Tagger)
    asked, names = batch.labels != IGNORED, model.config.labels
    found = iter(model.output(model(batch)[asked]).argmax(-1).tolist())
    return [" ".join(names[next(found)] for _ in range(count)) for count in asked.sum(1).tolist()]


def _goal(model: nn.Module, loss: CrossEntropy) -> nn.Module:
    return Objective(model, loss)  # type: ignore[arg-type]
