"""Packed rows: lay the documents side by side in a rectangle, attend inside each, and put the results end to end again.

The cost grows with the longest document and not with the whole row. Both ways a copy is a gather (a scattered sum would be slow, and
on a GPU not even repeatable): backward, each direction runs the other one's indices.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.errors import UsageError
from regard.nn.attention.kernels import sdpa
from regard.nn.attention.patterns import Causal
from regard.nn.attention.predicate import PAST, Facts
from regard.nn.attention.sight import Sight
from regard.nn.view import Spans, Tokens


class Rectangle(NamedTuple):
    """How one side is laid out. Places beyond the end of a document repeat its first token: never read, and never foreign."""

    take: Int[Tensor, "N*L"]
    put: Int[Tensor, "T"]
    filled: Bool[Tensor, "N L"]
    tokens: Tokens


class Layout(NamedTuple):
    """Both sides laid out, and who sees whom there. Rows of unreal queries are zeroed at the end where `real` is given."""

    queries: Rectangle
    keys: Rectangle
    sight: Sight
    real: Bool[Tensor, "T"] | None


def attend(query, key, value, *, sight: Sight, score, bias, dropout: float) -> Float[Tensor, "B H T E"]:
    """Documents of the two sides meet in order: the first with the first, and so on."""
    layout = sight.remember("layout", lambda: _layout(sight))
    out_NHLE = sdpa.attend(
        _side_by_side(query, layout.queries),
        _side_by_side(key, layout.keys),
        _side_by_side(value, layout.keys),
        sight=layout.sight,
        score=score,
        bias=bias,
        dropout=dropout,
    )
    rows_XHE = out_NHLE.transpose(1, 2).flatten(0, 1)
    filled_X11 = sight.remember(f"filled {query.dtype}", lambda: layout.queries.filled.to(query.dtype).view(-1, 1, 1))
    out_THE = _EndToEnd.apply(rows_XHE, layout.queries.take, layout.queries.put, filled_X11)
    if layout.real is not None:
        out_THE = torch.where(layout.real[:, None, None], out_THE, 0)
    return out_THE.transpose(0, 1)[None]


def _side_by_side(heads_1HTE: Tensor, rectangle: Rectangle) -> Tensor:
    rows_XHE = _SideBySide.apply(heads_1HTE[0].transpose(0, 1), rectangle.take, rectangle.put)
    return rows_XHE.unflatten(0, rectangle.filled.shape).transpose(1, 2)


class _SideBySide(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows_THE, take, put):
        ctx.save_for_backward(put)
        return rows_THE.index_select(0, take)

    @staticmethod
    def backward(ctx, *gradients):
        (put,) = ctx.saved_tensors
        return gradients[0].index_select(0, put), None, None


class _EndToEnd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows_XHE, take, put, filled):
        ctx.save_for_backward(take, filled)
        return rows_XHE.index_select(0, put)

    @staticmethod
    def backward(ctx, *gradients):
        take, filled = ctx.saved_tensors
        return gradients[0].index_select(0, take).mul_(filled), None, None, None


def _layout(sight: Sight) -> Layout:
    queries, keys = sight.tokens()
    assert queries.spans is not None and keys.spans is not None
    documents = queries.spans.gather.shape[0], keys.spans.gather.shape[0]
    if documents[0] != documents[1]:
        what = f"{documents[0]} documents of queries cannot meet {documents[1]} documents of keys"
        raise UsageError(what, where="attention", do="pack the same documents on both sides, in the same order")
    laid_keys = _rectangle(keys, keys.spans)
    laid_queries = laid_keys if sight.same else _rectangle(queries, queries.spans)
    lengths = laid_queries.filled.shape[1], laid_keys.filled.shape[1]
    memo = {} if sight.memo is not None else None  # of the rectangle's masks; lives inside the one that was handed down
    if sight.same and sight.pattern.band == PAST and _counts_up(keys, laid_keys):
        # What lies beyond the end of a document lies in its future: torch's triangle needs no mask.
        inner = Sight(None, None, Causal(), lengths=lengths, heads=sight.heads, device=sight.device, memo=memo)
        return Layout(laid_queries, laid_keys, inner, None if _known_real(queries) else queries.real[0])
    real_keys = dataclasses.replace(laid_keys.tokens, real=laid_keys.tokens.real & laid_keys.filled)
    inner = Sight(laid_queries.tokens, real_keys, sight.pattern, lengths=lengths, heads=sight.heads, device=sight.device, memo=memo)
    return Layout(laid_queries, laid_keys, inner, None)


def _rectangle(tokens: Tokens, spans: Spans) -> Rectangle:
    total = spans.scatter.shape[0]
    filled = spans.gather < total
    first = spans.offsets[:-1].long().clamp_max(total - 1)
    take = torch.where(filled, spans.gather, first[:, None])
    facts = Facts.of(tokens, lambda fact: fact[0][take])
    return Rectangle(take.flatten(), spans.scatter, filled, Tokens(facts.positions, facts.documents, facts.real, lengths=facts.lengths))


def _counts_up(tokens: Tokens, laid: Rectangle) -> bool:
    """Whether positions count from 0 in each document, and each is real as a whole: the promise of `Tokens.spans`, checked on the CPU."""
    if tokens.real.device.type != "cpu" or torch.compiler.is_compiling():
        return True
    counted = laid.tokens.positions == torch.arange(laid.filled.shape[1])
    alike = laid.tokens.real == laid.tokens.real[:, :1]
    return bool(((counted & alike) | ~laid.filled).all())


def _known_real(tokens: Tokens) -> bool:
    return tokens.real.device.type == "cpu" and not torch.compiler.is_compiling() and bool(tokens.real.all())
