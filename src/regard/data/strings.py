"""Strings of letters and what is to be made of them: pairs that are made when they are asked for, to see what a mechanism can learn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_lowercase
from typing import ClassVar, Literal

import numpy as np

from regard.errors import UsageError


@dataclass(frozen=True)
class Strings:
    """Letters drawn evenly, parted by spaces, and the same letters copied, reversed or sorted; made, so it needs no files."""

    kind: ClassVar[Literal["strings"]] = "strings"
    problem: Literal["copy", "reverse", "sort"] = "reverse"
    "What the target is: the letters as they stand, from the last to the first, or in the order of the alphabet."
    count: int = 1000
    "How many pairs."
    sizes: tuple[int, int] = (3, 9)
    "Fewest and most letters of a string; all sizes between come equally often."
    letters: int = 26
    "How many letters of the alphabet there are."
    seed: int = 1
    "Of what is drawn; every corpus needs one of its own."
    share: float = 0.0
    "This corpus's part of the mixture, relative to the other shares; 0 everywhere = by size, each pair once an epoch."
    tag: str = ""
    "An ordinary token put before each source, such as <2de>."

    def __post_init__(self):
        least, most = self.sizes
        if self.count < 1 or self.seed < 0 or not 1 <= least <= most or not 1 <= self.letters <= len(ascii_lowercase):
            do = "give count >= 1, seed >= 0, sizes from 1 up and 1 to 26 letters"
            raise UsageError("there is no such corpus", where="strings", do=do)


def made(corpus: Strings) -> Iterator[tuple[str, str]]:
    """Its pairs; what a pair holds follows from seed and number alone."""
    least, most = corpus.sizes
    for number in range(corpus.count):
        size = least + number % (most - least + 1)
        drawn = [ascii_lowercase[place] for place in np.random.default_rng([corpus.seed, number]).integers(corpus.letters, size=size)]
        match corpus.problem:
            case "copy":
                answer = drawn
            case "reverse":
                answer = drawn[::-1]
            case "sort":
                answer = sorted(drawn)
        yield " ".join(drawn), " ".join(answer)
