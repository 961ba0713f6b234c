"""What a block asks of its attention, whatever it is: vectors in and out, and a state where it writes or looks at a source."""

from __future__ import annotations

from typing import NoReturn

from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import UsageError
from regard.nn.cache import Fixed, Slots, Written
from regard.nn.view import Tokens, View


class Slot(nn.Module):
    """One of one's own needs `forward`; to write word by word `new_cache` and `step` too, and to look at a source `project` and `look`."""

    packs: bool = True
    """Documents end to end in one row cost no more than they must. (Every slot takes them, and gives the same numbers.)"""
    maps: bool = False
    """Its weights, which pass the tap NAME.weights, are over the tokens themselves."""

    def forward(self, x_BTD: Float[Tensor, "B T D"], view: View, memory: int | None = None) -> Float[Tensor, "B T D"]:
        """Attend to the row itself, or to the memory of this number."""
        raise NotImplementedError

    def new_cache(self, rows: int, capacity: int) -> Written:
        """What `step` keeps of the past."""
        self._refuse("writes")

    def step(self, x_RTD: Float[Tensor, "R T D"], view: View, past: Written, slots: Slots) -> Float[Tensor, "R T D"]:
        """Attend to the past and to oneself, and leave in the cache what the next step needs."""
        self._refuse("writes")

    def project(self, memory: Float[Tensor, "B S D"], tokens: Tokens) -> tuple[Tensor, Tensor]:
        """What is worked out once of a source: its keys and values, by heads."""
        self._refuse("looks at a source")

    def look(self, x_RTD: Float[Tensor, "R T D"], view: View, memory: Fixed, memory_tokens: Tokens) -> Float[Tensor, "R T D"]:
        """Attend to a source projected before, of which each has as many rows, one beside the other."""
        self._refuse("looks at a source")

    def _refuse(self, what: str) -> NoReturn:
        raise UsageError(f"{type(self).__name__} does not say how it {what}", where="attention", do="choose another kind for this place")
