"""Who may see whom: predicates on facts about a query and a key, weightless and composable with `&`, `|` and `~`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from regard.errors import UsageError
from regard.nn.attention.predicate import EVERYWHERE, FAR, PAST, Band, Predicate
from regard.nn.attention.sparse import BigBird, BlockEnds, BlockLocal, Dilated, Global, RandomBlocks, Strided


@dataclass(frozen=True)
class Full(Predicate):
    """Everything, within the document."""

    kind: ClassVar[Literal["full"]] = "full"

    @property
    def band(self):
        return EVERYWHERE

    def allows(self, query, key, head):
        return key.positions == key.positions


@dataclass(frozen=True)
class Causal(Predicate):
    """The query's own position and what lies before it."""

    kind: ClassVar[Literal["causal"]] = "causal"

    @property
    def band(self):
        return PAST

    def allows(self, query, key, head):
        return key.positions <= query.positions

    def meets(self, query, key, head):
        return key.low <= query.high


@dataclass(frozen=True)
class Window(Predicate):
    """Keys at most `reach` positions away, on both sides; with `Causal`, `reach` positions back."""

    kind: ClassVar[Literal["window"]] = "window"
    reach: int
    """The largest distance that is seen: 0 sees only oneself."""

    def __post_init__(self):
        if self.reach < 0:
            raise UsageError(f"a window cannot reach {self.reach} positions", where="window", do="give a reach of 0 or more")

    @property
    def band(self):
        return Band(self.reach, self.reach)

    @property
    def sparse(self):
        return True

    def allows(self, query, key, head):
        return (query.positions - key.positions).abs() <= self.reach

    def meets(self, query, key, head):
        return (key.low - query.high <= self.reach) & (query.low - key.high <= self.reach)


@dataclass(frozen=True)
class Document(Predicate):
    """Keys of the query's own document. It always holds; the name lets one say it."""

    kind: ClassVar[Literal["document"]] = "document"

    @property
    def band(self):
        return EVERYWHERE

    def allows(self, query, key, head):
        return query.documents == key.documents


@dataclass(frozen=True)
class Padding(Predicate):
    """Keys that are real. It always holds; the name lets one say it."""

    kind: ClassVar[Literal["padding"]] = "padding"

    @property
    def band(self):
        return EVERYWHERE

    def allows(self, query, key, head):
        return key.real


@dataclass(frozen=True)
class Prefix(Predicate):
    """The first `length` positions, for every query; `Causal() | Prefix(n)` is a prefix language model."""

    kind: ClassVar[Literal["prefix"]] = "prefix"
    length: int
    """How many positions at the start of the document everyone sees."""

    def __post_init__(self):
        if self.length < 0:
            raise UsageError(f"a prefix cannot be {self.length} long", where="prefix", do="give a length of 0 or more")

    @property
    def sparse(self):
        return True

    def allows(self, query, key, head):
        return key.positions < self.length

    def meets(self, query, key, head):
        return key.low < self.length


@dataclass(frozen=True)
class And(Predicate):
    """What all the parts allow."""

    kind: ClassVar[Literal["and"]] = "and"
    parts: tuple[Pattern, ...]
    """The patterns that must all hold; none at all allows everything."""

    @property
    def band(self):
        bands = [part.band for part in self.parts]
        known = [band for band in bands if band is not None]
        if len(known) < len(bands):
            return None
        return Band(min([FAR, *(band.past for band in known)]), min([FAR, *(band.future for band in known)]))

    @property
    def sparse(self):
        return any(part.sparse for part in self.parts)

    @property
    def measures(self):
        return any(part.measures for part in self.parts)

    def allows(self, query, key, head):
        allowed = key.positions == key.positions
        for part in self.parts:
            allowed = allowed & part.allows(query, key, head)
        return allowed

    def meets(self, query, key, head):
        met = key.low == key.low
        for part in self.parts:
            met = met & part.meets(query, key, head)
        return met


@dataclass(frozen=True)
class Or(Predicate):
    """What at least one of the parts allows."""

    kind: ClassVar[Literal["or"]] = "or"
    parts: tuple[Pattern, ...]
    """The patterns of which one must hold; none at all allows nothing."""

    @property
    def sparse(self):
        return all(part.sparse for part in self.parts)

    @property
    def measures(self):
        return any(part.measures for part in self.parts)

    def allows(self, query, key, head):
        allowed = key.positions != key.positions
        for part in self.parts:
            allowed = allowed | part.allows(query, key, head)
        return allowed

    def meets(self, query, key, head):
        met = key.low != key.low
        for part in self.parts:
            met = met | part.meets(query, key, head)
        return met


@dataclass(frozen=True)
class Not(Predicate):
    """What the part forbids (never another document, never padding)."""

    kind: ClassVar[Literal["not"]] = "not"
    part: Pattern
    """The pattern that must not hold."""

    @property
    def measures(self):
        return self.part.measures

    def allows(self, query, key, head):
        return ~self.part.allows(query, key, head)


Pattern = (
    Full
    | Causal
    | Window
    | Dilated
    | Strided
    | BlockLocal
    | Global
    | BlockEnds
    | RandomBlocks
    | BigBird
    | Document
    | Padding
    | Prefix
    | And
    | Or
    | Not
)


def together(pattern: Predicate | tuple[Any, ...]) -> Predicate:
    """One pattern of the one or several that a configuration gives; several mean *and*."""
    if isinstance(pattern, tuple):
        return pattern[0] if len(pattern) == 1 else And(pattern)
    return pattern
