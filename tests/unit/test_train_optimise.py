"""Optimisers: who is decayed and who is orthogonalised, torch's own numbers, gates, and a state that survives by name."""

import copy

import pytest
import torch
from torch import nn

from regard.errors import ModelError
from regard.train.muon import MuonUpdate, orthogonalised
from regard.train.optimise import AdamW, Muon, build_optimiser, sorted_parameters

GOOD, BAD = torch.zeros(()), torch.ones(())


class Parted(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.embedding = nn.Embedding(11, 5)
        self.table = nn.Parameter(torch.randn(7, 5))
        self.inner = nn.Linear(5, 3)
        self.wide = nn.Linear(3, 5, bias=False)
        self.convolution = nn.Conv1d(5, 5, 3)
        self.norm = nn.LayerNorm(5)
        self.output = nn.Linear(5, 11, bias=False)

    def forward(self):
        hidden = self.norm(self.wide(self.inner(self.embedding.weight[:7] + self.table).tanh()))
        return self.output(self.convolution(hidden.mT).mT).square().sum()


def test_parameters_are_sorted_by_what_they_are():
    groups = sorted_parameters(Parted())
    assert set(groups["matrix"]) == {"inner.weight", "wide.weight"}
    assert set(groups["decayed"]) == {"convolution.weight", "output.weight"}
    assert set(groups["plain"]) == {"embedding.weight", "table", "inner.bias", "convolution.bias", "norm.weight", "norm.bias"}


def test_a_shared_table_counts_once_and_frozen_ones_not_at_all():
    model = Parted()
    model.output.weight = model.embedding.weight
    model.wide.weight.requires_grad_(False)
    groups = sorted_parameters(model)
    names = [name for group in groups.values() for name in group]
    assert "wide.weight" not in names
    assert [name for name in names if name in ("embedding.weight", "output.weight")] == ["embedding.weight"]


def test_adamw_is_torchs_with_decay_on_matrices_only():
    ours = Parted()
    theirs = copy.deepcopy(ours)
    optimiser = build_optimiser(AdamW(rate=0.1, betas=(0.9, 0.98), epsilon=1e-9, decay=0.3), ours)
    decayed = ("inner.weight", "wide.weight", "convolution.weight", "output.weight")
    named = dict(theirs.named_parameters())
    oracle = torch.optim.AdamW(
        [
            {"params": [p for n, p in named.items() if n in decayed], "weight_decay": 0.3},
            {"params": [p for n, p in named.items() if n not in decayed], "weight_decay": 0.0},
        ],
        lr=0.05,
        betas=(0.9, 0.98),
        eps=1e-9,
        foreach=False,
    )
    for _ in range(3):
        ours().backward()
        optimiser.step(0.5, bad=GOOD)
        optimiser.clear()
        theirs().backward()
        oracle.step()
        oracle.zero_grad()
    torch.testing.assert_close(dict(ours.named_parameters()), named, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(3, 13), (13, 3), (7, 7)])
def test_orthogonalised_keeps_the_directions_and_evens_the_singular_values(shape):
    matrix = torch.randn(2, *shape, generator=torch.Generator().manual_seed(1))
    u, _, v = torch.linalg.svd(matrix, full_matrices=False)
    even = orthogonalised(matrix).float()
    values = torch.linalg.svdvals(even)
    assert values.min() > 0.5 and values.max() < 1.35
    inner = u.mT @ even @ v.mT  # diagonal if the directions were kept
    off = inner - torch.diag_embed(inner.diagonal(dim1=-2, dim2=-1))
    assert off.abs().max() < 0.06


def test_matrices_of_one_shape_are_treated_each_by_itself():
    stack = torch.randn(3, 5, 11)
    together = orthogonalised(stack)
    for matrix, result in zip(stack, together):
        torch.testing.assert_close(orthogonalised(matrix[None])[0].float(), result.float(), rtol=0, atol=0.02)


def test_muon_steps_are_as_large_as_adamws():
    model = nn.Linear(67, 31, bias=False)
    before = model.weight.detach().clone()
    optimiser = build_optimiser(Muon(rate=0.01), nn.Sequential(model))
    model(torch.randn(101, 67)).square().sum().backward()
    optimiser.step(1.0, bad=GOOD)
    size = (model.weight - before).square().mean().sqrt() / 0.01
    assert 0.13 < size < 0.25


def test_muon_first_step_by_hand():
    parameter = nn.Parameter(torch.tensor([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
    update = MuonUpdate([parameter], rate=0.1, momentum=0.9, nesterov=False, iterations=5, scale="shape", decay=0.5)
    parameter.grad = torch.tensor([[3.0, 0.0, 0.0], [0.0, -3.0, 0.0]])
    update.step()
    torch.testing.assert_close(update.state[parameter]["momentum"], 0.1 * parameter.grad)
    size = orthogonalised(torch.tensor([[[1.0, 0, 0], [0, 1.0, 0]]]))[0, 0, 0].float()  # what five rounds make of equal singular values
    expected = torch.tensor([[2 * 0.95 - 0.1 * size, 0, 0], [0, 0.95 + 0.1 * size, 0]])
    torch.testing.assert_close(parameter.detach(), expected, rtol=0, atol=2e-3)


@pytest.mark.parametrize("config", [AdamW(rate=0.1, decay=0.1), Muon(rate=0.1, decay=0.1)], ids=["adamw", "muon"])
@pytest.mark.parametrize("first", [True, False], ids=["first step", "later step"])
def test_a_bad_step_moves_nothing(config, first):
    model = Parted()
    optimiser = build_optimiser(config, model)
    if not first:
        model().backward()
        optimiser.step(1.0, bad=GOOD)
        optimiser.clear()
    before, state = copy.deepcopy(model.state_dict()), {k: v.clone() for k, v in optimiser.state().items()}
    (model() * float("nan")).backward()
    optimiser.step(1.0, bad=BAD)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    after = optimiser.state()
    assert all(torch.equal(value, state.get(name, torch.zeros_like(value))) for name, value in after.items())


@pytest.mark.parametrize("config", [AdamW(rate=0.1), Muon(rate=0.1)], ids=["adamw", "muon"])
def test_state_is_restored_by_name(config):
    model = Parted()
    optimiser = build_optimiser(config, model)
    for _ in range(2):
        model().backward()
        optimiser.step(1.0, bad=GOOD)
        optimiser.clear()
    twin = copy.deepcopy(model)
    other = build_optimiser(config, twin)
    other.restore({name: value.clone() for name, value in optimiser.state().items()})
    for one, opt in ((model, optimiser), (twin, other)):
        one().backward()
        opt.step(1.0, bad=GOOD)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters()))


def test_a_foreign_state_is_refused():
    with pytest.raises(ModelError, match=r"ghost"):
        build_optimiser(AdamW(), Parted()).restore({"ghost.exp_avg": torch.zeros(1)})
