"""Words spelled in pieces that know which word they begin: labels belong to words, and models read pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.batch import IGNORED
from regard.data.layouts import rectangle, rectangle_side
from regard.data.marks import BOS, UNK
from regard.data.text_batch import TextBatch
from regard.data.tokenise import Tokenizer


@dataclass(frozen=True)
class SpelledWords:
    """The pieces of the words of one text, end to end, and where each word begins; words that no longer fit are left out."""

    ids: tuple[int, ...]
    first: tuple[int, ...]

    @staticmethod
    def of(words: Sequence[str], tokenizer: Tokenizer, *, longest: int) -> SpelledWords:
        """`longest` bounds the tokens, the mark before them included."""
        ids: list[int] = []
        first: list[int] = []
        for word in words:
            pieces = tokenizer.encode(word) or [UNK]
            if len(ids) + len(pieces) + 1 > longest:
                break
            first.append(len(ids))
            ids += pieces
        return SpelledWords(tuple(ids), tuple(first))


def spelled_words(texts: Sequence[SpelledWords], labels: Sequence[Sequence[int] | NDArray], pairs: Sequence[int]) -> TextBatch:
    """Texts side by side, each with its mark before it; the label of a word stands at its first piece."""
    lengths = np.array([len(text.ids) + 1 for text in texts], np.int64)
    flat = np.array([place for text in texts for place in (BOS, *text.ids)], np.int64)
    asked = np.full(len(flat), IGNORED, np.int64)
    starts = np.cumsum(lengths) - lengths
    for start, text, own in zip(starts.tolist(), texts, labels, strict=True):
        asked[start + 1 + np.array(text.first, np.int64)] = np.asarray(own, np.int64)[: len(text.first)]
    count = sum(len(text.first) for text in texts)
    return TextBatch(rectangle_side(flat, lengths), rectangle(asked, lengths, IGNORED), tuple(pairs), count)


def unlabelled(texts: Sequence[SpelledWords]) -> TextBatch:
    """The same for texts whose labels nobody knows yet."""
    return spelled_words(texts, [np.zeros(len(text.first), np.int64) for text in texts], range(len(texts)))
