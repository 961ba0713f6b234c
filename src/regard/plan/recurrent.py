"""The cost of recurrent trunks."""

from __future__ import annotations

from collections.abc import Sequence

from regard.nn.cells import Cell, vectors_of
from regard.nn.trunk_recurrent import Bahdanau, Luong, NoAttention, Recurrent
from regard.plan.glance import Handed, gathered, glance
from regard.plan.part import Load, Part

GATES: dict[Cell, int] = {"rnn": 1, "gru": 3, "lstm": 4}
KEPT: dict[Cell, int] = {
    "rnn": 2,
    "gru": 7,
    "lstm": 18,
}  # numbers a unit and word for the backward pass, as torch's CPU cells were seen to keep


def linear(name: str, d_in: int, d_out: int, load: Load, *, length: int, bias: bool = True, decodes: bool) -> Part:
    """A map at every position."""
    size = d_in * d_out + (d_out if bias else 0)
    return Part(
        name,
        shape=f"({load.batch}, {length}, {d_out})",
        parameters=size,
        maps=2 * size * load.batch * length,
        step=2 * size if decodes else 0.0,
        kept=load.batch * length * d_in * load.width,
        note=f"{d_in} -> {d_out}",
    )


def cells(config: Recurrent, d_in: int, width: int, load: Load, *, decodes: bool) -> tuple[Part, ...]:
    """gates (x h + h h + 2 h) for each layer and way; what goes from step to step is counted apart."""
    gates, ways = GATES[config.cell], 2 if config.bidirectional else 1
    length, parts = load.target if decodes else load.source, []
    for layer, inward in enumerate([d_in, *[ways * width] * (config.layers - 1)]):
        size, along = ways * gates * (inward * width + width * width + 2 * width), ways * gates * width * width
        parts.append(
            Part(
                f"layer{layer}",
                shape=f"({load.batch}, {length}, {ways * width})",
                parameters=size,
                maps=2 * (size - along) * load.batch * length,
                core=2 * along * load.batch * length,
                step=2 * size if decodes else 0.0,
                kept=load.batch * length * (inward + ways * KEPT[config.cell] * width) * load.width,
                cache=len(vectors_of(config.cell)) * width * load.width if decodes else 0.0,
                note=f"{inward} -> {width}, {config.cell}" + (", from both sides" if ways == 2 else ""),
            )
        )
    return tuple(parts)


def handed(config: Recurrent, d_model: int) -> Handed:
    ends = (2 if config.bidirectional else 1) * (config.width or d_model)
    return Handed(config.output or ends, ends)


def encoder(config: Recurrent, d_model: int, load: Load, *, name: str) -> Part:
    read = cells(config, d_model, config.width or d_model, load, decodes=False)
    ends = handed(config, d_model).ends
    output = (linear("output", ends, config.output, load, length=load.source, decodes=False),) if config.output else ()
    return Part(name, parts=(*read, *output))


def widths(config: Recurrent, d_model: int, memories: Sequence[Handed]) -> tuple[int, int]:
    """What enters a step of the decoder, and what comes out of it before the last map."""
    width, attention = config.width or d_model, config.attention
    match attention:
        case NoAttention():
            told = sum(memory.ends for memory in memories) if attention.every_step else 0
            return d_model + told, width + (told + d_model if told else 0)
        case Bahdanau():
            found = sum(gathered(attention.keys, width, memory.width) for memory in memories)
            return d_model + found, width + found + d_model
        case Luong():
            return d_model + (width if attention.input_feeding else 0), width


def decoder(config: Recurrent, d_model: int, load: Load, *, name: str, memories: Sequence[Handed]) -> Part:
    width, attention = config.width or d_model, config.attention
    d_in, d_out = widths(config, d_model, memories)
    parts = [*cells(config, d_in, width, load, decodes=True)]
    ends = sum(memory.ends for memory in memories)
    if ends not in (0, width):
        count = len(vectors_of(config.cell)) * config.layers
        size = count * (ends + 1) * width
        parts.append(Part("bridge", parameters=size, maps=2 * size * load.batch, once=2 * size, note=f"{count} x {ends} -> {width}"))
    if not isinstance(attention, NoAttention):
        for number, memory in enumerate(memories):
            called = f"cross{number if len(memories) > 1 else ''}"
            parts.append(glance(attention, width, memory, load, keys=attention.keys, name=called))
    if isinstance(attention, Luong):
        found = sum(gathered(attention.keys, width, memory.width) for memory in memories)
        parts.append(linear("join", found + width, width, load, length=load.target, bias=False, decodes=True))
    if config.output:
        parts.append(linear("output", d_out, config.output, load, length=load.target, decodes=True))
    return Part(name, parts=tuple(parts), note=f"{config.cell}, attention: {attention.kind}")
