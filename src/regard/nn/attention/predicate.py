"""What a pattern is: a predicate on facts about a query and a key, which may also be asked about whole stretches of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.nn.view import Tokens

if TYPE_CHECKING:
    from regard.nn.attention.patterns import And, Or

FAR = 1 << 30  # farther than any sequence is long


class Facts(NamedTuple):
    """What is known of a token: whole tensors that broadcast (for a mask), or single elements (inside flex)."""

    positions: Int[Tensor, "..."]
    documents: Int[Tensor, "..."]
    real: Bool[Tensor, "..."]
    lengths: Int[Tensor, "..."] | None = None  # of the token's document; there for patterns that measure

    @property
    def length(self) -> Int[Tensor, "..."]:
        """Of the document; who asks says so in `measures`."""
        assert self.lengths is not None
        return self.lengths

    @staticmethod
    def of(tokens: Tokens, shaped: Callable[[Tensor], Tensor]) -> Facts:
        """The facts of these tokens, each tensor shaped like this."""
        lengths = None if tokens.lengths is None else shaped(tokens.lengths)
        return Facts(shaped(tokens.positions), shaped(tokens.documents), shaped(tokens.real), lengths)


class Stretch(NamedTuple):
    """Neighbouring tokens taken together: what is known of all of them."""

    low: Int[Tensor, "..."]  # the least position
    high: Int[Tensor, "..."]
    lengths: Int[Tensor, "..."]  # of the shortest document among them
    even: Bool[Tensor, "..."]  # all of one document, at positions one after the other
    size: int  # how many tokens at most


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

    @property
    def sparse(self) -> bool:
        """Whether `meets` leaves out most stretches of a long row."""
        return False

    @property
    def measures(self) -> bool:
        """Whether it asks how long documents are, which nobody knows while they are being written."""
        return False

    def allows(self, query: Facts, key: Facts, head: Int[Tensor, "..."]) -> Bool[Tensor, "..."]:
        """Whether this query may see this key; `head` only matters to patterns that differ from head to head."""
        raise NotImplementedError

    def meets(self, query: Stretch, key: Stretch, head: Int[Tensor, "..."]) -> Bool[Tensor, "..."]:
        """Whether any of these queries might see any of these keys; never False where one does."""
        return key.low == key.low

    def __and__(self, other: Predicate) -> And:
        from regard.nn.attention.patterns import And

        return And((*_parts(self, And), *_parts(other, And)))

    def __or__(self, other: Predicate) -> Or:
        from regard.nn.attention.patterns import Or

        return Or((*_parts(self, Or), *_parts(other, Or)))

    def __invert__(self) -> Predicate:
        from regard.nn.attention.patterns import Not

        return self.part if isinstance(self, Not) else Not(cast(Any, self))


def visible(pattern: Predicate, query: Facts, key: Facts, head: Int[Tensor, "..."]) -> Bool[Tensor, "..."]:
    """The whole rule: both real, of one document, and the pattern holds."""
    return query.real & key.real & (query.documents == key.documents) & pattern.allows(query, key, head)


def differs_by_head(pattern: Predicate, heads: int, device: torch.device) -> bool:
    """Asked about one token, a pattern that looks at the head answers once for each head."""
    one = torch.zeros((), dtype=torch.long, device=device)
    facts = Facts(one, one, one == 0, one + 1)
    return pattern.allows(facts, facts, torch.arange(heads, device=device)[:, None, None]).numel() > 1


def _parts(pattern: Predicate, kind: type) -> tuple:
    return pattern.parts if isinstance(pattern, kind) else (pattern,)  # pyright: ignore[reportAttributeAccessIssue]
