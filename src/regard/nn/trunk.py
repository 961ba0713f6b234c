"""What every trunk offers, whatever it is made of: any of them may read a source, write a target, or do without a source."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.nn.cache import State
from regard.nn.view import Memory, Tokens, View


class Trunk(nn.Module):
    """Vectors in, vectors out. One that is causal goes on, given a state, from what the state holds, and leaves what it read there."""

    packs: bool = True
    """Documents end to end in one row cost no more than they must. (Every trunk takes them, and gives the same numbers.)"""

    width: int
    """Of the vectors that come out."""
    heads: int = 0
    """Of each attention map that can be watched."""
    own_maps: tuple[int, ...] = ()
    """Layers whose weights over the row itself pass the tap NAME.LAYER.own.weights."""
    cross_maps: tuple[int, ...] = ()
    """Layers whose weights over the memories pass the taps NAME.LAYER.cross.weights (cross0, cross1, ... if there are several)."""
    final: tuple[int, int, int] | None = None
    """Vectors (h, or h and c), layers and width of the last states that it hands on, if it has states."""
    forcing: float = 1.0
    """How often, in training, a decoder is given the right last word, not its own."""

    def forward(self, x_BTD: Float[Tensor, "B T D"], view: View, state: State | None = None) -> Float[Tensor, "B T D"]:
        raise NotImplementedError

    def new_state(self, rows: int, capacity: int, *, beam: int = 1, device: torch.device | str = "cpu") -> State:
        """An empty state for this many rows of at most `capacity` tokens; `beam` rows share a source."""
        raise NotImplementedError

    def project(self, state: State, memories: tuple[Memory, ...], slots: Tensor | None) -> None:
        """What is worked out once for a source: its keys and values for every layer, the first states."""
        raise NotImplementedError

    def read(self, x_BSD: Float[Tensor, "B S D"], tokens: Tokens) -> Memory:
        """As an encoder: what decoders may look at."""
        return Memory(self(x_BSD, View(tokens)), tokens)

    def remember(self, state: State, memories: tuple[Memory, ...], slots: Tensor | None = None) -> None:
        """Take these sources in: all of them, or those that come into these slots."""
        for kept, memory in zip(state.sources, memories, strict=True):
            kept.write((memory.tokens.positions, memory.tokens.documents, memory.tokens.real), slots)
        self.project(state, memories, slots)

    def draw(self, length: int) -> list[bool]:
        """Before which of so many steps of training the right last word is given; the others get the model's own."""
        return [True] * length
