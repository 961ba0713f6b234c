"""What may be written next: small rules, each a pure function on what is written and what the rules before it allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.decode.draft import LEAST, NOTHING, Written
from regard.errors import UsageError


class Constraint(Protocol):
    """What all rows share may stay one row (R = 1): a mask as large as the model's answer is made only where rows differ."""

    def __call__(self, written: Written, allowed_RV: Bool[Tensor, "#R V"]) -> Bool[Tensor, "#R V"]: ...


@dataclass(frozen=True)
class Never:
    """These tokens are not written: marks that are no words, the unknown word."""

    tokens: tuple[int, ...]

    def __call__(self, written: Written, allowed_RV: Tensor) -> Tensor:
        return allowed_RV.index_fill(1, torch.tensor(self.tokens, device=allowed_RV.device), False)


@dataclass(frozen=True)
class Only:
    """Nothing but these tokens, and the end mark."""

    tokens: tuple[int, ...]

    def __call__(self, written: Written, allowed_RV: Tensor) -> Tensor:
        listed = torch.zeros(allowed_RV.shape[1], dtype=torch.bool, device=allowed_RV.device)
        listed[[*self.tokens, written.marks.end]] = True
        return allowed_RV & listed


@dataclass(frozen=True)
class Banned:
    """These token sequences do not occur: the last token of one is forbidden where the others have just been written."""

    phrases: tuple[tuple[int, ...], ...]

    def __post_init__(self):
        if not all(self.phrases):
            raise UsageError("a banned phrase is empty", do="leave it out")

    def __call__(self, written: Written, allowed_RV: Tensor) -> Tensor:
        for size in sorted({len(phrase) for phrase in self.phrases}):
            phrases_PN = torch.tensor([phrase for phrase in self.phrases if len(phrase) == size], device=allowed_RV.device)
            begun_RP = (_last(written, size - 1)[:, None] == phrases_PN[None, :, :-1]).all(-1)
            allowed_RV = allowed_RV & ~_marked(begun_RP, phrases_PN[:, -1].expand_as(begun_RP), allowed_RV.shape[1])
        return allowed_RV


@dataclass(frozen=True)
class NoRepeat:
    """No n-gram of this size occurs twice in a target."""

    size: int

    def __call__(self, written: Written, allowed_RV: Tensor) -> Tensor:
        if written.tokens.shape[1] < self.size:
            return allowed_RV
        grams_RLN = written.tokens.unfold(1, self.size, 1)
        whole_RL = torch.arange(grams_RLN.shape[1], device=allowed_RV.device) + self.size <= written.lengths[:, None]
        again_RL = whole_RL & (grams_RLN[..., :-1] == _last(written, self.size - 1)[:, None]).all(-1)
        return allowed_RV & ~_marked(again_RL, grams_RLN[..., -1], allowed_RV.shape[1])


@dataclass(frozen=True)
class Minimum:
    """No end before the minimum of the job."""

    def __call__(self, written: Written, allowed_RV: Tensor) -> Tensor:
        early_R = written.lengths < written.minimums
        end_V = torch.arange(allowed_RV.shape[1], device=allowed_RV.device) == written.marks.end
        return allowed_RV & ~(early_R[:, None] & end_V)


@dataclass(frozen=True)
class WayOut:
    """Where the other rules leave nothing, the row may end."""

    def __call__(self, written: Written, allowed_RV: Tensor) -> Tensor:
        end_V = torch.arange(allowed_RV.shape[1], device=allowed_RV.device) == written.marks.end
        return allowed_RV | (~allowed_RV.any(1, keepdim=True) & end_V)


@dataclass(frozen=True)
class Prefix:
    """Every row begins with the prefix of its job, whatever the other rules say of it."""

    def __call__(self, written: Written, allowed_RV: Tensor) -> Tensor:
        next_R1 = _next_of_prefix(written)
        only_RV = torch.arange(allowed_RV.shape[1], device=allowed_RV.device) == next_R1
        return torch.where(next_R1 == NOTHING, allowed_RV, only_RV)


@dataclass(frozen=True)
class Limit:
    """At the limit of the job nothing but the end mark may follow."""

    def __call__(self, written: Written, allowed_RV: Tensor) -> Tensor:
        over_R = written.lengths >= written.limits
        end_V = torch.arange(allowed_RV.shape[1], device=allowed_RV.device) == written.marks.end
        return torch.where(over_R[:, None], end_V, allowed_RV)


def possible(log_probs_RV: Float[Tensor, "R V"], written: Written, constraints: Sequence[Constraint]) -> Float[Tensor, "R V"]:
    """The model's log-probabilities, unchanged where the constraints allow and minus infinity elsewhere: nothing is made up for it.

    Only what may be forced, the end and the prefix, is never out of the question, even where the model says so.
    """
    allowed_RV = torch.ones(1, log_probs_RV.shape[1], dtype=torch.bool, device=log_probs_RV.device)
    for constraint in (Never((written.marks.pad, written.marks.begin)), *constraints, *_bounds(written, constraints)):
        allowed_RV = constraint(written, allowed_RV)
    scores_RV = log_probs_RV.masked_fill(~allowed_RV, -torch.inf)
    for forced_R1 in (torch.full_like(written.lengths, written.marks.end)[:, None], _next_of_prefix(written).clamp_min(0)):
        least_R1 = torch.where(allowed_RV.expand_as(scores_RV).gather(1, forced_R1), LEAST, -torch.inf)
        scores_RV.scatter_(1, forced_R1, torch.maximum(scores_RV.gather(1, forced_R1), least_R1))
    return scores_RV


def _bounds(written: Written, constraints: Sequence[Constraint]) -> list[Constraint]:
    """The rules of length and prefix, as far as they matter now. They stand last, and always leave something."""
    jobs = [job for job in written.jobs if job]
    early = any(job.minimum for job in jobs)
    late = any(job and steps >= job.limit for job, steps in zip(written.jobs, written.steps, strict=True))
    bounds: list[tuple[bool, Constraint]] = [
        (early, Minimum()),
        (early or bool(constraints), WayOut()),
        (late, Limit()),
        (any(job.prefix for job in jobs), Prefix()),
    ]
    return [rule for matters, rule in bounds if matters]


def _next_of_prefix(written: Written) -> Tensor:
    """The token that each row must write now, or NOTHING."""
    longest = written.prefixes.shape[1]
    if not longest:
        return torch.full_like(written.lengths, NOTHING)[:, None]
    next_R1 = written.prefixes.gather(1, written.lengths.clamp_max(longest - 1)[:, None])
    return torch.where(written.lengths[:, None] < longest, next_R1, NOTHING)


def _last(written: Written, count: int) -> Tensor:
    """The last `count` tokens of each row, NOTHING where it is shorter."""
    places_RN = written.lengths[:, None] - count + torch.arange(count, device=written.device)
    tokens_RN = written.tokens.gather(1, places_RN.clamp(0, max(written.tokens.shape[1] - 1, 0))) if count else places_RN
    return torch.where(places_RN >= 0, tokens_RN, NOTHING)


def _marked(hit: Tensor, tokens: Tensor, vocabulary: int) -> Tensor:
    """A row of the vocabulary each, true at the tokens that are hit."""
    counts = torch.zeros(len(hit), vocabulary, dtype=torch.uint8, device=hit.device)
    return counts.scatter_reduce(1, tokens.clamp_min(0), hit.to(torch.uint8), "amax").bool()
