"""The cost of what may stand in an attention slot besides plain attention: Longformer, Linformer, memory-compressed, Transformer-XL."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, assert_never

from regard.nn.attention.biases import RelativeSinusoid
from regard.nn.attention.compressed import Compressed
from regard.nn.attention.longformer import Longformer
from regard.nn.attention.lowrank import Linformer
from regard.nn.attention.multihead import Attention
from regard.nn.attention.patterns import Full, Window
from regard.nn.attention.segments import TransformerXL
from regard.nn.attention.slots import Own
from regard.nn.attention.sparse import Global
from regard.plan.attention import Heads, attention, counted, kept, kernel
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
            return foreign(config, d_model, shape, load, name=name, causal=causal, memory=memory, decodes=decodes)
        case _:
            assert_never(config)


def foreign(config: Any, d_model: int, shape: Heads, load: Load, *, name: str, causal: bool, memory: bool, decodes: bool) -> Part:
    """A kind from outside: its parameters are counted; what else it costs is taken to be what plain attention does."""
    axes = {"heads": shape.heads, "groups": shape.groups, "d_head": shape.width, "causal": causal, "name": name}
    plain = attention(Attention(), d_model, shape, load, name=name, causal=causal, memory=memory, decodes=decodes)
    note = f"{config.kind}, a kind from outside: FLOPs and memory as of plain attention"
    return replace(plain, parameters=counted(lambda: config.build(d_model, **axes)), note=note, kernel="")


def longformer(config: Longformer, d_model: int, shape: Heads, load: Load, *, name: str) -> Part:
    """3 (D^2 + D) more than plain attention, and the rows of its global positions."""
    axes = {"name": name, "causal": False, "memory": False, "decodes": False}
    looking = Global(config.first, config.at, side="queries")
    local = (Window(config.reach) | Global(config.first, config.at, side="keys")) & ~looking
    near, far = (
        attention(replace(config.attention, pattern=(pattern, *config.attention.pattern)), d_model, shape, load, **axes)
        for pattern in (local, looking)
    )
    maps = (d_model + (1 if config.attention.biases else 0)) * (shape.heads * shape.width + shape.given(config.attention))
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
    mixing = 2 * config.rank * keys * shape.given(config.attention)
    per_key = plain.core / load.batch / queries / keys
    return replace(
        plain,
        parameters=plain.parameters + matrices * config.rank * config.length,
        maps=plain.maps + load.batch * mixing,
        core=plain.core * config.rank / keys,
        step=plain.step + (config.rank - keys) * per_key if decodes else 0.0,
        once=plain.once + mixing if memory else 0.0,
        cache=shape.given(config.attention) * config.rank * load.width if decodes else 0.0,
        note=f"{plain.note}, {config.rank} mixtures, sharing: {config.sharing}",
        **_over(config.attention, d_model, shape, load, queries=queries, slots=config.rank, keys=keys),
    )


def compressed(config: Compressed, d_model: int, shape: Heads, load: Load, *, name: str, causal: bool, decodes: bool) -> Part:
    """size W^2 + W for each of two convolutions, W the width of all keys, or of all values; 4 n (n / size) d for attention."""
    load = replace(load, packed=False)
    plain = attention(config.attention, d_model, shape, load, name=name, causal=causal, memory=False, decodes=decodes)
    length, given = load.target if decodes else load.source, shape.given(config.attention)
    widths = shape.groups * shape.width, given - shape.groups * shape.width
    slots, convolutions = length // config.size + config.null, sum(config.size * width * width + width for width in widths)
    per_step = plain.core / load.batch / length  # of scores and sums, were there no compression
    return replace(
        plain,
        parameters=plain.parameters + convolutions + (given if config.null else 0),
        maps=plain.maps + load.batch * 2 * convolutions * (length // config.size),
        core=plain.core * slots / length,
        step=plain.step - per_step * (1 - slots / length) + 2 * convolutions / config.size if decodes else 0.0,
        cache=given * (length // config.size + config.size - 1) * load.width if decodes else 0.0,
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
    again = 2 * memory * d_model * shape.given(slot)
    return replace(
        plain,
        step=plain.step + again if decodes else 0.0,
        cache=memory * d_model * load.width if decodes else 0.0,
        note=f"{plain.note}, memory of {memory}",
    )


def _over(config: Attention, d_model: int, shape: Heads, load: Load, *, queries: int, slots: int, keys: int) -> dict:
    """Kernel and memory of attention to so many slots, made of all keys and values, which are kept too."""
    chosen = kernel(config, Full(), shape, load, length=max(queries, slots), memory=True)
    raw = load.batch * shape.given(config) * keys * load.width
    return {"kernel": chosen, "kept": raw + kept(config, d_model, shape, load, chosen=chosen, queries=queries, keys=slots)}


def shared_matrices(slots: set[Own]) -> int:
    """Parameters of the matrices that all layers of a trunk share."""
    layerwise = {(slot.rank, slot.length) for slot in slots if isinstance(slot, Linformer) and slot.sharing == "layerwise"}
    return sum(rank * length for rank, length in layerwise)
