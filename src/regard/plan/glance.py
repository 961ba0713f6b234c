"""The cost of one head of attention to a memory, as recurrent and convolutional decoders have it."""

from __future__ import annotations

from typing import NamedTuple

import torch

from regard.nn.attention.dispatch import Need, choose
from regard.nn.attention.glance import Keys
from regard.nn.attention.scores import Additive
from regard.nn.trunk_convolutional import Convolutional
from regard.nn.trunk_recurrent import Bahdanau, Luong
from regard.plan.attention import Heads, score_flops, score_parameters
from regard.plan.part import Load, Part


class Handed(NamedTuple):
    """What an encoder hands on: vectors of this width, and last states of that one."""

    width: int
    ends: int


def gathered(keys: Keys, d_query: int, d_memory: int) -> int:
    """The width of what one glance brings."""
    return {"states": d_memory, "split": d_memory // 2, "projected": d_query}[keys]


def glance(config: Bahdanau | Luong | Convolutional, d_query: int, memory: Handed, load: Load, *, keys: Keys, name: str) -> Part:
    """`config` has a score and a normaliser. With maps: D_q^2 + 2 D D_q parameters besides the score's."""
    d_key, projections, per_query, per_key = memory.width, 0, 0, 0
    if keys == "split":
        d_query, d_key = d_query // 2, d_key // 2
    if keys == "projected":
        per_query, per_key = d_query * d_query, 2 * d_key * d_query
        projections, d_key = per_query + per_key, d_query
    d_value, shape = gathered(keys, d_query, memory.width), Heads(1, 1, d_query)
    scored = score_flops(config.score, shape, d_key=d_key)
    per_pair = 2 * d_key + scored.pair + 2 * d_value
    asking, giving = 2 * per_query + scored.query, 2 * per_key + scored.key
    hidden = config.score.width if isinstance(config.score, Additive) else 0  # numbers kept for each pair
    need = Need.of(score=config.score, normalise=config.normalise)._replace(
        device=load.device,
        dtype=torch.bfloat16 if load.width == 2 else torch.float32,
        widths=(d_key, d_value),
        same=False,
        gradient=load.training,
    )
    chosen = choose(need)
    return Part(
        name,
        shape=f"({load.batch}, {load.target}, {d_value})",
        parameters=projections + score_parameters(config.score, shape, d_key=d_key),
        maps=load.batch * (load.target * asking + load.source * giving),
        core=load.batch * load.target * load.source * per_pair,
        step=asking + load.source * per_pair,
        once=load.source * giving,
        kept=load.batch * (load.target * (d_query + d_value + load.source * (1 + hidden)) + load.source * (d_key + d_value)) * load.width,
        cache=load.source * (hidden or d_key) * load.width + load.source * d_value * load.width,
        note=f"1 head, {config.score.kind}, keys: {keys}" + (f", {config.normalise.kind}" if config.normalise.kind != "softmax" else ""),
        kernel=f"{chosen.kernel}: {chosen.reason}",
    )
