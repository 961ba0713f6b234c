"""A captioner as search sees it, and the sentences that it finds for pictures."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from regard.data.marks import UNK
from regard.decode.clock import Clock
from regard.decode.constrain import Never
from regard.decode.draft import Hypothesis, Job
from regard.decode.engine import Search, decode
from regard.decode.state import Step
from regard.models.captioner import Captioner


class PictureStepper:
    """The caches of one search. A source is the number of a picture, which holds for as many others as it has patches."""

    continuous = True

    def __init__(self, model: Captioner, pixels: UInt8[Tensor, "N C Y X"], *, slots: int, beam: int, capacity: int):
        self.model, self.pixels = model, pixels
        self.state = model.new_state(slots * beam, capacity, beam=beam)
        self.clock = Clock(slots=slots, beam=beam, capacity=capacity, device=model.device)

    @property
    def device(self) -> torch.device:
        return self.model.device

    @torch.inference_mode()
    def admit(self, slots: Sequence[int], sources: Sequence[Sequence[int]]) -> None:
        numbers = torch.tensor([source[0] for source in sources], device=self.device)
        self.model.admit(self.state, self.pixels[numbers], self.clock.chosen(slots))
        self.state.clear(self.clock.rows(slots))
        self.clock.restart(slots, [0] * len(slots))

    @torch.inference_mode()
    def step(self, tokens: Int[Tensor, "R"]) -> Step:
        facts, longest = self.clock.tick()
        scores_R1V = self.model.step_scores(tokens[:, None], facts, self.state, longest=longest)
        return Step(scores_R1V[:, 0].float().log_softmax(-1))

    def reorder(self, rows: Int[Tensor, "R"]) -> None:
        self.state.reorder(rows)


def describe(model: Captioner, pixels: UInt8[Tensor, "N C Y X"], *, search: Search, limit: int) -> list[list[Hypothesis]]:
    """The sentences for each picture, best first, of at most so many tokens."""
    if not len(pixels):
        return []
    table = pixels.to(model.device)

    def open_stepper(*, slots: int, beam: int, capacity: int, attention: bool) -> PictureStepper:
        return PictureStepper(model, table, slots=slots, beam=beam, capacity=capacity)

    return decode(open_stepper, [Job((number,), limit) for number in range(len(pixels))], search=search, constraints=[Never((UNK,))])
