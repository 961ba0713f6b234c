"""Averages of parameters: the running one that is kept while training (EMA), and the mean of several checkpoints."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import ModelError


class MovingAverage:
    """average <- average + (1 - decay) (parameters - average), where early on the decay is smaller, (1 + n) / (10 + n) after n updates."""

    def __init__(self, model: nn.Module, decay: float):
        self.decay = decay
        self.parameters = dict(model.named_parameters())
        self.average = {name: parameter.detach().float().clone() for name, parameter in self.parameters.items()}

    @torch.no_grad()
    def update(self, updates: int, *, bad: Float[Tensor, ""]) -> None:
        """Follow the parameters; a bad step moves nothing."""
        share = (1 - min(self.decay, (1 + updates) / (10 + updates))) * (1 - bad)
        averages = list(self.average.values())
        distances = torch._foreach_sub(list[Tensor](self.parameters.values()), averages)  # pyright: ignore[reportPrivateImportUsage]
        torch._foreach_mul_(distances, share)  # pyright: ignore[reportPrivateImportUsage]
        torch._foreach_add_(averages, distances)  # pyright: ignore[reportPrivateImportUsage]

    @contextlib.contextmanager
    def worn(self) -> Iterator[None]:
        """The model with the averaged parameters, for as long as the block runs."""
        own = {name: parameter.data for name, parameter in self.parameters.items()}
        for name, parameter in self.parameters.items():
            parameter.data = self.average[name].to(parameter.dtype)
        try:
            yield
        finally:
            for name, parameter in self.parameters.items():
                parameter.data = own[name]

    def restore(self, state: Mapping[str, Tensor]) -> None:
        if set(state) != set(self.average):
            raise ModelError("the stored average has other parameters than this model")
        for name, value in state.items():
            self.average[name].copy_(value)


def mean_of(states: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of each tensor over several models of one kind, in fp32; whole numbers (counters) are the last one's."""
    last = states[-1]
    for state in states:
        if {name: t.shape for name, t in state.items()} != {name: t.shape for name, t in last.items()}:
            raise ModelError("the checkpoints to average are not of one model: their tensors differ")
    return {
        name: torch.stack([state[name].float() for state in states]).mean(0).to(value.dtype) if value.is_floating_point() else value
        for name, value in last.items()
    }
