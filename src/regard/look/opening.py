"""Where to look first: the head that goes through the sentence word by word, and does not stare at one place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from regard.errors import UsageError
from regard.look.trace import KINDS, Kind, Token, Trace


class Opening(NamedTuple):
    """What a page or a figure shows before anybody has chosen."""

    kind: Kind
    layer: int
    head: int


def clearest(trace: Trace, kind: Kind | None = None, *, layer: int | None = None) -> Opening:
    """The head in which each word is looked at most sharply by somebody; cross-attention unless another kind is asked for."""
    found: tuple[float, Opening] | None = None
    order: tuple[Kind, ...] = (kind,) if kind else ("cross", *KINDS)
    for asked in order:
        for one in trace.maps:
            if one.kind == asked and layer in (None, one.layer):
                clear_H = _clearness(trace, asked, one.layer)
                best = int(clear_H.argmax())
                if found is None or clear_H[best] > found[0]:
                    found = float(clear_H[best]), Opening(asked, one.layer, one.heads[best])
        if found:
            return found[1]
    raise UsageError("the trace holds no such attention map", do="choose another kind or layer")


def _clearness(trace: Trace, kind: Kind, layer: int) -> np.ndarray:
    """For each head: the mean, over the words, of the strongest look that each gets. A head that stares at one token scores low."""
    weights_HTS = trace.weights(kind, layer)
    rows, columns = _words(trace.row_tokens(kind)), _words(trace.column_tokens(kind))
    if kind != "cross":
        weights_HTS = weights_HTS * (1 - np.eye(*weights_HTS.shape[1:], dtype=np.float32))  # looking at oneself tells little
    return weights_HTS[:, rows][:, :, columns].max(1).mean(1)


def _words(tokens: tuple[Token, ...]) -> list[int]:
    return [place for place, token in enumerate(tokens) if not token.special] or list(range(len(tokens)))
