"""Masked language modelling: running text in which words are hidden anew each time it is read, and a model that says what they were."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.data.batch import IGNORED
from regard.data.batching import Batching
from regard.data.documents import Text
from regard.data.marks import BOS
from regard.data.masking import MASK, MaskedBatches, Words
from regard.data.text_cache import TextCache, train_text_tokenizer
from regard.data.tokenise import Tokenizer
from regard.decode.fill import fill_texts, mask_of
from regard.evaluate.measure import Score
from regard.models.configs import MaskedLanguageModel
from regard.models.reader import Reader
from regard.models.saved import Saved, save_model
from regard.run import Run, root_of
from regard.tasks.protocol import Check
from regard.tasks.refusing import no_metrics, only
from regard.tasks.running_text import RunningText, beginning, on_one_line, text_caches
from regard.tasks.telling import readme, say
from regard.tasks.tokenizers import kept
from regard.train.device import Machine
from regard.train.loss import CrossEntropy, Objective
from regard.train.parallel import Ranks
from regard.train.signals import Signals

EVERY = 6  # of the tokens of a sample one is hidden


@dataclass(frozen=True, eq=False)
class MaskedModelling(RunningText[MaskedLanguageModel]):
    """A run whose model says which words were hidden."""

    usual = "accuracy"

    def batches(self, batching: Batching, *, rank: int = 0, world: int = 1) -> MaskedBatches:
        return self._batches(self.train, batching, seed=self.run.train.seed, rank=rank, world=world)

    def objective(self, model: nn.Module) -> nn.Module:
        return Objective(model, self.run.train.loss)  # type: ignore[arg-type]

    def watch(self, model: nn.Module, machine: Machine, batching: Batching) -> Callable[[Check], Mapping[str, float]] | None:
        if self.valid is None:
            return None
        valid = self.valid
        return lambda check: {score.name: score.score for score in self._scores(model, valid, machine, batching, check)}

    def sample(self, model: nn.Module) -> Callable[[int], Sequence[tuple[str, str]]] | None:
        shown = self.valid or self.train

        def sampled(number: int) -> list[tuple[str, str]]:
            assert isinstance(model, Reader)
            ids = beginning(shown, number).tolist()
            ids[EVERY // 2 :: EVERY] = [self._words.mask] * len(ids[EVERY // 2 :: EVERY])
            prompt = self.tokenizer.decode(ids)
            if MASK not in prompt:
                return []
            (found,) = fill_texts(model, [prompt], tokenizer=self.tokenizer)
            return [(on_one_line(prompt), on_one_line(found.text))]

        return sampled

    def save(self, folder: Path, model: nn.Module) -> None:
        page = readme(
            "A masked language model",
            learned=f"{len(self.train):,} tokens of running text",
            corpora=self.run.data.train,
            use=f"regard generate FOLDER --prompt 'A TEXT WITH {MASK} IN IT'",
        )
        save_model(folder, model, self.config, tokenizers={"text": self.tokenizer}, tables={}, readme=page)

    def score(self, model: nn.Module, machine: Machine, batching: Batching, check: Check) -> dict[str, dict[str, Any]]:
        if self.test is None:
            return {}
        say(f"filling words into the {len(self.test):,} tokens of the test")
        with torch.no_grad():
            return {score.name: score.json() for score in self._scores(model, self.test, machine, batching, check)}

    def _scores(self, model: nn.Module, cache: TextCache, machine: Machine, batching: Batching, check: Check) -> list[Score]:
        """Of the hidden words; the same are hidden each time."""
        assert isinstance(model, Reader)
        objective, total, right, words = Objective(model, CrossEntropy(smoothing=0.0)), 0.0, 0, 0
        for batch in self._batches(cache, batching).once():
            check()
            batch = batch.to(machine.device)
            with machine.autocast():
                total += float(objective(batch))
                asked = batch.labels != IGNORED
                right += int((model.output(model(batch)[asked]).argmax(-1) == batch.labels[asked]).sum())
            words += batch.target_tokens
        masking, loss = self.config.masking, total / max(1, words)
        signature = f"masked|share:{masking.share}|masked:{masking.masked}|random:{masking.random}|n:{words}"
        return [
            Score("loss", loss, signature),
            Score("perplexity", math.exp(min(loss, 700.0)), signature),
            Score("accuracy", 100 * right / max(1, words), signature),
        ]

    def _batches(self, cache: TextCache, batching: Batching, *, seed: int = 1, rank: int = 0, world: int = 1) -> MaskedBatches:
        return MaskedBatches(cache, batching, self.config.masking, self._words, seed=seed, rank=rank, world=world)

    @property
    def _words(self) -> Words:
        return Words(mask_of(self.tokenizer), self.tokenizer.vocabulary.size)


def open_masked_modelling(
    run: Run, config: MaskedLanguageModel, out: Path, *, ranks: Ranks, signals: Signals, warm: Saved | None = None
) -> MaskedModelling:
    """Tokenizer, with the mask among its tags, and caches."""
    no_metrics(run)
    root, strict = root_of(run.data), run.data.filters.on_bad_line == "fail"
    parts = [only(getattr(run.data, part), (Text,), part=part, reader="a masked language model") for part in ("train", "valid", "test")]
    tagged = run.tokenizer if MASK in run.tokenizer.tags else replace(run.tokenizer, tags=(*run.tokenizer.tags, MASK))

    def made() -> dict[str, Tokenizer]:
        known = warm.tokenizers.get("text") if warm is not None else None
        return {"text": known or train_text_tokenizer(tagged, parts[0], root=root, strict=strict, seed=run.train.seed)}

    (tokenizer,) = kept(out, ("text",), made, ranks=ranks)
    learned, watched, tested = text_caches(run, parts, tokenizer, out, begin=BOS, ranks=ranks, signals=signals)
    return MaskedModelling(run, replace(config, vocabulary=tokenizer.size), tokenizer, learned, watched, tested)
