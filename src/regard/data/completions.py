"""Pairs read as one text: source, separator, target. What a decoder alone learns from, source and all (Liu et al. 2018, T-D)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from regard.data.batch import IGNORED
from regard.data.layouts import rectangle, rectangle_side
from regard.data.marks import BOS, EOS
from regard.data.ragged import Ragged
from regard.data.text_batch import TextBatch
from regard.data.tokenise import Tokenizer

SEPARATOR = "<sep>"
"""A tag of the tokenizer, so that no text can hold it by accident."""


@dataclass(frozen=True, eq=False)
class Completions:
    """Pairs as examples; each costs its tokens, marks and separator included."""

    sources: Ragged
    """Up to the separator, begun by their mark."""
    targets: Ragged
    """Behind it, up to their end mark."""
    answers: Sequence[str]
    told: Literal["all", "target"] = "all"
    """What is asked for: every word, as in training, or those of the target alone."""

    @staticmethod
    def of(pairs: Sequence[tuple[str, str]], tokenizer: Tokenizer, *, longest: int, told: Literal["all", "target"]) -> Completions:
        """A text longer than `longest` loses the end of its source."""
        (separator,) = tokenizer.encode(SEPARATOR)
        targets = [[*tokenizer.encode(target)[: longest // 2], EOS] for _, target in pairs]
        sources = [
            [BOS, *tokenizer.encode(source)[: max(0, longest - 2 - len(target))], separator]
            for (source, _), target in zip(pairs, targets, strict=True)
        ]
        return Completions(Ragged.of(sources), Ragged.of(targets), [target for _, target in pairs], told)

    @property
    def costs(self) -> NDArray[np.int64]:
        return np.diff(self.sources.offsets) + np.diff(self.targets.offsets) - 1

    def some(self, places: NDArray[np.int64]) -> Completions:
        sources, targets = (Ragged.of([side.row(place).tolist() for place in places.tolist()]) for side in (self.sources, self.targets))
        return replace(self, sources=sources, targets=targets, answers=[self.answers[place] for place in places.tolist()])

    def batch(self, places: NDArray[np.int64]) -> TextBatch:
        """At every place the word that follows is asked for, or, where the target alone is, from the separator on."""
        texts, labels = [], []
        for place in places.tolist():
            source, target = self.sources.row(place), self.targets.row(place)
            whole = np.concatenate([source, target]).astype(np.int64)
            texts.append(whole[:-1])
            labels.append(whole[1:].copy())
            if self.told == "target":
                labels[-1][: len(source) - 1] = IGNORED
        lengths = np.array([len(text) for text in texts], np.int64)
        flat, asked = np.concatenate(texts), np.concatenate(labels)
        told = int((asked != IGNORED).sum())
        return TextBatch(rectangle_side(flat, lengths), rectangle(asked, lengths, IGNORED), tuple(places.tolist()), told)
