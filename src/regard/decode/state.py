"""All that search knows of a model: take a step, reorder the rows, admit new sources. Ensembles and toy models offer the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.marks import BOS, EOS, PAD


@dataclass(frozen=True)
class Marks:
    """The ids that mean something to search; an imported model may bring others."""

    pad: int = PAD
    begin: int = BOS
    end: int = EOS


class Step(NamedTuple):
    """What one step answers for each row: log-probabilities of the next token and, when asked for, where the row looked."""

    log_probs: Float[Tensor, "R V"]
    attention: Float[Tensor, "R S"] | None = None  # mean cross-attention of the chosen heads; padding holds 0


class Stepper(Protocol):
    """Rows of half-written targets, `beam` rows for each source, those of one source side by side."""

    @property
    def continuous(self) -> bool:
        """May sources come in while other slots are under way? If not, all slots are always admitted at once."""
        ...

    @property
    def device(self) -> torch.device:
        """Where tokens are wanted and answers lie."""
        ...

    def step(self, tokens: Int[Tensor, "R"]) -> Step:
        """Append one token to each row and say what may follow."""
        ...

    def reorder(self, rows: Int[Tensor, "R"]) -> None:
        """Row r goes on from what row rows[r] had written; rows stay with their own source."""
        ...

    def admit(self, slots: Sequence[int], sources: Sequence[Sequence[int]]) -> None:
        """Put new sources (token ids, end mark included) into these slots; their rows begin empty."""
        ...


class OpenStepper(Protocol):
    """What a model hands to search: a new stepper with room for `slots` sources and `capacity` steps after each admission."""

    def __call__(self, *, slots: int, beam: int, capacity: int, attention: bool) -> Stepper: ...
