"""Answers to things that lie in memory: pictures, recordings, points. What they are and how an answer is read off is told from outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from regard.data.batch import Batch
from regard.data.batching import Batching
from regard.data.examples import ExampleBatches, Examples
from regard.data.tokenise import Tokenizer
from regard.errors import DataError
from regard.evaluate.accuracy import accuracy
from regard.evaluate.measure import Score
from regard.models.configs import Model
from regard.models.saved import save_model
from regard.run import Run
from regard.tasks.protocol import Check
from regard.tasks.telling import readme, say
from regard.train.auto import worth_trying
from regard.train.device import Machine
from regard.train.loss import CrossEntropy


class Things(Examples, Protocol):
    """Examples whose right answers are known."""

    @property
    def answers(self) -> Sequence[str]: ...

    def some(self, places: NDArray[np.int64]) -> Self: ...


T = TypeVar("T", bound=Things)
Judge = Callable[[Sequence[str], Any], list[Score]]
"""The scores of these answers to these things."""


def rightly(found: Sequence[str], things: Things) -> list[Score]:
    """An answer is right or wrong."""
    return [accuracy(found, things.answers)]


@dataclass(frozen=True, eq=False)
class Labelling:
    """A run that learns the answers to things, each by itself."""

    run: Run
    config: Model
    train: Things
    valid: Things | None
    test: Things | None
    fingerprint: str
    what: str
    """What the examples are, in the plural."""
    goal: Callable[[nn.Module, CrossEntropy], nn.Module]
    """Model and loss as one module."""
    read: Callable[[nn.Module, Any], list[str]]
    """The model's answer to each example of a batch."""
    on_cpu: int
    judge: Judge = rightly
    makes: str = "A classifier"
    """What the model is, to its users."""
    use: str = "regard classify FOLDER FILE..."
    usual: str = "accuracy"
    tables: Mapping[str, Any] = field(default_factory=dict)
    """What else the model folder proposes to its users."""
    tokenizers: Mapping[str, Tokenizer] = field(default_factory=dict)
    """What turns text into tokens, where text is read."""
    lost: Callable[[float, int], list[Score]] = lambda total, labels: []
    """What the loss of the test comes to, where it is a score."""
    asked: bool = True
    """Whether answers are asked for while it trains; where each has to be searched for, the loss alone may do."""

    @property
    def counts(self) -> Mapping[str, int]:
        held = {"held out": len(self.valid.costs)} if self.valid is not None and not self.run.data.valid else {}
        return {"read": len(self.train.costs) + sum(held.values()), **held, "kept": len(self.train.costs)}

    @property
    def most(self) -> int:
        return worth_trying(int(self.train.costs.sum()))

    def batches(self, batching: Batching, *, rank: int = 0, world: int = 1) -> ExampleBatches:
        return ExampleBatches(self.train, batching, seed=self.run.train.seed, rank=rank, world=world)

    def objective(self, model: nn.Module) -> nn.Module:
        return self.goal(model, self.run.train.loss)

    def watch(self, model: nn.Module, machine: Machine, batching: Batching) -> Callable[[Check], Mapping[str, float]] | None:
        if self.valid is None:
            return None
        valid = self.valid

        def watched(check: Check) -> dict[str, float]:
            loss = _Loss(self.goal(model, CrossEntropy(smoothing=0.0)))
            found = self._answers(model, valid, machine, batching, check, also=loss.take, read=self.read if self.asked else None)
            scores = self.judge(found, valid) if self.asked else []
            return {"loss": loss.total / max(1, loss.labels), **{score.name: score.score for score in scores}}

        return watched

    def sample(self, model: nn.Module) -> None:
        return None

    def save(self, folder: Path, model: nn.Module) -> None:
        page = readme(
            self.makes,
            learned=f"{len(self.train.costs):,} {self.what}",
            corpora=self.run.data.train,
            use=self.use,
        )
        save_model(folder, model, self.config, tokenizers=self.tokenizers, tables=dict(self.tables), readme=page)

    def score(self, model: nn.Module, machine: Machine, batching: Batching, check: Check) -> dict[str, dict[str, Any]]:
        if self.test is None:
            return {}
        say(f"answering the {len(self.test.costs):,} {self.what} of the test")
        loss = _Loss(self.goal(model, CrossEntropy(smoothing=0.0)))
        with torch.no_grad():
            found = self._answers(model, self.test, machine, batching, check, also=loss.take, read=self.read)
        return {score.name: score.json() for score in (*self.judge(found, self.test), *self.lost(loss.total, loss.labels))}

    def _answers(
        self,
        model: nn.Module,
        things: Things,
        machine: Machine,
        batching: Batching,
        check: Check,
        *,
        also: Callable[[Batch], None],
        read: Callable[[nn.Module, Any], list[str]] | None,
    ) -> list[str]:
        """In the order of the things."""
        found = [""] * len(things.costs)
        for batch in ExampleBatches(things, batching).once():
            check()
            batch = batch.to(machine.device)
            with machine.autocast():
                also(batch)
                for place, answer in zip(batch.pairs, read(model, batch), strict=True) if read else ():
                    found[place] = answer
        return found


class _Loss:
    """The loss of the batches that it was given."""

    def __init__(self, goal: nn.Module):
        self.goal, self.total, self.labels = goal, 0.0, 0

    def take(self, batch: Batch) -> None:
        self.total += float(self.goal(batch))
        self.labels += batch.target_tokens


def parted(run: Run, things: T) -> tuple[T, T | None]:
    """What is learned from, and what is held out of it (`data.hold_out` of them, drawn by lot) where no validation corpus is named."""
    if run.data.valid or not run.data.hold_out:
        return things, None
    count, held = len(things.costs), run.data.hold_out
    if held >= count:
        raise DataError(f"{held} cannot be held out of {count}", where="data.hold_out", do="hold out fewer")
    order = np.random.default_rng([1, count]).permutation(count)
    return things.some(np.sort(order[held:])), things.some(np.sort(order[:held]))
