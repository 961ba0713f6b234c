"""What may stand in an attention slot of a block, by its kind."""

from __future__ import annotations

from typing import assert_never

from regard.nn.attention.compressed import Compressed, CompressedAttention
from regard.nn.attention.longformer import Longformer, LongformerAttention
from regard.nn.attention.lowrank import Common, Linformer, LinformerAttention
from regard.nn.attention.multihead import Attention, MultiHead
from regard.nn.attention.patterns import Causal
from regard.nn.attention.segments import TransformerXL, TransformerXLAttention
from regard.nn.attention.slot import Slot

Own = Attention | Longformer | Linformer | Compressed | TransformerXL
Cross = Attention | Linformer


def build_attention(config: Own, d_model: int, *, heads: int, groups: int, d_head: int, causal: bool, common: Common, name: str) -> Slot:
    """`causal`: for a row that is being written. `common` is filled with what several layers share."""
    shape = {"heads": heads, "groups": groups, "d_head": d_head, "name": name}
    match config:
        case Attention():
            return MultiHead(config, d_model, pattern=(Causal(),) if causal else (), **shape)
        case Longformer():
            return LongformerAttention(config, d_model, causal=causal, **shape)
        case Linformer():
            return LinformerAttention(config, d_model, causal=causal, common=common, **shape)
        case Compressed():
            return CompressedAttention(config, d_model, causal=causal, **shape)
        case TransformerXL():
            return TransformerXLAttention(config, d_model, causal=causal, **shape)
        case _ if hasattr(config, "build"):  # a kind from outside
            return config.build(d_model, causal=causal, **shape)
        case _:
            assert_never(config)
