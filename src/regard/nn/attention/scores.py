"""How well a query and a key go together: a dot product in some basis, which every kernel can serve, or (rarely) a function of the pair."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, NoReturn

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import UsageError


class Product:
    """Scores q'.k' times a number, after each side went to a basis of its own. One's own score needs only `basis`, or only `scale`."""

    product: ClassVar[bool] = True
    widens: ClassVar[bool] = False
    mixes: ClassVar[bool] = False
    """Queries and keys may differ in width."""

    def basis(self, query: Float[Tensor, "B H T E"], key: Float[Tensor, "B G S E"]) -> tuple[Tensor, Tensor]:
        return query, key

    def scale(self, width: int) -> float:
        """What the products are multiplied by; inside the kernel, where sums are wide, and so without rounding q."""
        return 1.0

    def pairwise(self, query: Float[Tensor, "B H T E"], key: Float[Tensor, "B H S E"]) -> Float[Tensor, "B H T S"]:
        """The definition: the score of every pair."""
        left, right = self.basis(query, key)
        return left @ right.mT * self.scale(query.shape[-1])

    def build(self, heads: int, d_query: int, d_key: int) -> Product | Pairwise:
        """The score with its parameters, where it has any."""
        return self

    def prepare(self, key: Float[Tensor, "B G S E"]) -> Float[Tensor, "B G S K"]:
        """What is worked out of the keys once, where many calls meet the same ones; `prepared` takes it for the keys."""
        return key

    @property
    def prepared(self) -> Product | Pairwise:
        return self


class Pairwise:
    """Scores that no basis gives: every pair is worked out, by the reference kernel. One's own score needs only `pairwise`."""

    product: ClassVar[bool] = False
    widens: ClassVar[bool] = False
    mixes: ClassVar[bool] = False

    def pairwise(self, query: Float[Tensor, "B H T E"], key: Float[Tensor, "B H S E"]) -> Float[Tensor, "B H T S"]:
        raise NotImplementedError

    def build(self, heads: int, d_query: int, d_key: int) -> Product | Pairwise:
        return self

    def prepare(self, key: Float[Tensor, "B H S E"]) -> Float[Tensor, "B H S K"]:
        return key

    @property
    def prepared(self) -> Product | Pairwise:
        return self


@dataclass(frozen=True)
class Dot(Product):
    """q.k"""

    kind: ClassVar[Literal["dot"]] = "dot"


@dataclass(frozen=True)
class ScaledDot(Product):
    """q.k / sqrt(d), whose variance does not grow with the width."""

    kind: ClassVar[Literal["scaled-dot"]] = "scaled-dot"

    def scale(self, width):
        return width**-0.5


@dataclass(frozen=True)
class OffsetDot(Product):
    """(q + u).k / sqrt(d), with a learned vector u a head: what a key is worth to any query (Transformer-XL's u)."""

    kind: ClassVar[Literal["offset-dot"]] = "offset-dot"

    def basis(self, query, key):
        _refuse_unbuilt(self)

    def build(self, heads, d_query, d_key):
        return OffsetDotScore(heads=heads, d_query=d_query)


@dataclass(frozen=True)
class Bilinear(Product):
    """q W k, with a matrix W per head: Luong's "general" score."""

    kind: ClassVar[Literal["bilinear"]] = "bilinear"
    mixes: ClassVar[bool] = True
    scaled: bool = False
    """Divide by the root of the key's width."""

    def basis(self, query, key):
        _refuse_unbuilt(self)

    def build(self, heads, d_query, d_key):
        return BilinearScore(self, heads=heads, d_query=d_query, d_key=d_key)


@dataclass(frozen=True)
class Cosine(Product):
    """The cosine of the angle, divided by a temperature; the lengths of q and k do not count."""

    kind: ClassVar[Literal["cosine"]] = "cosine"
    temperature: float = 1.0
    """What the cosine is divided by: small means sharp."""
    learned: bool = False
    """Learn the temperature, from that value on."""

    def __post_init__(self):
        _check_positive(self.temperature, "cosine", "temperature")

    def basis(self, query, key):
        if self.learned:
            _refuse_unbuilt(self)
        return _directions(query), _directions(key)

    def scale(self, width):
        return 1 / self.temperature

    def build(self, heads, d_query, d_key):
        return CosineScore(self) if self.learned else self


@dataclass(frozen=True)
class Gaussian(Product):
    """-|q-k|^2 / (2 h^2): after the softmax, the weights of a Gaussian kernel."""

    kind: ClassVar[Literal["gaussian"]] = "gaussian"
    widens: ClassVar[bool] = True
    bandwidth: float = 1.0
    """h, the width of the bell."""

    def __post_init__(self):
        _check_positive(self.bandwidth, "gaussian", "bandwidth")

    def basis(self, query, key):
        # -|q|^2/2 is the same for all keys and drops out of a softmax; -|k|^2/2 becomes one more coordinate. Sixteen bits would round
        # it badly, so there it is written as a sum of three such numbers.
        rest = key.to(_wide(key)).square().sum(-1, keepdim=True) / -2
        pieces = []
        for _ in range(3 if key.dtype.itemsize == 2 else 1):
            pieces.append(rest.to(key.dtype))
            rest = rest - pieces[-1]
        ones = query.new_ones(()).expand(*query.shape[:-1], len(pieces))
        return torch.cat([query, ones], -1), torch.cat([key, *pieces], -1)

    def scale(self, width):
        return self.bandwidth**-2

    def pairwise(self, query, key):
        return _distances(query, key).square() / (-2 * self.bandwidth**2)


@dataclass(frozen=True)
class NegativeDistance(Pairwise):
    """-|q-k|"""

    kind: ClassVar[Literal["negative-distance"]] = "negative-distance"

    def pairwise(self, query, key):
        return -_distances(query, key)


@dataclass(frozen=True)
class Additive(Pairwise):
    """v tanh(W_q q + W_k k): Bahdanau's score; it materialises T x S x width numbers."""

    kind: ClassVar[Literal["additive"]] = "additive"
    mixes: ClassVar[bool] = True
    width: int = 64
    """How many hidden units each head has."""
    biased: bool = False
    """Add a bias inside the tanh."""

    def pairwise(self, query, key):
        _refuse_unbuilt(self)

    def build(self, heads, d_query, d_key):
        return AdditiveScore(self, heads=heads, d_query=d_query, d_key=d_key)


Score = Dot | ScaledDot | OffsetDot | Bilinear | Cosine | Gaussian | NegativeDistance | Additive


class OffsetDotScore(nn.Module, Product):
    """The scaled dot product of a query that leans towards u; without leaning at first."""

    def __init__(self, *, heads: int, d_query: int):
        super().__init__()
        self.offset_HE = nn.Parameter(torch.empty(heads, d_query))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.offset_HE)

    def basis(self, query, key):
        return query + self.offset_HE[:, None].to(query.dtype), key

    def scale(self, width):
        return width**-0.5


class BilinearScore(nn.Module, Product):
    """q W k with one W per head; queries and keys may differ in width."""

    mixes = True

    def __init__(self, config: Bilinear, *, heads: int, d_query: int, d_key: int):
        super().__init__()
        self.config = config
        self.weight_HQK = nn.Parameter(torch.empty(heads, d_query, d_key))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _xavier(self.weight_HQK)

    def basis(self, query, key):
        return _mapped(query, self.weight_HQK), key

    def scale(self, width):
        return self.weight_HQK.shape[2] ** -0.5 if self.config.scaled else 1.0


class CosineScore(nn.Module, Product):
    """The cosine over a learned temperature, kept positive by its logarithm."""

    def __init__(self, config: Cosine):
        super().__init__()
        self.config = config
        self.log_temperature = nn.Parameter(torch.empty(()))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.constant_(self.log_temperature, math.log(self.config.temperature))

    def basis(self, query, key):
        return _directions(query) * (-self.log_temperature).exp().to(query.dtype), _directions(key)


class AdditiveScore(nn.Module, Pairwise):
    """v tanh(W_q q + W_k k [+ b]) for each head; the same as one W on [q; k] (W_q and W_k are its halves)."""

    mixes = True

    def __init__(self, config: Additive, *, heads: int, d_query: int, d_key: int):
        super().__init__()
        self.query_HEA = nn.Parameter(torch.empty(heads, d_query, config.width))
        self.key_HEA = nn.Parameter(torch.empty(heads, d_key, config.width))
        self.vector_HA = nn.Parameter(torch.empty(heads, config.width))
        self.bias_HA = nn.Parameter(torch.empty(heads, config.width)) if config.biased else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _xavier(self.query_HEA)
        _xavier(self.key_HEA)
        nn.init.normal_(self.vector_HA, std=self.vector_HA.shape[1] ** -0.5)
        if self.bias_HA is not None:
            nn.init.zeros_(self.bias_HA)

    def pairwise(self, query, key):
        return self.prepared.pairwise(query, self.prepare(key))

    def prepare(self, key):
        return _mapped(key, self.key_HEA)

    @property
    def prepared(self):
        return _AdditivePrepared(self)


class _AdditivePrepared(Pairwise):
    """v tanh(W_q q + k' [+ b]): the keys went through W_k before."""

    mixes = True

    def __init__(self, score: AdditiveScore):
        self.score = score

    def pairwise(self, query, key):
        dtype, bias_HA = query.dtype, self.score.bias_HA
        left, right = _mapped(query, self.score.query_HEA).unsqueeze(3), key.unsqueeze(2)
        hidden_BHTSA = left + right if bias_HA is None else left + right + bias_HA.to(dtype)[:, None, None]
        return torch.einsum("bhtsa,ha->bhts", hidden_BHTSA.tanh(), self.score.vector_HA.to(dtype))


def _mapped(vectors: Float[Tensor, "B H T I"], weight_HIO: Float[Tensor, "H I O"]) -> Float[Tensor, "B H T O"]:
    """Each head's vectors through its own matrix: one product a head, where `@` would make one, and a gradient, for each row too."""
    return torch.einsum("bhti,hio->bhto", vectors, weight_HIO.to(vectors.dtype))


def _directions(vectors: Tensor) -> Tensor:
    return F.normalize(vectors.to(_wide(vectors)), dim=-1, eps=1e-8).to(vectors.dtype)


def _distances(query: Tensor, key: Tensor) -> Tensor:
    return torch.cdist(query, key, compute_mode="donot_use_mm_for_euclid_dist")


def _wide(tensor: Tensor) -> torch.dtype:
    return torch.promote_types(tensor.dtype, torch.float32)


def _xavier(weight_HIO: Tensor) -> None:
    """Glorot's uniform bound for each head's matrix by itself."""
    bound = math.sqrt(6 / (weight_HIO.shape[1] + weight_HIO.shape[2]))
    nn.init.uniform_(weight_HIO, -bound, bound)


def _check_positive(value: float, where: str, name: str) -> None:
    if not value > 0:
        raise UsageError(f"{name} is {value}", where=where, do=f"give a {name} above 0")


def _refuse_unbuilt(score: OffsetDot | Bilinear | Cosine | Additive) -> NoReturn:
    do = "give attend the module that score.build(heads, d_query, d_key) makes"
    raise UsageError("this score has parameters", where=score.kind, do=do)
