"""Who may see whom: predicates on facts about a query and a key, weightless and composable with `&`, `|` and `~`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, cast

from jaxtyping import Bool, Int
from torch import Tensor

from regard.errors import UsageError

FAR = 1 << 30  # farther than any sequence is long


class Facts(NamedTuple):
    """What is known of a token: whole tensors that broadcast (for a mask), or single elements (inside flex)."""

    positions: Int[Tensor, "..."]
    documents: Int[Tensor, "..."]
    real: Bool[Tensor, "..."]


class Band(NamedTuple):
    """A pattern that is only a reach into the past and the future, which kernels without masks can serve."""

    past: int
    future: int


EVERYWHERE = Band(FAR, FAR)
PAST = Band(FAR, 0)


class Predicate:
    """What all patterns have. One's own needs only `allows`, made of elementwise operations, so that it serves masks and flex alike."""

    @property
    def band(self) -> Band | None:
        """The reach that says all there is to say of the pattern, where there is one."""
        return None

    def allows(self, query: Facts, key: Facts, head: Int[Tensor, "..."]) -> Bool[Tensor, "..."]:
        """Whether this query may see this key; `head` only matters to patterns that differ from head to head."""
        raise NotImplementedError

    def __and__(self, other: Predicate) -> And:
        return And((*_parts(self, And), *_parts(other, And)))

    def __or__(self, other: Predicate) -> Or:
        return Or((*_parts(self, Or), *_parts(other, Or)))

    def __invert__(self) -> Predicate:
        return self.part if isinstance(self, Not) else Not(cast(Any, self))


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

    def allows(self, query, key, head):
        return (query.positions - key.positions).abs() <= self.reach


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

    def allows(self, query, key, head):
        return key.positions < self.length


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

    def allows(self, query, key, head):
        allowed = key.positions == key.positions
        for part in self.parts:
            allowed = allowed & part.allows(query, key, head)
        return allowed


@dataclass(frozen=True)
class Or(Predicate):
    """What at least one of the parts allows."""

    kind: ClassVar[Literal["or"]] = "or"
    parts: tuple[Pattern, ...]
    """The patterns of which one must hold; none at all allows nothing."""

    def allows(self, query, key, head):
        allowed = key.positions != key.positions
        for part in self.parts:
            allowed = allowed | part.allows(query, key, head)
        return allowed


@dataclass(frozen=True)
class Not(Predicate):
    """What the part forbids (never another document, never padding)."""

    kind: ClassVar[Literal["not"]] = "not"
    part: Pattern
    """The pattern that must not hold."""

    def allows(self, query, key, head):
        return ~self.part.allows(query, key, head)


Pattern = Full | Causal | Window | Document | Padding | Prefix | And | Or | Not


def together(pattern: Predicate | tuple[Any, ...]) -> Predicate:
    """One pattern of the one or several that a configuration gives; several mean *and*."""
    if isinstance(pattern, tuple):
        return pattern[0] if len(pattern) == 1 else And(pattern)
    return pattern


def visible(pattern: Predicate, query: Facts, key: Facts, head: Int[Tensor, "..."]) -> Bool[Tensor, "..."]:
    """The whole rule: both real, of one document, and the pattern holds."""
    return query.real & key.real & (query.documents == key.documents) & pattern.allows(query, key, head)


def _parts(pattern: Predicate, kind: type[And] | type[Or]) -> tuple:
    return pattern.parts if isinstance(pattern, kind) else (pattern,)
