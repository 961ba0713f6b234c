"""Torch's scaled_dot_product_attention: without a mask where that is right, and with one made of the pattern and the bias."""

from __future__ import annotations

from contextlib import nullcontext

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from regard.nn.attention.predicate import EVERYWHERE, PAST
from regard.nn.attention.sight import Sight

# cuDNN, which torch would take first, gives NaN gradients under some masks (pytorch issue 196678).
WITH_MASK = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


def attend(query, key, value, *, sight: Sight, score, bias, dropout: float) -> Float[Tensor, "B H T E"]:
    """Sixteen-bit numbers become 32-bit ones on the CPU, whose kernels for them are several times slower."""
    if query.device.type != "cpu":
        return _attend(query, key, value, sight=sight, score=score, bias=bias, dropout=dropout)
    dtype = query.dtype
    if dtype.itemsize == 2:
        query, key, value = query.float(), key.float(), value.float()
    if not torch.is_autocast_enabled("cpu"):
        return _attend(query, key, value, sight=sight, score=score, bias=bias, dropout=dropout).to(dtype)
    with torch.autocast("cpu", enabled=False):
        return _attend(query, key, value, sight=sight, score=score, bias=bias, dropout=dropout).to(dtype)


def _attend(query, key, value, *, sight: Sight, score, bias, dropout: float) -> Tensor:
    left, right = score.basis(query, key)
    causal = _is_triangle(sight, bias)
    mask = None if causal else _mask(query, sight=sight, bias=bias)
    with sdpa_kernel(WITH_MASK) if mask is not None and query.device.type == "cuda" else nullcontext():
        return F.scaled_dot_product_attention(
            left,
            right,
            value,
            attn_mask=mask,
            dropout_p=dropout,
            is_causal=causal,
            scale=score.scale(query.shape[-1]),
            enable_gqa=query.shape[1] != key.shape[1],
        )


def _is_triangle(sight: Sight, bias) -> bool:
    """Torch's own triangle begins at the top left: right only for tokens that count from 0, T x T."""
    return bias.asks == "nothing" and sight.pattern.band == PAST and sight.counts


def _mask(query, *, sight: Sight, bias) -> Tensor | None:
    if bias.asks == "nothing":
        return None if sight.pattern.band == EVERYWHERE and sight.free else sight.additive(query.dtype)
    if hasattr(bias, "parameters"):
        return sight.forbid(sight.biased(bias, query))
    return sight.remember(f"{bias} {query.dtype}", lambda: sight.forbid(bias.scores(query, sight.distance())))
