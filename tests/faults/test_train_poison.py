"""Poisoned steps: NaN, infinity and exhausted memory, on one rank or all. Nothing moves, it is counted and named, and nobody hangs."""

import json
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "laws"))
import train_toy as toy

from regard.errors import OutOfMemory, RegardError
from regard.train.loop import train
from regard.train.optimise import AdamW, Muon
from regard.train.parallel import join


class Poisoned(toy.Toy):
    """Gives what `poison` says at these calls of forward: a factor, or an error."""

    def __init__(self, calls, poison):
        torch.manual_seed(5)
        super().__init__(0.0)
        self.calls, self.poison, self.count = calls, poison, 0

    def forward(self, batch):
        self.count += 1
        if self.count in self.calls:
            if isinstance(self.poison, BaseException):
                raise self.poison
            return super().forward(batch) * self.poison
        return super().forward(batch)


def state(own):
    return [
        {name: tensor.clone() for name, tensor in tensors.items()}
        for tensors in (own.model.state_dict(), own.optimiser.state(), own.average.average)
    ]


def unmoved(one, other):
    return all(torch.equal(a[name], b[name]) for a, b in zip(one, other) for name in a)


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
@pytest.mark.parametrize("optimiser", [AdamW(rate=0.01), Muon(rate=0.01)], ids=["adamw", "muon"])
def test_a_poisoned_micro_batch_moves_nothing(poison, optimiser):
    own = toy.learner(model=Poisoned({4}, poison), ema=0.9, optimiser=optimiser)
    for step, bad in ((1, False), (2, True), (3, False)):  # two micro-batches to a step
        before = state(own)
        report = own.step([toy.packed([step]), toy.packed([step + 10, 70])], step=step, updates=1, factor=1.0)
        (verdict,) = own.verdicts()
        assert (verdict.step, verdict.bad, verdict.pairs) == (step, bad, (step, step + 10, 70))
        assert bool(report.bad) == bad
        assert unmoved(before, state(own)) == bad


def test_skipped_steps_are_counted_named_and_change_no_schedule(tmp_path):
    own = toy.learner(model=Poisoned({5, 11, 12}, float("nan")), ema=0.9)
    run = toy.parts(tmp_path, steps=9, own=own)
    seen = []
    run.schedule = toy.Constant(warmup=9)
    run.events = [*run.events, toy.Every("see", lambda parts, report: seen.append(report.factor), steps=1)]
    progress = train(run)
    assert (progress.step, progress.skipped, progress.updates) == (9, 2, 7)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    named = {line["step"]: line["pairs"] for line in lines if line.get("event") == "skipped"}
    assert set(named) == {3, 6} and all(len(pairs) == 10 for pairs in named.values())
    assert seen == pytest.approx([n / 9 for n in (1, 2, 3, 3, 4, 5, 5, 6, 7)])  # the step after a bad one repeats its rate
    poisoned = {line["step"]: line for line in lines if "event" not in line}[3]
    assert poisoned["loss"] is None and poisoned["norm"] is None


def test_too_many_in_a_row_end_the_run_and_say_so(tmp_path):
    own = toy.learner(model=Poisoned(set(range(7, 100)), float("nan")), ema=0.9)
    run = toy.parts(tmp_path, steps=50, own=own, save_every=2)
    run.bad_steps = 4
    with pytest.raises(RegardError, match=r"4 steps in a row.*lower the learning rate") as info:
        train(run)
    assert info.value.code == 1
    assert run.progress.step == 7
    loaded = run.checkpoints.load()
    assert all(tensor.isfinite().all() for tensor in loaded.tensors["model"].values())


MEMORY = (
    torch.OutOfMemoryError("CUDA out of memory"),
    RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 1 bytes"),
)


@pytest.mark.parametrize("error", MEMORY)
def test_out_of_memory_begins_the_step_again_with_halves(error):
    expected = toy.learner(model=Poisoned(set(), 1.0), ema=0.9)
    own = toy.learner(model=Poisoned({2}, error), ema=0.9)
    for learner in (expected, own):
        learner.step([toy.packed([1, 2, 3]), toy.packed([4, 5, 6, 7])], step=1, updates=0, factor=1.0)
    assert (expected.splits, own.splits) == (0, 1)
    torch.testing.assert_close(own.model.state_dict(), expected.model.state_dict(), rtol=2e-4, atol=1e-5)
    before = own.model.count
    own.step([toy.packed([1, 2, 3]), toy.packed([4, 5, 6, 7])], step=2, updates=1, factor=1.0)
    assert own.model.count - before > 2  # what was too large once is not tried whole again


def test_memory_that_fails_in_the_backward_pass_leaves_no_torn_gradient():
    expected, own = toy.learner(dropout=0.0, ema=0.9), toy.learner(dropout=0.0, ema=0.9)
    left = [1]

    def fail(gradient):
        if left and left.pop():
            raise torch.OutOfMemoryError("CUDA out of memory")

    own.model.hidden.weight.register_hook(fail)  # the output and the norm have theirs by then
    for learner in (expected, own):
        learner.step([toy.packed([1, 2, 3, 4])], step=1, updates=0, factor=1.0)
    assert own.splits == 1
    torch.testing.assert_close(own.model.state_dict(), expected.model.state_dict(), rtol=2e-4, atol=1e-5)


def test_a_single_pair_that_does_not_fit_is_said():
    own = toy.learner(model=Poisoned(set(range(99)), MEMORY[0]))
    with pytest.raises(OutOfMemory, match="a single pair does not fit") as info:
        own.step([toy.packed([1, 2])], step=5, updates=4, factor=1.0)
    assert info.value.code == 5


def test_another_error_is_not_taken_for_memory():
    own = toy.learner(model=Poisoned({1}, RuntimeError("shapes differ")))
    with pytest.raises(RuntimeError, match="shapes differ"):
        own.step([toy.packed([1, 2])], step=1, updates=0, factor=1.0)


def poisoned_ranks(folder):
    """Four runs, each poisoned in another way on one of the ranks; prints what became of them, if the ranks agree."""
    ranks = join(cuda=False, patience=25)
    cases = {"nan": (1, {5}, float("nan")), "inf": (0, {3}, float("inf")), "memory": (1, {4, 9}, MEMORY[0]), "none": (0, set(), 1.0)}
    results = {}
    for name, (rank, calls, poison) in cases.items():
        own = toy.learner(model=Poisoned(calls if ranks.rank == rank else set(), poison), ema=0.9, ranks=ranks)
        run = toy.parts(folder / name, steps=6, own=own, stream=toy.ToyStream(rank=ranks.rank, world=2))
        train(run)
        results[name] = [run.progress.skipped, own.splits, *(p.double().sum().item() for p in own.model.parameters())]
    mine = [value for result in results.values() for value in result]
    assert ranks.sum(*mine) == pytest.approx([2 * value for value in mine]), "the ranks differ"
    print(json.dumps(results))
    ranks.leave()


def test_ranks_agree_whoever_was_poisoned(tmp_path):
    first, second = toy.forked(lambda: poisoned_ranks(tmp_path), ranks=2, seconds=30)
    assert (first.code, second.code) == (0, 0), first.error + second.error
    results = json.loads(first.out)
    assert [results[name][:2] for name in ("nan", "inf", "memory", "none")] == [[1, 0], [1, 0], [0, 2], [0, 0]]
    assert results["memory"][2:] == pytest.approx(results["none"][2:], rel=1e-3, abs=1e-4)
    skipped = [json.loads(line) for line in (tmp_path / "nan" / "log.jsonl").read_text().splitlines() if '"skipped", "reason"' in line]
    assert len(skipped) == 1 and len(skipped[0]["pairs"]) == 20  # those of both ranks
