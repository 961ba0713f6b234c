"""attention = normalise(score(q, k) + bias, where the pattern allows) v: the five axes, put together and handed to a kernel."""

from __future__ import annotations

from typing import Literal, assert_never

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import UsageError
from regard.nn.attention.biases import BuiltBias
from regard.nn.attention.dispatch import FULL, NO_BIAS, SCALED, SOFTMAX, Kernel, Need, choose
from regard.nn.attention.kernels import blocked, flex, gathered, reference, sdpa, varlen
from regard.nn.attention.normalise import Epanechnikov, Normaliser
from regard.nn.attention.patterns import together
from regard.nn.attention.predicate import Predicate
from regard.nn.attention.scores import NegativeDistance, Pairwise, Product
from regard.nn.attention.sight import Sight
from regard.nn.tap import Stages
from regard.nn.view import Tokens


def attend(
    query_BHTE: Float[Tensor, "B H T E"],
    key_BGSE: Float[Tensor, "B G S E"],
    value_BGSE: Float[Tensor, "B G S E_v"],
    *,
    queries: Tokens | None = None,
    keys: Tokens | None = None,
    pattern: Predicate | tuple[Predicate, ...] = FULL,
    score: Product | Pairwise = SCALED,
    bias: BuiltBias = NO_BIAS,
    normalise: Normaliser = SOFTMAX,
    kernel: Kernel | Literal["auto"] = "auto",
    dropout: float = 0.0,
    taps: str = "",
    memo: dict | None = None,
) -> Float[Tensor, "B H T E_v"]:
    """What each query gathers from the values; zeros where it may see nothing.

    Given `queries` and `keys`, only real keys of the query's own document are seen, whatever the pattern; without them a side is plain
    rows. `dropout` is the share of weights dropped in this call (0 outside training). `taps`: the names under which scores, bias, mask and
    weights can be recorded and replaced, up to their last word; while somebody does, only the reference can serve.
    `memo`: a dict, fresh for each batch and step of decoding, in which masks are kept for further layers.
    """
    pattern = together(pattern)
    _check(query_BHTE, key_BGSE, value_BGSE, score=score, normalise=normalise)
    T, S, see = query_BHTE.shape[2], key_BGSE.shape[2], Stages(taps)
    need = Need(
        product=score.product,
        widens=score.widens,
        softmax=normalise.kind == "softmax",
        asks=bias.asks,
        band=pattern.band,
        sparse=pattern.sparse and T >= blocked.TILE,
        device=query_BHTE.device.type,
        dtype=query_BHTE.dtype,
        widths=(key_BGSE.shape[3], value_BGSE.shape[3]),
        packed=queries is not None and queries.spans is not None and keys is not None and keys.spans is not None,
        plain=queries is None and keys is None,
        same=queries is keys,
        length=max(T, S) if queries is None or queries.spans is None else queries.spans.longest,
        dropout=dropout > 0,
        gradient=torch.is_grad_enabled() and (query_BHTE.requires_grad or key_BGSE.requires_grad or value_BGSE.requires_grad),
        watched=see.watched(),
    )
    sight = Sight(queries, keys, pattern, lengths=(T, S), heads=query_BHTE.shape[1], device=query_BHTE.device, memo=memo)
    match choose(need, kernel).kernel:
        case "reference":
            return reference.attend(
                query_BHTE, key_BGSE, value_BGSE, sight=sight, score=score, bias=bias, normalise=normalise, dropout=dropout, see=see
            )
        case "sdpa":
            return sdpa.attend(query_BHTE, key_BGSE, value_BGSE, sight=sight, score=score, bias=bias, dropout=dropout)
        case "gathered":
            return gathered.attend(query_BHTE, key_BGSE, value_BGSE, sight=sight, score=score, bias=bias, dropout=dropout)
        case "blocked":
            return blocked.attend(query_BHTE, key_BGSE, value_BGSE, sight=sight, score=score, bias=bias, dropout=dropout)
        case "flex":
            return flex.attend(query_BHTE, key_BGSE, value_BGSE, sight=sight, score=score, bias=bias)
        case "varlen":
            return varlen.attend(query_BHTE, key_BGSE, value_BGSE, sight=sight, score=score)
        case other:
            assert_never(other)


def attention_weights(
    query_BHTE: Float[Tensor, "B H T E"],
    key_BGSE: Float[Tensor, "B G S E"],
    *,
    queries: Tokens | None = None,
    keys: Tokens | None = None,
    pattern: Predicate | tuple[Predicate, ...] = FULL,
    score: Product | Pairwise = SCALED,
    bias: BuiltBias = NO_BIAS,
    normalise: Normaliser = SOFTMAX,
    memo: dict | None = None,
) -> Float[Tensor, "B H T S"]:
    """How much each query takes from each key, by the definition."""
    _check(query_BHTE, key_BGSE, key_BGSE, score=score, normalise=normalise)
    lengths, heads = (query_BHTE.shape[2], key_BGSE.shape[2]), query_BHTE.shape[1]
    sight = Sight(queries, keys, together(pattern), lengths=lengths, heads=heads, device=query_BHTE.device, memo=memo)
    return reference.weigh(query_BHTE, key_BGSE, sight=sight, score=score, bias=bias, normalise=normalise)


def _check(query: Tensor, key: Tensor, value: Tensor, *, score: Product | Pairwise, normalise: Normaliser) -> None:
    if query.shape[1] % key.shape[1] or key.shape[:3] != value.shape[:3]:
        what = f"query {tuple(query.shape)}, key {tuple(key.shape)} and value {tuple(value.shape)} do not fit"
        do = "keys and values share batch, heads and length, and their heads divide the query's"
        raise UsageError(what, where="attention", do=do)
    if query.shape[3] != key.shape[3] and not score.mixes:
        what = f"a query of width {query.shape[3]} does not fit a key of width {key.shape[3]}"
        raise UsageError(what, where="attention", do="use equal widths, or a bilinear or additive score")
    if isinstance(normalise, Epanechnikov) and not isinstance(score, NegativeDistance):
        raise UsageError("it weighs distances", where=normalise.kind, do="use it with the score negative-distance")
