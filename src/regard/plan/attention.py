"""The cost of one attention slot: projections, scores, bias, the pairs that a pattern leaves, and the kernel that serves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from regard.nn.attention.biases import ALiBi, NoBias, Relative, RelativeSinusoid, T5Buckets
from regard.nn.attention.dispatch import Need, choose
from regard.nn.attention.kernels import blocked
from regard.nn.attention.multihead import Attention
from regard.nn.attention.patterns import Causal, Full, together
from regard.nn.attention.predicate import FAR, Facts, Predicate, visible
from regard.nn.attention.scores import Additive, Bilinear, Cosine, Dot, Gaussian, NegativeDistance, OffsetDot, ScaledDot
from regard.nn.attention.sight import Sight
from regard.nn.positions import NoRotation
from regard.nn.view import Tokens
from regard.plan.part import Load, Part

CHUNK = 1 << 24  # pairs that are asked at a time of a pattern that no formula counts


@dataclass(frozen=True)
class Heads:
    """How many heads there are, how many share keys and values, and how wide each is."""

    heads: int
    groups: int
    width: int

    def given(self, config: Attention) -> int:
        """The numbers of a token's keys and values."""
        return self.groups * (self.width + self.value(config))

    def value(self, config: Attention) -> int:
        """The width of a head's values."""
        return config.d_value or self.width


def parameters(config: Attention, d_model: int, shape: Heads) -> int:
    """D H (d_k + d_v) + D G (d_k + d_v) [+ H d_k + G (d_k + d_v) + D with biases], and what score and bias have."""
    maps = d_model * (shape.heads * (shape.width + shape.value(config)) + shape.given(config))
    biases = shape.heads * shape.width + shape.given(config) + d_model if config.biases else 0
    return maps + biases + score_parameters(config.score, shape) + bias_parameters(config.bias, shape)


def score_parameters(score: Any, shape: Heads, *, d_key: int = 0) -> int:
    """`d_key`: of keys that are wider or narrower than queries."""
    heads, width = shape.heads, shape.width
    d_key = d_key or width
    match score:
        case Dot() | ScaledDot() | Gaussian() | NegativeDistance():
            return 0
        case OffsetDot():
            return heads * width
        case Bilinear():
            return heads * width * d_key
        case Cosine():
            return 1 if score.learned else 0
        case Additive():
            return heads * ((width + d_key) * score.width + score.width * (2 if score.biased else 1))
        case _:
            return counted(lambda: score.build(heads, width, d_key))


def bias_parameters(bias: Any, shape: Heads) -> int:
    match bias:
        case NoBias() | ALiBi():
            return 0
        case T5Buckets():
            return bias.buckets * shape.heads
        case Relative():
            tables = (shape.heads if bias.tables == "per-head" else 1) * (2 if bias.values else 1)
            return tables * distances(bias, 0) * shape.width
        case RelativeSinusoid():
            across = shape.heads * shape.width
            return ((bias.width or across) + 1) * across
        case _:
            return counted(lambda: bias.build(shape.heads, shape.width))


def counted(build) -> int:
    """The parameters of a part that brings its own `build`, and no formula: counted on the meta device."""
    with torch.device("meta"):
        part = build()
    return sum(parameter.numel() for parameter in part.parameters()) if isinstance(part, torch.nn.Module) else 0


def pairs(pattern: Predicate, queries: int, keys: int, *, heads: int = 1) -> float:
    """Pairs that are worked out for each head. Without a limit to the past all of them count, as is common, though half are masked."""
    band = pattern.band
    if band is not None and band.past >= FAR:
        return queries * keys
    if band is not None:
        rows = torch.arange(queries)
        return int(((rows + band.future).clamp_max(keys - 1) - (rows - band.past).clamp_min(0) + 1).clamp_min(0).sum())
    if pattern.sparse:
        sides = Tokens.plain(1, queries), Tokens.plain(1, keys)
        return blocked.seen(Sight(*sides, pattern, lengths=(queries, keys), heads=heads, device=torch.device("cpu"))) / heads
    rows, seen = torch.arange(queries), 0
    for some in rows.split(max(1, CHUNK // (keys * heads))):
        allowed = visible(pattern, facts(some[:, None], queries), facts(torch.arange(keys)[None], keys), torch.arange(heads)[:, None, None])
        seen += int(allowed.expand(heads, len(some), keys).sum())
    return seen / heads


def facts(positions: torch.Tensor, length: int) -> Facts:
    return Facts(positions, torch.zeros_like(positions), torch.ones_like(positions, dtype=torch.bool), torch.full_like(positions, length))


def attention(
    config: Attention, d_model: int, shape: Heads, load: Load, *, name: str, causal: bool, memory: bool, decodes: bool, before: int = 0
) -> Part:
    """A slot that attends to its own row and `before` tokens more, or to the memory of the encoder."""
    queries = load.target if decodes else load.source
    keys = load.source if memory else before + queries
    pattern = together((*([Causal()] if causal else []), *config.pattern) or Full())
    across, found = shape.heads * shape.width, shape.heads * shape.value(config)
    bias = 1 if config.biases else 0
    asking, giving = d_model * across + found * d_model + bias * (across + d_model), shape.given(config) * (d_model + bias)
    scored = score_flops(config.score, shape)
    seen = pairs(pattern, queries, keys, heads=shape.heads)
    per_pair = 2 * across + scored.pair + 2 * found  # scores, weighted sum
    per_query = 2 * asking + scored.query + 2 * across * distances(config.bias, keys)
    per_key = 2 * giving + scored.key
    chosen = kernel(config, pattern, shape, load, length=max(queries, keys), memory=memory)
    return Part(
        name,
        shape=f"({load.batch}, {queries}, {d_model})",
        parameters=parameters(config, d_model, shape),
        maps=load.batch * (queries * per_query + keys * per_key) + table_flops(config.bias, shape, keys),
        core=load.batch * seen * per_pair,
        step=(per_query + (0 if memory else per_key) + cached(pattern, keys) * per_pair) if decodes else 0.0,
        once=keys * per_key if memory else 0.0,
        kept=kept(config, d_model, shape, load, chosen=chosen, queries=queries, keys=keys),
        cache=shape.given(config) * (cached(pattern, keys) if not memory else keys) * load.width if decodes else 0.0,
        note=described(config, shape, pattern),
        kernel=chosen,
    )


def distances(bias: Any, keys: int) -> int:
    """How many vectors of distances each query meets."""
    match bias:
        case Relative():
            return bias.ends[1] - bias.ends[0] + 1
        case RelativeSinusoid():
            return 2 * bias.clamp + 1 if bias.clamp else keys
        case _:
            return 0


def table_flops(bias: Any, shape: Heads, keys: int) -> float:
    """What making these vectors costs, once for all rows."""
    across = shape.heads * shape.width
    return 2 * distances(bias, keys) * (bias.width or across) * across if isinstance(bias, RelativeSinusoid) else 0.0


@dataclass(frozen=True)
class ScoreFlops:
    """What a score costs beyond one product of query and key."""

    query: float = 0.0
    key: float = 0.0
    pair: float = 0.0


def score_flops(score: Any, shape: Heads, *, d_key: int = 0) -> ScoreFlops:
    across, across_key = shape.heads * shape.width, shape.heads * (d_key or shape.width)
    match score:
        case Bilinear():
            return ScoreFlops(query=2 * across * (d_key or shape.width))
        case Additive():
            # the sum, the tanh and the product with v, for each hidden unit, in place of the product of query and key
            return ScoreFlops(
                query=2 * across * score.width, key=2 * across_key * score.width, pair=4 * shape.heads * score.width - 2 * across_key
            )
        case _:
            return ScoreFlops()


def cached(pattern: Predicate, keys: int) -> int:
    """Positions that a step still has to see: of a window, min(T, reach + 1)."""
    band = pattern.band
    return keys if band is None or band.past >= FAR else min(keys, band.past + 1)


def kept(config: Attention, d_model: int, shape: Heads, load: Load, *, chosen: str, queries: int, keys: int) -> float:
    """Bytes for the backward pass: the input, q, k, v and what the heads found; with the definition the weights too (Korthikanti 2022)."""
    numbers = queries * (d_model + shape.heads * (shape.width + shape.value(config))) + keys * shape.given(config)
    weights = shape.heads * queries * keys if chosen.startswith("reference") else 0
    if isinstance(config.score, Additive):
        weights += shape.heads * queries * keys * config.score.width
    dropped = weights if config.dropout else 0
    return load.batch * ((numbers + weights + dropped) * load.width + dropped)


def kernel(config: Any, pattern: Predicate, shape: Heads, load: Load, *, length: int, memory: bool) -> str:
    """The kernel that serves the slot under this load, and why."""
    need = Need.of(pattern, score=config.score, bias=config.bias, normalise=config.normalise)._replace(
        device=load.device,
        dtype=torch.bfloat16 if load.width == 2 else torch.float32,
        widths=(shape.width, shape.value(config)),
        packed=load.packed,
        same=not memory,
        length=length,
        dropout=config.dropout > 0 and load.training,
        gradient=load.training,
    )
    chosen = choose(need, config.kernel)
    return f"{chosen.kernel}: {chosen.reason}"


def described(config: Attention, shape: Heads, pattern: Predicate) -> str:
    """The slot in a few words: heads, and every axis that is not the plain one."""
    words = [f"{shape.heads} heads of {shape.width}" + (f" and {config.d_value} of values" if config.d_value else "")]
    if shape.groups != shape.heads:
        words.append(f"{shape.groups} of keys")
    parts: tuple[Any, ...] = getattr(pattern, "parts", (pattern,))
    words += [part.kind for part in parts if part.kind != "full"]
    words += [config.score.kind] if not isinstance(config.score, ScaledDot) else []
    words += [axis.kind for axis in (config.bias, config.rotation) if not isinstance(axis, NoBias | NoRotation)]
    words += [config.normalise.kind] if config.normalise.kind != "softmax" else []
    return ", ".join(words)
