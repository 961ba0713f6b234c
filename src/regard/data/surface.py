"""What is done to a text before it becomes pieces: nothing, or the lowercasing and Moses tokenisation of older papers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal


@dataclass(frozen=True)
class Surface:
    """The form of the text that a tokenizer sees. The default keeps every character, so that decoding gives the text back exactly."""

    lowercase: bool = False
    """Lowercase the text."""
    pretokenise: Literal["none", "moses"] = "none"
    """Part words from punctuation by Moses's rules, as older papers did; decoding then gives this tokenised text."""
    normalise_punctuation: bool = False
    """With moses: quotes, dashes and odd spaces to their plain forms first."""
    source_language: str = "en"
    """With moses: the language code whose abbreviations and apostrophes the source follows."""
    target_language: str = "en"
    """With moses: the language code of the target."""

    @property
    def lossless(self) -> bool:
        return not self.lowercase and self.pretokenise == "none"


def prepare(text: str, surface: Surface, *, language: str = "en") -> str:
    """The text as the tokenizer sees it."""
    if surface.pretokenise == "moses":
        if surface.normalise_punctuation:
            text = _punctuation(language).normalize(text)
        text = _moses(language).tokenize(text, return_str=True, escape=False)  # pyright: ignore[reportAssignmentType]
    return text.lower() if surface.lowercase else text


def restore(text: str, surface: Surface, *, language: str = "en") -> str:
    """Plain text from what was decoded: words and punctuation joined again. Letters lowercased stay so."""
    if surface.pretokenise == "moses":
        return _plain(language).detokenize(text.split())
    return text


@cache
def _moses(language: str):
    from sacremoses import MosesTokenizer

    return MosesTokenizer(lang=language)


@cache
def _plain(language: str):
    from sacremoses import MosesDetokenizer

    return MosesDetokenizer(lang=language)


@cache
def _punctuation(language: str):
    from sacremoses import MosesPunctNormalizer

    return MosesPunctNormalizer(lang=language)
