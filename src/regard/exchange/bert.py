"""Hugging Face's BERT with its output for masked words: what its config and its tensors are called here. Texts are of one segment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from regard.errors import ModelError
from regard.exchange.bart import ACTIVATION
from regard.models.configs import MaskedLanguageModel
from regard.nn.attention.multihead import Attention
from regard.nn.embed import Embedding
from regard.nn.feedforward import FeedForward
from regard.nn.init import Normal
from regard.nn.norms import LayerNorm
from regard.nn.positions import Learned
from regard.nn.trunk_transformer import Transformer

BLOCK = {
    "own.query": "attention.self.query",
    "own.key": "attention.self.key",
    "own.value": "attention.self.value",
    "own.output": "attention.output.dense",
    "own_residual.norm": "attention.output.LayerNorm",
    "feed_forward.inner": "intermediate.dense",
    "feed_forward.outer": "output.dense",
    "feed_forward_residual.norm": "output.LayerNorm",
}


def config_of(theirs: Mapping[str, Any]) -> MaskedLanguageModel:
    """Our configuration of the model that their config.json describes."""
    if theirs["model_type"] != "bert":
        raise ModelError(f"a model of type {theirs['model_type']} is no BERT", do="give the folder of a bert model")
    for key, only in (("position_embedding_type", "absolute"), ("is_decoder", False), ("add_cross_attention", False)):
        if theirs.get(key, only) != only:
            raise ModelError(f"{key} = {theirs[key]} is not known here", where="config.json")
    norm, activation = LayerNorm(eps=theirs["layer_norm_eps"]), ACTIVATION[theirs["hidden_act"]]
    encoder = Transformer(
        layers=theirs["num_hidden_layers"],
        heads=theirs["num_attention_heads"],
        own=Attention(dropout=theirs["attention_probs_dropout_prob"]),
        feed_forward=FeedForward(d_ff=theirs["intermediate_size"], activation=activation),
        norm=norm,
        dropout=theirs["hidden_dropout_prob"],
    )
    positions, dropout = Learned(length=theirs["max_position_embeddings"]), theirs["hidden_dropout_prob"]
    return MaskedLanguageModel(
        d_model=theirs["hidden_size"],
        encoder=encoder,
        embedding=Embedding(positions=positions, scale=False, norm=norm, dropout=dropout),
        before=activation,
        norm=norm,
        init=Normal(theirs["initializer_range"]),
        vocabulary=theirs["vocab_size"],
    )


def tensors_of(theirs: Mapping[str, Tensor], config: MaskedLanguageModel) -> dict[str, Tensor]:
    """Their tensors under our names; the vector of the first segment, which every token gets, goes into the positions."""
    table, places = theirs["bert.embeddings.word_embeddings.weight"], theirs["bert.embeddings.position_embeddings.weight"]
    ours = {
        "embedding.table": table,
        "output.table": table,
        "output.bias": theirs["cls.predictions.bias"],
        "embedding.positions.weight": places + theirs["bert.embeddings.token_type_embeddings.weight"][0],
    }
    for part in ("weight", "bias"):
        ours[f"embedding.norm.{part}"] = theirs[f"bert.embeddings.LayerNorm.{part}"]
        ours[f"output.before.inner.{part}"] = theirs[f"cls.predictions.transform.dense.{part}"]
        ours[f"output.before.norm.{part}"] = theirs[f"cls.predictions.transform.LayerNorm.{part}"]
        for layer in range(config.encoder.layers):
            for name, there in BLOCK.items():
                ours[f"encoder.blocks.{layer}.{name}.{part}"] = theirs[f"bert.encoder.layer.{layer}.{there}.{part}"]
    return ours
