"""Traces made up for tests: any sizes, any tokens, weights that are drawn and known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np

from regard.look.trace import Answer, Choice, Kind, NextWord, Token, Trace, pack

SOURCE = ("Der", "Hund", "sieht", "das", "Haus", ".", "</s>")
TARGET = ("<s>", "The", "dog", "sees", "the")  # 5 x 7: neither is a multiple of anything
WRITTEN = ("The", "dog", "sees", "the", "</s>")


def drawn(kind: Kind, layer: int, *, heads: int, shape: tuple[int, int], seed: int = 0) -> np.ndarray:
    """Weights of a layer, [heads, rows, columns]: each row sums to one, and no word of the target sees a later one."""
    draw = np.random.default_rng([seed, get_args(Kind).index(kind), layer])
    scores_HTS = 2 * draw.normal(size=(heads, *shape))
    if kind == "dec-self":
        scores_HTS += np.triu(np.full(shape, -np.inf), 1)
    weights_HTS = np.exp(scores_HTS - scores_HTS.max(-1, keepdims=True))
    return weights_HTS / weights_HTS.sum(-1, keepdims=True)


def made(
    source: Sequence[str] = SOURCE,
    target: Sequence[str] = TARGET,
    written: Sequence[str] = WRITTEN,
    *,
    layers: int = 3,
    heads: int = 5,
    text: str = "Der Hund sieht das Haus.",
    answer: str = "The dog sees the",
    about: str = "a model made up",
    seed: int = 0,
) -> Trace:
    """A whole trace: three kinds, and of each step a table with the word that was written."""
    draw = np.random.default_rng(seed)
    tokens = {"source": _tokens(source), "target": _tokens(target)}
    sizes: dict[Kind, tuple[int, int]] = {
        "enc-self": (len(source), len(source)),
        "cross": (len(target), len(source)),
        "dec-self": (len(target), len(target)),
    }
    return Trace(
        text=text,
        **tokens,
        steps=tuple(_step(word, place, draw) for place, word in enumerate(written)),
        answers=(Answer(answer, -1.25, -2.5), Answer("A dog sees", -1.75, -3.5)),
        maps=tuple(
            pack(kind, layer, tuple(range(heads)), weights=drawn(kind, layer, heads=heads, shape=shape, seed=seed))
            for kind, shape in sizes.items()
            for layer in range(layers)
        ),
        about={"model": about},
    )


def _tokens(words: Sequence[str]) -> tuple[Token, ...]:
    return tuple(Token(word, place, special=word in ("<s>", "</s>")) for place, word in enumerate(words))


def _step(word: str, place: int, draw: np.random.Generator) -> NextWord:
    shares = np.sort(draw.dirichlet([1.0] * 3))[::-1]
    others = [Token(word, 100 + place, special=word == "</s>"), Token(f"other{place}", 50), Token("else", 51)]
    choices = tuple(Choice(token, float(np.log(share))) for token, share in zip(others, shares, strict=True))
    return NextWord(choices[0], choices)
