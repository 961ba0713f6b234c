"""One token on its way through a model: every vector that comes up, layer by layer, and where scores and weights are, those of its row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import UsageError
from regard.look.reading import Reading, Slot
from regard.look.record import chosen
from regard.look.trace import Choice, Kind, Token
from regard.nn.tap import STAGES, record

BY_HEAD = ("query", "heads")
SEEN = ("key", "value")
SAYS = {
    "token": "its own vector",
    "position": "where it stands",
    "sum": "as it enters the first layer",
    "input": "as it comes here",
    "query": "what it asks for",
    "key": "what each token offers",
    "value": "what each token gives",
    "scores": "how well its query fits each key",
    "bias": "what is added for the distance",
    "mask": "0 where it may look, -inf elsewhere",
    "masked": "scores and mask together",
    "weights": "what it takes of each",
    "heads": "the sum of the values, by these weights",
    "context": "the sum of the values, by these weights",
    "hidden": "inside the feed-forward layer",
    "change": "what is added to the stream",
    "added": "the stream with it",
    "normed": "after the norm",
    "gates": "the share of each expert",
    "stream": "as it leaves the layer",
    "states": "as it leaves the stack",
    "memory": "what decoders see of it",
}
"""By the last word of a tap's name."""


@dataclass(frozen=True, eq=False)
class Stage:
    """What passed one tap for one token: a row for itself, for each head, or for each token that a head sees."""

    name: str
    says: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    "The tokens that the numbers of a row are about; none, where they are coordinates."
    values: Float[np.ndarray, "rows numbers"]


@dataclass(frozen=True, eq=False)
class Walk:
    """The stages in the order in which the model came to them, and what it expects next (or the labels) where that is its last stage."""

    token: Token
    place: int
    stages: tuple[Stage, ...]
    next: tuple[Choice, ...]


def walk(
    reading: Reading,
    place: int | str,
    *,
    kind: Kind | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    top: int = 8,
) -> Walk:
    """`place` counts from 0, or is a token's own text. `kind` says by which stack the token goes: that of the answer, or the encoder."""
    kind, slot = reading.slot(kind)
    rows = reading.tokens(kind)[0]
    at = _place(place, rows)
    numbers = chosen(layers, slot.layers, what="layer")
    patterns = [
        f"{slot.embedding}.*",
        *(f"{slot.trunk}.{layer}.*" for layer in numbers),
        *(f"{slot.trunk}.{end}" for end in ("stream", "states", "memory")),
    ]
    with record(reading.model, *patterns) as seen:
        log_probs = reading.log_probs()
    stages = [
        _stage(name, passes, at, slot=slot, reading=reading, kind=kind, heads=heads)
        for name, passes in seen.items()
        if ".experts." not in name or name.endswith("gates")  # what goes through one expert is no row of tokens
    ]
    return Walk(rows[at], at, tuple(stages), _next(reading, log_probs, at, kind=kind, top=top))


def _next(reading: Reading, log_probs: Tensor, at: int, *, kind: Kind, top: int) -> tuple[Choice, ...]:
    steps, answers = reading.say(log_probs, top)
    if steps:
        return steps[at].top if kind != "enc-self" else ()
    return tuple(Choice(Token(one.text), one.log_prob) for one in answers[:top])


def _stage(name: str, passes: list[Tensor], at: int, *, slot: Slot, reading: Reading, kind: Kind, heads: Sequence[int] | None) -> Stage:
    """The part of what passed a tap that is this token's own."""
    word = name.rpartition(".")[2].removeprefix("global_")
    keys = reading.source if ".cross" in name or kind == "enc-self" else reading.target
    says, last = SAYS.get(word, word), passes[-1]
    if word in STAGES:
        square_HTS = slot.shown(torch.cat(passes, 2) if len(passes) > 1 else last)
        row_HS = square_HTS[:, at if square_HTS.shape[1] > 1 else 0]
        columns = (
            tuple(token.text for token in keys) if row_HS.shape[1] == len(keys) else tuple(f"slot {i}" for i in range(row_HS.shape[1]))
        )
        some = chosen(heads, range(len(row_HS)), what="head") if len(row_HS) > 1 else [0]
        names = tuple(f"head {head}" for head in some) if len(row_HS) > 1 else ("every head",)
        return Stage(name, says, names, columns, _array(row_HS[some]))
    if word in SEEN and last.ndim == 4:
        vectors_GSE = last[0]
        some = [head for head in heads or range(len(vectors_GSE)) if head < len(vectors_GSE)]
        names = [token.text for token in keys] if vectors_GSE.shape[1] == len(keys) else [f"slot {i}" for i in range(vectors_GSE.shape[1])]
        rows = tuple(f"head {head}, {one}" for head in some for one in names)
        return Stage(name, says, rows, (), _array(vectors_GSE[some].flatten(0, 1)))
    if word in BY_HEAD and last.ndim == 4:
        vectors_HE = (torch.cat(passes, 2) if len(passes) > 1 else last)[0][:, at]
        some = chosen(heads, range(len(vectors_HE)), what="head")
        return Stage(name, says, tuple(f"head {head}" for head in some), (), _array(vectors_HE[some]))
    rows_TD = slot.listed(torch.cat(passes, 1) if len(passes) > 1 else last)
    absent = len(reading.tokens(kind)[0]) - len(rows_TD)  # the class of a picture has no patch
    vector_D = rows_TD[at - absent] if at >= absent else rows_TD.new_zeros(rows_TD.shape[1])
    return Stage(name, says, ("",), (), _array(vector_D[None]))


def _place(place: int | str, rows: tuple[Token, ...]) -> int:
    there = [token.text for token in rows]
    if isinstance(place, str) and not place.isdecimal():
        if place not in there:
            raise UsageError(f"no token is {place!r}", do=f"they are: {' '.join(there)}")
        return there.index(place)
    if not int(place) < len(rows):
        raise UsageError(f"there is no token {place}", do=f"they are numbered from 0 to {len(rows) - 1}: {' '.join(there)}")
    return int(place)


def _array(values: Tensor) -> np.ndarray:
    return values.float().cpu().numpy()
