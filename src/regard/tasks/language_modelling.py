"""Language modelling: running text from raw files, a tokenizer made of it, and a model that is watched and scored by what it expects."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.data.batching import Batching
from regard.data.documents import Text
from regard.data.marks import BOS, EOS, PAD
from regard.data.segment_batches import SegmentBatches
from regard.data.text_batches import TextBatches
from regard.data.text_cache import TextCache, opening, train_text_tokenizer
from regard.data.tokenise import Tokenizer
from regard.decode.sample import Sample
from regard.decode.write import write_texts
from regard.evaluate.perplexity import running_text
from regard.models.configs import LanguageModel
from regard.models.language_model import Writer
from regard.models.saved import Saved, as_writer, save_model
from regard.run import Run, root_of
from regard.tasks.protocol import Check
from regard.tasks.refusing import no_metrics, only
from regard.tasks.running_text import RunningText, beginning, on_one_line, text_caches
from regard.tasks.telling import readme, say
from regard.tasks.tokenizers import kept
from regard.train.device import Machine
from regard.train.loss import CrossEntropy, Objective
from regard.train.parallel import Ranks
from regard.train.segments import SegmentObjective
from regard.train.signals import Signals

WRITTEN = 60  # tokens of the model in a sample


@dataclass(frozen=True, eq=False)
class LanguageModelling(RunningText[LanguageModel]):
    """A run whose model goes on with the texts."""

    usual = "loss"

    def batches(self, batching: Batching, *, rank: int = 0, world: int = 1) -> TextBatches:
        return self.read(self.train, batching, seed=self.run.train.seed, rank=rank, world=world)

    def read(self, cache: TextCache, batching: Batching, *, seed: int = 1, rank: int = 0, world: int = 1) -> TextBatches:
        """The batches of some of the text."""
        kind = SegmentBatches if self.config.recalls else TextBatches
        return kind(cache, batching, seed=seed, rank=rank, world=world)

    def objective(self, model: nn.Module) -> nn.Module:
        return self._objective(model, self.run.train.loss)

    def watch(self, model: nn.Module, machine: Machine, batching: Batching) -> Callable[[Check], Mapping[str, float]] | None:
        if self.valid is None:
            return None
        valid = self.valid

        def watched(check: Check) -> dict[str, float]:
            total, tokens = self._loss(model, valid, machine, batching, check)
            loss = total / max(1, tokens)
            return {"loss": loss, "perplexity": math.exp(min(loss, 700.0))}

        return watched

    def sample(self, model: nn.Module) -> Callable[[int], Sequence[tuple[str, str]]] | None:
        shown = self.valid or self.train

        def sampled(number: int) -> list[tuple[str, str]]:
            prompt = self.tokenizer.decode(beginning(shown, number).tolist())
            with torch.inference_mode():
                found = write_texts(
                    _writer(model), [prompt], tokenizer=self.tokenizer, search=Sample(temperature=0.8, seed=number), length=WRITTEN
                )
            return [(on_one_line(prompt), on_one_line(found[0][0].text))]

        return sampled

    def save(self, folder: Path, model: nn.Module) -> None:
        page = readme(
            "A language model",
            learned=f"{len(self.train):,} tokens of running text",
            corpora=self.run.data.train,
            use="regard generate FOLDER --prompt TEXT",
        )
        save_model(folder, model, self.config, tokenizers={"text": self.tokenizer}, tables={}, readme=page)

    def score(self, model: nn.Module, machine: Machine, batching: Batching, check: Check) -> dict[str, dict[str, Any]]:
        if self.test is None:
            return {}
        say(f"reading the {len(self.test):,} tokens of the test")
        with torch.no_grad():
            total, tokens = self._loss(model, self.test, machine, batching, check)
        row = self.read(self.test, batching).length
        scores = running_text(total, tokens=tokens, words=self.test.words, characters=self.test.characters, row=row)
        return {score.name: score.json() for score in scores}

    def _loss(self, model: nn.Module, cache: TextCache, machine: Machine, batching: Batching, check: Check) -> tuple[float, int]:
        """Of every token once; those that begin a row are said with little before them."""
        objective, total, tokens = self._objective(model, CrossEntropy(smoothing=0.0)), 0.0, 0
        for batch in self.read(cache, batching).once():
            check()
            with machine.autocast():
                total += float(objective(batch.to(machine.device)))
            tokens += batch.target_tokens
        return total, tokens

    def _objective(self, model: nn.Module, loss: CrossEntropy) -> nn.Module:
        return SegmentObjective(_writer(model), loss) if self.config.recalls else Objective(_writer(model), loss)


def open_language_modelling(
    run: Run, config: LanguageModel, out: Path, *, ranks: Ranks, signals: Signals, warm: Saved | None = None
) -> LanguageModelling:
    """Tokenizer and caches; made by the first rank, read by all."""
    no_metrics(run)
    root, strict = root_of(run.data), run.data.filters.on_bad_line == "fail"
    parts = [only(getattr(run.data, part), (Text,), part=part, reader="a language model") for part in ("train", "valid", "test")]

    def made() -> dict[str, Tokenizer]:
        if warm:
            return {"text": as_writer(warm).text}
        return {"text": train_text_tokenizer(run.tokenizer, parts[0], root=root, strict=strict, seed=run.train.seed)}

    (tokenizer,) = kept(out, ("text",), made, ranks=ranks)
    begin = as_writer(warm).model.config.begin if warm else opening(tokenizer, parts[0])
    learned, watched, tested = text_caches(run, parts, tokenizer, out, begin=begin, ranks=ranks, signals=signals)
    config = replace(config, begin=begin, end=EOS if begin == BOS else PAD, vocabulary=tokenizer.size)
    return LanguageModelling(run, config, tokenizer, learned, watched, tested)


def _writer(model: nn.Module) -> Writer:
    assert isinstance(model, Writer)
    return model
