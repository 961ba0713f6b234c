"""The smallest model that search can work on: a plain function of the source and what is written. For lessons, tests and odd models."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from regard.decode.state import OpenStepper, Step

# (source, written, marks included) -> log-probabilities of the next token, or these and the attention over the source
Next = Callable[[tuple[int, ...], tuple[int, ...]], Tensor | tuple[Tensor, Tensor]]


class FunctionStepper:
    """Rows as Python lists; it holds its users to the protocol and says so when they break it."""

    device = torch.device("cpu")

    def __init__(self, following: Next, *, slots: int, beam: int, capacity: int, continuous: bool = True):
        self.following, self.beam, self.capacity, self.continuous = following, beam, capacity, continuous
        self.sources: list[tuple[int, ...]] = [()] * slots
        self.written: list[tuple[int, ...]] = [()] * slots * beam

    def admit(self, slots: Sequence[int], sources: Sequence[Sequence[int]]) -> None:
        if not self.continuous and sorted(slots) != list(range(len(self.sources))):
            raise RuntimeError("sources came in while others were under way")
        for slot, source in zip(slots, sources, strict=True):
            self.sources[slot] = tuple(source)
            self.written[slot * self.beam : (slot + 1) * self.beam] = [()] * self.beam

    def step(self, tokens: Int[Tensor, "R"]) -> Step:
        self.written = [(*written, token) for written, token in zip(self.written, tokens.tolist(), strict=True)]
        if max(map(len, self.written)) > self.capacity:
            raise RuntimeError(f"a row was taken past its capacity of {self.capacity}")
        answers = [self.following(self.sources[row // self.beam], written) for row, written in enumerate(self.written)]
        if isinstance(answers[0], Tensor):
            return Step(torch.stack([answer for answer in answers if isinstance(answer, Tensor)]))
        log_probs, looks = zip(*answers, strict=True)
        width = max(map(len, self.sources))
        return Step(torch.stack(log_probs), torch.stack([torch.nn.functional.pad(look, (0, width - len(look))) for look in looks]))

    def reorder(self, rows: Int[Tensor, "R"]) -> None:
        order = rows.tolist()
        if any(row // self.beam != place // self.beam for place, row in enumerate(order)):
            raise RuntimeError("a row was moved to another source")
        self.written = [self.written[row] for row in order]


def function_stepper(following: Next, *, continuous: bool = True) -> OpenStepper:
    """Opens steppers on this function."""

    def open_stepper(*, slots: int, beam: int, capacity: int, attention: bool) -> FunctionStepper:
        return FunctionStepper(following, slots=slots, beam=beam, capacity=capacity, continuous=continuous)

    return open_stepper
