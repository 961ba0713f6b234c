"""From what the encoders end on to what a recurrent decoder begins with."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.nn.trunk import Trunk
from regard.nn.view import Memory


def last_of(memory: Memory) -> Float[Tensor, "V K N D"]:
    """The last states of a recurrent encoder; of any other the mean of its vectors."""
    if memory.final is not None:
        return memory.final
    real_NS1 = memory.tokens.real[..., None]
    mean_ND = (memory.states * real_NS1).sum(1) / real_NS1.sum(1).clamp_min(1)
    return mean_ND[None, None]


def ends(encoder: Trunk) -> tuple[int, int, int]:
    """Vectors, layers and width of what `last_of` gives."""
    return encoder.final or (1, 1, encoder.width)


class Bridge(nn.Module):
    """The states as they are where they fit; where they do not, tanh of a map of them, one for each vector and layer.

    Layers are matched from the top; the lowest of the encoder stands for all that it lacks, and h for a c that it lacks.
    """

    maps: Sequence[nn.Linear]  # in an nn.ModuleList

    def __init__(self, encoders: Sequence[Trunk], *, vectors: tuple[str, ...], layers: int, width: int):
        super().__init__()
        self.vectors, self.layers, self.width = vectors, layers, width
        self.d_in = sum(ends(encoder)[2] for encoder in encoders)
        count = 0 if self.d_in in (0, width) else len(vectors) * layers
        self.maps = nn.ModuleList(nn.Linear(self.d_in, width) for _ in range(count))  # type: ignore[assignment]

    def forward(self, memories: Sequence[Memory], like: Float[Tensor, "N T D"]) -> dict[str, Float[Tensor, "N K W"]]:
        if not self.d_in:
            return {name: like.new_zeros(len(like), self.layers, self.width) for name in self.vectors}
        last = [last_of(memory) for memory in memories]
        first: dict[str, Tensor] = {}
        for number, name in enumerate(self.vectors):
            states = [self._fitted(last, number, layer) for layer in range(self.layers)]
            first[name] = torch.stack(states, 1)
        return first

    def _fitted(self, last: Sequence[Tensor], number: int, layer: int) -> Float[Tensor, "N W"]:
        whole = torch.cat([of[min(number, len(of) - 1), max(0, of.shape[1] - self.layers + layer)] for of in last], -1)
        return self.maps[number * self.layers + layer](whole).tanh() if self.maps else whole


def summary(memories: Sequence[Memory]) -> Float[Tensor, "N D"]:
    """The source in one vector: what the top layers end on."""
    return torch.cat([last_of(memory)[0, -1] for memory in memories], -1)
