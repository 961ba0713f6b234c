"""Hugging Face's BART and Marian, which share their names: what their config and their tensors are called here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from regard.errors import ModelError
from regard.models.configs import EncoderDecoder
from regard.nn.attention.multihead import Attention
from regard.nn.embed import Embedding
from regard.nn.feedforward import Activation, FeedForward
from regard.nn.norms import LayerNorm, NoNorm
from regard.nn.positions import Learned, Sinusoid
from regard.nn.trunk_transformer import Transformer

ACTIVATION: dict[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "swish": "silu",
    "silu": "silu",
    "tanh": "tanh",
}

ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
ENCODER = {
    **{f"own.{ours}": f"self_attn.{theirs}" for ours, theirs in ATTENTION.items()},
    "own_residual.norm": "self_attn_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "feed_forward_residual.norm": "final_layer_norm",
}
DECODER = {
    **ENCODER,
    **{f"cross.0.{ours}": f"encoder_attn.{theirs}" for ours, theirs in ATTENTION.items()},
    "cross_residual.0.norm": "encoder_attn_layer_norm",
}


def config_of(theirs: Mapping[str, Any]) -> EncoderDecoder:
    """Our configuration of the model that their config.json describes."""
    family = theirs["model_type"]
    if family not in ("bart", "marian"):
        raise ModelError(f"a model of type {family} is not an encoder-decoder of the BART family", do="give a bart or marian folder")
    marian = family == "marian"

    def trunk(side: str) -> Transformer:
        return Transformer(
            layers=theirs[f"{side}_layers"],
            heads=theirs[f"{side}_attention_heads"],
            own=Attention(),
            cross=Attention(),
            feed_forward=FeedForward(d_ff=theirs[f"{side}_ffn_dim"], activation=ACTIVATION[theirs["activation_function"]]),
            dropout=theirs["dropout"],
        )

    return EncoderDecoder(
        d_model=theirs["d_model"],
        encoder=trunk("encoder"),
        decoder=trunk("decoder"),
        embedding=Embedding(
            positions=Sinusoid(layout="halves") if marian else Learned(length=theirs["max_position_embeddings"]),
            scale=theirs["scale_embedding"],
            norm=NoNorm() if marian else LayerNorm(),
            dropout=theirs["dropout"],
        ),
        output_bias=True,
        source_vocabulary=theirs["vocab_size"],
        target_vocabulary=theirs["vocab_size"],
    )


def tensors_of(theirs: Mapping[str, Tensor], config: EncoderDecoder) -> dict[str, Tensor]:
    """Their tensors under our names."""
    table = theirs["model.shared.weight"]
    ours = {"source.table": table, "target.table": table, "output.table": table, "output.bias": theirs["final_logits_bias"][0]}
    for side, layers, names in (("encoder", config.encoder.layers, ENCODER), ("decoder", config.decoder.layers, DECODER)):
        for layer in range(layers):
            for mine, yours in names.items():
                for part in ("weight", "bias"):
                    ours[f"{side}.blocks.{layer}.{mine}.{part}"] = theirs[f"model.{side}.layers.{layer}.{yours}.{part}"]
        embed = {"encoder": "source", "decoder": "target"}[side]
        if isinstance(config.embedding.positions, Learned):
            ours[f"{embed}.positions.weight"] = theirs[f"model.{side}.embed_positions.weight"][
                2:
            ]  # BART's table begins with two unused rows
        if isinstance(config.embedding.norm, LayerNorm):
            for part in ("weight", "bias"):
                ours[f"{embed}.norm.{part}"] = theirs[f"model.{side}.layernorm_embedding.{part}"]
    return ours
