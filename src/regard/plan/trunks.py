"""The cost of the trunks, block by block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, assert_never

from regard.errors import UsageError
from regard.models.configs import TrunkConfig
from regard.nn.experts import Experts, NoisyTopK
from regard.nn.feedforward import FeedForward
from regard.nn.norms import BatchNorm, LayerNorm, NoNorm, RmsNorm
from regard.nn.positions import Learned, NoPositions, Sinusoid, build_positions
from regard.nn.trunk_convolutional import Convolutional
from regard.nn.trunk_recurrent import Recurrent
from regard.nn.trunk_transformer import Transformer
from regard.plan import recurrent
from regard.plan.attention import Heads, counted
from regard.plan.convolutional import convolutional
from regard.plan.glance import Handed
from regard.plan.part import Load, Part
from regard.plan.slots import shared_matrices, slot


def positions(config: Any, width: int) -> int:
    match config:
        case Sinusoid() | NoPositions():
            return 0
        case Learned():
            return config.length * width
        case _:
            return counted(lambda: build_positions(config, width))


def norm(config: LayerNorm | RmsNorm | BatchNorm | NoNorm, width: int) -> int:
    match config:
        case LayerNorm() | BatchNorm():
            return 2 * width
        case RmsNorm():
            return width
        case NoNorm():
            return 0


def feed_forward(config: FeedForward | Experts, d_model: int, load: Load, *, decodes: bool) -> Part:
    """2 D F + F + D, and D F + F more with a gate; of experts each token takes a few, and the router looks at all."""
    if isinstance(config, Experts):
        one = feed_forward(config.expert, d_model, load, decodes=decodes)
        length, noisy = (load.target if decodes else load.source), isinstance(config.router, NoisyTopK) and config.router.noise
        router = d_model * config.count
        return replace(
            one,
            name="experts",
            parameters=config.count * one.parameters + router * (2 if noisy else 1),
            maps=config.chosen * one.maps + 2 * router * load.batch * length,
            step=config.chosen * one.step + (2 * router if decodes else 0.0),
            kept=config.chosen * one.kept + load.batch * length * config.count * load.width,
            note=f"{config.chosen} of {config.count}, {config.router.kind}: {one.note}",
        )
    inward = 2 if config.gated else 1
    bias = 1 if config.biases else 0
    size = (inward + 1) * d_model * config.d_ff + bias * (inward * config.d_ff + d_model)
    length = load.target if decodes else load.source
    hidden = inward * config.d_ff + config.d_ff + (config.d_ff if config.gated else 0)  # before and after the activation, and their product
    return Part(
        "feed_forward",
        shape=f"({load.batch}, {length}, {d_model})",
        parameters=size,
        maps=2 * size * load.batch * length,
        step=2 * size if decodes else 0.0,
        kept=load.batch * length * (d_model + hidden) * load.width,
        note=f"{d_model} -> {config.d_ff} -> {d_model}, {config.activation}{', gated' if config.gated else ''}",
    )


def norms(config: Any, d_model: int, load: Load, *, count: int, decodes: bool, dropout: float, name: str = "norms") -> Part:
    """The norms of a block, with the dropout masks of its sums."""
    size = count * norm(config, d_model)
    length = load.target if decodes else load.source
    kept_numbers = count * d_model * load.width + (count * d_model if dropout else 0)
    return Part(
        name,
        shape=f"({load.batch}, {length}, {d_model})",
        parameters=size,
        maps=2 * size * load.batch * length,
        step=2 * size if decodes else 0.0,
        kept=load.batch * length * kept_numbers,
        note=config.kind if count == 1 else f"{count} x {config.kind}",
    )


def transformer(config: Transformer, d_model: int, load: Load, *, name: str, causal: bool, memories: int = 0, decodes: bool) -> Part:
    """Blocks of attention and feed-forward layers; a decoder's have one slot more for each memory."""
    shape = Heads(config.heads, config.key_value_heads or config.heads, config.d_head or d_model // config.heads)
    cross = [slot(config.cross, d_model, shape, load, name="cross", causal=False, memory=True, decodes=True) for _ in range(memories)]
    period = math.lcm(max(1, len(config.cycle)), max(1, len(config.feed_forward_cycle)))
    turns = [(config.own_of(layer), config.feed_forward_of(layer)) for layer in range(min(period, max(1, config.layers)))]
    blocks = [
        Part(
            f"block{number if len(turns) > 1 else ''}",
            times=len(range(number, config.layers, len(turns))),
            note=f"{len(range(number, config.layers, len(turns)))} alike, {config.placement}-norm",
            parts=(
                slot(own, d_model, shape, load, name="own", causal=causal, memory=False, decodes=decodes),
                *cross,
                feed_forward(wise, d_model, load, decodes=decodes),
                norms(config.norm, d_model, load, count=2 + memories, decodes=decodes, dropout=config.dropout),
            ),
        )
        for number, (own, wise) in enumerate(turns)
    ]
    if shared := shared_matrices({*(own for own, _ in turns), *([config.cross] if memories else [])}) if config.layers else 0:
        blocks.append(Part("mixing", parameters=shared, note="one matrix for all layers"))
    last = config.placement == "pre" or config.final_norm
    end = (norms(config.norm, d_model, load, count=1, decodes=decodes, dropout=0.0, name="norm"),) if last else ()
    return Part(name, parts=(*blocks, *end))


def trunk(
    config: TrunkConfig, d_model: int, load: Load, *, name: str, causal: bool, memories: Sequence[Handed] = (), decodes: bool
) -> Part:
    """Any trunk, by its kind."""
    match config:
        case Transformer():
            return transformer(config, d_model, load, name=name, causal=causal, memories=len(memories), decodes=decodes)
        case Recurrent() if causal:
            return recurrent.decoder(config, d_model, load, name=name, memories=memories)
        case Recurrent():
            return recurrent.encoder(config, d_model, load, name=name)
        case Convolutional():
            return convolutional(config, d_model, load, name=name, memories=memories, decodes=decodes)
        case _ if hasattr(config, "build"):  # a kind from outside
            raise UsageError(f"no formula says what {config.kind} costs", where=name, do="plan the recipe with another kind in its place")
        case _:
            assert_never(config)


def handed(config: Any, d_model: int) -> Handed:
    """What an encoder of any kind hands on."""
    return recurrent.handed(config, d_model) if isinstance(config, Recurrent) else Handed(d_model, d_model)


def width_out(config: Any, d_model: int, memories: Sequence[Handed]) -> int:
    """The width of what a decoder of any kind hands to the output."""
    if not isinstance(config, Recurrent):
        return d_model
    return config.output or recurrent.widths(config, d_model, memories)[1]
