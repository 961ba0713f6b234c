"""What a run asks of its job: data as batches, an objective, what is watched, how the model is saved and scored. One file each job."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from torch import nn

from regard.data.batch import Batch
from regard.data.batching import Batching, Cursor
from regard.models.configs import Model
from regard.train.device import Machine

Check = Callable[[], None]
"""Called between two pieces of long work; raises where somebody asked to stop."""


class Batches(Protocol):
    """Batches of some examples, by budget; without end and from any point, or each example once."""

    @property
    def padding_share(self) -> float: ...
    @property
    def in_epoch(self) -> int:
        """Batches of the first epoch, over all ranks."""
        ...

    def after(self, cursor: Cursor | None = None) -> Generator[tuple[Any, Cursor], None, None]: ...
    def once(self) -> Iterator[Any]: ...
    def largest(self) -> Batch:
        """As large as any can be: to try, before the first step, whether it fits the device."""
        ...


class Task(Protocol):
    """A job, its data read and its model's configuration completed by what the data told."""

    @property
    def config(self) -> Model: ...
    @property
    def fingerprint(self) -> str:
        """Of the data; a run goes on only with the same."""
        ...

    @property
    def counts(self) -> Mapping[str, int]:
        """Examples read, kept, and left out by reason."""
        ...

    @property
    def usual(self) -> str:
        """The score that chooses the best model unless another one is named."""
        ...

    @property
    def on_cpu(self) -> int:
        """The budget of a batch where there is no GPU to fit it to."""
        ...

    @property
    def most(self) -> int:
        """The largest budget worth trying where there is a GPU: small corpora need many steps more than large ones."""
        ...

    def batches(self, batching: Batching, *, rank: int = 0, world: int = 1) -> Batches: ...

    def objective(self, model: nn.Module) -> nn.Module:
        """Model and loss as one module: a batch in, the summed loss out."""
        ...

    def watch(self, model: nn.Module, machine: Machine, batching: Batching) -> Callable[[Check], Mapping[str, float]] | None:
        """Scores on the validation examples, the chosen one among them; nothing where there are none."""
        ...

    def sample(self, model: nn.Module) -> Callable[[int], Sequence[tuple[str, str]]] | None:
        """What the model makes of one of a few validation examples; nothing where that cannot be shown in a line."""
        ...

    def save(self, folder: Path, model: nn.Module) -> None:
        """Write the model folder."""
        ...

    def score(self, model: nn.Module, machine: Machine, batching: Batching, check: Check) -> dict[str, dict[str, Any]]:
        """Scores on the test examples, each with its signature; empty where there are none."""
        ...
