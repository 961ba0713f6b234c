"""One token after the other: the most probable one (greedy), or one drawn by lot from what temperature and cut-offs leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.decode.constrain import Constraint, possible
from regard.decode.draft import Hypothesis, Job, Written
from regard.decode.state import Step
from regard.errors import UsageError


@dataclass(frozen=True)
class Greedy:
    """Always the most probable token; of equals the one with the lowest id."""

    kind: ClassVar[Literal["greedy"]] = "greedy"

    @property
    def rows(self) -> int:
        return 1


@dataclass(frozen=True)
class Sample:
    """Each token by lot. The cut-offs apply in this order: temperature, top-k, top-p, min-p."""

    kind: ClassVar[Literal["sample"]] = "sample"
    temperature: float = 1.0
    """Log-probabilities are divided by it: below 1 surer, above 1 wilder."""
    top_k: int = 0
    """Only the k most probable tokens; 0 for all."""
    top_p: float = 1.0
    """Only the fewest tokens that hold this share of the probability."""
    min_p: float = 0.0
    """Only tokens with at least this share of the most probable one's probability."""
    seed: int = 0
    """With it, the place of a source in the input decides every draw."""
    draws: int = 1
    """How many targets are drawn for each source."""

    def __post_init__(self):
        for name, fine, advice in (
            ("temperature", self.temperature > 0, "take more than 0, or greedy search for no randomness at all"),
            ("top_k", self.top_k >= 0, "take 0 (all) or more"),
            ("top_p", 0 < self.top_p <= 1, "take more than 0, at most 1"),
            ("min_p", 0 <= self.min_p <= 1, "take 0 to 1"),
            ("seed", self.seed >= 0, "take 0 or more"),
            ("draws", self.draws >= 1, "take 1 or more"),
        ):
            if not fine:
                raise UsageError(f"{name} = {getattr(self, name)} makes no sense", where="sampling", do=advice)

    @property
    def rows(self) -> int:
        return self.draws


class Walk:
    """Greedy search or sampling under way: every row goes on with one token until it has ended."""

    def __init__(self, config: Greedy | Sample, written: Written, constraints: Sequence[Constraint]):
        self.config, self.written, self.constraints = config, written, constraints
        self.uniforms: Float[Tensor, "R L"] = torch.zeros(written.slots * written.beam, 0, dtype=torch.double, device=written.device)

    def begin(self, slots: Sequence[int], jobs: Sequence[Job | None]) -> None:
        """All of a target's luck is drawn beforehand, from its own seed, so that no neighbour can change it."""
        if not isinstance(self.config, Sample):
            return
        longest = max([self.uniforms.shape[1], *(job.limit + 1 for job in jobs if job)])
        self.uniforms = F.pad(self.uniforms, (0, longest - self.uniforms.shape[1]))
        for slot, job in zip(slots, jobs, strict=True):
            if job is None:
                continue
            for row in range(self.written.beam):
                luck = np.random.default_rng((self.config.seed, job.number, row)).random(job.limit + 1)
                self.uniforms[slot * self.written.beam + row, : len(luck)] = torch.from_numpy(luck).to(self.written.device)

    def advance(self, step: Step) -> tuple[Int[Tensor, "R"], None]:
        written = self.written
        scores_RV = possible(step.log_probs, written, self.constraints)
        match self.config:
            case Greedy():
                tokens_R = scores_RV.argmax(1)
            case Sample():
                luck_R1 = self.uniforms.gather(1, written.lengths.clamp_max(self.uniforms.shape[1] - 1)[:, None])
                tokens_R = draw(narrow(scores_RV, self.config), luck_R1[:, 0])
        log_probs_R = scores_RV.gather(1, tokens_R[:, None])[:, 0]
        running_R = written.running
        written.append(tokens_R, log_probs_R, where=running_R, step=step)
        return torch.where(running_R, tokens_R, written.marks.pad), None

    def done(self) -> Tensor:
        return ~self.written.running.view(self.written.slots, -1).any(1)

    def collect(self, slot: int) -> list[Hypothesis]:
        beam = self.written.beam
        return self.written.read(slot, self.written.totals[slot * beam : (slot + 1) * beam].tolist(), count=beam)


def narrow(scores_RV: Float[Tensor, "R V"], config: Sample) -> Float[Tensor, "R V"]:
    """Probabilities to draw from; they need not sum to 1. The most probable token always stays."""
    scores_RV = scores_RV / config.temperature
    if 0 < config.top_k < scores_RV.shape[1]:
        kth_R1 = scores_RV.topk(config.top_k).values[:, -1:]
        scores_RV = scores_RV.masked_fill(scores_RV < kth_R1, -torch.inf)
    probs_RV = scores_RV.softmax(1)
    if config.top_p < 1:
        sorted_RV, places_RV = probs_RV.sort(dim=1, descending=True, stable=True)
        before_RV = sorted_RV.cumsum(1) - sorted_RV
        drop_RV = torch.zeros_like(probs_RV, dtype=torch.bool).scatter(1, places_RV, before_RV >= config.top_p)
        probs_RV = probs_RV.masked_fill(drop_RV, 0)
    if config.min_p > 0:
        probs_RV = probs_RV.masked_fill(probs_RV < config.min_p * probs_RV.amax(1, keepdim=True), 0)
    return probs_RV


def draw(probs_RV: Float[Tensor, "R V"], luck_R: Float[Tensor, "R"]) -> Int[Tensor, "R"]:
    """The token in whose stretch of the summed probabilities the luck, between 0 and 1, falls."""
    sums_RV = probs_RV.double().cumsum(1)
    goals_R1 = luck_R[:, None] * sums_RV[:, -1:] * (1 - 1e-12)  # never on the far edge, whatever is rounded
    return torch.searchsorted(sums_RV, goals_R1, right=True)[:, 0]
