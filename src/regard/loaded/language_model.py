"""A trained language model in the hand: go on with texts, and score them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch

from regard.decode.engine import Search
from regard.decode.sample import Sample
from regard.decode.score import PairScore
from regard.decode.translate import Decoding
from regard.decode.write import Written, score_texts, write_texts
from regard.loaded.inside import Inside, Thing
from regard.models.saved import SavedWriter
from regard.train.device import Machine

if TYPE_CHECKING:
    from regard.look.reading import Reading


class LoadedLanguageModel(Inside):
    """A model that goes on with a text."""

    def __init__(self, saved: SavedWriter, machine: Machine):
        self.saved, self.machine = saved, machine
        self.model, self.config, self.text = saved.model, saved.model.config, saved.text

    def generate(
        self,
        prompts: Sequence[str] = ("",),
        *,
        max_length: int = 200,
        search: Search | None = None,
        count: int = 1,
        first: int = 0,
        warn: Callable[[str], None] = lambda message: None,
    ) -> list[list[Written]]:
        """`count` texts of at most `max_length` tokens for each prompt; by default drawn by lot as the model has it."""
        with torch.inference_mode(), self.machine.autocast():
            return write_texts(
                self.model,
                prompts,
                tokenizer=self.text,
                search=search or Sample(),
                length=max_length,
                count=count,
                first=first,
                warn=warn,
            )

    def score(self, texts: Sequence[str]) -> list[PairScore]:
        """The log-probability of each token of these texts and last, if the model knows of ends, of their ending there."""
        with torch.inference_mode(), self.machine.autocast():
            return score_texts(self.model, texts, tokenizer=self.text)

    def reading(self, thing: Thing, *, decoding: Decoding | None = None) -> Reading:
        """The text, and what is expected after each of its tokens."""
        from regard.look.reading import running_text

        return running_text(self.saved, str(thing))
