"""From a configuration to a module: plain functions, one exhaustive match a union."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from torch import nn

from regard.errors import UsageError
from regard.models.captioner import Captioner
from regard.models.configs import (
    EncoderDecoder,
    ImageCaptioner,
    LanguageModel,
    MaskedLanguageModel,
    Model,
    PointerNetwork,
    Tagger,
    TextClassifier,
    TrunkConfig,
)
from regard.models.copying import CopyingTranslator
from regard.models.graph_classifier import GraphClassifier, NodeLabeller
from regard.models.image_classifier import ImageClassifier, ImageLabeller, PictureEncoder, VisionTransformer
from regard.models.language_model import Writer
from regard.models.pointer_network import Pointer
from regard.models.reader import Reader
from regard.models.speech import Listener, Speech
from regard.models.text_classifier import TextLabeller
from regard.models.translator import Translator
from regard.nn.copying import JointCopy, NoCopy, PointerGenerator, build_copy
from regard.nn.embed import TokenEmbedding, new_table
from regard.nn.init import Normal, initialise, initialise_tables
from regard.nn.label import Label
from regard.nn.norms import BatchNorm, Norm
from regard.nn.outputs import Before, Vocabulary
from regard.nn.trunk import Trunk
from regard.nn.trunk_convolutional import Convolutional, ConvolutionalTrunk
from regard.nn.trunk_recurrent import Recurrent, RecurrentDecoder, RecurrentEncoder
from regard.nn.trunk_transformer import Transformer, TransformerTrunk


def build(config: Model) -> nn.Module:
    """A model with fresh parameters, drawn from torch's generator."""
    try:
        match config:
            case EncoderDecoder():
                return translator(config)
            case LanguageModel():
                return writer(config)
            case MaskedLanguageModel():
                return masked_model(config)
            case Tagger():
                return tagger(config)
            case TextClassifier():
                return text_labeller(config)
            case ImageClassifier():
                return ImageLabeller(config)
            case ImageCaptioner():
                return captioner(config)
            case Speech():
                return Listener(config)
            case GraphClassifier():
                return NodeLabeller(config)
            case PointerNetwork():
                return pointer_network(config)
            case _ if hasattr(config, "build"):  # a kind from outside
                return config.build()
            case _:
                assert_never(config)
    except (ValueError, ArithmeticError, RuntimeError) as error:  # torch's own words for a size of 0 or a dropout of 2
        if "alloc" in str(error):  # it only is too large
            raise
        raise UsageError(f"no such model can be built: {error}", where="model", do="look at its sizes and shares") from error


def translator(config: EncoderDecoder) -> Translator:
    if not config.source_vocabulary or not config.target_vocabulary:
        raise UsageError("the model does not know its vocabularies", where="model", do="give source_vocabulary and target_vocabulary")
    if config.tie == "all" and config.source_vocabulary != config.target_vocabulary:
        raise UsageError(
            f"the source has {config.source_vocabulary} words and the target {config.target_vocabulary}: their tables cannot be one",
            where="model.tie",
            do='share the tokenizer, or set tie = "target"',
        )
    _only_the_past(config.embedding.norm)
    target_table = new_table(config.target_vocabulary, config.d_model)
    source_table = target_table if config.tie == "all" else new_table(config.source_vocabulary, config.d_model)
    output_table = new_table(config.target_vocabulary, config.d_model) if config.tie == "none" else target_table
    encoders = [
        trunk(one, config.d_model, causal=False, name=f"encoder{number or ''}")
        for number, one in enumerate((config.encoder, *config.more_encoders))
    ]
    decoder = trunk(config.decoder, config.d_model, causal=True, memories=encoders, name="decoder")
    if decoder.width != output_table.shape[1]:
        if config.tie != "none":
            raise UsageError(
                f"the decoder hands out vectors of width {decoder.width}, and the table that it shares is {config.d_model} wide",
                where="model.tie",
                do=f'set tie = "none", or decoder.output = {config.d_model}',
            )
        output_table = new_table(config.target_vocabulary, decoder.width)
    for part, asked in zip((*encoders, decoder), (config.encoder, *config.more_encoders, config.decoder), strict=True):
        initialise(part, config.init, layers=asked.layers)
    plain = Translator(
        config,
        source=TokenEmbedding(config.embedding, source_table, name="source"),
        encoder=encoders[0],
        more_encoders=encoders[1:],
        target=TokenEmbedding(config.embedding, target_table, name="target"),
        decoder=decoder,
        output=Vocabulary(output_table, bias=config.output_bias),
    )
    match config.copy:
        case NoCopy():
            return plain
        case JointCopy() | PointerGenerator() as copy:
            if decoder.forcing < 1:
                raise UsageError("a word of its own that it copied stands in no vocabulary", where="model.decoder", do="set forcing = 1")
            copying = build_copy(copy, d_memory=encoders[0].width, d_hidden=decoder.width, d_input=config.d_model)
            return CopyingTranslator(plain, copying)
        case _:
            assert_never(config.copy)


def writer(config: LanguageModel) -> Writer:
    _only_the_past(config.embedding.norm)
    if not config.vocabulary:
        raise UsageError("the model does not know its vocabulary", where="model", do="give vocabulary")
    body = trunk(config.trunk, config.d_model, causal=True, name="trunk")
    if body.width != config.d_model and config.tie:
        raise UsageError(
            f"the trunk hands out vectors of width {body.width}, and the table that it shares is {config.d_model} wide",
            where="model.tie",
            do=f"set tie = false, or trunk.output = {config.d_model}",
        )
    table = new_table(config.vocabulary, config.d_model)
    output_table = table if config.tie else new_table(config.vocabulary, body.width)
    embedding = TokenEmbedding(config.embedding, table, name="text")
    initialise(body, config.init, layers=config.trunk.layers)
    initialise_tables(dict.fromkeys([*embedding.parameters(), output_table]), config.init)
    return Writer(config, embedding=embedding, trunk=body, output=Vocabulary(output_table, bias=config.output_bias))


def pointer_network(config: PointerNetwork) -> Pointer:
    encoder = trunk(config.encoder, config.d_model, causal=False, name="encoder")
    decoder = trunk(config.decoder, config.d_model, causal=True, memories=[encoder], name="decoder")
    for part, asked in ((encoder, config.encoder), (decoder, config.decoder)):
        initialise(part, config.init, layers=asked.layers)
    return Pointer(config, encoder=encoder, decoder=decoder)


def text_labeller(config: TextClassifier) -> TextLabeller:
    if not config.vocabulary or not config.labels:
        raise UsageError("the model does not know its texts", where="model", do="give vocabulary and labels")
    table = new_table(config.vocabulary, config.d_model)
    embedding = TokenEmbedding(config.embedding, table, name="text")
    encoder = trunk(config.encoder, config.d_model, causal=False, name="encoder")
    initialise(encoder, config.init, layers=config.encoder.layers)
    initialise_tables(embedding.parameters(), config.init)
    return TextLabeller(config, embedding=embedding, encoder=encoder)


def masked_model(config: MaskedLanguageModel) -> Reader:
    if not config.vocabulary:
        raise UsageError("the model does not know its vocabulary", where="model", do="give vocabulary")
    embedding, encoder = _reading(config)
    table = embedding.table if config.tie else new_table(config.vocabulary, config.d_model)
    before = None if config.before == "none" else Before(encoder.width, config.d_model, config.norm, config.before)
    if before is None and encoder.width != config.d_model:
        what = f"the trunk hands out vectors of width {encoder.width}, and the table is {config.d_model} wide"
        raise UsageError(what, where="model.before", do=f'set before = "gelu", or encoder.output = {config.d_model}')
    if before is not None and isinstance(config.init, Normal):
        nn.init.normal_(before.inner.weight, std=config.init.std)
    output = Vocabulary(table, bias=True, before=before)
    return Reader(config, embedding=embedding, encoder=encoder, output=output)


def captioner(config: ImageCaptioner) -> Captioner:
    if not (config.channels and all(config.size) and config.vocabulary):
        raise UsageError("the model does not know its pictures", where="model", do="give channels, size and vocabulary")
    _only_the_past(config.embedding.norm)
    seen = VisionTransformer(embedding=config.patches, encoder=config.encoder, pool="mean", init=config.init)
    body = PictureEncoder(seen, config.d_model, channels=config.channels, size=config.size)
    decoder = trunk(config.decoder, config.d_model, causal=True, memories=[body.encoder], name="decoder")
    if decoder.forcing < 1:
        raise UsageError("a captioner learns from the right words alone", where="model.decoder", do="set forcing = 1")
    initialise(decoder, config.init, layers=config.decoder.layers)
    table = new_table(config.vocabulary, config.d_model)
    output_table = table if decoder.width == config.d_model else new_table(config.vocabulary, decoder.width)
    target = TokenEmbedding(config.embedding, table, name="target")
    return Captioner(config, body=body, target=target, decoder=decoder, output=Vocabulary(output_table))


def tagger(config: Tagger) -> Reader:
    if not config.vocabulary or not config.labels:
        raise UsageError("the model does not know its texts", where="model", do="give vocabulary and labels")
    embedding, encoder = _reading(config)
    return Reader(config, embedding=embedding, encoder=encoder, output=Label(encoder.width, len(config.labels), hidden=config.hidden))


def _only_the_past(norm: Norm) -> None:
    if isinstance(norm, BatchNorm):
        what = "a batch norm takes its means over all words, those to come among them"
        raise UsageError(what, where="model.embedding.norm", do="keep it for models that only read; choose layer or rms")


def _reading(config: MaskedLanguageModel | Tagger) -> tuple[TokenEmbedding, Trunk]:
    """What reads a text as a whole."""
    embedding = TokenEmbedding(config.embedding, new_table(config.vocabulary, config.d_model), name="text")
    encoder = trunk(config.encoder, config.d_model, causal=False, name="encoder")
    initialise(encoder, config.init, layers=config.encoder.layers)
    initialise_tables(embedding.parameters(), config.init)
    return embedding, encoder


def trunk(config: TrunkConfig, d_model: int, *, causal: bool, memories: Sequence[Trunk] = (), name: str) -> Trunk:
    """A trunk over vectors of width d_model, which looks at what these encoders hand it."""
    match config:
        case Recurrent():
            return (
                RecurrentDecoder(config, d_model, memories=memories, name=name) if causal else RecurrentEncoder(config, d_model, name=name)
            )
        case Convolutional():
            return ConvolutionalTrunk(config, d_model, causal=causal, memories=memories, name=name)
        case Transformer():
            for encoder in memories:
                if encoder.width != d_model:
                    raise UsageError(
                        f"it looks at vectors of width {d_model}, and an encoder hands out {encoder.width}",
                        where=f"model.{name}",
                        do=f"set output = {d_model} in the encoder",
                    )
            return TransformerTrunk(config, d_model, causal=causal, memories=len(memories), name=name)
        case _ if hasattr(config, "build"):  # a kind from outside
            return config.build(d_model, causal=causal, memories=memories, name=name)
        case _:
            assert_never(config)
