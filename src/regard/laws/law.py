"""What a law is: a sentence, and a function that says of a subject whether it holds, by how much it fails, or that it does not apply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from regard.errors import UsageError
from regard.laws.subject import Subject

Verdict = bool | str
"""True: it holds; False or what is wrong: it does not."""
Scope = Literal["axis", "writer", "encoder", "config"]
CLOSE = 1e-9  # in 64 bits


class NotApplicable(Exception):
    """The law says nothing of this subject, because ..."""


@dataclass(frozen=True)
class Law:
    says: str
    scope: Scope
    must: bool
    """Whether a mechanism that breaks it cannot be relied on; other laws are properties that it has or has not."""
    holds: Callable[[Subject], Verdict]


@dataclass(frozen=True)
class Finding:
    """One law of one subject."""

    subject: str
    law: str
    must: bool
    result: Literal["holds", "broken", "does not hold", "does not apply"]
    why: str = ""


LAWS: list[Law] = []


def law(says: str, scope: Scope, *, must: bool = True) -> Callable[[Callable[[Subject], Verdict]], Callable[[Subject], Verdict]]:
    """Puts the function below it into the book."""

    def written(holds: Callable[[Subject], Verdict]) -> Callable[[Subject], Verdict]:
        LAWS.append(Law(says, scope, must, holds))
        return holds

    return written


def judge(one: Law, subject: Subject) -> Finding:
    """What this law says of it."""

    def found(result, why: str = "") -> Finding:
        return Finding(subject.name, one.says, one.must, result, why)

    try:
        with torch.random.fork_rng(devices=[]):
            verdict = one.holds(subject)
    except NotApplicable as error:
        return found("does not apply", str(error))
    except UsageError as error:  # it was refused with a reason when it was built
        return found("does not apply", error.what)
    except Exception as error:  # the mechanism is the user's: whatever it does, the other laws are still to be judged
        return found("broken" if one.must else "does not hold", f"{type(error).__name__}: {error}")
    if verdict is True:
        return found("holds")
    return found("broken" if one.must else "does not hold", verdict or "")


def equal(ours: Tensor, theirs: Tensor) -> Verdict:
    """The same numbers, or by how much they differ."""
    if ours.shape != theirs.shape:
        return f"shapes {tuple(ours.shape)} and {tuple(theirs.shape)}"
    if not ours.numel():
        return True
    difference = (ours - theirs).abs().max().item()
    return True if difference <= CLOSE else f"they differ by {difference:.2g}"
