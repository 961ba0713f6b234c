"""What is put to the laws: a mechanism of the user's, and small models that have it in the place where it belongs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, get_args

import torch
from torch import nn

from regard.config.extend import Extension
from regard.config.toml import joins, kind_of
from regard.errors import UsageError
from regard.models.build import build
from regard.models.configs import EncoderDecoder, LanguageModel, TrunkConfig
from regard.nn.attention.biases import Bias, NoBias
from regard.nn.attention.multihead import Attention
from regard.nn.attention.normalise import Normaliser, Softmax
from regard.nn.attention.patterns import Full, Pattern
from regard.nn.attention.scores import ScaledDot, Score
from regard.nn.attention.slots import Own
from regard.nn.embed import Embedding
from regard.nn.experts import Experts
from regard.nn.feedforward import FeedForward
from regard.nn.norms import Norm
from regard.nn.positions import Positions
from regard.nn.trunk_transformer import Transformer

ROLES: dict[str, tuple[Any, ...]] = {
    "score": get_args(Score),
    "pattern": get_args(Pattern),
    "bias": get_args(Bias),
    "normaliser": get_args(Normaliser),
    "attention": get_args(Own),
    "positions": get_args(Positions),
    "feed-forward": (FeedForward, Experts),
    "norm": get_args(Norm),
    "trunk": get_args(TrunkConfig),
}
AXES = ("score", "pattern", "bias", "normaliser")
HEADS, D_HEAD, D_MODEL, WORDS = 4, 6, 24, 13
SEED = 3


@dataclass(frozen=True)
class Subject:
    """One configuration of the user's, and what part of a model it is."""

    config: Any
    role: str

    @property
    def name(self) -> str:
        return f"{self.config} ({self.role})"

    def axes(self) -> dict[str, Any]:
        """The four axes of one call of attention, with what has parameters built."""
        torch.manual_seed(SEED)
        made = {"score": ScaledDot(), "pattern": Full(), "bias": NoBias(), "normaliser": Softmax()} | {self.role: self.config}
        score, bias = made["score"].build(HEADS, D_HEAD, D_HEAD), made["bias"].build(HEADS, D_HEAD)
        score, bias = (part.double() if isinstance(part, nn.Module) else part for part in (score, bias))
        return {"score": score, "pattern": made["pattern"], "bias": bias, "normalise": made["normaliser"]}

    def trunk(self) -> Any:
        """A small trunk that has it."""
        plain = Transformer(layers=2, heads=HEADS, dropout=0.0, feed_forward=FeedForward(d_ff=22))
        match self.role:
            case "score":
                return replace(plain, own=Attention(score=self.config))
            case "pattern":
                return replace(plain, own=Attention(pattern=(self.config,)))
            case "bias":
                return replace(plain, own=Attention(bias=self.config))
            case "normaliser":
                return replace(plain, own=Attention(normalise=self.config))
            case "attention":
                return replace(plain, own=self.config)
            case "feed-forward":
                return replace(plain, feed_forward=self.config)
            case "norm":
                return replace(plain, norm=self.config)
            case "trunk":
                return self.config
            case _:
                return plain

    def embedding(self) -> Embedding:
        plain = Embedding(dropout=0.0)
        return replace(plain, positions=self.config) if self.role == "positions" else plain

    def writer(self) -> LanguageModel:
        """A language model with it in every layer."""
        return LanguageModel(d_model=D_MODEL, trunk=self.trunk(), embedding=self.embedding(), tie=False, vocabulary=WORDS)

    def translator(self) -> EncoderDecoder:
        """A translator with it in its encoder."""
        plain = Transformer(layers=1, heads=HEADS, dropout=0.0, feed_forward=FeedForward(d_ff=22))
        return EncoderDecoder(
            d_model=D_MODEL,
            encoder=self.trunk(),
            decoder=plain,
            embedding=self.embedding(),
            tie="none",
            source_vocabulary=WORDS,
            target_vocabulary=WORDS,
        )


def built(config: Any) -> Any:
    """The model, in 64 bits, with the same first values each time."""
    torch.manual_seed(SEED)
    return build(config).double().eval()


def subjects(extension: Extension) -> Iterator[Subject]:
    """Each kind of the file with its defaults, or those configurations that the file lists as `examples`."""
    examples = getattr(extension.module, "examples", None)
    if examples is None:
        try:
            examples = [cls() for cls in extension.kinds.values()]
        except TypeError as error:
            do = "give every field a default, or write examples = [...] at the end of the file"
            raise UsageError(str(error), where=str(extension.path), do=do) from None
    for config in examples:
        yield Subject(config, role_of(config, where=str(extension.path)))


def role_of(config: object, *, where: str) -> str:
    """Where it belongs."""
    for role, choices in ROLES.items():
        if joins(type(config), choices) or isinstance(config, choices):
            return role
    what = f"{kind_of(type(config))} belongs to none of: {', '.join(ROLES)}"
    raise UsageError(what, where=where, do="give it a base that they have, or extends = one of their classes")
