"""Stopped and resumed is straight, bitwise on a CPU, wherever a whole run is cut: within a step, at an epoch's edge, in an evaluation."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest
import torch

import small_run
from regard.assemble import read_begun, train_run
from regard.errors import Interrupted
from regard.models.tensors import read_tensors
from regard.run import read_run
from regard.train.loss import Objective

# 24 steps of 2 micro-batches each and 3 evaluations; with sampled spellings, dropout and an average, so that much could go astray
SETTINGS = {
    "train.steps": "24",
    "train.accumulate": "2",
    "train.log_every": "1",
    "train.evaluate_every": "8",
    "train.sample_every": "5",
    "train.save_every": "7",
    "train.ema": "0.9",
    "tokenizer.sampling": "0.2",
    "model.d_model": "16",
    "batching.tokens": "120",
}
LOGGED = ("step", "loss", "norm", "rate", "epoch", "target_tokens", "event", "best", "translation")


class Cuts:
    """A signal comes while the objective is asked for the n-th time, in a micro-batch or in an evaluation; who asks is noted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.asked: list[str] = []
        self.at: set[int] = set()
        forward = Objective.forward

        def counted(objective: Objective, batch):
            self.asked.append("train" if torch.is_grad_enabled() and objective.training else "evaluate")
            if len(self.asked) in self.at:
                signal.raise_signal(signal.SIGTERM)  # to this very thread: another one may be late to hear of it
            return forward(objective, batch)

        monkeypatch.setattr(Objective, "forward", counted)


def go(corpus: Path, out: Path) -> int:
    """The run, and as often as it is stopped, on with it; how often that was."""
    run, stops = read_run(corpus / "small.toml", flags=SETTINGS), 0
    while True:
        try:
            train_run(run, out, resume=stops > 0, show="none")
            return stops
        except Interrupted:
            run, stops = read_begun(out), stops + 1


def seen(out: Path) -> tuple[dict, dict, list[dict]]:
    """Final parameters, the exported (averaged) ones, and the log without its clocks."""
    log = [{key: line[key] for key in LOGGED if key in line} for line in small_run.log_of(out)]
    final = read_tensors(out / "checkpoints" / "step-24" / "model.safetensors")
    return final, read_tensors(out / "best" / "model.safetensors"), log


@pytest.fixture(scope="module")
def straight(corpus: Path, tmp_path_factory: pytest.TempPathFactory):
    """The uninterrupted run, and who asked the objective, in order."""
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("straight") / "run"
    with pytest.MonkeyPatch.context() as patch:
        cuts = Cuts(patch)
        go(corpus, out)
    return seen(out), cuts.asked


def same(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def assert_same(out: Path, expected) -> None:
    final, best, log = seen(out)
    assert same(final, expected[0]), "the final parameters differ"
    assert same(best, expected[1]), "the exported parameters differ"
    assert log == expected[2]


def test_the_run_has_what_the_cuts_are_meant_for(straight):
    (_, _, log), asked = straight
    steps = [line for line in log if "event" not in line]
    assert len(steps) == 24 and asked.count("train") == 48
    assert steps[-1]["epoch"] >= 1  # an edge between epochs lies inside
    assert [line["step"] for line in log if line.get("event") == "evaluate"] == [8, 16, 24]
    assert asked.count("evaluate") >= 6  # several batches each: a cut can fall between two


# Micro-batches; odd ones are the first of their step, so that the cut lies within it. The words are explained in `named`.
PLACES = [(n,) for n in (1, 2, 3, 7, 12, 16, 21, 22, 31, 38, 44, 47)]
PLACES += [
    ("first evaluation",),
    ("between evaluated batches",),
    ("last evaluation",),
    ("edge",),
    ("before the edge",),
    ("after the edge",),
]
PLACES += [(5, 9), (20, 22, 27)]  # stopped again within the same epoch
if os.environ.get("REGARD_TORTURE"):  # every micro-batch, and two hundred runs that are stopped again and again
    PLACES += [(n,) for n in range(1, 49) if (n,) not in PLACES]
    for seed in range(200):
        chance = random.Random(seed)
        PLACES.append(tuple(2 * step - chance.randrange(2) for step in sorted(chance.sample(range(1, 25), 2 + seed % 4))))


@pytest.mark.parametrize("places", PLACES, ids=str)
def test_resumed_is_straight(corpus: Path, tmp_path: Path, straight, monkeypatch: pytest.MonkeyPatch, places):
    expected, asked = straight
    calls = {kind: [number for number, one in enumerate(asked, 1) if one == kind] for kind in ("train", "evaluate")}
    edge = next(line["step"] for line in expected[2] if line.get("epoch") == 1)  # its last micro-batch ends the epoch, or its first
    named = {
        "first evaluation": calls["evaluate"][0],
        "between evaluated batches": calls["evaluate"][3],
        "last evaluation": calls["evaluate"][-1],
        "before the edge": calls["train"][2 * edge - 3],
        "edge": calls["train"][2 * edge - 1],
        "after the edge": calls["train"][2 * edge],
    }
    cuts = Cuts(monkeypatch)
    cuts.at = {named[place] if isinstance(place, str) else calls["train"][place - 1] for place in places}
    assert go(corpus, tmp_path / "run") == len(places)
    assert_same(tmp_path / "run", expected)
