"""Compiled code gives the numbers of the code as it is written, as one graph, made once for all batches and all steps of decoding."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

from laws.test_model_laws import SOURCES, model_of, padded
from regard.data import layouts
from regard.data.batch import PairBatch
from regard.nn.view import Tokens
from regard.train.loss import CrossEntropy, Objective
from small_run import log_of, regard
from unit.test_segment_batches import batches as segments
from unit.test_segment_batches import objective

FIXED = layouts.Fixed(length=48, longest=12, documents=16)
LAYOUTS: dict[str, Callable[..., PairBatch]] = {
    "packed": layouts.packed,
    "padded": layouts.padded,
    "static": lambda *pairs: layouts.packed(*pairs, fixed=FIXED),
}
VARIANTS = ["paper", "grouped", "rotary", "buckets", "window"]


def batch_of(layout: str, seed: int) -> PairBatch:
    """Two to six pairs of one to six words."""
    chance = np.random.default_rng(seed)
    number = 2 + seed % 5
    sides = []
    for _ in range(2):
        lengths = chance.integers(1, 7, number)
        sides.append(layouts.Rows(chance.integers(4, 13, lengths.sum()), lengths))
    return LAYOUTS[layout](*sides, np.arange(number))


@pytest.fixture(autouse=True)
def afresh():
    """No test finds what another has compiled."""
    torch.set_num_threads(1)
    torch._dynamo.reset()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_graph_serves_batches_of_all_shapes(layout: str):
    model, graphs = model_of("paper"), CompileCounterWithBackend("eager")
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend=graphs)
    for seed in range(6):
        batch = batch_of(layout, seed)
        torch.testing.assert_close(compiled(batch), model(batch), rtol=0, atol=1e-12)
    assert graphs.frame_count == 1


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_kind_of_block_is_one_graph_with_the_same_gradients(variant: str):
    model, batch = model_of(variant).float(), batch_of("packed", 4)
    found = []
    for module in (model, torch.compile(model, fullgraph=True, backend="aot_eager")):
        model.zero_grad()
        out = module(batch)
        out.square().sum().backward()
        found.append([out.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)])
    assert len(found[0]) > 20
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(theirs, ours, rtol=1e-4, atol=1e-5)


def decoded(step, model, *, steps: int) -> torch.Tensor:
    """Scores of a few words, one after the other; in the middle the rows change places."""
    chance = torch.Generator().manual_seed(1)
    with torch.inference_mode():
        state = model.new_state(2, steps)
        model.admit(state, padded(SOURCES[:2]))
        found = []
        for number in range(steps):
            positions = torch.full((2, 1), number)
            facts = Tokens(positions, torch.zeros_like(positions), torch.ones_like(positions, dtype=torch.bool))
            found.append(step(torch.randint(3, 13, (2, 1), generator=chance), facts, state, longest=number + 1))
            if number == steps // 2:
                state.reorder(torch.tensor([1, 1]))
        return torch.cat(found, 1)


@pytest.mark.parametrize("variant", ["paper", "rotary", "window"])
def test_decoding_is_compiled_for_the_first_step_and_for_all_others(variant: str):
    model, graphs = model_of(variant), CompileCounterWithBackend("eager")
    compiled = torch.compile(model.step_scores, fullgraph=True, backend=graphs)
    expected = decoded(model.step_scores, model, steps=11)
    torch.testing.assert_close(decoded(compiled, model, steps=11), expected, rtol=0, atol=1e-12)
    assert graphs.frame_count == 2


def test_the_objective_breaks_only_at_the_loss():
    """The loss is written by hand in pieces, and stays out of the graph."""
    objective, graphs = Objective(model_of("paper"), CrossEntropy()).train(), CompileCounterWithBackend("eager")
    compiled = torch.compile(objective, dynamic=True, backend=graphs)
    for seed in range(5):
        batch = batch_of("packed", seed)
        torch.testing.assert_close(compiled(batch), objective(batch), rtol=0, atol=1e-12)
    assert graphs.frame_count == 1


def test_segments_that_are_remembered_are_compiled_for_the_first_and_for_all_others():
    """Where each stream has come to is kept outside of the graphs, which are those of an empty memory and of one that is there."""
    plain, graphs = objective(3).train(), CompileCounterWithBackend("eager")
    compiled = torch.compile(objective(3).train(), dynamic=True, backend=graphs)
    for batch, _ in islice(segments(static=True).after(), 12):
        torch.testing.assert_close(compiled(batch), plain(batch), rtol=0, atol=1e-4)
    assert graphs.frame_count <= 3


@pytest.mark.skipif(
    not any(map(shutil.which, (os.environ.get("CXX", "g++"), "g++", "clang++"))), reason="torch compiles for the CPU with a C++ compiler"
)
def test_a_compiled_run_is_the_run(corpus: Path, tmp_path: Path):
    settings = {
        "train.steps": 4,
        "train.log_every": 1,
        "train.evaluate_every": 0,
        "train.sample_every": 0,
        "model.d_model": 16,
        "batching.tokens": 200,
    }
    settings |= {f"model.{side}.dropout": 0 for side in ("encoder", "decoder", "embedding")}
    words = ["train", corpus / "small.toml", "--progress", "none", *(f"--{name}={value}" for name, value in settings.items())]
    for name in ("plain", "compiled"):
        compiled = ("--train.compile=true",) if name == "compiled" else ()
        done = regard(*words, *compiled, "--out", tmp_path / name)
        assert done.code == 0, done.error
    for ours, theirs in zip(log_of(tmp_path / "plain"), log_of(tmp_path / "compiled"), strict=True):
        assert ours.keys() == theirs.keys()
        if "norm" in ours:
            assert theirs["loss"] == pytest.approx(ours["loss"], rel=1e-4) and theirs["norm"] == pytest.approx(ours["norm"], rel=1e-2)
