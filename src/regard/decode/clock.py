"""How far the rows of a search have come: what every stepper counts, whatever its model."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.nn.view import Tokens


class Clock:
    """Positions of `slots` x `beam` rows, none beyond `capacity`."""

    def __init__(self, *, slots: int, beam: int, capacity: int, device: torch.device):
        self.beam, self.capacity = beam, capacity
        self.lengths = [0] * slots  # tokens taken in by the rows of each slot
        self.positions = torch.zeros(slots * beam, dtype=torch.long, device=device)

    def rows(self, slots: Sequence[int]) -> list[int]:
        """The rows of these slots."""
        return [slot * self.beam + k for slot in slots for k in range(self.beam)]

    def chosen(self, slots: Sequence[int]) -> Tensor | None:
        """These slots as the caches ask for them: None where it is all of them."""
        return None if list(slots) == list(range(len(self.lengths))) else torch.tensor(list(slots), device=self.positions.device)

    def restart(self, slots: Sequence[int], lengths: Sequence[int]) -> None:
        """The rows of these slots have taken in so many tokens."""
        for slot, length in zip(slots, lengths, strict=True):
            self.lengths[slot] = length
            self.positions[slot * self.beam : (slot + 1) * self.beam] = length

    def tick(self) -> tuple[Tokens, int]:
        """The facts of the token that each row takes in now, and what bounds the positions after it. What has ended steps on, unheard."""
        self.lengths = [min(length + 1, self.capacity) for length in self.lengths]
        positions = self.positions[:, None]
        facts = Tokens(positions.clamp_max(self.capacity - 1), torch.zeros_like(positions), positions < self.capacity)
        self.positions = (self.positions + 1).clamp_max(self.capacity)
        return facts, max(self.lengths)
