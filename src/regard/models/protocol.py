"""What training asks of any model: hidden states for a batch, and an output that scores them."""

from __future__ import annotations

from typing import Any, Protocol

from jaxtyping import Float
from torch import Tensor, nn


class Trainable(Protocol):
    """A module whose call gives hidden states, and whose `output` gives scores of what may follow each of them."""

    @property
    def output(self) -> nn.Module: ...

    def __call__(self, batch: Any) -> Float[Tensor, "B *T D"]: ...
