"""Beam search over a whole batch at once, in tensors.

The `size` rows of a source are the leaves of its tree. Each is running, ended or empty. A step takes the best continuations of the running
rows, as many as there are rows not yet ended, and puts them into those rows; a continuation by the end mark ends its row, which then keeps
its place. So a hypothesis that ends narrows the beam for the others: a beam of 1 is greedy search, and a beam as wide as the tree has
leaves is exhaustive search, for every penalty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decode.constrain import Constraint, possible
from regard.decode.draft import Hypothesis, Job, Written
from regard.decode.penalties import Gnmt, Penalty, bound, coverage
from regard.decode.state import Step
from regard.errors import UsageError


@dataclass(frozen=True)
class Beam:
    """The best few beginnings side by side."""

    kind: ClassVar[Literal["beam"]] = "beam"
    size: int = 4
    """How many hypotheses are kept."""
    penalty: Penalty = Gnmt()
    """How hypotheses of different lengths are compared when they have ended."""
    coverage: float = 0.0
    """GNMT's beta: what the target never looked at counts against it; 0 for off."""
    n_best: int = 1
    """How many of the best are wanted."""

    def __post_init__(self):
        if self.size < 1 or not 1 <= self.n_best <= self.size:
            raise UsageError(f"{self.n_best} best of a beam of {self.size}", where="beam search", do="take 1 <= n_best <= size")
        if self.coverage < 0:
            raise UsageError(f"coverage = {self.coverage} would reward what is left out", where="beam search", do="take 0 or more")

    @property
    def rows(self) -> int:
        return self.size


class BeamSearch:
    """Beam search under way."""

    def __init__(self, config: Beam, written: Written, constraints: Sequence[Constraint]):
        self.config, self.written, self.constraints = config, written, constraints
        rows = written.slots * written.beam
        self.sources: Int[Tensor, "R"] = torch.zeros(rows, dtype=torch.long, device=written.device)
        self.looked: Float[Tensor, "R S"] = torch.zeros(rows, written.width if config.coverage else 0, device=written.device)

    def begin(self, slots: Sequence[int], jobs: Sequence[Job | None]) -> None:
        """The first row of a slot runs; the others wait for its continuations."""
        written = self.written
        rows = written.rows(slots).view(-1, written.beam)
        written.running[rows[:, 1:]] = False
        self.sources[rows] = torch.tensor([len(job.source) if job else 0 for job in jobs], device=written.device)[:, None]
        self.looked[rows] = 0

    def advance(self, step: Step) -> tuple[Int[Tensor, "R"], Int[Tensor, "R"]]:
        written, (slots, beam) = self.written, (self.written.slots, self.written.beam)
        scores_RV = possible(step.log_probs, written, self.constraints)
        values_RK, words_RK = best(scores_RV, beam)
        totals_RK = (values_RK + written.totals[:, None]).masked_fill(~written.running[:, None], -torch.inf)
        totals_NB, candidates_NB = best(totals_RK.reshape(slots, -1), beam)
        width = values_RK.shape[1]  # beam, or the whole vocabulary where that is smaller

        # Ended rows keep their places; the candidates, best first, take the others from the left.
        ended_NB = written.ended.view(slots, beam)
        place_NB = ended_NB.long().argsort(dim=1, stable=True)
        rank_B = torch.arange(beam, device=written.device)
        taken_NB = (rank_B < beam - ended_NB.sum(1, keepdim=True)) & (totals_NB > -torch.inf)
        parent_NB = torch.where(taken_NB, candidates_NB // width, place_NB)
        first_N1 = torch.arange(slots, device=written.device)[:, None] * beam

        def placed(values_NB: Tensor) -> Tensor:
            return torch.empty_like(values_NB).scatter_(1, place_NB, values_NB).flatten()

        rows_R = placed(first_N1 + parent_NB)
        words_NB = words_RK.reshape(slots, -1).gather(1, candidates_NB)
        values_R = placed(values_RK.reshape(slots, -1).gather(1, candidates_NB))
        taken_R = placed(taken_NB)
        tokens_R = placed(torch.where(taken_NB, words_NB, written.marks.pad))

        if step.attention is not None:
            step = Step(step.log_probs, step.attention[rows_R])
        written.follow(rows_R)
        self._look(rows_R, taken_R, step)
        written.append(tokens_R, values_R, where=taken_R, step=step)
        return tokens_R, rows_R

    def done(self) -> Bool[Tensor, "N"]:
        """Stop when nothing runs, or when no running row can still come among the n best: a stop that changes no answer."""
        written, shape = self.written, (self.written.slots, self.written.beam)
        running_NB, count = written.running.view(shape), self.config.n_best
        ended_NB = self.scores().masked_fill(~written.ended, -torch.inf).view(shape)
        worst_N = ended_NB.topk(count).values[:, -1]
        hopes_R = bound(self.config.penalty, written.totals, written.lengths, longest=written.limits + 1)
        hope_N = hopes_R.view(shape).masked_fill(~running_NB, -torch.inf).amax(1)
        return ~running_NB.any(1) | ((written.ended.view(shape).sum(1) >= count) & (hope_N <= worst_N))

    def collect(self, slot: int) -> list[Hypothesis]:
        beam = self.written.beam
        return self.written.read(slot, self.scores()[slot * beam : (slot + 1) * beam].tolist(), count=self.config.n_best)

    def scores(self) -> Float[Tensor, "R"]:
        """What ended rows are worth; of no meaning for the others."""
        scores_R = self.written.totals / self.config.penalty.divisor(self.written.lengths)
        if self.config.coverage:
            scores_R = scores_R + coverage(self.config.coverage, self.looked, self.sources)
        return scores_R.float()

    def _look(self, rows_R: Tensor, taken_R: Tensor, step: Step) -> None:
        if self.config.coverage:
            if step.attention is None:
                raise UsageError("this model reports no attention", where="coverage penalty", do="set coverage to 0")
            seen_RS = F.pad(step.attention, (0, self.looked.shape[1] - step.attention.shape[1]))
            self.looked = self.looked[rows_R] + torch.where(taken_R[:, None], seen_RS, 0)


def best(scores: Float[Tensor, "N K"], count: int) -> tuple[Float[Tensor, "N k"], Int[Tensor, "N k"]]:
    """The largest `count` of each row and where they stand; of equals the one further left. (topk alone leaves ties to chance.)"""
    count = min(count, scores.shape[1])
    values, places = scores.topk(min(count + 1, scores.shape[1]))
    if not ((values[:, 1:] == values[:, :-1]) & (values[:, 1:] > -torch.inf)).any():
        return values[:, :count], places[:, :count]
    rest, found = scores.clone(), []
    for _ in range(count):
        found.append(rest.max(1, keepdim=True))  # torch promises the first of equals here
        rest.scatter_(1, found[-1].indices, -torch.inf)
    return torch.cat([each.values for each in found], 1), torch.cat([each.indices for each in found], 1)
