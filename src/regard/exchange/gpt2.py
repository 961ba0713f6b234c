"""Hugging Face's GPT-2: what its config and its tensors are called here. Its maps are transposed; query, key and value lie in one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from regard.errors import ModelError
from regard.exchange.bart import ACTIVATION
from regard.models.configs import LanguageModel
from regard.nn.attention.multihead import Attention
from regard.nn.embed import Embedding
from regard.nn.feedforward import FeedForward
from regard.nn.init import Normal
from regard.nn.norms import LayerNorm
from regard.nn.positions import Learned
from regard.nn.trunk_transformer import Transformer

NORMS = {"own_residual.norm": "ln_1", "feed_forward_residual.norm": "ln_2"}
MAPS = {"own.output": "attn.c_proj", "feed_forward.inner": "mlp.c_fc", "feed_forward.outer": "mlp.c_proj"}
JOINED = ("own.query", "own.key", "own.value")  # side by side in attn.c_attn


def config_of(theirs: Mapping[str, Any]) -> LanguageModel:
    """Our configuration of the model that their config.json describes."""
    if theirs["model_type"] != "gpt2":
        raise ModelError(f"a model of type {theirs['model_type']} is no GPT-2", do="give the folder of a gpt2 model")
    for key, only in (("scale_attn_by_inverse_layer_idx", False), ("scale_attn_weights", True), ("add_cross_attention", False)):
        if theirs.get(key, only) != only:
            raise ModelError(f"{key} = {theirs[key]} is not known here", where="config.json")
    trunk = Transformer(
        layers=theirs["n_layer"],
        heads=theirs["n_head"],
        own=Attention(dropout=theirs["attn_pdrop"]),
        feed_forward=FeedForward(d_ff=theirs.get("n_inner") or 4 * theirs["n_embd"], activation=ACTIVATION[theirs["activation_function"]]),
        norm=LayerNorm(eps=theirs["layer_norm_epsilon"]),
        placement="pre",
        dropout=theirs["resid_pdrop"],
    )
    return LanguageModel(
        d_model=theirs["n_embd"],
        trunk=trunk,
        embedding=Embedding(positions=Learned(length=theirs["n_positions"]), scale=False, dropout=theirs["embd_pdrop"]),
        init=Normal(theirs["initializer_range"]),
        begin=theirs["bos_token_id"],
        end=theirs["eos_token_id"],
        vocabulary=theirs["vocab_size"],
    )


def tensors_of(theirs: Mapping[str, Tensor], config: LanguageModel) -> dict[str, Tensor]:
    """Their tensors under our names."""
    table = theirs["transformer.wte.weight"]
    ours = {"embedding.table": table, "output.table": table, "embedding.positions.weight": theirs["transformer.wpe.weight"]}
    for part in ("weight", "bias"):
        ours[f"trunk.norm.{part}"] = theirs[f"transformer.ln_f.{part}"]
        for layer in range(config.trunk.layers):
            mine, yours = f"trunk.blocks.{layer}", f"transformer.h.{layer}"
            for name, there in NORMS.items():
                ours[f"{mine}.{name}.{part}"] = theirs[f"{yours}.{there}.{part}"]
            for name, there in MAPS.items():
                ours[f"{mine}.{name}.{part}"] = theirs[f"{yours}.{there}.{part}"].t()
            for name, piece in zip(JOINED, theirs[f"{yours}.attn.c_attn.{part}"].chunk(3, dim=-1), strict=True):
                ours[f"{mine}.{name}.{part}"] = piece.t()
    return ours
