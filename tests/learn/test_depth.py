"""What residuals and norms are for: the gradient that reaches the first layer of a deep stack, and how soon something is learned."""

from __future__ import annotations

import json
from statistics import fmean

import pytest

from regard.bench.depth import VARIANTS, gradient_by_depth, losses_of, stack
from small_run import regard

SEEDS = (1, 2, 3)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_gradient_by_depth(seed: int):
    """With a residual it stays; with neither residual nor norm nothing of it arrives; a residual without a norm lets it grow."""
    first, last = {}, {}
    for variant in VARIANTS:
        norms = gradient_by_depth(stack(variant, 12), seed=seed)
        assert len(norms) == 12
        first[variant], last[variant] = norms[0], norms[-1]
    assert 0.3 < first["pre-norm"] / last["pre-norm"] < 5
    assert first["neither"] < 1e-2 * last["neither"]
    assert first["no norm"] > 30 * last["no norm"]


def test_with_both_it_is_learned_sooner():
    losses = {
        variant: fmean(fmean(losses_of(stack(variant, 12), steps=70, seed=seed)[-10:]) for seed in SEEDS)
        for variant in ("pre-norm", "no residual", "no norm")
    }
    assert losses["pre-norm"] < min(losses["no residual"], losses["no norm"]) - 0.2, losses


def test_measured_and_drawn_by_the_command(tmp_path):
    files = ("--figure", tmp_path / "a.svg", "--curves", tmp_path / "b.svg")
    done = regard("bench", "depth", "--layers", "3", "--steps", "4", "--seeds", "1", "--json", *files)
    assert done.code == 0, done.error
    assert list(json.loads(done.out))[: len(VARIANTS)] == list(VARIANTS)
    for name in ("a.svg", "b.svg"):
        assert all(f">{variant}</text>" in (tmp_path / name).read_text() for variant in VARIANTS)
    assert regard("bench", "depth", "--layers", "0").code == 2
