"""The four parts of a model: tokenisation, embedding, blocks, output."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from regard.errors import UsageError
from regard.models.configs import (
    EncoderDecoder,
    ImageCaptioner,
    LanguageModel,
    MaskedLanguageModel,
    PointerNetwork,
    Tagger,
    TextClassifier,
)
from regard.models.graph_classifier import GraphClassifier
from regard.models.image_classifier import ImageClassifier
from regard.models.speech import Speech
from regard.nn.embed import Embedding
from regard.plan.copying import copying
from regard.plan.fields import graph, labels, patched, pictures, points, recordings
from regard.plan.part import Load, Part
from regard.plan.trunks import handed, norm, positions, trunk, width_out

UNITS = {"image-classifier": "picture", "speech": "recording", "graph-classifier": "node", "pointer-network": "point"}
"""What a load counts, of models that read no tokens."""


def model_parts(config: Any, load: Load, *, tokenisation: str = "") -> Part:
    """The model as a tree whose first level is tokenisation, embedding, blocks and output."""
    match config:
        case EncoderDecoder():
            return encoder_decoder(config, load, tokenisation=tokenisation)
        case LanguageModel():
            return language_model(config, load, tokenisation=tokenisation)
        case MaskedLanguageModel():
            return reader(config, load, words(config, load), tokenisation=tokenisation)
        case Tagger():
            rows = load.batch * load.source  # every word has a label
            return reader(config, load, label(config, rows=rows), tokenisation=tokenisation)
        case TextClassifier():
            return reader(config, load, label(config, rows=load.batch), tokenisation=tokenisation)
        case ImageClassifier():
            return pictures(config, load)
        case ImageCaptioner():
            return image_captioner(config, load, tokenisation=tokenisation)
        case Speech():
            return recordings(config, load)
        case GraphClassifier():
            return graph(config, load)
        case PointerNetwork():
            return points(config, load)
        case _:
            raise UsageError(f"there is no plan for models of kind {config.kind}", where="plan", do="plan one of the package's own kinds")


def encoder_decoder(config: EncoderDecoder, load: Load, *, tokenisation: str) -> Part:
    width, tied = config.d_model, config.tie
    encoders = (config.encoder, *config.more_encoders)
    memories = [handed(encoder, width) for encoder in encoders]
    out = width_out(config.decoder, width, memories)
    sides = (
        table("source", config.source_vocabulary, width, config.embedding, load, length=load.source),
        table("target", config.target_vocabulary, width, config.embedding, load, length=load.target, shared="source" * (tied == "all")),
    )
    blocks = Part(
        "blocks",
        parts=(
            *(trunk(one, width, load, name=f"encoder{number or ''}", causal=False, decodes=False) for number, one in enumerate(encoders)),
            trunk(config.decoder, width, load, name="decoder", causal=True, memories=memories, decodes=True),
        ),
    )
    end = vocabulary(config.target_vocabulary, out, load, bias=config.output_bias, shared="target" if tied != "none" else "")
    end = replace(end, parts=copying(config.copy, load, d_memory=memories[0].width, d_hidden=out, d_input=width))
    words = f"{config.source_vocabulary:,} pieces" + (f" and {config.target_vocabulary:,}" if tied != "all" else ", shared")
    return Part(
        "translator",
        parts=(
            Part("tokenisation", shape=f"({load.batch}, {load.source}) ids", note=f"{tokenisation or 'text'} -> {words}"),
            Part("embedding", parts=sides),
            blocks,
            end,
        ),
    )


def language_model(config: LanguageModel, load: Load, *, tokenisation: str) -> Part:
    width = config.d_model
    out = width_out(config.trunk, width, ())
    blocks = Part("blocks", parts=(trunk(config.trunk, width, load, name="trunk", causal=True, decodes=True),))
    told = f"{tokenisation or 'text'} -> {config.vocabulary:,} pieces"
    return Part(
        "language-model",
        parts=(
            Part("tokenisation", shape=f"({load.batch}, {load.target}) ids", note=told),
            Part("embedding", parts=(table("text", config.vocabulary, width, config.embedding, load, length=load.target),)),
            blocks,
            vocabulary(config.vocabulary, out, load, bias=config.output_bias, shared="text" * config.tie),
        ),
    )


def image_captioner(config: ImageCaptioner, load: Load, *, tokenisation: str) -> Part:
    """Patches on one side, words on the other; the load counts words."""
    width = config.d_model
    patches, places = patched(config.patches, width, config.channels, config.size, load, first=False)
    load, read = replace(load, source=places), handed(config.encoder, width)
    out = width_out(config.decoder, width, [read])
    words = table("target", config.vocabulary, width, config.embedding, load, length=load.target)
    blocks = (
        trunk(config.encoder, width, load, name="encoder", causal=False, decodes=False),
        trunk(config.decoder, width, load, name="decoder", causal=True, memories=[read], decodes=True),
    )
    told = f"pictures as they are; {tokenisation or 'text'} -> {config.vocabulary:,} pieces"
    return Part(
        config.kind,
        parts=(
            Part("tokenisation", shape=f"({load.batch}, {load.target}) ids", note=told),
            Part("embedding", parts=(replace(patches, name="patches"), words)),
            Part("blocks", parts=blocks),
            vocabulary(config.vocabulary, out, load, bias=False, shared="target" if out == width else ""),
        ),
    )


def reader(config: MaskedLanguageModel | Tagger | TextClassifier, load: Load, end: Part, *, tokenisation: str) -> Part:
    """A model that sees all of a text, and what it says of it."""
    width = config.d_model
    told = f"{tokenisation or 'text'} -> {config.vocabulary:,} pieces"
    return Part(
        config.kind,
        parts=(
            Part("tokenisation", shape=f"({load.batch}, {load.source}) ids", note=told),
            Part("embedding", parts=(table("text", config.vocabulary, width, config.embedding, load, length=load.source),)),
            Part("blocks", parts=(trunk(config.encoder, width, load, name="encoder", causal=False, decodes=False),)),
            end,
        ),
    )


def words(config: MaskedLanguageModel, load: Load) -> Part:
    """The scores of words, after BERT's layer before them."""
    width, out = config.d_model, handed(config.encoder, config.d_model).width
    end = vocabulary(config.vocabulary, width, load, bias=True, shared="text" * config.tie)
    if config.before == "none":
        return end
    own = out * width + width
    return replace(end, parameters=end.parameters + own + norm(config.norm, width), maps=end.maps + 2 * own * load.batch * load.target)


def label(config: Tagger | TextClassifier, *, rows: int) -> Part:
    """The scores of labels, for so many rows of a batch."""
    return labels(handed(config.encoder, config.d_model).width, len(config.labels), rows, hidden=config.hidden)


def table(name: str, vocabulary: int, width: int, config: Embedding, load: Load, *, length: int, shared: str = "") -> Part:
    """A table of token vectors, what is added for positions, and a norm; looking up costs no FLOPs."""
    places = positions(config.positions, width)
    size = (0 if shared else vocabulary * width) + places + norm(config.norm, width)
    told = f"{vocabulary:,} x {width}" + (f", the {shared} table" if shared else "") + f"; positions: {config.positions.kind}"
    kept = load.batch * length * (width if config.dropout else 0)
    return Part(name, shape=f"({load.batch}, {length}, {width})", parameters=size, kept=kept, note=told)


def vocabulary(size: int, width: int, load: Load, *, bias: bool, shared: str) -> Part:
    """softmax(h W^T): the map costs the same whether the table is shared or not."""
    own = (0 if shared else size * width) + (size if bias else 0)
    products = size * width + (size if bias else 0)
    return Part(
        "output",
        shape=f"({load.batch}, {load.target}, {size})",
        parameters=own,
        maps=2 * products * load.batch * load.target,
        step=2 * products,
        note=f"linear {width} -> {size:,}, softmax" + (f"; the {shared} table" if shared else ""),
    )
