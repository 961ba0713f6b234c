"""Laws of training: how a step is cut changes nothing, and a run that was interrupted is the run that was not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
import train_toy as toy

from regard.data import layouts
from regard.data.batch import halve
from regard.data.layouts import Fixed, Rows
from regard.errors import Interrupted, UsageError
from regard.train.checkpoint import Origin
from regard.train.loop import train
from regard.train.optimise import AdamW, Muon
from regard.train.signals import Signals

PAIRS = [3, 8, 14, 17, 21, 25, 30, 44]  # of unequal lengths


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def parameters_after(cuts, layout=toy.packed, steps=3, optimiser=AdamW(rate=0.01)):  # noqa: B008
    own = toy.learner(dropout=0.0, optimiser=optimiser)
    for step in range(1, steps + 1):
        batches = [layout([n + 50 * step for n in cut]) for cut in cuts]
        report = own.step(batches, step=step, updates=step - 1, factor=1.0)
    return own.model.state_dict(), report.loss, report.norm


@pytest.mark.parametrize("optimiser", [AdamW(rate=0.01), Muon(rate=0.01)], ids=["adamw", "muon"])
def test_one_of_eight_two_of_four_and_eight_of_one_are_the_same_step(optimiser):
    eight = [PAIRS], [PAIRS[:4], PAIRS[4:]], [[n] for n in PAIRS]
    whole, *others = (parameters_after(cuts, optimiser=optimiser) for cuts in eight)
    for other in others:
        torch.testing.assert_close(other, whole, rtol=2e-4 if isinstance(optimiser, AdamW) else 3e-2, atol=2e-5)


def gradient_of(cuts, clip=0.0):
    """What the optimiser is given; it would forgive a wrong scale."""
    own = toy.learner(dropout=0.0, clip=clip)
    given = []
    own.optimiser.step = lambda factor, bad: given.extend(p.grad.clone() for p in own.optimiser.parameters)
    own.step([toy.packed(cut) for cut in cuts], step=1, updates=0, factor=1.0)
    return own, given


@pytest.mark.parametrize("clip", [0.0, 0.3])
@pytest.mark.parametrize("cuts", [[PAIRS], [PAIRS[:4], PAIRS[4:]], [[n] for n in PAIRS]], ids=["1x8", "2x4", "8x1"])
def test_the_gradient_is_that_of_the_mean_over_all_target_tokens(cuts, clip):
    own, given = gradient_of(cuts, clip)
    whole = toy.packed(PAIRS)
    (own.objective(whole) / whole.target_tokens).backward()
    expected = [p.grad for p in own.optimiser.parameters]
    length = torch.cat([gradient.flatten() for gradient in expected]).norm()
    assert length > 0.3
    torch.testing.assert_close(given, [gradient * (clip / length if clip else 1) for gradient in expected], rtol=1e-4, atol=1e-6)


def test_unequal_cuts_count_tokens_and_not_batches():
    torch.testing.assert_close(parameters_after([PAIRS[:1], PAIRS[1:]]), parameters_after([PAIRS]), rtol=2e-4, atol=2e-5)


def test_packed_and_padded_are_the_same_step():
    torch.testing.assert_close(parameters_after([PAIRS], toy.padded), parameters_after([PAIRS]), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("layout", [toy.packed, toy.padded])
def test_two_halves_have_the_gradient_of_the_whole(layout):
    def gradients(batches):
        own = toy.learner(dropout=0.0)
        loss = own._accumulate(batches, 1)
        return loss, [p.grad for p in own.model.parameters()]

    batch = layout(PAIRS[:7])
    halves = halve(batch)
    assert [half.pairs for half in halves] == [tuple(PAIRS[:3]), tuple(PAIRS[3:7])]
    assert sum(half.target_tokens for half in halves) == batch.target_tokens
    assert sum(half.source_tokens for half in halves) == batch.source_tokens
    torch.testing.assert_close(gradients(halves), gradients([batch]))
    assert halve(layout(PAIRS[:1]))[0].pairs == (PAIRS[0],)


def test_filler_is_left_behind_by_halves():
    source = Rows(np.arange(3, 12), np.array([2, 4, 3]))
    target = Rows(np.arange(3, 9), np.array([1, 2, 3]))
    fixed = Fixed(length=31, longest=6, documents=11)
    whole = layouts.packed(source, target, np.array([5, 6, 7]), fixed=fixed)
    first, second = halve(whole)
    assert (first.pairs, second.pairs) == ((5,), (6, 7))
    assert first.source.ids.tolist() == [[3, 4, 2]] and second.source.ids.tolist() == [[5, 6, 7, 8, 2, 9, 10, 11, 2]]
    assert second.target.ids.tolist() == [[1, 4, 5, 1, 6, 7, 8]] and second.labels.tolist() == [[4, 5, 2, 6, 7, 8, 2]]
    assert second.target.tokens.documents.tolist() == [[0, 0, 0, 1, 1, 1, 1]]
    assert (second.source_tokens, second.target_tokens) == (9, 7)
    own = toy.learner(dropout=0.0)
    torch.testing.assert_close(own._accumulate([first, second], 1), own._accumulate([whole], 1))


class Stop(Signals):
    """As if a signal came when the check is made for the nth time, or while step `step` runs."""

    def __init__(self, *, at_check: int = 0):
        super().__init__()
        self.left = at_check

    def check(self):
        self.left -= 1
        if self.left == 0:
            self.asked = "SIGTERM"
        super().check()


class StoppingStream(toy.ToyStream):
    """Raises the flag while it makes micro-batch `number`."""

    def __init__(self, signals, number):
        super().__init__()
        object.__setattr__(self, "signals", signals)
        object.__setattr__(self, "number", number)

    def after(self, cursor):
        for count, item in enumerate(super().after(cursor), 1):
            if count == self.number:
                self.signals.asked = "SIGTERM"
            yield item


def straight(folder, steps=23):
    run = toy.parts(folder, steps=steps, evaluate_every=5)
    train(run)
    return toy.losses(folder), run


def goes_on(folder, steps=23, **changes):
    run = toy.parts(folder, steps=steps, evaluate_every=5, **changes)
    torch.manual_seed(99)  # whatever was drawn before must not matter
    with torch.no_grad():
        for parameter in run.learner.model.parameters():
            parameter.normal_()
    assert run.resume()
    return run


def same_run(first, second):
    for one, other in (
        (first.learner.model.state_dict(), second.learner.model.state_dict()),
        (first.learner.optimiser.state(), second.learner.optimiser.state()),
        (first.learner.average.average, second.learner.average.average),
    ):
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one)
    assert first.progress.scores == second.progress.scores
    assert first.progress.scored == second.progress.scored
    assert first.progress.cursor == second.progress.cursor


def stopped(run):
    with pytest.raises(Interrupted) as info:
        train(run)
    assert info.value.code == 75
    return info.value


# micro-batches: two to a step, nine to an epoch, so that steps 5, 9 and 14 straddle or touch the edge; odd ones are mid-accumulation
@pytest.mark.parametrize("cut", [1, 2, 3, 8, 9, 10, 17, 18, 19, 27, 36, 44])
def test_resumed_is_straight_bitwise(tmp_path, cut):
    expected, whole = straight(tmp_path / "straight")
    signals = Signals()
    run = toy.parts(tmp_path / "cut", steps=23, evaluate_every=5, signals=signals, stream=StoppingStream(signals, cut))
    stopped(run)
    assert run.progress.step == (cut + 1) // 2
    again = goes_on(tmp_path / "cut")
    train(again)
    assert toy.losses(tmp_path / "cut") == expected
    same_run(whole, again)


def test_interrupted_twice_within_an_epoch(tmp_path):
    expected, whole = straight(tmp_path / "straight")
    for number in (11, 4):
        signals = Signals()
        stream = StoppingStream(signals, number)
        run = toy.parts(tmp_path / "cut", steps=23, evaluate_every=5, signals=signals, stream=stream)
        assert run.resume() == (number == 4)
        stopped(run)
    again = goes_on(tmp_path / "cut")
    assert again.progress.step == 8
    train(again)
    assert toy.losses(tmp_path / "cut") == expected
    same_run(whole, again)


def test_an_evaluation_that_was_cut_off_is_made_when_the_run_goes_on(tmp_path):
    expected, whole = straight(tmp_path / "straight")
    run = toy.parts(tmp_path / "cut", steps=23, evaluate_every=5, signals=Stop(at_check=2))
    stopped(run)
    assert (run.progress.step, run.progress.scored) == (10, [5])
    again = goes_on(tmp_path / "cut")
    train(again)
    assert again.progress.scored == [5, 10, 15, 20, 23]
    assert toy.losses(tmp_path / "cut") == expected
    same_run(whole, again)


def test_a_crash_goes_on_from_the_last_checkpoint_and_drops_later_lines(tmp_path):
    expected, whole = straight(tmp_path / "straight")

    def crash(parts, report):
        if parts.progress.step == 11:
            raise ZeroDivisionError

    run = toy.parts(tmp_path / "cut", steps=23, evaluate_every=5)
    run.events = [*run.events, toy.Every("crash", crash, steps=1)]
    with pytest.raises(ZeroDivisionError):
        train(run)
    again = goes_on(tmp_path / "cut")
    assert again.progress.step == 8
    train(again)
    assert toy.losses(tmp_path / "cut") == expected
    same_run(whole, again)


def test_a_line_of_the_log_that_spans_the_cut_is_the_same(tmp_path):
    def run(folder, number=0):
        signals = Signals()
        made = toy.parts(folder, steps=9, signals=signals, stream=StoppingStream(signals, number))
        made.events[0].steps = 4  # lines at 4, 8 and the end
        return made

    train(run(tmp_path / "straight"))
    stopped(run(tmp_path / "cut", 11))
    again = run(tmp_path / "cut")
    assert again.resume() and again.progress.step == 6
    train(again)
    assert toy.losses(tmp_path / "cut") == toy.losses(tmp_path / "straight")
    assert list(toy.losses(tmp_path / "cut")) == [4, 8, 9]


def test_a_finished_run_that_goes_on_does_nothing(tmp_path):
    expected, whole = straight(tmp_path)
    again = goes_on(tmp_path)
    train(again)
    assert toy.losses(tmp_path) == expected
    same_run(whole, again)


@pytest.mark.parametrize(("origin", "word"), [(Origin("other", "d"), "configuration"), (Origin("c", "other"), "data")])
def test_other_configuration_or_data_is_refused_unless_forced(tmp_path, origin, word):
    straight(tmp_path, steps=4)
    run = toy.parts(tmp_path, steps=6, origin=origin)
    with pytest.raises(UsageError, match=word):
        run.resume()
    assert run.resume(force=True)


def process(folder, steps, stop=0, *, start=()):
    """The toy run as a process of its own."""
    command = [sys.executable, *start, str(Path(__file__).parent / "train_toy.py"), str(folder), str(steps), str(stop)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src"), "OMP_NUM_THREADS": "1", "DROPOUT": "0"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("optimiser", [AdamW(rate=0.01, decay=0.1), Muon(rate=0.01)], ids=["adamw", "muon"])
def test_resumed_in_another_process_is_straight_bitwise(tmp_path, optimiser):
    (whole,) = toy.forked(lambda: toy.go(tmp_path / "straight", 12, optimiser=optimiser))
    (first,) = toy.forked(lambda: toy.go(tmp_path / "cut", 12, stop=11, optimiser=optimiser))
    (second,) = toy.forked(lambda: toy.go(tmp_path / "cut", 12, optimiser=optimiser))
    assert (whole.code, first.code, second.code) == (0, 75, 0), first.error + second.error
    assert "saved at step 6" in first.error and "--resume" in first.error
    assert second.out == whole.out
    assert toy.losses(tmp_path / "cut") == toy.losses(tmp_path / "straight")


def test_a_new_interpreter_goes_on_bitwise(tmp_path):
    (whole,) = toy.forked(lambda: toy.go(tmp_path / "straight", 9, dropout=0.0))
    (first,) = toy.forked(lambda: toy.go(tmp_path / "cut", 9, stop=8, dropout=0.0))
    second = process(tmp_path / "cut", 9)
    assert (whole.code, first.code, second.returncode) == (0, 75, 0), second.stderr
    assert second.stdout == whole.out


def same_numbers(one, other):
    one, other = (json.loads(text.strip().splitlines()[-1]) for text in (one, other))
    for name in one:
        torch.testing.assert_close(torch.tensor(other[name]), torch.tensor(one[name]), rtol=1e-3, atol=1e-5)


def same_losses(one, other):
    assert list(toy.losses(one)) == list(toy.losses(other))
    assert list(toy.losses(one).values()) == pytest.approx(list(toy.losses(other).values()), rel=1e-5)


@pytest.mark.parametrize("ranks", [2, 4])
def test_several_ranks_are_one(tmp_path, ranks):
    (alone,) = toy.forked(lambda: toy.go(tmp_path / "one", 8, size=8, dropout=0.0))
    first, *others = toy.forked(lambda: toy.go(tmp_path / "more", 8, size=8 // ranks, dropout=0.0), ranks=ranks)
    assert [run.code for run in (alone, first, *others)] == [0] * (ranks + 1), first.error
    same_numbers(alone.out, first.out)
    same_losses(tmp_path / "one", tmp_path / "more")


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2)])
def test_a_run_goes_on_with_another_number_of_ranks(tmp_path, before, after):
    (alone,) = toy.forked(lambda: toy.go(tmp_path / "straight", 8, size=10, dropout=0.0))
    cut = toy.forked(lambda: toy.go(tmp_path / "cut", 8, stop=7, size=10 // before, dropout=0.0), ranks=before)
    again = toy.forked(lambda: toy.go(tmp_path / "cut", 8, size=10 // after, dropout=0.0), ranks=after)
    assert [run.code for run in (*cut, *again)] == [75] * before + [0] * after
    same_numbers(alone.out, again[0].out)
    same_losses(tmp_path / "cut", tmp_path / "straight")


def test_torchrun_starts_them(tmp_path):
    (alone,) = toy.forked(lambda: toy.go(tmp_path / "one", 3, size=10, dropout=0.0))
    both = process(tmp_path / "two", 3, start=["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"])
    assert both.returncode == 0, both.stderr
    same_numbers(alone.out, both.stdout)
    same_losses(tmp_path / "one", tmp_path / "two")
