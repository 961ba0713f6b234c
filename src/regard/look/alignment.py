"""Who translates whom: word alignments out of the attention of chosen heads, both ways made one, and how wrong they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, assert_never

from jaxtyping import Float
from torch import Tensor

from regard.decode.pharaoh import Pairs, hard

Way = Literal["argmax", "intersection", "union", "grow-diag", "grow-diag-final"]
NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def mean_of_heads(weights_LHTS: Float[Tensor, "L H T S"], heads: Sequence[tuple[int, int]]) -> Float[Tensor, "T S"]:
    """The mean attention of these (layer, head) pairs."""
    layers, numbers = zip(*heads, strict=True)
    return weights_LHTS[list(layers), list(numbers)].mean(0)


def align(attention_TS: Float[Tensor, "T S"], *, way: Way = "argmax") -> Pairs:
    """`argmax` takes for each target token the source token it looks at most. The others join that with the opposite question: which target
    token looks at this source token most."""
    forward = set(hard(attention_TS))
    if way == "argmax":
        return tuple(sorted(forward))
    return symmetrise(forward, {(source, target) for target, source in hard(attention_TS.T)}, way=way)


def symmetrise(forward: Iterable[tuple[int, int]], backward: Iterable[tuple[int, int]], *, way: Way) -> Pairs:
    """One alignment of two (Och and Ney 2003; Koehn et al. 2003)."""
    one, two = set(forward), set(backward)
    match way:
        case "argmax":
            found = one
        case "intersection":
            found = one & two
        case "union":
            found = one | two
        case "grow-diag":
            found = _grown(one & two, one | two)
        case "grow-diag-final":
            found = _finished(_grown(one & two, one | two), (one, two))
        case _:
            assert_never(way)
    return tuple(sorted(found))


def error_rate(found: Iterable[tuple[int, int]], *, sure: Iterable[tuple[int, int]], possible: Iterable[tuple[int, int]] = ()) -> float:
    """The alignment error rate of Och and Ney 2003: 0 when all sure links are found, and none that is neither sure nor possible."""
    links, certain = set(found), set(sure)
    allowed = certain | set(possible)
    if not links and not certain:
        return 0.0
    return 1 - (len(links & certain) + len(links & allowed)) / (len(links) + len(certain))


def _grown(links: set[tuple[int, int]], union: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Links of the union that touch one we have, also at a corner, are added as long as they bring a word that had none."""
    grown, added = set(links), True
    while added:
        added = False
        for source, target in sorted(grown):
            for down, right in NEIGHBOURS:
                new = source + down, target + right
                if new in union and new not in grown and _brings_a_word(new, grown):
                    grown.add(new)
                    added = True
    return grown


def _finished(links: set[tuple[int, int]], ways: Sequence[set[tuple[int, int]]]) -> set[tuple[int, int]]:
    """Then links of either way, wherever they stand, if they bring a word that had none."""
    finished = set(links)
    for way in ways:
        for new in sorted(way):
            if _brings_a_word(new, finished):
                finished.add(new)
    return finished


def _brings_a_word(new: tuple[int, int], links: set[tuple[int, int]]) -> bool:
    return new[0] not in {source for source, _ in links} or new[1] not in {target for _, target in links}
