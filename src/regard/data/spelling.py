"""The kinds of tokenizer, as configuration: how text is to become tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from regard.data.surface import Surface
from regard.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Spelling:
    """What every kind of tokenizer can be told."""

    joint: bool = True
    """One vocabulary for source and target; otherwise one each, of the same kind and size."""
    tags: tuple[str, ...] = ()
    """Strings that are one token each wherever they stand, such as <2de>; the tags of the corpora are added."""
    surface: Surface = field(default_factory=Surface)
    """What is done to the text before it becomes tokens."""
    training_pairs: int = 200_000
    """Most pairs to train the vocabulary on, drawn at random from the corpora."""


@dataclass(frozen=True)
class Unigram(Spelling):
    """SentencePiece's unigram language model: the likeliest pieces."""

    size: int = 8000
    """Entries of the vocabulary, marks, bytes and tags included; fewer where the text does not give so many."""
    coverage: float = 0.9995
    """Part of the text's characters that get an entry of their own."""
    byte_fallback: bool = True
    """Spell other characters by their bytes, so that every text comes back exactly; otherwise they are UNK."""
    sampling: float = 0.0
    """Draw spellings with this alpha while training (Kudo 2018 has 0.1 to 0.5); 0 = always the best one."""

    kind: ClassVar[Literal["unigram"]] = "unigram"


@dataclass(frozen=True)
class Bpe(Spelling):
    """Byte-pair encoding by SentencePiece: the most frequent pair is merged, again and again."""

    size: int = 8000
    """Entries of the vocabulary, marks, bytes and tags included; fewer where the text does not give so many."""
    coverage: float = 0.9995
    """Part of the text's characters that get an entry of their own."""
    byte_fallback: bool = True
    """Spell other characters by their bytes, so that every text comes back exactly; otherwise they are UNK."""
    dropout: float = 0.0
    """Chance to overlook a merge while training (Provilkov et al. 2020 have 0.1); 0 = never."""

    kind: ClassVar[Literal["bpe"]] = "bpe"


@dataclass(frozen=True)
class Word(Spelling):
    """Words parted by spaces; rare ones are UNK."""

    size: int = 0
    """Most entries of the vocabulary; 0 = all the words that are frequent enough."""
    min_count: int = 2
    """Times that a word must have been seen to get an entry."""

    kind: ClassVar[Literal["word"]] = "word"


@dataclass(frozen=True)
class Character(Spelling):
    """Single characters."""

    coverage: float = 1.0
    """Part of the text's characters that get an entry of their own."""
    byte_fallback: bool = True
    """Spell other characters by their bytes; otherwise they are UNK."""

    kind: ClassVar[Literal["character"]] = "character"


@dataclass(frozen=True)
class Byte(Spelling):
    """The bytes of UTF-8."""

    kind: ClassVar[Literal["byte"]] = "byte"


@dataclass(frozen=True)
class Pitches(Spelling):
    """Music: the pitch of each voice in each step, one token each, from the highest voice to the lowest."""

    voices: int = 4
    """How many voices a piece has."""
    steps: int = 4
    """Steps of a quarter note."""
    transpose: int = 0
    """Each piece is drawn anew in each epoch of training, up to so many semitones higher or lower; 0: never."""

    kind: ClassVar[Literal["pitches"]] = "pitches"

    def __post_init__(self):
        if self.voices < 1 or self.steps < 1 or self.transpose < 0:
            what = f"{self.voices} voices, {self.steps} steps of a quarter note, {self.transpose} semitones"
            raise UsageError(what, where="tokenizer", do="take 1 or more, and of semitones 0 or more")


TokenizerConfig = Unigram | Bpe | Word | Character | Byte | Pitches
