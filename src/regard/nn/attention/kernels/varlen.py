"""Flash attention over the documents of a packed row by their offsets alone: no mask, no rectangle; CUDA, sixteen bits."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import UsageError
from regard.nn.attention.kernels.reference import shared
from regard.nn.attention.predicate import FAR
from regard.nn.attention.sight import Sight


def attend(query, key, value, *, sight: Sight, score) -> Float[Tensor, "B H T E"]:
    """Places inside a document serve as positions: the promise of `Tokens.spans`."""
    from torch.nn.attention.varlen import varlen_attn

    queries, keys, band = sight.queries, sight.keys, sight.pattern.band
    assert queries is not None and queries.spans is not None and keys is not None and keys.spans is not None and band is not None
    if len(queries.spans.offsets) != len(keys.spans.offsets):
        raise UsageError("the two sides hold different numbers of documents", where="attention", do="pack the same documents on both sides")
    left, right = score.basis(query, shared(key, heads=query.shape[1]))
    out_THE = varlen_attn(
        left[0].transpose(0, 1),
        right[0].transpose(0, 1),
        shared(value, heads=query.shape[1])[0].transpose(0, 1),
        queries.spans.offsets,
        keys.spans.offsets,
        queries.spans.longest,
        keys.spans.longest,
        scale=score.scale(query.shape[-1]),
        window_size=(_side(band.past), _side(band.future)),
    )
    assert isinstance(out_THE, Tensor)
    return torch.where(queries.real[0][:, None, None], out_THE, 0).transpose(0, 1)[None]


def _side(reach: int) -> int:
    return -1 if reach >= FAR else reach
