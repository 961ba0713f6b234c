"""One reading under watch: the model goes through it once with its taps open."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import UsageError
from regard.look.reading import Reading, Slot
from regard.look.trace import KINDS, Kind, Map, Trace, pack
from regard.nn.tap import record
from regard.version import version


def record_reading(
    reading: Reading,
    *,
    kinds: Sequence[Kind] = KINDS,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    top: int = 8,
) -> Trace:
    """What is to be seen of this reading. `layers` and `heads` name those to record (None: all); `top` words are told at each step.

    Of a translation the maps come from one pass over it, once it is finished: by the law that cached steps equal the whole, they are
    those of the steps.
    """
    slots: dict[Kind, Slot] = {kind: reading.slots[kind] for kind in kinds if kind in reading.slots}
    wanted: list[tuple[Kind, int]] = [(kind, layer) for kind, slot in slots.items() for layer in chosen(layers, slot.layers, what="layer")]
    if set(kinds) != set(KINDS) and not any(slot.layers for slot in slots.values()):  # all that there is may be none
        raise UsageError("it has no such attention", do=reading.told())
    with record(reading.model, *(slots[kind].tap(layer, "weights") for kind, layer in wanted)) as seen:
        steps, answers = reading.say(reading.log_probs(), top)

    def mapped(kind: Kind, layer: int) -> Map:
        weights_HTS = slots[kind].shown(joined(seen[slots[kind].tap(layer, "weights")]))
        some = chosen(heads, range(len(weights_HTS)), what="head")
        return pack(kind, layer, tuple(some), weights=weights_HTS[some].float().cpu().numpy())

    return Trace(
        text=reading.text,
        source=reading.source,
        target=reading.target,
        steps=steps,
        answers=answers,
        maps=tuple(mapped(kind, layer) for kind, layer in wanted),
        about={**reading.about, "made by": f"regard {version()}"},
        pictures=reading.pictures,
    )


def joined(passes: Sequence[Tensor]) -> Float[Tensor, "B H T S"]:
    """What passed in one piece, or word by word, by a decoder that goes so."""
    return torch.cat(list(passes), dim=2) if len(passes) > 1 else passes[0]


def chosen(asked: Sequence[int] | None, there: Sequence[int], *, what: str) -> list[int]:
    """The numbers that are asked for, which must be there; all where none is named."""
    wrong = [number for number in asked or () if there and number not in there]
    if wrong:
        raise UsageError(f"there is no {what} {wrong[0]}", do=f"they are numbered from {there[0]} to {there[-1]}")
    return list(there) if asked is None or not there else sorted(set(asked))
