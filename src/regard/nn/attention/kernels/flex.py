"""Torch's flex_attention: the pattern's predicate, asked element by element, becomes a sparse kernel without any mask in memory."""

from __future__ import annotations

import functools

import torch
from jaxtyping import Float
from torch import Tensor

from regard.nn.attention.predicate import Facts, differs_by_head, visible
from regard.nn.attention.sight import Sight
from regard.nn.view import Tokens


def attend(query, key, value, *, sight: Sight, score, bias) -> Float[Tensor, "B H T E"]:
    """On the CPU it runs without compiling, forward only: for tests, and to try a pattern."""
    if not torch.is_grad_enabled():
        query, key, value = query.detach(), key.detach(), value.detach()  # on the CPU it refuses whatever could have a gradient
    left, right = score.basis(query, key)
    return _flex(query.device.type)(
        left,
        right,
        value,
        score_mod=_score_mod(sight, bias),
        block_mask=sight.remember("blocks", lambda: _blocks(sight)),
        scale=score.scale(query.shape[-1]),
        enable_gqa=query.shape[1] != key.shape[1],
        kernel_options={"BACKEND": "TRITON"} if query.device.type == "cuda" else None,  # its variant for few queries lacks some shapes
    )


def _flex(device: str):
    from torch.nn.attention.flex_attention import flex_attention

    return flex_attention if device == "cpu" or torch.compiler.is_compiling() else _compiled()


@functools.cache
def _compiled():
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention)


def _blocks(sight: Sight):
    from torch.nn.attention.flex_attention import create_block_mask

    queries, keys = sight.tokens()
    rows, pattern = max(queries.real.shape[0], keys.real.shape[0]), sight.pattern

    def mask_mod(row, head, i, j):
        return visible(pattern, _element(queries, row, i), _element(keys, row, j), head)

    heads = sight.heads if differs_by_head(pattern, sight.heads, sight.device) else None
    return create_block_mask(mask_mod, rows if rows > 1 else None, heads, *sight.lengths, device=sight.device)


def _score_mod(sight: Sight, bias):
    if bias.asks == "nothing":
        return None
    sight.distance()  # complains where positions are asked for and not known
    queries, keys = sight.tokens()
    heads = sight.heads

    def score_mod(score, row, head, i, j):
        distance = _element(keys, row, j).positions - _element(queries, row, i).positions
        return score + bias.at(distance, head, heads)

    return score_mod


def _element(tokens: Tokens, row, place) -> Facts:
    row = row if tokens.real.shape[0] > 1 else row * 0  # plain sides have one row for all
    return Facts.of(tokens, lambda fact: fact[row, place])
