"""Normalisation of the residual stream: layer, root-mean-square, and batch norm for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, assert_never

import torch
from jaxtyping import Bool, Float
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
    """Statistics over the batch instead of over the features; kept to show why Transformers do not use it. For encoders: a decoder's words
    would hear of later ones through them."""

    kind: ClassVar[Literal["batch"]] = "batch"
    eps: float = 1e-5
    "Added to the variance."


@dataclass(frozen=True)
class NoNorm:
    """No normalisation at all."""

    kind: ClassVar[Literal["none"]] = "none"


MOMENTUM = 0.1  # of the running means, as torch has it
Norm = LayerNorm | RmsNorm | BatchNorm | NoNorm


class TokenBatchNorm(nn.Module):
    """(x - mean) / sqrt(var + eps) of each feature over the real tokens of the batch in training, in any layout; later by running means."""

    def __init__(self, d_model: int, *, eps: float):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))
        self.register_buffer("running_mean", torch.zeros(d_model))
        self.register_buffer("running_var", torch.ones(d_model))
        self.running_mean: Tensor
        self.running_var: Tensor
        self.eps = eps

    def forward(self, input: Float[Tensor, "B T D"], real: Bool[Tensor, "B T"] | None = None) -> Float[Tensor, "B T D"]:
        if not self.training:
            return (input - self.running_mean) * (self.running_var + self.eps).rsqrt() * self.weight + self.bias
        rows_ND = input.flatten(0, -2).to(self.running_var.dtype)
        share_N1 = torch.ones_like(rows_ND[:, :1]) if real is None else real.flatten()[:, None].to(rows_ND.dtype)
        count = share_N1.sum().clamp_min(1)
        mean_D = (rows_ND * share_N1).sum(0) / count
        var_D = ((rows_ND - mean_D).square() * share_N1).sum(0) / count
        with torch.no_grad():
            self.running_mean.lerp_(mean_D, MOMENTUM)
            self.running_var.lerp_(var_D * count / (count - 1).clamp_min(1), MOMENTUM)
        return ((input - mean_D) * (var_D + self.eps).rsqrt() * self.weight + self.bias).to(input.dtype)


def normed(norm: nn.Module, x: Float[Tensor, "B T D"], real: Bool[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
    """The norm of x; that of a batch is told which tokens are real."""
    return norm(x, real) if isinstance(norm, TokenBatchNorm) else norm(x)


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
