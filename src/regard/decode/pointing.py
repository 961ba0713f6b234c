"""A pointer network as search sees it, and its answers: places of points, under the rules of the problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from regard.decode.constrain import NoRepeat
from regard.decode.draft import Hypothesis, Job
from regard.decode.engine import Search, decode
from regard.decode.state import Marks, Step
from regard.decode.stepper import ModelStepper
from regard.models.pointer_network import Pointer

MARKS = Marks(pad=0, begin=0, end=1)
SHIFT = MARKS.end  # from what the model calls an id to what search does: the end is 1 and not 0, so 0 may stand for what is never written


class PointerStepper(ModelStepper[Pointer]):
    """The caches of one search. A source is the places of its points in one table, which holds those of all sources."""

    def __init__(self, model: Pointer, points: Float[Tensor, "N C"], *, slots: int, beam: int, capacity: int):
        super().__init__(model, slots=slots, beam=beam, capacity=capacity)
        self.points = points

    @torch.inference_mode()
    def admit(self, slots: Sequence[int], sources: Sequence[Sequence[int]]) -> None:
        points_BSC = pad_sequence([self.points[list(source)] for source in sources], batch_first=True)
        lengths = torch.tensor([len(source) for source in sources], device=self.device)
        real_BS = torch.arange(points_BSC.shape[1], device=self.device) < lengths[:, None]
        self.model.admit(self.state, points_BSC, real_BS, self.clock.chosen(slots))
        self.restart(slots)

    @torch.inference_mode()
    def step(self, tokens: Int[Tensor, "R"]) -> Step:
        facts, longest = self.clock.tick()
        ids = (tokens - SHIFT).clamp_min(0)[:, None]
        scores_R1S = self.model.step(ids, facts, self.state, longest=longest)
        log_probs = scores_R1S[:, 0].float().log_softmax(-1)
        return Step(F.pad(log_probs, (SHIFT, 0), value=-torch.inf))


def answer(model: Pointer, sets: Sequence[Float[Tensor, "N C"]], *, search: Search) -> list[list[Hypothesis]]:
    """The answers to each set, best first; their tokens are places of its points. No point comes twice; on a tour every one comes."""
    if not sets:
        return []
    table = torch.cat(list(sets)).to(model.device)
    jobs, first = [], 0
    for one in sets:
        places = tuple(range(first, first + len(one)))
        jobs.append(Job(places, limit=len(one), minimum=len(one) if model.config.problem == "tour" else 0))
        first += len(one)

    def open_stepper(*, slots: int, beam: int, capacity: int, attention: bool) -> PointerStepper:
        return PointerStepper(model, table, slots=slots, beam=beam, capacity=capacity)

    found = decode(open_stepper, jobs, search=search, constraints=[NoRepeat(1)], marks=MARKS)
    return [[replace(one, tokens=tuple(token - SHIFT - 1 for token in one.tokens)) for one in ranked] for ranked in found]
