"""From a configuration to a module: plain functions, one exhaustive match a union."""

from __future__ import annotations

from typing import assert_never

from torch import nn

from regard.errors import UsageError
from regard.models.configs import EncoderDecoder, Model
from regard.models.translator import Translator
from regard.nn.embed import TokenEmbedding, new_table
from regard.nn.init import initialise
from regard.nn.outputs import Vocabulary
from regard.nn.trunk_transformer import TransformerTrunk


def build(config: Model) -> nn.Module:
    """A model with fresh parameters, drawn from torch's generator."""
    match config:
        case EncoderDecoder():
            return translator(config)
        case _:
            assert_never(config)


def translator(config: EncoderDecoder) -> Translator:
    if not config.source_vocabulary or not config.target_vocabulary:
        raise UsageError("the model does not know its vocabularies", where="model", do="give source_vocabulary and target_vocabulary")
    if config.tie == "all" and config.source_vocabulary != config.target_vocabulary:
        raise UsageError(
            f"the source has {config.source_vocabulary} words and the target {config.target_vocabulary}: their tables cannot be one",
            where="model.tie",
            do='share the tokenizer, or set tie = "target"',
        )
    target_table = new_table(config.target_vocabulary, config.d_model)
    source_table = target_table if config.tie == "all" else new_table(config.source_vocabulary, config.d_model)
    output_table = new_table(config.target_vocabulary, config.d_model) if config.tie == "none" else target_table
    model = Translator(
        config,
        source=TokenEmbedding(config.embedding, source_table, name="source"),
        encoder=TransformerTrunk(config.encoder, config.d_model, causal=False, name="encoder"),
        target=TokenEmbedding(config.embedding, target_table, name="target"),
        decoder=TransformerTrunk(config.decoder, config.d_model, causal=True, memories=1, name="decoder"),
        output=Vocabulary(output_table, bias=config.output_bias),
    )
    initialise(model.encoder, config.init, layers=config.encoder.layers)
    initialise(model.decoder, config.init, layers=config.decoder.layers)
    return model
