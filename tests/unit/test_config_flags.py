"""Flags set scalar fields by dotted name, as strictly as the file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import pytest

from regard.config.flags import apply, flags
from regard.errors import UsageError


@dataclass(frozen=True)
class Noam:
    kind: ClassVar[Literal["noam"]] = "noam"
    warmup: int = 4000
    """Updates until the rate is at its peak."""


@dataclass(frozen=True)
class Constant:
    kind: ClassVar[Literal["constant"]] = "constant"


@dataclass(frozen=True)
class Train:
    steps: int = 100
    """Updates of the parameters."""
    rate: float = 0.5
    compile: bool = False
    tokens: int | Literal["auto"] = "auto"
    out: Path = Path("runs")
    name: str = "first"
    schedule: Noam | Constant = Noam()
    seeds: tuple[int, ...] = (1, 2)

    def __post_init__(self):
        if self.steps < 0:
            raise ValueError("steps cannot be negative")


@dataclass(frozen=True)
class Run:
    train: Train = Train()
    seed: int = 1


def test_every_scalar_is_a_flag_with_its_help():
    listed = {flag.name: flag for flag in flags(Run())}
    assert list(listed) == [
        *("train.steps", "train.rate", "train.compile", "train.tokens", "train.out", "train.name", "train.schedule.warmup"),
        "seed",
    ]
    assert listed["train.steps"].help == "Updates of the parameters." and listed["train.steps"].value == 100
    assert listed["train.schedule.warmup"].help == "Updates until the rate is at its peak."


def test_the_flags_of_a_kind_are_there_once_it_is_chosen():
    assert "train.schedule.warmup" not in {flag.name for flag in flags(Train(schedule=Constant()))}


def test_apply_changes_what_is_named_and_nothing_else():
    given = {"train.steps": "1_000", "train.schedule.warmup": "7", "train.compile": "true", "train.tokens": "4096", "train.rate": "1e-3"}
    changed = apply(Run(), given | {"train.out": "a/b", "train.name": "12", "seed": "-3"})
    expected = Train(steps=1000, rate=0.001, compile=True, tokens=4096, out=Path("a/b"), name="12", schedule=Noam(7))
    assert changed == Run(expected, seed=-3)
    assert apply(Run(), {}) == Run()
    assert apply(changed, {"train.tokens": "auto"}).train.tokens == "auto"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("train.stepz", "1", "--train.stepz is not a setting; did you mean train.steps?"),
        ("train.steps", "many", '--train.steps must be an integer, not the string "many"'),
        ("train.steps", "1.5", "--train.steps must be an integer"),
        ("train.steps", "-1", "train: steps cannot be negative"),
        ("train.compile", "yes", "--train.compile must be true or false"),
        ("train.rate", "nan", "--train.rate must be a number"),
        ("train.tokens", "much", '--train.tokens cannot be the string "much"'),
        ("train.schedule", "constant", "--train.schedule is not a setting"),
        ("train.seeds", "3", "--train.seeds is not a setting"),
    ],
)
def test_wrong_flags(name: str, text: str, said: str):
    with pytest.raises(UsageError) as caught:
        apply(Run(), {name: text})
    assert said in str(caught.value)


def test_numbers_that_make_no_sense_are_refused_as_in_the_file():
    with pytest.raises(UsageError, match=r"--train\.tokens = -4 makes no sense; take 0 or more"):
        apply(Run(), {"train.tokens": "-4"})
