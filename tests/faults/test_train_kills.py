"""kill -9 at random moments of a real `regard train`, which then goes on by `--resume`: it comes out as if nothing had happened.

REGARD_TORTURE=1 kills five hundred times instead of a few.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest
import torch

import small_run
from regard.models.tensors import read_tensors
from small_run import regard

KILLS = 500 if os.environ.get("REGARD_TORTURE") else 8
SMALL = {"steps": 60, "save_every": 5, "evaluate_every": 20, "log_every": 1, "sample_every": 0}
STEPS = [f"--train.{name}={n}" for name, n in SMALL.items()]


def start(words: list[object]) -> int:
    """The number of a forked process that runs the command line, and leaves with its code."""
    sys.stdout.flush()
    if child := os.fork():
        return child
    try:
        os._exit(regard(*words, "--progress", "none").code)
    finally:
        os._exit(99)


@pytest.fixture(scope="module")
def straight(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """The run that nobody killed, and how long it took."""
    torch.set_num_threads(1)
    out, started = tmp_path_factory.mktemp("straight") / "run", time.monotonic()
    assert regard("train", corpus / "small.toml", *STEPS, "--out", out, "--progress", "none").code == 0
    return out, time.monotonic() - started


def test_killed_at_random_moments_it_loses_nothing(corpus: Path, straight: tuple[Path, float], tmp_path: Path):
    whole, lasts = straight
    chance, kills, runs, out = random.Random(5), 0, 0, tmp_path / "run"
    while kills < KILLS:
        begun = (out / "run.toml").is_file()
        child = start(["train", "--resume", out] if begun else ["train", corpus / "small.toml", *STEPS, "--out", out])
        until = time.monotonic() + chance.uniform(0, lasts)
        while time.monotonic() < until and not (ended := os.waitpid(child, os.WNOHANG))[0]:
            time.sleep(0.002)
        if not ended[0]:
            os.kill(child, signal.SIGKILL)
            ended = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(ended[1])
        assert code in (0, -signal.SIGKILL), f"after {kills} kills the run left with {code}"
        kills += code != 0
        if code == 0:
            same(out, whole)
            runs, out = runs + 1, tmp_path / f"run-{runs + 1}"
    done = regard("train", "--resume", out, "--progress", "none") if (out / "run.toml").is_file() else None
    assert done is None or done.code == 0, done
    if done:
        same(out, whole)
    assert done or runs


def same(run: Path, whole: Path) -> None:
    """The same parameters and the same log; nothing half-written is left."""
    for model in ("best", "last"):
        one, other = (read_tensors(folder / model / "model.safetensors") for folder in (run, whole))
        assert one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
    assert small_run.log_of(run) == small_run.log_of(whole)
    assert not [path for path in (run / "checkpoints").iterdir() if ".tmp-" in path.name or ".old-" in path.name]
