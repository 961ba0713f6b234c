"""The definition of attention: every score, every weight, in at least 32 bits; the oracle of the other kernels."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from regard.nn.attention.sight import Sight
from regard.nn.tap import Stages

UNSEEN = Stages("")


def weigh(query, key, *, sight: Sight, score, bias, normalise, see: Stages = UNSEEN) -> Float[Tensor, "B H T S"]:
    """attention = normalise(score(q, k) + bias, where the pattern allows)"""
    wide = torch.promote_types(query.dtype, torch.float32)
    with torch.autocast(query.device.type, enabled=False):
        query_BHTE, key_BHSE = query.to(wide), shared(key, heads=query.shape[1]).to(wide)
        scores_BHTS = see("scores", score.pairwise(query_BHTE, key_BHSE))
        if bias.asks != "nothing":
            scores_BHTS = scores_BHTS + see("bias", sight.biased(bias, query_BHTE))
        allowed_BHTS = sight.allowed()
        if see.watched("mask", "masked"):
            scores_BHTS = see("masked", scores_BHTS + see("mask", sight.additive(wide)))
            allowed_BHTS = scores_BHTS > -torch.inf
            scores_BHTS = scores_BHTS.masked_fill(~allowed_BHTS, 0)  # infinite ones would leave NaN in gradients
        return see("weights", normalise.weights(scores_BHTS, allowed_BHTS))


def attend(query, key, value, *, sight: Sight, score, bias, normalise, dropout: float, see: Stages = UNSEEN) -> Float[Tensor, "B H T E"]:
    """The weights average the values."""
    weights_BHTS = F.dropout(weigh(query, key, sight=sight, score=score, bias=bias, normalise=normalise, see=see), dropout)
    with torch.autocast(query.device.type, enabled=False):
        out_BHTE = weights_BHTS @ shared(value, heads=query.shape[1]).to(weights_BHTS.dtype)
        if bias.asks == "values":
            out_BHTE = out_BHTE + bias.values(weights_BHTS, sight.distance())
        return out_BHTE.to(query.dtype)


def shared(heads_BGSE: Float[Tensor, "B G S E"], *, heads: int) -> Float[Tensor, "B H S E"]:
    """Key-value heads, each written out for all the query heads that share it."""
    groups = heads_BGSE.shape[1]
    return heads_BGSE if groups == heads else heads_BGSE.repeat_interleave(heads // groups, 1)
