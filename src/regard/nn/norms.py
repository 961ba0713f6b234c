"""Normalisation of the residual stream: layer, root-mean-square, and batch norm for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, assert_never

from jaxtyping import Float
from torch import Tensor, nn


@dataclass(frozen=True)
class LayerNorm:
    """(x - mean) / sqrt(var + eps) over the features of each token, then gain and shift."""

    kind: ClassVar[Literal["layer"]] = "layer"
    eps: float = 1e-5
    "Added to the (biased) variance."


@dataclass(frozen=True)
class RmsNorm:
    """x / sqrt(mean of squares + eps), then gain: no mean is taken out, no shift put in."""

    kind: ClassVar[Literal["rms"]] = "rms"
    eps: float = 1e-6
    "Added to the mean of squares."


@dataclass(frozen=True)
class BatchNorm:
    """Statistics over the batch instead of over the features; kept to show why Transformers do not use it."""

    kind: ClassVar[Literal["batch"]] = "batch"
    eps: float = 1e-5
    "Added to the variance."


@dataclass(frozen=True)
class NoNorm:
    """No normalisation at all."""

    kind: ClassVar[Literal["none"]] = "none"


Norm = LayerNorm | RmsNorm | BatchNorm | NoNorm


class TokenBatchNorm(nn.BatchNorm1d):
    """Batch norm over every token of the batch, padding included: that is its known weakness on sequences."""

    def forward(self, input: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        return super().forward(input.flatten(0, 1)).view_as(input)


def build_norm(norm: Norm, d_model: int) -> nn.Module:
    match norm:
        case LayerNorm():
            return nn.LayerNorm(d_model, eps=norm.eps)
        case RmsNorm():
            return nn.RMSNorm(d_model, eps=norm.eps)
        case BatchNorm():
            return TokenBatchNorm(d_model, eps=norm.eps)
        case NoNorm():
            return nn.Identity()
        case _ if hasattr(norm, "build"):  # a kind from outside
            return norm.build(d_model)
        case _:
            assert_never(norm)
