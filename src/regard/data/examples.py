"""Batches of examples that lie in memory, each a row of its own: pictures, recordings. The same promises as for sentence pairs."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.data.batching import Batching, Cursor, turns
from regard.data.prefetch import prefetch
from regard.errors import UsageError


class Examples(Protocol):
    """What a corpus of labelled things can do for whoever makes batches."""

    @property
    def costs(self) -> NDArray[np.int64]:
        """Of each example, in the unit of the budget: frames of a recording, 1 for a picture."""
        ...

    def batch(self, places: NDArray[np.int64]) -> Any:
        """These examples side by side."""
        ...


class ExampleBatches:
    """Batches of at most `tokens` places: rows times the longest of them."""

    def __init__(self, examples: Examples, config: Batching, *, seed: int = 1, rank: int = 0, world: int = 1):
        if config.tokens < 1:
            raise UsageError("the budget of a batch is not set", do="fit it to the device first, or give a number")
        self.examples, self.config, self.seed, self.rank, self.world = examples, config, seed, rank, world
        self._real = self._places = 0

    @property
    def padding_share(self) -> float:
        return 1 - self._real / self._places if self._places else 0.0

    @property
    def in_epoch(self) -> int:
        return sum(1 for _ in self.plan(0))

    def plan(self, epoch: int) -> Iterator[NDArray[np.int64]]:
        """Which examples make up each batch of an epoch, over all ranks: those of like length together, in any order."""
        random = np.random.default_rng([self.seed, epoch])
        order = random.permutation(len(self.examples.costs))
        if self.config.order != "random":
            order = order[np.argsort(self.examples.costs[order], kind="stable")]
        batches = list(self._cut(order))
        yield from (batches[place] for place in random.permutation(len(batches)))

    def after(self, cursor: Cursor | None = None) -> Generator[tuple[Any, Cursor], None, None]:
        """Batches without end, each with the cursor that continues after it."""

        def made() -> Generator[tuple[Any, Cursor], None, None]:
            for _, places, following in turns(self.plan, cursor or Cursor(), rank=self.rank, world=self.world):
                yield self.batch(places), following

        return prefetch(made, ahead=self.config.ahead) if self.config.ahead else made()

    def once(self) -> Iterator[Any]:
        for number, places in enumerate(self._cut(np.argsort(self.examples.costs, kind="stable"))):
            if number % self.world == self.rank:
                yield self.batch(places)

    def largest(self) -> Any:
        longest = np.argsort(-self.examples.costs, kind="stable")
        rows = max(1, self.config.tokens // int(self.examples.costs[longest[0]]))
        return self.examples.batch(np.resize(longest, rows))

    def batch(self, places: NDArray[np.int64]) -> Any:
        costs = self.examples.costs[places]
        self._real += int(costs.sum())
        self._places += len(places) * int(costs.max())
        return self.examples.batch(places)

    def _cut(self, order: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        start, longest = 0, 0
        for end, cost in enumerate(self.examples.costs[order].tolist()):
            longest = max(longest, cost)
            if end > start and longest * (end + 1 - start) > self.config.tokens:
                yield order[start:end]
                start, longest = end, cost
        if start < len(order):
            yield order[start:]
