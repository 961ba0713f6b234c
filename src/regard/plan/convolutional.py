"""The cost of convolutional trunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from regard.nn.trunk_convolutional import Convolutional
from regard.plan.glance import Handed, glance
from regard.plan.part import Load, Part
from regard.plan.recurrent import linear


def convolutional(config: Convolutional, d_model: int, load: Load, *, name: str, memories: Sequence[Handed] = (), decodes: bool) -> Part:
    """(k D + 1) 2 D for each gated layer, (k D + 1) D for a plain one; a decoder's layers look besides."""
    width, length = config.width or d_model, load.target if decodes else load.source
    outward = 2 * width if config.gated else width
    size = (config.kernel * width + 1) * outward
    convolution = Part(
        "convolution",
        shape=f"({load.batch}, {length}, {width})",
        parameters=size,
        maps=2 * size * load.batch * length,
        step=2 * size if decodes else 0.0,
        kept=load.batch * length * (width + outward + width) * load.width,
        cache=(config.kernel - 1) * width * load.width if decodes else 0.0,
        note=f"{config.kernel} words, {width} channels, {'gated' if config.gated else 'relu'}" + (", dilated" if config.dilated else ""),
    )
    look: list[Part] = []
    if memories:
        look.append(linear("query", width, d_model, load, length=length, decodes=True))
        for number, memory in enumerate(memories):
            look.append(glance(config, d_model, memory, load, keys="states", name=f"cross{number if len(memories) > 1 else ''}"))
        look.append(linear("join", sum(memory.width for memory in memories), width, load, length=length, decodes=True))
    layers = [Part("layer", times=config.layers, note=f"{config.layers} alike", parts=(convolution, *look))]
    if look and config.shared_maps and config.layers:  # the same work in each, and one set of parameters
        layers = [
            replace(layers[0], name="first", times=1, note=""),
            Part("layer", times=config.layers - 1, note="with the first one's maps", parts=(convolution, *map(without, look))),
        ]
    edges = [
        linear(way, *ends, load, length=length, decodes=decodes)
        for way, ends in (("inward", (d_model, width)), ("outward", (width, d_model)))
    ]
    if width == d_model:
        return Part(name, parts=tuple(layers))
    return Part(name, parts=(edges[0], *layers, edges[1]))


def without(part: Part) -> Part:
    """The part's work, its parameters being counted elsewhere."""
    return replace(part, parameters=0)
