"""Training on a GPU is training on the CPU, and never waits for the host; memory that is really too small is survived."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "laws"))
sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))
import test_train_poison as poison
import train_toy as toy

from regard.errors import Interrupted
from regard.train import auto
from regard.train.device import Machine
from regard.train.loop import train
from regard.train.loss import CrossEntropy, Objective
from regard.train.optimise import AdamW, Muon
from regard.train.signals import Signals

if not torch.cuda.is_available():
    pytest.skip("no CUDA device here", allow_module_level=True)

GPU = Machine(torch.device("cuda", 0), "bf16")
WIDE = Machine(torch.device("cuda", 0), "fp32")
OPTIMISERS = pytest.mark.parametrize("optimiser", [AdamW(rate=0.01), Muon(rate=0.01)], ids=["adamw", "muon"])


def on_gpu(numbers, layout=toy.packed):
    return layout(numbers).to("cuda")


@OPTIMISERS
@pytest.mark.parametrize("layout", [toy.packed, toy.padded])
def test_a_step_never_waits(optimiser, layout):
    own = toy.learner(optimiser=optimiser, ema=0.9, machine=GPU)
    batches = [on_gpu([1, 2, 3], layout), on_gpu([4, 5], layout)]
    own.step(batches, step=1, updates=0, factor=1.0)
    own.verdicts()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for step in (2, 3, 4):
            own.step(batches, step=step, updates=step - 1, factor=1.0)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@OPTIMISERS
def test_a_bad_step_moves_nothing_and_is_heard_of_one_step_later(optimiser):
    own = toy.learner(model=poison.Poisoned({2}, float("nan")), ema=0.9, optimiser=optimiser, machine=WIDE)
    heard = []
    for step in (1, 2, 3):
        before = poison.state(own)
        own.step([on_gpu([step, step + 9])], step=step, updates=step - 1, factor=1.0)
        heard.append([(verdict.step, verdict.bad) for verdict in own.verdicts()])
        assert poison.unmoved(before, poison.state(own)) == (step == 2)
    assert heard == [[], [(1, False)], [(2, True)]]
    assert [(verdict.step, verdict.bad) for verdict in own.verdicts(all=True)] == [(3, False)]


@OPTIMISERS
def test_gpu_and_cpu_take_the_same_steps(optimiser):
    learners = [toy.learner(dropout=0.0, optimiser=optimiser, machine=m) for m in (WIDE, Machine(torch.device("cpu")))]
    for step in (1, 2, 3):
        for own in learners:
            own.step([toy.packed([step, step + 30]).to(own.machine.device)], step=step, updates=step - 1, factor=1.0)
    one, other = ({name: t.cpu() for name, t in own.model.state_dict().items()} for own in learners)
    torch.testing.assert_close(one, other, rtol=5e-2, atol=2e-3)


def test_resumed_is_straight_bitwise_on_the_gpu(tmp_path):
    torch.use_deterministic_algorithms(True)
    try:
        whole = toy.parts(tmp_path / "straight", steps=13, own=toy.learner(ema=0.9, machine=GPU))
        train(whole)
        with Signals() as signals, pytest.raises(Interrupted):
            train(
                toy.parts(
                    tmp_path / "cut",
                    steps=13,
                    signals=signals,
                    own=toy.learner(ema=0.9, machine=GPU),
                    stream=toy.stop_at(toy.ToyStream(), 11),
                )
            )
        again = toy.parts(tmp_path / "cut", steps=13, own=toy.learner(ema=0.9, machine=GPU))
        assert again.resume() and again.progress.step == 6
        train(again)
    finally:
        torch.use_deterministic_algorithms(False)
    assert toy.losses(tmp_path / "cut") == toy.losses(tmp_path / "straight")
    for name, tensor in whole.learner.model.state_dict().items():
        assert torch.equal(tensor, again.learner.model.state_dict()[name])


class Hungry(toy.Toy):
    """Takes 100 MB for each target token."""

    def forward(self, batch):
        self.taken = torch.empty(batch.target_tokens, 100, 2**20, dtype=torch.uint8, device="cuda")
        hidden = super().forward(batch)
        del self.taken
        return hidden


@pytest.fixture
def small_memory():
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(3e9 / total)
    yield
    torch.cuda.set_per_process_memory_fraction(1.0)
    torch.cuda.empty_cache()


def test_memory_that_is_really_too_small(small_memory):
    expected = toy.learner(dropout=0.0, machine=WIDE)
    own = toy.learner(model=Hungry(0.0), machine=WIDE)
    own.model.load_state_dict(expected.model.state_dict())
    for learner in (expected, own):
        report = learner.step([on_gpu(list(range(12)))], step=1, updates=0, factor=1.0)
    assert report.target_tokens > 30 and own.splits >= 1
    torch.testing.assert_close(own.model.state_dict(), expected.model.state_dict(), rtol=1e-3, atol=1e-5)


def test_the_budget_is_what_fits(small_memory):
    objective = Objective(Hungry(0.0).to("cuda"), CrossEntropy())

    def largest(tokens):
        return toy.packed([0] * (tokens // 3))  # pair 0 has three target tokens

    auto_tokens, auto.SMALLEST = auto.SMALLEST, 4
    try:
        assert auto.fit_tokens(objective, largest, machine=WIDE, most=96) == 24  # 28 tokens fit into 3 GB; 48 and a tenth do not
    finally:
        auto.SMALLEST = auto_tokens
