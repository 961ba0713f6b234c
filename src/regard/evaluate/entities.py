"""Entities in labels of words (B- begins one, I- goes on with it, O is outside), and how many were found: all right or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from regard.evaluate.measure import Score

OUTSIDE = "O"


class Entity(NamedTuple):
    """Words `start` to `stop` (not included) are one thing of this type."""

    type: str
    start: int
    stop: int


def entities(labels: Sequence[str]) -> set[Entity]:
    """As the CoNLL shared tasks count: an I- that follows nothing of its type begins an entity too; a label without B- or I- is a type."""
    found: set[Entity] = set()
    begun, kind = 0, ""
    for place, label in enumerate((*labels, OUTSIDE)):
        head, _, rest = label.partition("-")
        type_ = "" if label == OUTSIDE else rest if head in ("B", "I") and rest else label
        if kind and (type_ != kind or head == "B"):
            found.add(Entity(kind, begun, place))
            kind = ""
        if type_ and not kind:
            begun, kind = place, type_
    return found


def entity_f1(found: Sequence[Sequence[str]], right: Sequence[Sequence[str]]) -> Score:
    """The harmonic mean of precision and recall over all entities, with those of each type."""
    hit: Counter[str] = Counter()
    said: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for one, other in zip(found, right, strict=True):
        mine, theirs = entities(one), entities(other)
        hit.update(entity.type for entity in mine & theirs)
        said.update(entity.type for entity in mine)
        there.update(entity.type for entity in theirs)
    types = {kind: round(100 * f1(hit[kind], said[kind], there[kind]), 2) for kind in sorted(there | said)}
    total = f1(hit.total(), said.total(), there.total())
    precision, recall = 100 * hit.total() / max(1, said.total()), 100 * hit.total() / max(1, there.total())
    return Score("f1", 100 * total, f"entity-f1|n:{there.total()}", {"precision": precision, "recall": recall, "types": types})


def f1(hit: int, said: int, there: int) -> float:
    return 2 * hit / (said + there) if said + there else 1.0
