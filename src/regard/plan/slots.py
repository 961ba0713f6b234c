"""The cost of what may stand in an attention slot besides plain attention: Longformer, Linformer, memory-compressed, Transformer-XL."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from regard.errors import UsageError
from regard.nn.attention.biases import RelativeSinusoid
from regard.nn.attention.compressed import Compressed
from regard.nn.attention.longformer import Longformer
from regard.nn.attention.lowrank import Linformer
from regard.nn.attention.multihead import Attention
from regard.nn.attention.patterns import Full, Window
from regard.nn.attention.segments import TransformerXL
from regard.nn.attention.slots import Own
from regard.nn.attention.sparse import Global
from regard.plan.attention import Heads, attention, kept, kernel
from regard.plan.part import Load, Part


def slot(config: Own, d_model: int, shape: Heads, load: Load, *, name: str, causal: bool, memory: bool, decodes: bool) -> Part:
    """Any of them, over its own row or the memory of the encoder."""
    match config:
        case Attention():
            return attention(config, d_model, shape, load, name=name, causal=causal, memory=memory, decodes=decodes)
        case Longformer():
            return longformer(config, d_model, shape, load, name=name)
        case Linformer():
            return linformer(config, d_model, shape, load, name=name, memory=memory, decodes=decodes)
        case Compressed():
            return compressed(config, d_model, shape, load, name=name, causal=causal, decodes=decodes)
        case TransformerXL():
            return transformer_xl(config, d_model, shape, load, name=name, decodes=decodes)
        case _ if hasattr(config, "build"):  # a kind from outside
            raise UsageError(f"no formula says what {config.kind} costs", where=name, do="plan the recipe with another kind in its place")
        case _:
            assert_never(config)


def longformer(config: Longformer, d_model: int, shape: Heads, load: Load, *, name: str) -> Part:
    """3 (D^2 + D) more than plain attention, and the rows of its global positions."""
    axes = {"name": name, "causal": False, "memory": False, "decodes": False}
    looking = Global(config.first, config.at, side="queries")
    local = (Window(config.reach) | Global(config.first, config.at, side="keys")) & ~looking
    near, far = (
        attention(replace(config.attention, pattern=(pattern, *config.attention.pattern)), d_model, shape, load, **axes)
        for pattern in (local, looking)
    )
    maps = d_model * shape.width * (shape.heads + 2 * shape.groups)
    maps += shape.width * (shape.heads + 2 * shape.groups) if config.attention.biases else 0
    return replace(
        near,
        parameters=near.parameters + maps,
        maps=near.maps + 2 * maps * load.batch * load.source,
        core=near.core + far.core,
        kept=near.kept + far.kept,
        note=f"{shape.heads} heads of {shape.width}, window of {config.reach}, {config.first + len(config.at)} global",
    )


def linformer(config: Linformer, d_model: int, shape: Heads, load: Load, *, name: str, memory: bool, decodes: bool) -> Part:
    """k T for each matrix of its own (one that all layers share is counted with the trunk); 4 n k d for attention and for mixing."""
    load = replace(load, packed=False)
    plain = attention(config.attention, d_model, shape, load, name=name, causal=False, memory=memory, decodes=decodes)
    queries, keys = load.target if decodes else load.source, load.source
    matrices = {"none": 2 * shape.groups, "headwise": 2, "key-value": 1, "layerwise": 0}[config.sharing]
    mixing = 4 * config.rank * keys * shape.groups * shape.width
    per_key = plain.core / load.batch / queries / keys
    return replace(
        plain,
        parameters=plain.parameters + matrices * config.rank * config.length,
        maps=plain.maps + load.batch * mixing,
        core=plain.core * config.rank / keys,
        step=plain.step + (config.rank - keys) * per_key if decodes else 0.0,
        once=plain.once + mixing if memory else 0.0,
        cache=2 * shape.groups * shape.width * config.rank * load.width if decodes else 0.0,
        note=f"{plain.note}, {config.rank} mixtures, sharing: {config.sharing}",
        **_over(config.attention, d_model, shape, load, queries=queries, slots=config.rank, keys=keys),
    )


def compressed(config: Compressed, d_model: int, shape: Heads, load: Load, *, name: str, causal: bool, decodes: bool) -> Part:
    """2 (size W^2 + W) for the two convolutions, W the width of all keys; 4 n (n / size) d for attention."""
    load = replace(load, packed=False)
    plain = attention(config.attention, d_model, shape, load, name=name, causal=causal, memory=False, decodes=decodes)
    length, across = load.target if decodes else load.source, shape.groups * shape.width
    slots, convolutions = length // config.size + config.null, 2 * (config.size * across * across + across)
    per_step = plain.core / load.batch / length  # of scores and sums, were there no compression
    return replace(
        plain,
        parameters=plain.parameters + convolutions + (2 * across if config.null else 0),
        maps=plain.maps + load.batch * 2 * convolutions * (length // config.size),
        core=plain.core * slots / length,
        step=plain.step - per_step * (1 - slots / length) + 2 * convolutions / config.size if decodes else 0.0,
        cache=2 * across * (length // config.size + config.size - 1) * load.width if decodes else 0.0,
        note=f"{plain.note}, {config.size} tokens a slot",
        **_over(config.attention, d_model, shape, load, queries=length, slots=slots, keys=length),
    )


def transformer_xl(config: TransformerXL, d_model: int, shape: Heads, load: Load, *, name: str, decodes: bool) -> Part:
    """Keys and values of memory and segment, 4 n (n + m) d, and as much again by half for the distances. What is kept of a layer is what
    went into it, so each step makes keys and values of the memory anew."""
    slot, memory = config.attention, config.memory if load.training else config.remembered or config.memory
    if isinstance(slot.bias, RelativeSinusoid) and not slot.bias.width:
        slot = replace(slot, bias=replace(slot.bias, width=d_model))
    plain = attention(
        slot, d_model, shape, replace(load, packed=False), name=name, causal=True, memory=False, decodes=decodes, before=memory
    )
    again = 4 * memory * d_model * shape.groups * shape.width
    return replace(
        plain,
        step=plain.step + again if decodes else 0.0,
        cache=memory * d_model * load.width if decodes else 0.0,
        note=f"{plain.note}, memory of {memory}",
    )


def _over(config: Attention, d_model: int, shape: Heads, load: Load, *, queries: int, slots: int, keys: int) -> dict:
    """Kernel and memory of attention to so many slots, made of all keys and values, which are kept too."""
    chosen = kernel(config, Full(), shape, load, length=max(queries, slots), memory=True)
    raw = load.batch * 2 * shape.groups * shape.width * keys * load.width
    return {"kernel": chosen, "kept": raw + kept(config, d_model, shape, load, chosen=chosen, queries=queries, keys=slots)}


def shared_matrices(slots: set[Own]) -> int:
    """Parameters of the matrices that all layers of a trunk share."""
    layerwise = {(slot.rank, slot.length) for slot in slots if isinstance(slot, Linformer) and slot.sharing == "layerwise"}
    return sum(rank * length for rank, length in layerwise)
