"""Words are hidden, and a model learns to say what they were: which ones, and what stands in their place (Devlin 2019)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from regard.data.batch import IGNORED
from regard.data.batching import Batching
from regard.data.marks import FIRST
from regard.data.text_batch import TextBatch
from regard.data.text_batches import TextBatches
from regard.data.text_cache import TextCache
from regard.errors import UsageError

MASK = "<mask>"
"""What stands for a hidden word in a text."""


@dataclass(frozen=True)
class Masking:
    """Which words are asked for. They are drawn anew each time that a text is read (Liu 2019)."""

    share: float = 0.15
    "Of the words, marks not counted."
    masked: float = 0.8
    "The part of them in whose place the mask stands."
    random: float = 0.1
    "The part in whose place another word stands, any with the same chance; the rest stay what they are, and are asked for all the same."

    def __post_init__(self):
        if not 0 < self.share <= 1 or min(self.masked, self.random) < 0 or self.masked + self.random > 1:
            what = f"share {self.share}, masked {self.masked}, random {self.random}"
            raise UsageError(what, where="masking", do="share is above 0 and at most 1; masked and random are at most 1 together")


@dataclass(frozen=True)
class Words:
    """The ids that are words of a vocabulary, and the one that is the mask."""

    mask: int
    last: int
    "The id after the last word."

    def hidden(self, ids: Int[Tensor, "B T"], masking: Masking, random: np.random.Generator) -> tuple[Tensor, Tensor]:
        """The text with words hidden, and the labels: what they were, IGNORED elsewhere. At least one word is asked for."""
        flat, labels = ids.flatten().clone(), torch.full_like(ids, IGNORED).flatten()
        words = torch.nonzero((flat >= FIRST) & (flat < self.last)).flatten().numpy()
        if not len(words):
            return ids, labels.view_as(ids)
        chosen = np.sort(random.choice(words, max(1, round(masking.share * len(words))), replace=False))
        draw, others = random.random(len(chosen)), random.integers(FIRST, self.last, len(chosen))
        labels[chosen] = flat[chosen]
        put = np.where(draw < masking.masked, self.mask, np.where(draw < masking.masked + masking.random, others, flat[chosen].numpy()))
        flat[chosen] = torch.from_numpy(put)
        return flat.view_as(ids), labels.view_as(ids)


class MaskedBatches(TextBatches):
    """Rows of running text in which words are hidden; which ones is a function of the seed and of the rows that came together."""

    def __init__(self, cache: TextCache, config: Batching, masking: Masking, words: Words, *, seed: int = 1, rank: int = 0, world: int = 1):
        super().__init__(cache, config, seed=seed, rank=rank, world=world)
        self.masking, self.words = masking, words

    def batch(self, starts: NDArray[np.int64], *, shift: int = 0) -> TextBatch:
        made = super().batch(starts, shift=shift)
        random = np.random.default_rng([self.seed, 2, shift, *starts.tolist()])
        ids, labels = self.words.hidden(made.text.ids, self.masking, random)
        return replace(made, text=replace(made.text, ids=ids), labels=labels, target_tokens=int((labels != IGNORED).sum()))
