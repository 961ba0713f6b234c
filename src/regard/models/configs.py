"""The configurations of whole models. What they are built of is configured beside the parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from regard.data.marks import BOS, EOS
from regard.data.masking import Masking
from regard.models.graph_classifier import GraphClassifier
from regard.models.image_classifier import ImageClassifier
from regard.models.speech import Speech
from regard.nn.attention.scores import Additive, Score
from regard.nn.augment import Augmentation
from regard.nn.copying import Copy, NoCopy
from regard.nn.embed import Embedding
from regard.nn.embed_patches import PatchEmbedding
from regard.nn.feedforward import Activation, FeedForward
from regard.nn.init import Init, Xavier
from regard.nn.label import Pool
from regard.nn.norms import LayerNorm, Norm
from regard.nn.trunk_convolutional import Convolutional
from regard.nn.trunk_recurrent import NoAttention, Recurrent
from regard.nn.trunk_transformer import Transformer

TrunkConfig = Transformer | Recurrent | Convolutional


@dataclass(frozen=True)
class EncoderDecoder:
    """The paper's model: an encoder reads the source, a decoder writes the target and looks at the encoder."""

    kind: ClassVar[Literal["translator"]] = "translator"
    short: ClassVar[str] = "ED"
    d_model: int = 512
    "Width of the residual stream."
    encoder: TrunkConfig = Transformer()
    "The trunk that reads the source."
    decoder: TrunkConfig = Transformer()
    "The trunk that writes the target; causal by nature."
    more_encoders: tuple[TrunkConfig, ...] = ()
    "Further encoders of the same source, of any kind; the decoder looks at each of them."
    embedding: Embedding = Embedding()
    "How the tokens of both sides become vectors."
    tie: Literal["all", "target", "none"] = "all"
    "Which tables are one: source, target and output; target and output; none. All needs one vocabulary for both sides."
    output_bias: bool = False
    "A bias for each word of the output."
    copy: Copy = NoCopy()
    "Whether words of the source may be written that stand in no vocabulary, and how; one vocabulary for both sides."
    init: Init = Xavier()
    "First values of the parameters."
    source_vocabulary: int = 0
    "Size of the source vocabulary; 0: taken from the tokenizer."
    target_vocabulary: int = 0
    "Size of the target vocabulary; 0: taken from the tokenizer."


@dataclass(frozen=True)
class LanguageModel:
    """One trunk that goes on with a text, word by word."""

    kind: ClassVar[Literal["language-model"]] = "language-model"
    short: ClassVar[str] = "D"
    d_model: int = 512
    "Width of the residual stream."
    trunk: TrunkConfig = Transformer()
    "The trunk that reads what is written and says what may follow; causal by nature."
    embedding: Embedding = Embedding()
    "How tokens become vectors."
    tie: bool = True
    "Whether the table of the embedding scores the output too."
    output_bias: bool = False
    "A bias for each word of the output."
    init: Init = Xavier()
    "First values of the parameters."
    begin: int = BOS
    "The token that stands before a text; where whole files are learned from, the trainer puts the end of a line here."
    end: int = EOS
    "The token that says that a text is over; 0: none does, the model goes on for as long as it is asked to."
    vocabulary: int = 0
    "Size of the vocabulary; 0: taken from the tokenizer."

    @property
    def recalls(self) -> bool:
        """Whether it reads on from segment to segment."""
        return isinstance(self.trunk, Transformer) and self.trunk.recalls


@dataclass(frozen=True)
class PointerNetwork:
    """Answers that are made of the input: an encoder reads points, a decoder points at some of them, one after the other (Vinyals 2015)."""

    kind: ClassVar[Literal["pointer-network"]] = "pointer-network"
    d_model: int = 256
    "Width of the vectors of the points."
    encoder: TrunkConfig = Recurrent(cell="lstm", dropout=0.0)
    "The trunk that reads the points."
    decoder: TrunkConfig = Recurrent(cell="lstm", attention=NoAttention(), dropout=0.0)
    "The trunk that writes the answer; causal by nature. The pointer looks at the encoder for it, so it needs no attention itself."
    score: Score = Additive(width=256)
    "How well a vector of the decoder fits a point."
    places: int = 0
    """Answer by a table of so many places instead of pointing, whatever stands there: plain sequence to sequence, the rival, which cannot
    answer for more points than it has places. 0: point."""
    init: Init = Xavier()
    "First values of the parameters."
    problem: Literal["", "hull", "tour"] = ""
    "What is answered: a tour visits every point once, a hull no point twice; empty: taken from the data."


@dataclass(frozen=True)
class MaskedLanguageModel:
    """One trunk that sees all of a text and says which words were hidden in it: BERT (Devlin 2019)."""

    kind: ClassVar[Literal["masked-language-model"]] = "masked-language-model"
    d_model: int = 256
    "Width of the vectors."
    encoder: TrunkConfig = Transformer(feed_forward=FeedForward(activation="gelu"))
    "The trunk that reads the text; it sees all of it."
    embedding: Embedding = Embedding(norm=LayerNorm())
    "How tokens become vectors."
    masking: Masking = Masking()
    "Which words are hidden in training, and how."
    before: Activation | Literal["none"] = "gelu"
    "BERT's layer before the output: a map, this activation, and a norm; none: no such layer."
    norm: Norm = LayerNorm()
    "The norm of that layer."
    tie: bool = True
    "Whether the table of the embedding scores the output too."
    init: Init = Xavier()
    "First values of the parameters."
    vocabulary: int = 0
    "Size of the vocabulary, the mask included; 0: taken from the tokenizer."


@dataclass(frozen=True)
class Tagger:
    """A label for every word of a text."""

    kind: ClassVar[Literal["tagger"]] = "tagger"
    d_model: int = 256
    "Width of the vectors."
    encoder: TrunkConfig = Transformer()
    "The trunk that reads the text; it sees all of it."
    embedding: Embedding = Embedding()
    "How tokens become vectors."
    hidden: int = 0
    "Width of a hidden layer between a word's vector and the labels; 0: none."
    init: Init = Xavier()
    "First values of the parameters."
    longest: int = 0
    "Most tokens of a text; 0: taken from batching.max_length."
    labels: tuple[str, ...] = ()
    "Names of the labels; empty: taken from the data."
    vocabulary: int = 0
    "Size of the vocabulary; 0: taken from the tokenizer."


@dataclass(frozen=True)
class ImageCaptioner:
    """A sentence for a picture: patches are read, words are written, and the decoder looks at the patches by cross-attention."""

    kind: ClassVar[Literal["image-captioner"]] = "image-captioner"
    d_model: int = 128
    "Width of the vectors."
    patches: PatchEmbedding = PatchEmbedding()
    "How the picture becomes a row of vectors."
    encoder: Transformer = Transformer(layers=3, heads=4, placement="pre", feed_forward=FeedForward(d_ff=256, activation="gelu"))
    "The trunk that reads the patches."
    decoder: TrunkConfig = Transformer(layers=3, heads=4, placement="pre", feed_forward=FeedForward(d_ff=256))
    "The trunk that writes; causal by nature."
    embedding: Embedding = Embedding()
    "How words become vectors."
    augmentation: Augmentation = Augmentation()
    "What is done to the pictures of training."
    init: Init = Xavier()
    "First values of the parameters."
    longest: int = 0
    "Most tokens of a sentence, its mark included; 0: taken from batching.max_length."
    channels: int = 0
    "1: grey, 3: colours; 0: taken from the data."
    size: tuple[int, int] = (0, 0)
    "Height and width of the pictures, in pixels; 0: taken from the data."
    vocabulary: int = 0
    "Size of the vocabulary; 0: taken from the tokenizer."


@dataclass(frozen=True)
class TextClassifier:
    """A label for a text."""

    kind: ClassVar[Literal["text-classifier"]] = "text-classifier"
    d_model: int = 256
    "Width of the vectors."
    encoder: TrunkConfig = Transformer()
    "The trunk that reads the text; it sees all of it."
    embedding: Embedding = Embedding()
    "How tokens become vectors."
    pool: Pool = "first"
    "What stands for the whole text: the mark that begins it, or the mean of all vectors."
    hidden: int = 0
    "Width of a hidden layer between that vector and the labels; 0: none."
    init: Init = Xavier()
    "First values of the parameters."
    longest: int = 0
    "Most tokens of a text, its mark included; the rest is not read. 0: taken from batching.max_length."
    labels: tuple[str, ...] = ()
    "Names of the labels; empty: taken from the data."
    vocabulary: int = 0
    "Size of the vocabulary; 0: taken from the tokenizer."


Model = (
    EncoderDecoder
    | LanguageModel
    | MaskedLanguageModel
    | Tagger
    | TextClassifier
    | ImageClassifier
    | ImageCaptioner
    | Speech
    | GraphClassifier
    | PointerNetwork
)
