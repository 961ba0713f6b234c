"""Signals while training: whatever the loop is doing, everything is saved and the process leaves with 75; twice, and it leaves at once."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "laws"))
import train_toy as toy

from regard.errors import Interrupted
from regard.train.checkpoint import Checkpoints
from regard.train.loop import train
from regard.train.parallel import join
from regard.train.signals import KINDS, Signals


def signalled(folder, where, kind):
    """A run without end, to which a signal comes while it does what `where` says."""

    def now():
        signal.raise_signal(kind)

    def long_work(parts, report):  # an evaluation, or decoding: a loop that looks at the flag
        if parts.progress.step == 5:
            now()
            for _ in range(100):
                parts.signals.check()
                time.sleep(0.01)

    def save(parts, report):
        if where == "save":
            now()
        toy.save(parts, report)

    with Signals() as signals:
        if where == "preparation":
            now()
            for _ in range(100):
                signals.check()
        number = {"warm-up": 1, "step": 10}.get(where, 0)
        run = toy.parts(folder, steps=10**6, signals=signals, stream=toy.stop_at(toy.ToyStream(), number, kind))
        log = toy.Every("log", toy.LogStep(), steps=1)
        work = [toy.Every(where, long_work, steps=5)] if where in ("evaluate", "decode") else []
        run.events = [log, *work, toy.Every("save", save, steps=4)]
        if where == "start-up":
            now()
        train(run)


PLACES = [
    ("preparation", signal.SIGTERM, 0),
    ("start-up", signal.SIGUSR1, 0),
    ("warm-up", signal.SIGTERM, 1),
    ("step", signal.SIGINT, 5),
    ("evaluate", signal.SIGTERM, 5),
    ("decode", signal.SIGUSR1, 5),
    ("save", signal.SIGTERM, 4),
]
if os.environ.get("REGARD_TORTURE"):
    PLACES = [(where, kind, step) for where, _, step in PLACES for kind in KINDS for _ in range(5)]


@pytest.mark.parametrize(("where", "kind", "step"), PLACES)
def test_saved_and_75(tmp_path, where, kind, step):
    (run,) = toy.forked(lambda: signalled(tmp_path, where, kind))
    assert run.code == 75, run.error
    assert f"stopped by {kind.name}" in run.error and "Traceback" not in run.error
    found = Checkpoints(tmp_path / "checkpoints").load()
    if step == 0:
        assert found is None and not (tmp_path / "checkpoints").exists()
        return
    assert found is not None and found.progress.step == step
    assert f"saved at step {step}" in run.error
    assert where not in found.progress.done or where == "save"  # what was cut off comes again


def test_a_second_signal_leaves_at_once():
    def twice():
        with Signals():
            for _ in range(2):
                signal.raise_signal(signal.SIGTERM)
                time.sleep(0.7)
            time.sleep(20)

    (run,) = toy.forked(twice, seconds=15)
    assert run.code == 128 + signal.SIGTERM and "once more to stop at once" in run.error


def test_handlers_are_given_back_and_the_flag_is_kept():
    before = signal.getsignal(signal.SIGUSR1)
    with Signals() as signals:
        signals.check()
        signal.raise_signal(signal.SIGUSR1)
        with pytest.raises(Interrupted, match="SIGUSR1") as info:
            signals.check()
        signal.raise_signal(signal.SIGUSR1)  # within half a second: the same request
    assert info.value.code == 75
    assert signal.getsignal(signal.SIGUSR1) is before


def one_rank_is_told(folder, rank, step):
    ranks = join(cuda=False, patience=25)

    def alone(parts, report):
        if (ranks.rank, parts.progress.step) == (rank, step):
            signal.raise_signal(signal.SIGTERM)

    with Signals() as signals:
        own, stream = toy.learner(ema=0.9, ranks=ranks), toy.ToyStream(rank=ranks.rank, world=2)
        run = toy.parts(folder, steps=10**6, signals=signals, own=own, stream=stream, evaluate_every=3)
        run.events = [toy.Every("alone", alone, steps=1), *run.events]
        train(run)


@pytest.mark.parametrize(("rank", "step"), [(1, 5), (0, 6)])  # step 6 is evaluated: there the first rank learns of it in the middle
def test_a_signal_to_one_rank_stops_all(tmp_path, rank, step):
    runs = toy.forked(lambda: one_rank_is_told(tmp_path, rank, step), ranks=2, seconds=30)
    assert [run.code for run in runs] == [75, 75], runs[0].error
    found = Checkpoints(tmp_path / "checkpoints").load()
    assert found is not None and found.progress.step == step and found.progress.scored == [3]
