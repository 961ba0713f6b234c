"""A trained translator in the hand: translate, score and look."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch

from regard.config.toml import structure
from regard.decode.ensemble import ensemble
from regard.decode.score import PairScore, encoded, score_pairs
from regard.decode.step_translator import opener
from regard.decode.translate import Decoding, Translation
from regard.decode.translator import translate_texts
from regard.errors import ModelError, UsageError
from regard.loaded.inside import Inside, Thing
from regard.models.copying import CopyingTranslator
from regard.models.saved import SavedTranslator
from regard.train.device import Machine

if TYPE_CHECKING:
    from regard.look.reading import Reading


class LoadedTranslator(Inside):
    """One model, or several of one vocabulary that decide together."""

    def __init__(self, saved: Sequence[SavedTranslator], machine: Machine):
        self.saved, self.machine = tuple(saved), machine
        first = self.saved[0]
        self.model, self.config, self.source, self.target = first.model, first.config, first.source, first.target
        self.decoding = structure(Decoding, first.tables.get("decoding", {}), where=str(first.folder / "model.toml"))
        for other in self.saved[1:]:
            if [other.target.piece(i) for i in range(other.target.size)] != [self.target.piece(i) for i in range(self.target.size)]:
                raise ModelError(
                    "its vocabulary is not that of the first model",
                    where=str(other.folder),
                    do="take models of one tokenizer (train --from)",
                )

    def translate(
        self,
        texts: Sequence[str],
        *,
        decoding: Decoding | None = None,
        prefixes: Sequence[str] = (),
        banned: Sequence[str] = (),
    ) -> list[str]:
        """The best translation of each text."""
        return [answer.text for answer in self.candidates(texts, decoding=decoding, prefixes=prefixes, banned=banned)]

    def candidates(
        self,
        texts: Sequence[str],
        *,
        decoding: Decoding | None = None,
        prefixes: Sequence[str] = (),
        banned: Sequence[str] = (),
        alignment: bool = False,
        heads: Sequence[tuple[int, int]] = (),
        first: int = 0,
        warn: Callable[[str], None] = lambda message: None,
    ) -> list[Translation]:
        """All candidates with their scores, pieces and, when asked for, alignments by the chosen (layer, head) pairs."""
        several = None
        if len(self.saved) > 1:
            several = ensemble([opener(one.model, heads=heads) for one in self.saved])
        with self._precision():
            return translate_texts(
                self.model,
                texts,
                tokenizers=(self.source, self.target),
                decoding=decoding or self.decoding,
                prefixes=prefixes,
                banned=banned,
                alignment=alignment,
                heads=heads,
                first=first,
                open_stepper=several,
                warn=warn,
            )

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[PairScore]:
        """Log-probabilities of given translations."""
        if len(sources) != len(targets):
            raise UsageError(f"{len(sources)} sources and {len(targets)} targets", do="give a target for each source")
        copies = isinstance(self.model, CopyingTranslator)
        pairs = [encoded((self.source, self.target), pair, copies=copies) for pair in zip(sources, targets)]
        with self._precision():
            return score_pairs(self.model.scores, pairs, device=self.machine.device)

    def reading(self, thing: Thing, *, decoding: Decoding | None = None) -> Reading:
        """The text and its translation."""
        from regard.look.reading import translation

        if self.saved[1:]:
            raise UsageError("several models cannot be looked into at once", do="name one")
        return translation(self.saved[0], str(thing), decoding=decoding or self.decoding)

    def _precision(self) -> contextlib.AbstractContextManager:
        stack = contextlib.ExitStack()
        stack.enter_context(torch.inference_mode())
        stack.enter_context(self.machine.autocast())
        return stack
