"""The position-wise feed-forward layer: the same two maps at every token, plain or gated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.nn.tap import tap

Activation = Literal["relu", "gelu", "gelu-tanh", "silu", "tanh"]


@dataclass(frozen=True)
class FeedForward:
    """max(0, x W1 + b1) W2 + b2; gated: (act(x W1) * (x Wg)) W2."""

    kind: ClassVar[Literal["plain"]] = "plain"
    d_ff: int = 2048
    "Width of the hidden layer."
    activation: Activation = "relu"
    "Non-linearity of the hidden layer."
    gated: bool = False
    "Multiply the hidden layer by a second linear map of the input (GLU, SwiGLU with silu)."
    biases: bool = True
    "Whether the linear maps have biases."
    dropout: float = 0.0
    "Dropout on the hidden layer (the paper has none here)."


ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu-tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "tanh": F.tanh,
}


class PositionWise(nn.Module):
    def __init__(self, config: FeedForward, d_model: int, *, name: str = "feed_forward"):
        super().__init__()
        self.name = name
        self.inner = nn.Linear(d_model, config.d_ff, bias=config.biases)
        self.gate = nn.Linear(d_model, config.d_ff, bias=config.biases) if config.gated else None
        self.outer = nn.Linear(config.d_ff, d_model, bias=config.biases)
        self.dropout = nn.Dropout(config.dropout) if config.dropout else nn.Identity()
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, x: Float[Tensor, "*B D"], tokens: object = None) -> Float[Tensor, "*B D"]:
        """Who stands where does not matter here."""
        hidden_BTF = self.activation(self.inner(x))
        if self.gate is not None:
            hidden_BTF = hidden_BTF * self.gate(x)
        return self.outer(self.dropout(tap(hidden_BTF, f"{self.name}.hidden")))
