"""A language model as search sees it: what stands for a source is the text to go on with, and it is read at once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from regard.decode.state import OpenStepper, Step
from regard.decode.stepper import ModelStepper
from regard.models.language_model import Writer
from regard.nn.view import Tokens


class WriterStepper(ModelStepper[Writer]):
    """The caches of one search. A source is read but for its last token: that one is taken in with the first step, in place of the mark
    with which search begins."""

    def __init__(self, model: Writer, *, slots: int, beam: int, capacity: int):
        super().__init__(model, slots=slots, beam=beam, capacity=capacity)
        self.first = torch.full_like(self.clock.positions, -1)  # what stands in place of the mark, -1 after the first step

    @torch.inference_mode()
    def admit(self, slots: Sequence[int], sources: Sequence[Sequence[int]]) -> None:
        rows = self.clock.rows(slots)
        self.state.clear(rows)
        read = [list(source[:-1]) for source in sources]
        self.clock.restart(slots, [len(ids) for ids in read])
        each = lambda values: torch.tensor(values, device=self.device).repeat_interleave(self.clock.beam, 0)
        self.first[rows] = each([source[-1] for source in sources])
        width = max(map(len, read))
        if width:
            ids_RT = torch.zeros(len(self.first), width, dtype=torch.long, device=self.device)
            real_RT = torch.zeros_like(ids_RT, dtype=torch.bool)
            ids_RT[rows] = each([ids + [0] * (width - len(ids)) for ids in read])
            real_RT[rows] = each([[True] * len(ids) + [False] * (width - len(ids)) for ids in read])
            self.model.step(ids_RT, Tokens.padded(real_RT), self.state, longest=max(self.clock.lengths))

    @torch.inference_mode()
    def step(self, tokens: Int[Tensor, "R"]) -> Step:
        tokens = torch.where(self.first >= 0, self.first, tokens)
        self.first = torch.full_like(self.first, -1)
        facts, longest = self.clock.tick()
        hidden_R1D = self.model.step(tokens[:, None], facts, self.state, longest=longest)
        return Step(F.log_softmax(self.model.output(hidden_R1D)[:, 0].float(), dim=-1))


def writer_opener(model: Writer, *, longest: int, reach: int = 0) -> OpenStepper:
    """What search opens: steppers of this model, with room for sources of at most `longest` tokens before what is written; `reach` is how
    many positions the model has, 0 for any number."""

    def open_stepper(*, slots: int, beam: int, capacity: int, attention: bool) -> WriterStepper:
        whole = longest + capacity
        return WriterStepper(model, slots=slots, beam=beam, capacity=min(whole, reach) if reach else whole)

    return open_stepper
