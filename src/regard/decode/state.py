"""All that search knows of a model: take a step, reorder the rows, admit new sources. Ensembles and toy models offer the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from jaxtyping import Float, Int
from torch import Tensor


class Step(NamedTuple):
    """What one step answers for each row: log-probabilities of the next token and, when asked for, where the row looked."""

    log_probs: Float[Tensor, "R V"]
    attention: Float[Tensor, "R S"] | None = None  # mean cross-attention of the chosen heads; padding holds 0


class Stepper(Protocol):
    """Rows of half-written targets, `beam` rows for each source, those of one source side by side."""

    def step(self, tokens: Int[Tensor, "R"]) -> Step:
        """Append one token to each row and say what may follow."""
        ...

    def reorder(self, rows: Int[Tensor, "R"]) -> None:
        """Row r goes on from what row rows[r] had written; rows stay with their own source."""
        ...

    def admit(self, slots: Sequence[int], sources: Sequence[Sequence[int]]) -> None:
        """Put new sources (token ids, end mark included) into these slots; their rows begin empty."""
        ...
