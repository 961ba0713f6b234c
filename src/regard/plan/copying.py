"""The cost of copying: the map to the words as without it, and a score for each pair of a position and a place of the source."""

from __future__ import annotations

from typing import assert_never

from regard.nn.copying import Copy, JointCopy, NoCopy, PointerGenerator
from regard.plan.attention import Heads, score_flops, score_parameters
from regard.plan.part import Load, Part


def copying(config: Copy, load: Load, *, d_memory: int, d_hidden: int, d_input: int) -> tuple[Part, ...]:
    """What lies beside the vocabulary, between trunks of these widths."""
    places, pairs = load.batch * load.target, load.batch * load.target * load.source
    match config:
        case NoCopy():
            return ()
        case JointCopy():
            shape = Heads(1, 1, d_hidden)
            costs = score_flops(config.score, shape, d_key=d_memory)
            per_pair = 2 * d_memory + costs.pair
            return (
                Part(
                    "copy",
                    shape=f"({load.batch}, {load.target}, {load.source})",
                    parameters=score_parameters(config.score, shape, d_key=d_memory),
                    maps=places * costs.query + load.batch * load.source * costs.key,
                    core=pairs * per_pair,
                    step=costs.query + load.source * per_pair,
                    kept=pairs * load.width,
                    note=f"one softmax with the words; score {config.score.kind}",
                ),
            )
        case PointerGenerator():
            hidden, gate = config.width, d_memory + d_hidden + d_input + 1
            asking, giving = 2 * d_hidden * hidden, 2 * d_memory * hidden
            per_pair = 2 * hidden + 2 * d_memory + (2 * hidden if config.coverage else 0)
            return (
                Part(
                    "copy",
                    shape=f"({load.batch}, {load.target}, {load.source})",
                    parameters=(d_memory + d_hidden) * hidden + 2 * hidden + (hidden if config.coverage else 0) + gate,
                    maps=places * (asking + 2 * gate) + load.batch * load.source * giving,
                    core=pairs * per_pair,
                    step=asking + 2 * gate + load.source * per_pair,
                    once=load.source * giving,
                    kept=pairs * hidden * load.width,
                    cache=load.source * (hidden + d_memory) * load.width,
                    note=f"a gate, additive attention of {hidden}" + (", coverage" if config.coverage else ""),
                ),
            )
        case _:
            assert_never(config)
