"""Several models as one: the mean of their probabilities, each with its share."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from regard.decode.state import OpenStepper, Step, Stepper
from regard.errors import ModelError, UsageError


class Ensemble:
    """A stepper over steppers of models with the same vocabularies."""

    def __init__(self, steppers: Sequence[Stepper], *, shares: Sequence[float] = ()):
        shares = list(shares) or [1.0] * len(steppers)
        if not steppers or len(shares) != len(steppers) or min(shares) < 0 or sum(shares) <= 0:
            raise UsageError(
                f"{len(steppers)} models with the shares {shares}", where="ensemble", do="give each model one share, none negative"
            )
        self.steppers, self.shares = list(steppers), [share / sum(shares) for share in shares]

    @property
    def continuous(self) -> bool:
        return all(stepper.continuous for stepper in self.steppers)

    @property
    def device(self) -> torch.device:
        return self.steppers[0].device

    def step(self, tokens: Int[Tensor, "R"]) -> Step:
        steps = [stepper.step(tokens) for stepper in self.steppers]
        sizes = {step.log_probs.shape[1] for step in steps}
        if len(sizes) > 1:
            raise ModelError(f"vocabularies of {sorted(sizes)} words", where="ensemble", do="join models that share their vocabulary")
        shares_M = torch.tensor(self.shares, device=self.device)
        log_probs_MRV = torch.stack([step.log_probs for step in steps]) + shares_M.log()[:, None, None]
        maps = [step.attention for step in steps if step.attention is not None]
        looked = len(maps) == len(steps)
        return Step(log_probs_MRV.logsumexp(0), torch.einsum("m,mrs->rs", shares_M, torch.stack(maps)) if looked else None)

    def reorder(self, rows: Int[Tensor, "R"]) -> None:
        for stepper in self.steppers:
            stepper.reorder(rows)

    def admit(self, slots: Sequence[int], sources: Sequence[Sequence[int]]) -> None:
        for stepper in self.steppers:
            stepper.admit(slots, sources)


def ensemble(openers: Sequence[OpenStepper], *, shares: Sequence[float] = ()) -> OpenStepper:
    """Opens one stepper of each model and joins them."""

    def open_stepper(*, slots: int, beam: int, capacity: int, attention: bool) -> Ensemble:
        return Ensemble([opener(slots=slots, beam=beam, capacity=capacity, attention=attention) for opener in openers], shares=shares)

    return open_stepper
