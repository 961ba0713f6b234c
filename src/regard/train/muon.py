"""Muon: momentum whose singular values are all set to one, by a few matrix products, for all matrices of one shape at once."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

# An odd quintic s -> a s + b s^3 + c s^5 that drives singular values from (0, 1] to about 1 in five rounds; steep at 0, since small
# ones have far to go, and content with 0.7 to 1.2, which trains as well as exactly 1 (Jordan 2024).
QUINTIC = (3.4445, -4.7750, 2.0315)


def orthogonalised(matrices: Float[Tensor, "N rows columns"], *, iterations: int = 5) -> Float[Tensor, "N rows columns"]:
    """U V^T of each matrix U S V^T, nearly, in bf16."""
    a, b, c = QUINTIC
    x = matrices.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x  # the Gram matrix is then the smaller of the two
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(iterations):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


class MuonUpdate(torch.optim.Optimizer):
    """The update alone; which parameters it is for is decided in optimise.py. Obeys `found_inf` as torch's fused optimisers do."""

    found_inf: Tensor | None = None

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        *,
        rate: float,
        momentum: float,
        nesterov: bool,
        iterations: int,
        scale: Literal["adamw", "shape"],
        decay: float,
    ):
        super().__init__(parameters, {"lr": rate, "rate": rate, "momentum": momentum, "weight_decay": decay})
        self.nesterov, self.iterations, self.scale = nesterov, iterations, scale

    @torch.no_grad()
    def step(self, closure=None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            same_shape = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    same_shape[parameter.shape].append(parameter)
            for shape, parameters in same_shape.items():
                self._update(parameters, group, size=self._size(*shape))

    def _update(self, parameters: list[nn.Parameter], group: dict, *, size: float) -> None:
        """Averages of the gradients, orthogonalised together, and a step; a bad step is multiplied away, NaN and all."""
        gradients = torch.stack([p.grad for p in parameters if p.grad is not None])
        averages = torch.stack([self._average(p) for p in parameters])
        if self.found_inf is not None:
            gradients = torch.where(self.found_inf > 0, averages, gradients)  # then the average stays what it was
        averages.lerp_(gradients, 1 - group["momentum"])
        direction = gradients.lerp(averages, group["momentum"]) if self.nesterov else averages
        rate = group["lr"] if self.found_inf is None else group["lr"] * (1 - self.found_inf)
        steps = orthogonalised(direction, iterations=self.iterations).float() * (size * rate)
        shrink = 1 - rate * group["weight_decay"]
        for parameter, average, step in zip(parameters, averages, steps):
            self.state[parameter]["momentum"].copy_(average)
            if group["weight_decay"]:
                parameter.mul_(shrink)
            parameter.sub_(step.to(parameter.dtype))

    def _average(self, parameter: nn.Parameter) -> Tensor:
        state = self.state[parameter]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(parameter)
        return state["momentum"]

    def _size(self, rows: int, columns: int) -> float:
        # an orthogonal matrix has entries of root mean square 1/sqrt(max(rows, columns)); AdamW's updates have about 0.2
        return 0.2 * math.sqrt(max(rows, columns)) if self.scale == "adamw" else math.sqrt(max(1, rows / columns))
