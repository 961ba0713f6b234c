"""The cost of copying: the map to the words as without it, and a score for each pair of a position and a place of the source."""

from __future__ import annotations

from typing import assert_never

from regard.nn.copying import Copy, JointCopy, NoCopy, PointerGenerator
from regard.plan.attention import Heads, score_flops, score_parameters
from regard.plan.part import Load, Part


def copying(config: Copy, width: int, load: Load) -> tuple[Part, ...]:
    """What lies beside the vocabulary, between trunks of this width."""
    places, pairs = load.batch * load.target, load.batch * load.target * load.source
    match config:
        case NoCopy():
            return ()
        case JointCopy():
            shape = Heads(1, 1, width)
            costs = score_flops(config.score, shape)
            per_pair = 2 * width + costs.pair
            return (
                Part(
                    "copy",
                    shape=f"({load.batch}, {load.target}, {load.source})",
                    parameters=score_parameters(config.score, shape),
                    maps=places * costs.query + load.batch * load.source * costs.key,
                    core=pairs * per_pair,
                    step=costs.query + load.source * per_pair,
                    kept=pairs * load.width,
                    note=f"one softmax with the words; score {config.score.kind}",
                ),
            )
        case PointerGenerator():
            hidden, gate = config.width, 3 * width + 1
            maps = 2 * width * hidden
            per_pair = 2 * hidden + 2 * width + (2 * hidden if config.coverage else 0)
            return (
                Part(
                    "copy",
                    shape=f"({load.batch}, {load.target}, {load.source})",
                    parameters=2 * width * hidden + 2 * hidden + (hidden if config.coverage else 0) + gate,
                    maps=places * (maps + 2 * gate) + load.batch * load.source * maps,
                    core=pairs * per_pair,
                    step=maps + 2 * gate + load.source * per_pair,
                    once=load.source * maps,
                    kept=pairs * hidden * load.width,
                    cache=load.source * (hidden + width) * load.width,
                    note=f"a gate, additive attention of {hidden}" + (", coverage" if config.coverage else ""),
                ),
            )
        case _:
            assert_never(config)
