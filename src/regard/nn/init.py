"""First values of the parameters: the paper's family (Xavier, scaled embeddings) or GPT-2's."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal, assert_never

from torch import nn

from regard.nn.attention.biases import RelativeSinusoidBias
from regard.nn.attention.longformer import LongformerAttention
from regard.nn.attention.multihead import MultiHead
from regard.nn.feedforward import PositionWise


@dataclass(frozen=True)
class Xavier:
    """Xavier uniform; q, k and v with gain 1/sqrt(2), since they are three maps of one input (as fairseq does)."""

    kind: ClassVar[Literal["xavier"]] = "xavier"


@dataclass(frozen=True)
class Normal:
    """N(0, std) everywhere, residual outputs divided by sqrt(2 layers), as GPT-2."""

    kind: ClassVar[Literal["normal"]] = "normal"
    std: float = 0.02
    "Standard deviation of the parameters."


Init = Xavier | Normal


def initialise_tables(tables: Iterable[nn.Parameter], init: Init) -> None:
    """Give tables of vectors the values of this family, where it has its own; the padding row of the first one stays at zero."""
    if not isinstance(init, Normal):
        return
    for number, table in enumerate(found for found in tables if found.dim() == 2):
        nn.init.normal_(table, std=init.std)
        if not number:
            nn.init.zeros_(table[0])


def initialise(module: nn.Module, init: Init, *, layers: int) -> None:
    """Give every linear map of the module its first values; embeddings and norms were given theirs at birth."""
    for part in module.modules():
        match part:
            case MultiHead():
                inward, outward = (part.query, part.key, part.value), (part.output,)
            case PositionWise():
                inward, outward = tuple(layer for layer in (part.inner, part.gate) if layer is not None), (part.outer,)
            case RelativeSinusoidBias():
                inward, outward = (part.map,), ()
            case _:
                continue
        match init:
            case Xavier():
                gain = 1 / math.sqrt(2) if isinstance(part, MultiHead) else 1.0
                for layer in inward:
                    nn.init.xavier_uniform_(layer.weight, gain=gain)
                for layer in outward:
                    nn.init.xavier_uniform_(layer.weight)
            case Normal():
                for layer in inward:
                    nn.init.normal_(layer.weight, std=init.std)
                for layer in outward:
                    nn.init.normal_(layer.weight, std=init.std / math.sqrt(2 * layers))
            case _:
                assert_never(init)
        for layer in (*inward, *outward):
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        if isinstance(part, LongformerAttention):
            part.copy_maps()
