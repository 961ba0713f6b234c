"""What all steppers of one model have: its caches for the rows of a search, and the clock of these rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

import torch
from jaxtyping import Int
from torch import Tensor

from regard.decode.clock import Clock
from regard.nn.cache import State


class Cached(Protocol):
    """A model that writes step by step."""

    @property
    def device(self) -> torch.device: ...

    def new_state(self, rows: int, capacity: int, *, beam: int = 1) -> State: ...


M = TypeVar("M", bound=Cached)


class ModelStepper(Generic[M]):
    """The caches of one search over `slots` sources. How sources are admitted and tokens taken in, each model's stepper says itself."""

    continuous = True

    def __init__(self, model: M, *, slots: int, beam: int, capacity: int):
        self.model = model
        self.state = model.new_state(slots * beam, capacity, beam=beam)
        self.clock = Clock(slots=slots, beam=beam, capacity=capacity, device=model.device)

    @property
    def device(self) -> torch.device:
        return self.model.device

    def restart(self, slots: Sequence[int]) -> None:
        """The rows of these slots have written nothing."""
        self.state.clear(self.clock.rows(slots))
        self.clock.restart(slots, [0] * len(slots))

    def reorder(self, rows: Int[Tensor, "R"]) -> None:
        self.state.reorder(rows)
