"""Several feed-forward layers side by side, of which a router chooses a few for every token: noisy top-k, Switch, top-2.

Padding takes no expert's time and enters no statistic. The capacity of an expert limits it in training alone: an answer never depends on
what else stands in the batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, assert_never

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.errors import UsageError
from regard.nn.feedforward import FeedForward, PositionWise
from regard.nn.tap import tap
from regard.nn.view import Tokens


@dataclass(frozen=True)
class NoisyTopK:
    """softmax over the k largest of x W + noise softplus(x W_n); both matrices are zero at first (Shazeer 2017)."""

    kind: ClassVar[Literal["noisy-top-k"]] = "noisy-top-k"
    chosen: int = 2
    "Experts for each token; with one alone the router would have no gradient."
    noise: bool = True
    "Noise in training; without it, and without the two losses, this is Mixtral's router."
    importance: float = 0.1
    "Weight of the loss that keeps the sums of the gates alike."
    load: float = 0.1
    "Weight of the loss that keeps the numbers of tokens alike."

    def __post_init__(self):
        if self.chosen < 2:
            raise UsageError(f"chosen = {self.chosen} leaves the router without a gradient", do='take 2 or more, or kind = "switch"')


@dataclass(frozen=True)
class Switch:
    """The likeliest expert alone, times its probability (Fedus 2021)."""

    kind: ClassVar[Literal["switch"]] = "switch"
    capacity: float = 1.25
    "So many times an even share of the tokens fit an expert in training; the others pass by. 0: any number."
    per: Literal["batch", "row"] = "batch"
    "Whether the share is that of the batch, or of each text by itself."
    jitter: float = 0.0
    "In training the router sees its input times a number from 1 - jitter to 1 + jitter."
    balance: float = 0.01
    "Weight of the loss E sum f P, which is 1 where all experts are chosen alike."


@dataclass(frozen=True)
class TopTwo:
    """The two likeliest, weighed by their probabilities; where an expert is full, first choices come before second ones (GShard)."""

    kind: ClassVar[Literal["top-2"]] = "top-2"
    capacity: float = 1.0
    "So many times two even shares of the tokens fit an expert in training. 0: any number."
    per: Literal["batch", "row"] = "batch"
    "Whether the share is that of the batch, or of each text by itself."
    balance: float = 0.01
    "Weight of the loss E sum f P over first choices."


Router = NoisyTopK | Switch | TopTwo


@dataclass(frozen=True)
class Experts:
    """Feed-forward layers of which each token takes a few."""

    kind: ClassVar[Literal["experts"]] = "experts"
    short: ClassVar[str] = "MoE"
    count: int = 8
    "How many there are."
    router: Router = NoisyTopK()
    "Who chooses."
    expert: FeedForward = FeedForward()
    "What each of them is."

    @property
    def chosen(self) -> int:
        """Experts that a token takes."""
        match self.router:
            case NoisyTopK():
                return self.router.chosen
            case Switch():
                return 1
            case TopTwo():
                return 2
            case _:
                assert_never(self.router)


class Choice(NamedTuple):
    """Which experts each token takes, best first, how much of each, and what the router is fined."""

    experts: Int[Tensor, "N K"]
    gates: Float[Tensor, "N K"]
    fine: Float[Tensor, ""]


class Routed(nn.Module):
    """sum of gate_k E_k(x) over the experts of each token. What they cost besides stands in `fine` until the objective takes it."""

    fine: Tensor | None = None

    def __init__(self, config: Experts, d_model: int, *, name: str):
        super().__init__()
        if not 1 <= config.chosen <= config.count:
            raise UsageError(f"{config.chosen} of {config.count} experts cannot be chosen", where=name, do="give more experts")
        self.config, self.name = config, name
        self.experts: Sequence[PositionWise] = nn.ModuleList(
            PositionWise(config.expert, d_model, name=f"{name}.{number}") for number in range(config.count)
        )  # type: ignore[assignment]
        self.router = nn.Linear(d_model, config.count, bias=False)
        self.noise = nn.Linear(d_model, config.count, bias=False) if isinstance(config.router, NoisyTopK) and config.router.noise else None
        if isinstance(config.router, NoisyTopK):
            for layer in (self.router, self.noise):
                if layer is not None:
                    nn.init.zeros_(layer.weight)

    def forward(self, x: Float[Tensor, "B T D"], tokens: Tokens) -> Float[Tensor, "B T D"]:
        apart_BT = tokens.documents + tokens.documents.shape[1] * torch.arange(x.shape[0], device=x.device)[:, None]  # texts, by number
        x_ND, real_N, rows_N = x.flatten(0, 1), tokens.real.expand(x.shape[:2]).flatten(), apart_BT.expand(x.shape[:2]).flatten()
        choice = self.choose(x_ND, real_N)
        kept_NK = real_N[:, None] & self.within(choice.experts, real_N, rows_N)
        self.fine = choice.fine if self.training else None
        gates_NK = tap(torch.where(kept_NK, choice.gates, 0.0), f"{self.name}.gates").to(x.dtype)
        out_ND = torch.zeros_like(x_ND)
        for number, expert in enumerate(self.experts):
            places, which = torch.nonzero(kept_NK & (choice.experts == number), as_tuple=True)
            told_MD = expert(x_ND[places]) * gates_NK[places, which, None]
            out_ND = out_ND.index_add(0, places, told_MD.to(out_ND.dtype))
        return out_ND.view_as(x)

    def choose(self, x_ND: Float[Tensor, "N D"], real_N: Bool[Tensor, "N"]) -> Choice:
        config = self.config.router
        with torch.autocast(x_ND.device.type, enabled=False):  # a router in sixteen bits does not learn to balance
            x_ND = x_ND.to(torch.promote_types(x_ND.dtype, torch.float32))
            match config:
                case NoisyTopK():
                    return self._noisy(config, x_ND, real_N)
                case Switch():
                    if self.training and config.jitter:
                        x_ND = x_ND * torch.empty_like(x_ND).uniform_(1 - config.jitter, 1 + config.jitter)
                    shares_NE = F.linear(x_ND, self.router.weight.to(x_ND.dtype)).softmax(-1)
                    gates_N1, experts_N1 = shares_NE.max(-1, keepdim=True)
                    return Choice(experts_N1, gates_N1, config.balance * balance(shares_NE, experts_N1[:, 0], real_N))
                case TopTwo():
                    shares_NE = F.linear(x_ND, self.router.weight.to(x_ND.dtype)).softmax(-1)
                    two_N2, experts_N2 = shares_NE.topk(2)
                    fine = config.balance * balance(shares_NE, experts_N2[:, 0], real_N)
                    return Choice(experts_N2, two_N2 / two_N2.sum(-1, keepdim=True), fine)
                case _:
                    assert_never(config)

    def _noisy(self, config: NoisyTopK, x_ND: Tensor, real_N: Tensor) -> Choice:
        clean_NE = noisy_NE = F.linear(x_ND, self.router.weight.to(x_ND.dtype))
        deviation_NE = None
        if self.training and self.noise is not None:
            deviation_NE = F.softplus(F.linear(x_ND, self.noise.weight.to(x_ND.dtype))) + 0.01
            noisy_NE = clean_NE + torch.randn_like(clean_NE) * deviation_NE
        best, order = noisy_NE.topk(min(config.chosen + 1, self.config.count))
        experts_NK, gates_NK = order[:, : config.chosen], best[:, : config.chosen].softmax(-1)
        real = real_N[:, None].to(clean_NE.dtype)
        importance_E = (torch.zeros_like(clean_NE).scatter(1, experts_NK, gates_NK) * real).sum(0)
        fine = config.importance * uneven(importance_E)
        if deviation_NE is not None and best.shape[1] > config.chosen:
            kept_NE = torch.zeros_like(clean_NE, dtype=torch.bool).scatter(1, experts_NK, True)
            threshold_NE = torch.where(kept_NE, best[:, config.chosen, None], best[:, config.chosen - 1, None])
            chance_NE = torch.special.ndtr((clean_NE - threshold_NE) / deviation_NE)
            fine = fine + config.load * uneven((chance_NE * real).sum(0))
        return Choice(experts_NK, gates_NK, fine)

    def within(self, experts_NK: Int[Tensor, "N K"], real_N: Bool[Tensor, "N"], rows_N: Int[Tensor, "N"]) -> Bool[Tensor, "N K"]:
        """Who finds room: in the order of the tokens, all first choices before the second ones. In evaluation everybody does."""
        config = self.config.router
        if not self.training or isinstance(config, NoisyTopK) or not config.capacity:
            return torch.ones_like(experts_NK, dtype=torch.bool)
        groups_N = torch.zeros_like(rows_N) if config.per == "batch" else rows_N
        kept_NK = torch.zeros_like(experts_NK, dtype=torch.bool)
        for group in groups_N.unique():
            inside = torch.nonzero((groups_N == group) & real_N).squeeze(1)
            room = capacity(len(inside), self.config.count, config.capacity * experts_NK.shape[1])
            taken_E = torch.zeros(self.config.count, dtype=torch.long, device=experts_NK.device)
            for rank in range(experts_NK.shape[1]):
                asked_ME = F.one_hot(experts_NK[inside, rank], self.config.count)
                place_M = ((asked_ME.cumsum(0) + taken_E) * asked_ME).sum(1)
                kept_NK[inside, rank] = place_M <= room
                taken_E = taken_E + asked_ME.sum(0)
        return kept_NK


def capacity(tokens: int, experts: int, factor: float) -> int:
    """How many tokens an expert takes."""
    return math.ceil(tokens / experts * factor)


def uneven(amounts: Float[Tensor, "E"]) -> Float[Tensor, ""]:
    """The square of the coefficient of variation: 0 where all are alike."""
    return amounts.var(correction=0) / (amounts.mean().square() + 1e-10)


def balance(shares_NE: Float[Tensor, "N E"], first_N: Int[Tensor, "N"], real_N: Bool[Tensor, "N"]) -> Float[Tensor, ""]:
    """E sum_i f_i P_i over the real tokens: f of those that chose expert i, P the mean of its probability; 1 where both are even."""
    count = real_N.sum().clamp_min(1)
    chosen_E = (F.one_hot(first_N, shares_NE.shape[1]) * real_N[:, None]).sum(0) / count
    mean_E = (shares_NE * real_N[:, None]).sum(0) / count
    return shares_NE.shape[1] * (chosen_E * mean_E).sum()


def build_feed_forward(config: FeedForward | Experts, d_model: int, *, name: str) -> PositionWise | Routed:
    match config:
        case FeedForward():
            return PositionWise(config, d_model, name=f"{name}.feed_forward")
        case Experts():
            return Routed(config, d_model, name=f"{name}.experts")
        case _ if hasattr(config, "build"):  # a kind from outside
            return config.build(d_model, name=f"{name}.feed_forward")
        case _:
            assert_never(config)
