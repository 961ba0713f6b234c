"""What is added to a score because of where query and key stand: a function of their distance, or of it and the query."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, NoReturn

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.errors import UsageError
from regard.nn.positions import Sinusoid, sinusoid

Asks = Literal["nothing", "distance", "query", "values"]


class ByDistance:
    """A bias known from the distance (key position minus query position) and the head alone. One's own needs only `at`."""

    asks: Asks = "distance"

    def at(self, distance: Int[Tensor, "..."], head: Int[Tensor, "..."], heads: int) -> Float[Tensor, "..."]:
        """Elementwise, so that it serves masks and flex alike; `heads` is how many there are."""
        raise NotImplementedError

    def scores(self, query: Float[Tensor, "B H T E"], distance: Int[Tensor, "B T S"]) -> Float[Tensor, "B H T S"]:
        heads = query.shape[1]
        head_H11 = torch.arange(heads, device=query.device)[:, None, None]
        return self.at(distance[:, None], head_H11, heads).to(query.dtype)

    def build(self, heads: int, d_head: int) -> ByDistance:
        """The bias with its parameters, where it has any."""
        return self


@dataclass(frozen=True)
class NoBias:
    """Nothing is added."""

    kind: ClassVar[Literal["none"]] = "none"
    asks: ClassVar[Asks] = "nothing"

    def build(self, heads: int, d_head: int) -> NoBias:
        return self


@dataclass(frozen=True)
class ALiBi(ByDistance):
    """Minus the distance times a slope of each head's own (Press 2022); two-sided where the pattern lets it be."""

    kind: ClassVar[Literal["alibi"]] = "alibi"

    def at(self, distance, head, heads):
        # The slopes are 2^(-8/c), 2^(-16/c), ... for c heads, a power of two; further heads take every other slope of 2c heads.
        power = 1 << (heads.bit_length() - 1)
        step = torch.where(head < power, head + 1, head - power + 0.5)
        return -distance.abs() * torch.exp2(step * (-8 / power))


@dataclass(frozen=True)
class T5Buckets:
    """A learned number for each head and bucket of distances: near ones apart, far ones in logarithmic steps (Raffel 2020)."""

    kind: ClassVar[Literal["t5-buckets"]] = "t5-buckets"
    buckets: int = 32
    """How many buckets."""
    reach: int = 128
    """From this distance on everything is one bucket."""
    sides: Literal["both", "past"] = "both"
    """Halve the buckets between past and future, or give all to the past (all of the future then counts as distance 0)."""
    asks: ClassVar[Asks] = "distance"

    def __post_init__(self):
        exact = self.buckets // (4 if self.sides == "both" else 2)
        if exact < 1 or self.reach <= exact:
            do = "give at least 4 buckets and a reach larger than their number"
            raise UsageError(f"{self.buckets} buckets cannot reach {self.reach}", where=self.kind, do=do)

    def bucket(self, distance: Int[Tensor, "*any"]) -> Int[Tensor, "*any"]:
        """Half of a side's buckets hold one distance each; the other half grow by a constant factor up to `reach`."""
        side = self.buckets // 2 if self.sides == "both" else self.buckets
        offset = torch.where(distance > 0, side, 0) if self.sides == "both" else 0
        away = distance.abs() if self.sides == "both" else (-distance).clamp_min(0)
        exact = side // 2
        growth = torch.log(away.clamp_min(1) / exact) / math.log(self.reach / exact) * (side - exact)
        return offset + torch.where(away < exact, away, (exact + growth.long()).clamp_max(side - 1))

    def scores(self, query, distance) -> NoReturn:
        _refuse_unbuilt(self)

    def build(self, heads: int, d_head: int) -> T5BucketsBias:
        return T5BucketsBias(self, heads=heads)


@dataclass(frozen=True)
class Relative:
    """q.a, with a learned vector a for each distance, clipped (Shaw 2018; with a causal pattern, Music Transformer's E_r)."""

    kind: ClassVar[Literal["relative"]] = "relative"
    reach: int
    """Distances beyond this one are clipped to it."""
    values: bool = False
    """Add a learned vector for each distance to the values too."""
    tables: Literal["shared", "per-head"] = "shared"
    """One table for all heads of a layer, or one each."""
    sides: Literal["both", "past"] = "both"
    """Vectors for past and future, or for the past alone (all of the future then counts as distance 0)."""

    def __post_init__(self):
        if self.reach < 0:
            raise UsageError(f"reach is {self.reach}", where="relative", do="give a reach of 0 or more")

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the largest distance that has a vector."""
        return -self.reach, self.reach if self.sides == "both" else 0

    @property
    def asks(self) -> Asks:
        return "values" if self.values else "query"

    def scores(self, query, distance) -> NoReturn:
        _refuse_unbuilt(self)

    def build(self, heads: int, d_head: int) -> RelativeBias:
        return RelativeBias(self, heads=heads, d_head=d_head)


@dataclass(frozen=True)
class RelativeSinusoid:
    """(q + v).W r, with r the sinusoid of the distance and a learned vector v a head: Transformer-XL's (Dai 2019), for any distance."""

    kind: ClassVar[Literal["relative-sinusoid"]] = "relative-sinusoid"
    base: float = 10_000.0
    """The base of the wavelengths."""
    clamp: int = 0
    """Distances beyond this one count as it; 0: none does."""
    width: int = 0
    """Of the sinusoid; 0: of all heads together, or d_model in the slot `transformer-xl`."""
    asks: ClassVar[Asks] = "query"

    def __post_init__(self):
        if self.clamp < 0 or self.width < 0:
            raise UsageError(f"clamp is {self.clamp} and width {self.width}", where=self.kind, do="give 0 or more")

    def scores(self, query, distance) -> NoReturn:
        _refuse_unbuilt(self)

    def build(self, heads: int, d_head: int) -> RelativeSinusoidBias:
        return RelativeSinusoidBias(self, heads=heads, d_head=d_head)


Bias = NoBias | ALiBi | T5Buckets | Relative | RelativeSinusoid


class T5BucketsBias(nn.Module, ByDistance):
    """The table of T5's buckets; zero at the start, so that at first it says nothing."""

    bucket_of: Tensor

    def __init__(self, config: T5Buckets, *, heads: int):
        super().__init__()
        self.config = config
        self.table = nn.Parameter(torch.empty(config.buckets, heads))
        distances = torch.arange(-config.reach, config.reach + 1)
        self.register_buffer("bucket_of", config.bucket(distances), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.table)

    def at(self, distance, head, heads):
        reach = self.config.reach
        return self.table[self.bucket_of[distance.clamp(-reach, reach) + reach], head]


class RelativeBias(nn.Module):
    """Vectors for the distances -reach ... reach: they meet the query (over sqrt(d), as in both papers) and, if asked, the values."""

    def __init__(self, config: Relative, *, heads: int, d_head: int):
        super().__init__()
        self.config = config
        self.asks: Asks = config.asks
        least, most = config.ends
        shape = (heads if config.tables == "per-head" else 1, most - least + 1, d_head)
        self.keys_HRE = nn.Parameter(torch.empty(shape))
        self.values_HRE = nn.Parameter(torch.empty(shape)) if config.values else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for table in self.parameters():
            nn.init.normal_(table, std=table.shape[-1] ** -0.5)

    def scores(self, query: Float[Tensor, "B H T E"], distance: Int[Tensor, "#B T S"]) -> Float[Tensor, "B H T S"]:
        # T products for each vector, spread over the keys: never T x S x E numbers.
        return self._by_distance(query).gather(-1, self._rows(distance).expand(*query.shape[:3], -1))

    def in_order(self, query: Float[Tensor, "B H T E"], *, past: bool = False) -> Float[Tensor, "B H T T"]:
        """The same for T x T pairs whose positions count up: skewed, so that the vectors' gradient needs no sum in places drawn by lot.
        `past`: where nothing of the future is seen, and so whatever stands there."""
        length, (least, most) = query.shape[2], self.config.ends
        distances = torch.arange(1 - length, 1 if past else length, device=query.device).clamp(least, most) - least
        far_HRE = self.keys_HRE.to(query.dtype).index_select(1, distances)
        return skewed(query @ far_HRE.mT * query.shape[-1] ** -0.5)

    def _by_distance(self, query: Float[Tensor, "B H T E"]) -> Float[Tensor, "B H T R"]:
        return query @ self.keys_HRE.to(query.dtype).mT * query.shape[-1] ** -0.5

    def values(self, weights: Float[Tensor, "B H T S"], distance: Int[Tensor, "#B T S"]) -> Float[Tensor, "B H T E"]:
        """What the values' vectors add to the output: the weights summed by distance, times the table."""
        assert self.values_HRE is not None
        by_distance_BHTR = weights.new_zeros(*weights.shape[:3], self.values_HRE.shape[1])
        by_distance_BHTR = by_distance_BHTR.scatter_add(-1, self._rows(distance).expand_as(weights), weights)
        return by_distance_BHTR @ self.values_HRE.to(weights.dtype)

    def _rows(self, distance: Tensor) -> Tensor:
        least, most = self.config.ends
        return (distance.clamp(least, most) - least)[:, None]


def skewed(by_distance_BHTR: Float[Tensor, "B H T R"]) -> Float[Tensor, "B H T T"]:
    """From columns of the distances 1 - T ... 0, or on to T - 1, to columns of keys: row i begins i places further left, by views alone
    (Huang 2018). Without distances into the future rubbish stands there."""
    length, columns = by_distance_BHTR.shape[2:]
    if columns == length:
        return F.pad(by_distance_BHTR, (1, 0)).flatten(-2)[..., length:].unflatten(-1, (length, length))
    flat = F.pad(by_distance_BHTR, (0, 1)).flatten(-2)[..., length - 1 : length - 1 + length * columns]
    return flat.unflatten(-1, (length, columns))[..., :length]


class RelativeSinusoidBias(nn.Module):
    """One vector for each distance that there is, made of its sinusoid by a map, meets the query and what it leans towards."""

    asks: ClassVar[Asks] = "query"

    def __init__(self, config: RelativeSinusoid, *, heads: int, d_head: int):
        super().__init__()
        self.config, self.heads = config, heads
        self.sinusoid = Sinusoid(config.base, layout="halves")
        self.map = nn.Linear(config.width or heads * d_head, heads * d_head, bias=False)
        self.offset_HE = nn.Parameter(torch.empty(heads, d_head))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.map.weight)
        nn.init.zeros_(self.offset_HE)

    def scores(self, query: Float[Tensor, "B H T E"], distance: Int[Tensor, "#B T S"]) -> Float[Tensor, "B H T S"]:
        least, most = distance.aminmax()
        return self.between(query, distance, int(least), int(most))

    def between(self, query: Float[Tensor, "B H T E"], distance: Int[Tensor, "#B T S"], least: int, most: int) -> Float[Tensor, "B H T S"]:
        """The same where it is known how far the distances go: each of those has a vector, whether it occurs or not."""
        if reach := self.config.clamp:
            least, most = (max(-reach, min(reach, end)) for end in (least, most))
            distance = distance.clamp(least, most)
        away_R = -torch.arange(least, most + 1, device=query.device)  # the paper's i - j
        with torch.autocast(query.device.type, enabled=False):
            far_RD = sinusoid(away_R, self.map.in_features, self.sinusoid).to(self.map.weight.dtype)
            far_HRE = self.map(far_RD).unflatten(-1, (self.heads, -1)).transpose(0, 1).to(query.dtype)
        leaning = query + self.offset_HE[:, None].to(query.dtype)
        # T products for each distance, spread over the keys: never T x S x E numbers.
        by_distance_BHTR = leaning @ far_HRE.mT * query.shape[-1] ** -0.5
        return by_distance_BHTR.gather(-1, (distance - least)[:, None].expand(*query.shape[:3], -1))


BuiltBias = NoBias | ByDistance | RelativeBias | RelativeSinusoidBias  # what attend takes


def _refuse_unbuilt(bias: T5Buckets | Relative | RelativeSinusoid) -> NoReturn:
    raise UsageError("this bias has parameters", where=bias.kind, do="give attend the module that bias.build(heads, d_head) makes")
