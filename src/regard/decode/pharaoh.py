"""Hard word alignments out of attention, in the Pharaoh form `i-j`: source word i, target word j, both from 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jaxtyping import Float
from torch import Tensor

Pairs = tuple[tuple[int, int], ...]


def hard(attention_TS: Float[Tensor, "T S"]) -> Pairs:
    """Each target token with the source token it looked at most; of equals the first."""
    return tuple((source, target) for target, source in enumerate(attention_TS.argmax(1).tolist()))


def between_words(pairs: Pairs, source: Sequence[int], target: Sequence[int]) -> Pairs:
    """From tokens to the words they belong to; `source` and `target` tell the word of each token."""
    return tuple(sorted({(source[i], target[j]) for i, j in pairs}))


def word_of(ids: Sequence[int], decode: Callable[[Sequence[int]], str]) -> list[int]:
    """To which word of the decoded text each token belongs, whatever kind of vocabulary it is of: words are what stands between spaces."""
    return [max(len(decode(ids[: place + 1]).split()) - 1, 0) for place in range(len(ids))]


def write(pairs: Pairs) -> str:
    return " ".join(f"{source}-{target}" for source, target in pairs)


def read(line: str) -> Pairs:
    return tuple((int(source), int(target)) for source, target in (pair.split("-") for pair in line.split()))
