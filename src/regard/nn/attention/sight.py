"""Who sees whom in one call: facts about both sides and a pattern, and the masks that follow from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.errors import UsageError
from regard.nn.attention.predicate import EVERYWHERE, Facts, Predicate, visible
from regard.nn.view import Tokens

Made = TypeVar("Made")


class Sight:
    """Where a side has no `Tokens` it is plain: all real, one document, positions from 0.

    A mask is the same for all layers that see alike. `memo` is a dict that the caller hands down the call, fresh for each batch
    (and each step of decoding), so that it is worked out once; without one nothing is kept.
    """

    def __init__(
        self,
        queries: Tokens | None,
        keys: Tokens | None,
        pattern: Predicate,
        *,
        lengths: tuple[int, int],
        heads: int,
        first: int = 0,
        device: torch.device,
        memo: dict | None = None,
    ):
        self.queries, self.keys, self.pattern, self.memo = queries, keys, pattern, memo
        self.lengths, self.heads, self.first_head, self.device = lengths, heads, first, device
        self.plain = queries is None and keys is None
        if pattern.band != EVERYWHERE:
            self._check_placed("the pattern")

    @property
    def same(self) -> bool:
        """Whether the queries are the keys' own tokens."""
        return self.queries is self.keys

    @property
    def free(self) -> bool:
        """Whether nothing but the pattern forbids anything: all is real and of one document. On the CPU alone, where asking is free."""
        return self.plain or self.remember("free", self._free)

    @property
    def counts(self) -> bool:
        """Whether, besides, queries are the keys and their positions count from 0."""
        return self.plain or (self.same and self.free and self.remember("counts", self._counts))

    def of_head(self, head: int) -> Sight:
        """What this head alone sees."""
        axes = {"lengths": self.lengths, "heads": 1, "first": self.first_head + head, "device": self.device, "memo": self.memo}
        return Sight(self.queries, self.keys, self.pattern, **axes)

    def remember(self, what: str, make: Callable[[], Made]) -> Made:
        """What `make` makes, made once for each memo, pair of sides and pattern."""
        if (
            self.memo is None or torch.compiler.is_compiling()
        ):  # a compiled graph shares equal terms by itself; lengths in a key would pin them
            return make()
        key = (what, self.queries, self.keys, self.pattern, self.lengths, self.heads, self.first_head)
        if key not in self.memo:
            self.memo[key] = make()
        return self.memo[key]

    def tokens(self) -> tuple[Tokens, Tokens]:
        """The facts of both sides, the plain ones written out; with the lengths of documents if the pattern asks for them."""
        if self.pattern.measures:
            return self.remember("measured", self._measured)
        T, S = self.lengths
        queries = self.queries or Tokens.plain(1, T, device=self.device)
        return queries, self.keys or (queries if self.plain and T == S else Tokens.plain(1, S, device=self.device))

    def allowed(self) -> Bool[Tensor, "#B #H T S"]:
        """The mask, True where a query may see a key."""
        return self.remember("allowed", self._allowed)

    def additive(self, dtype: torch.dtype) -> Float[Tensor, "#B #H T S"]:
        """The mask as numbers to add: 0 where it is allowed, -inf elsewhere (never a finite number, which would leave a mean of all)."""
        return self.remember(f"additive {dtype}", lambda: self.forbid(torch.zeros((), dtype=dtype, device=self.device)))

    def forbid(self, scores: Float[Tensor, "*BHTS"]) -> Float[Tensor, "#B #H T S"]:
        """The scores with -inf where a query may not see a key."""
        return torch.where(self.allowed(), scores, -torch.inf)

    def distance(self) -> Int[Tensor, "#B T S"]:
        """Key position minus query position."""
        self._check_placed("the bias")
        return self.remember("distance", self._distance)

    def biased(self, bias, query: Float[Tensor, "B H T E"]) -> Float[Tensor, "B H T S"]:
        """What the bias adds to every score; some know a shorter way where positions count up."""
        in_order = self.plain or (self.same and self.queries is not None and self.queries.upright)
        if in_order and self.lengths[0] == self.lengths[1] and hasattr(bias, "in_order"):
            return bias.in_order(query, past=self.pattern.band is not None and not self.pattern.band.future)
        if hasattr(bias, "between"):
            return bias.between(query, *self.remember("seen distance", self._seen_distance))
        return bias.scores(query, self.distance())

    def _seen_distance(self) -> tuple[Tensor, int, int]:
        """The distance of what is seen, 0 for what is not, which may stand anywhere; and the least and the largest of them."""
        distance = torch.where(self.allowed().any(1), self.distance(), 0)
        if torch.compiler.is_compiling():  # nothing may be asked of the device: what is seen stands in a row
            T, S = self.lengths
            return distance.clamp(1 - S, T - 1), 1 - S, T - 1
        least, most = distance.aminmax()
        return distance, int(least), int(most)

    def _allowed(self) -> Tensor:
        queries, keys = self.tokens()
        query = Facts.of(queries, lambda fact: fact[:, None, :, None])
        key = Facts.of(keys, lambda fact: fact[:, None, None, :])
        return visible(self.pattern, query, key, torch.arange(self.heads, device=self.device)[:, None, None] + self.first_head)

    def _free(self) -> bool:
        if self.device.type != "cpu" or torch.compiler.is_compiling():
            return False
        queries, keys = self.tokens()
        first = queries.documents[:, :1]
        real = bool(queries.real.all()) and bool(keys.real.all())
        return real and bool((queries.documents == first).all()) and bool((keys.documents == first).all())

    def _counts(self) -> bool:
        positions = self.tokens()[0].positions
        return bool((positions == torch.arange(positions.shape[1])).all())

    def _measured(self) -> tuple[Tokens, Tokens]:
        T, S = self.lengths
        queries = (self.queries or Tokens.plain(1, T, device=self.device)).measured()
        same = self.same and T == S
        return queries, queries if same else (self.keys or Tokens.plain(1, S, device=self.device)).measured()

    def _distance(self) -> Tensor:
        queries, keys = self.tokens()
        return keys.positions[:, None, :] - queries.positions[:, :, None]

    def _check_placed(self, asker: str) -> None:
        T, S = self.lengths
        if T != S and (self.queries is None or self.keys is None):
            what = f"{asker} asks for positions, but there are {T} queries and {S} keys, and nothing says where they stand"
            raise UsageError(what, where="attention", do="give attend the Tokens of both sides (queries=..., keys=...)")
