"""What is done with a gradient: AdamW, or Muon for the hidden matrices. Updates are gated on the device: a bad step moves nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, assert_never

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import ModelError, UsageError
from regard.train.muon import MuonUpdate


@dataclass(frozen=True)
class AdamW:
    """Adam with decoupled weight decay, fused."""

    kind: ClassVar[Literal["adamw"]] = "adamw"
    rate: float = 1e-3
    "Learning rate, multiplied by the schedule's factor (Noam wants 1)."
    betas: tuple[float, float] = (0.9, 0.98)
    "How slowly the two moments forget."
    epsilon: float = 1e-9
    "Added to the root of the second moment."
    decay: float = 0.0
    "Weight decay of matrices; norms, biases and embeddings have none."

    def __post_init__(self):
        if min(self.rate, *self.betas, self.epsilon, self.decay) < 0 or max(self.betas) >= 1:
            raise UsageError("a rate, decay or epsilon below 0, or a beta outside 0 to 1", do="see docs/config.md for what is usual")


@dataclass(frozen=True)
class Muon:
    """Orthogonalised momentum for the matrices of linear maps; AdamW for embeddings, vectors and the output."""

    kind: ClassVar[Literal["muon"]] = "muon"
    rate: float = 2e-3
    "Learning rate of the matrices, multiplied by the schedule's factor."
    momentum: float = 0.95
    "How slowly the momentum forgets."
    nesterov: bool = True
    "Look ahead: orthogonalise gradient + momentum x average instead of the average."
    iterations: int = 5
    "Newton-Schulz iterations."
    scale: Literal["adamw", "shape"] = "adamw"
    "adamw: 0.2 sqrt(max(rows, columns)), steps as large as AdamW's, so that its rates carry over; shape: sqrt(max(1, rows / columns))."
    decay: float = 0.0
    "Weight decay of matrices; norms, biases and embeddings have none."
    others: AdamW = AdamW()
    "Everything that is not the matrix of a linear map, with its own rate."


OptimiserConfig = AdamW | Muon
Kind = Literal["matrix", "decayed", "plain"]


def kind_of(name: str, parameter: nn.Parameter, owner: nn.Module) -> Kind:
    """matrix: of a linear map inside the model, for Muon; decayed: other weights of two or more axes; plain: tables, biases and norms."""
    if parameter.ndim < 2 or isinstance(owner, nn.Embedding) or name.rpartition(".")[2] == "table":
        return "plain"
    is_hidden = isinstance(owner, nn.Linear) and not name.startswith("output.")
    return "matrix" if is_hidden and parameter.ndim == 2 else "decayed"


def sorted_parameters(model: nn.Module) -> dict[Kind, dict[str, nn.Parameter]]:
    """The parameters that learn, by kind and name; one that is shared counts once, under its first name."""
    owners = {id(p): module for module in model.modules() for p in module.parameters(recurse=False)}
    groups: dict[Kind, dict[str, nn.Parameter]] = {"matrix": {}, "decayed": {}, "plain": {}}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            groups[kind_of(name, parameter, owners[id(parameter)])][name] = parameter
    return groups


class Optimiser:
    """One face over torch's optimisers: step at a factor of their rates, and a state by parameter name instead of by number."""

    def __init__(self, parts: list[torch.optim.Optimizer], names: Mapping[int, str]):
        self.parts, self.names = parts, names

    @property
    def parameters(self) -> list[nn.Parameter]:
        return [parameter for part in self.parts for group in part.param_groups for parameter in group["params"]]

    def step(self, factor: float, *, bad: Float[Tensor, ""]) -> None:
        """Update; where `bad` is 1 nothing moves: neither parameters nor moments nor counts."""
        for part in self.parts:
            for group in part.param_groups:
                group["lr"] = group["rate"] * factor
            part.found_inf = bad  # type: ignore[attr-defined]  # read by the fused kernels of torch, and by MuonUpdate
            part.step()

    def clear(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    def state(self) -> dict[str, Tensor]:
        """Moments and counts as `parameter.moment` tensors."""
        return {
            f"{self.names[id(parameter)]}.{moment}": value
            for part in self.parts
            for parameter, moments in part.state.items()
            for moment, value in moments.items()
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        by_name: dict[str, dict[str, Tensor]] = {}
        for key, value in state.items():
            name, _, moment = key.rpartition(".")
            by_name.setdefault(name, {})[moment] = value
        known = set(self.names.values())
        if strange := set(by_name) - known:
            raise ModelError(f"the optimiser's state names {sorted(strange)[0]}, which this model does not have")
        for part in self.parts:
            part.state.clear()
            for group in part.param_groups:
                for parameter in group["params"]:
                    if moments := by_name.get(self.names[id(parameter)]):
                        part.state[parameter] = {name: value.to(parameter.device) for name, value in moments.items()}


def build_optimiser(config: OptimiserConfig, model: nn.Module) -> Optimiser:
    groups = sorted_parameters(model)
    names = {id(parameter): name for group in groups.values() for name, parameter in group.items()}
    match config:
        case AdamW():
            decayed = [*groups["matrix"].values(), *groups["decayed"].values()]
            return Optimiser(_adamw(config, decayed, groups["plain"].values()), names)
        case Muon():
            return Optimiser(
                _muon(config, groups["matrix"].values()) + _adamw(config.others, groups["decayed"].values(), groups["plain"].values()),
                names,
            )
        case _:
            assert_never(config)


def _adamw(config: AdamW, decayed: Iterable[nn.Parameter], plain: Iterable[nn.Parameter]) -> list[torch.optim.Optimizer]:
    groups = [
        {"params": list(parameters), "rate": config.rate, "weight_decay": decay}
        for parameters, decay in ((decayed, config.decay), (plain, 0.0))
    ]
    if not (groups := [group for group in groups if group["params"]]):
        return []
    return [torch.optim.AdamW(groups, lr=config.rate, betas=config.betas, eps=config.epsilon, fused=True)]


def _muon(config: Muon, matrices: Iterable[nn.Parameter]) -> list[torch.optim.Optimizer]:
    if not (parameters := list(matrices)):
        return []
    update = MuonUpdate(
        parameters,
        rate=config.rate,
        momentum=config.momentum,
        nesterov=config.nesterov,
        iterations=config.iterations,
        scale=config.scale,
        decay=config.decay,
    )
    return [update]
