"""The definition of attention: every score, every weight, in at least 32 bits; the oracle of the other kernels."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from regard.nn.attention.sight import Sight

See = Callable[[Tensor], Tensor]


def weigh(query, key, *, sight: Sight, score, bias, normalise) -> Float[Tensor, "B H T S"]:
    """attention = normalise(score(q, k) + bias, where the pattern allows)"""
    wide = torch.promote_types(query.dtype, torch.float32)
    with torch.autocast(query.device.type, enabled=False):
        query_BHTE, key_BHSE = query.to(wide), shared(key, heads=query.shape[1]).to(wide)
        scores_BHTS = score.pairwise(query_BHTE, key_BHSE)
        if bias.asks != "nothing":
            scores_BHTS = scores_BHTS + bias.scores(query_BHTE, sight.distance())
        return normalise.weights(scores_BHTS, sight.allowed())


def attend(query, key, value, *, sight: Sight, score, bias, normalise, dropout: float, see: See | None = None) -> Float[Tensor, "B H T E"]:
    """The weights, once looked at, average the values."""
    weights_BHTS = weigh(query, key, sight=sight, score=score, bias=bias, normalise=normalise)
    if see is not None:
        weights_BHTS = see(weights_BHTS)
    weights_BHTS = F.dropout(weights_BHTS, dropout)
    with torch.autocast(query.device.type, enabled=False):
        out_BHTE = weights_BHTS @ shared(value, heads=query.shape[1]).to(weights_BHTS.dtype)
        if bias.asks == "values":
            out_BHTE = out_BHTE + bias.values(weights_BHTS, sight.distance())
        return out_BHTE.to(query.dtype)


def shared(heads_BGSE: Float[Tensor, "B G S E"], *, heads: int) -> Float[Tensor, "B H S E"]:
    """Key-value heads, each written out for all the query heads that share it."""
    groups = heads_BGSE.shape[1]
    return heads_BGSE if groups == heads else heads_BGSE.repeat_interleave(heads // groups, 1)
