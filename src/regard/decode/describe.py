"""A captioner as search sees it, and the sentences that it finds for pictures."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from regard.data.marks import UNK
from regard.decode.constrain import Never
from regard.decode.draft import Hypothesis, Job
from regard.decode.engine import Search, decode
from regard.decode.state import Step
from regard.decode.stepper import ModelStepper
from regard.models.captioner import Captioner


class PictureStepper(ModelStepper[Captioner]):
    """The caches of one search. A source is the number of a picture, which holds for as many others as it has patches."""

    def __init__(self, model: Captioner, pixels: UInt8[Tensor, "N C Y X"], *, slots: int, beam: int, capacity: int):
        super().__init__(model, slots=slots, beam=beam, capacity=capacity)
        self.pixels = pixels

    @torch.inference_mode()
    def admit(self, slots: Sequence[int], sources: Sequence[Sequence[int]]) -> None:
        numbers = torch.tensor([source[0] for source in sources], device=self.device)
        self.model.admit(self.state, self.pixels[numbers], self.clock.chosen(slots))
        self.restart(slots)

    @torch.inference_mode()
    def step(self, tokens: Int[Tensor, "R"]) -> Step:
        facts, longest = self.clock.tick()
        scores_R1V = self.model.step_scores(tokens[:, None], facts, self.state, longest=longest)
        return Step(scores_R1V[:, 0].float().log_softmax(-1))


def describe(model: Captioner, pixels: UInt8[Tensor, "N C Y X"], *, search: Search, limit: int) -> list[list[Hypothesis]]:
    """The sentences for each picture, best first, of at most so many tokens."""
    if not len(pixels):
        return []
    table = pixels.to(model.device)

    def open_stepper(*, slots: int, beam: int, capacity: int, attention: bool) -> PictureStepper:
        return PictureStepper(model, table, slots=slots, beam=beam, capacity=capacity)

    return decode(open_stepper, [Job((number,), limit) for number in range(len(pixels))], search=search, constraints=[Never((UNK,))])
