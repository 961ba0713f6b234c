"""What must hold of attention whatever the numbers: hulls, equivariance, causality, padding, packing, and what it is not."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.nn.attention import (
    ALiBi,
    Causal,
    Cosine,
    Full,
    Gaussian,
    Hard,
    NegativeDistance,
    Prefix,
    Relative,
    ScaledDot,
    Softmax,
    Sparsemax,
    Window,
    attend,
    attention_weights,
)
from regard.nn.attention.kernels import blocked
from regard.nn.view import Tokens

KERNELS = ["reference", "sdpa", "gathered", "blocked"]


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """So that short rows have many."""
    monkeypatch.setattr(blocked, "TILE", 4)


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def in_hull(points_SE, out_E, weights_S):
    """Barycentric coordinates: not negative, sum 1, and they give the point back."""
    return bool((weights_S >= 0).all()) and math.isclose(weights_S.sum(), 1, abs_tol=1e-12) and torch.allclose(weights_S @ points_SE, out_E)


@pytest.mark.parametrize("normalise", [Softmax(), Sparsemax(), Hard()], ids=lambda n: n.kind)
@pytest.mark.parametrize("score", [ScaledDot(), Cosine(0.1), Gaussian(0.5), NegativeDistance()], ids=lambda s: s.kind)
def test_each_output_lies_in_the_hull_of_the_values_it_may_see(score, normalise):
    query, key, value = drawn(2, 3, 5, 7), drawn(2, 3, 5, 7, seed=1), drawn(2, 3, 5, 11, seed=2)
    axes = {"pattern": Causal() & Window(2), "score": score, "normalise": normalise}
    out, weights = attend(query, key, value, **axes), attention_weights(query, key, **axes)
    for i in range(5):
        seen = slice(max(0, i - 2), i + 1)
        assert in_hull(value[1, 2, seen], out[1, 2, i], weights[1, 2, i, seen])


def test_the_hull_holds_without_being_told_the_weights():
    out = attend(drawn(1, 1, 13, 3), drawn(1, 1, 3, 3, seed=1), drawn(1, 1, 3, 2, seed=2))[0, 0]
    triangle = torch.cat([drawn(1, 1, 3, 2, seed=2)[0, 0].T, torch.ones(1, 3, dtype=torch.float64)])
    coordinates = torch.linalg.solve(triangle, torch.cat([out.T, torch.ones(1, 13, dtype=torch.float64)]))
    assert coordinates.min() > 0


def test_without_positions_attention_follows_a_reordering_and_positions_break_it():
    x, order = drawn(2, 3, 7, 5), torch.randperm(7, generator=torch.Generator().manual_seed(3))
    moved = x[:, :, order]
    assert torch.allclose(attend(moved, moved, moved), attend(x, x, x)[:, :, order])
    for axes in ({"pattern": Causal()}, {"pattern": Window(2)}, {"bias": ALiBi()}, {"bias": Relative(3).build(3, 5).double()}):
        assert not torch.allclose(attend(moved, moved, moved, **axes), attend(x, x, x, **axes)[:, :, order], atol=1e-3)


def test_cross_attention_does_not_see_the_order_of_its_memory():
    query, memory, order = drawn(2, 3, 5, 7), drawn(2, 3, 11, 7, seed=1), torch.randperm(11)
    assert torch.allclose(attend(query, memory[:, :, order], memory[:, :, order]), attend(query, memory, memory))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("pattern", [Causal(), Causal() & Window(2)], ids=["causal", "window"])
def test_nothing_comes_from_the_future(pattern, kernel):
    tokens = Tokens.packed(torch.tensor([7, 4]))
    x = drawn(1, 2, 11, 5).requires_grad_()

    def run(values):
        return attend(values, values, values, queries=tokens, keys=tokens, pattern=pattern, kernel=kernel)

    for i in (0, 3, 6, 7, 9):
        (gradient,) = torch.autograd.grad(run(x)[0, :, i].sum(), x)
        first = 0 if i < 7 else 7
        if pattern != Causal():
            first = max(first, i - 2)
        reached = gradient[0].abs().amax((0, 2)) > 0
        assert reached.nonzero().flatten().tolist() == list(range(first, i + 1))
        changed = x.detach().clone()
        changed[:, :, i + 1 :] += 1
        assert torch.equal(run(changed)[0, :, : i + 1], run(x)[0, :, : i + 1])


@pytest.mark.parametrize("kernel", ["reference", "sdpa", "blocked"])
@pytest.mark.parametrize("pattern", [Full(), Causal(), Window(1), Causal() | Prefix(1)], ids=lambda p: p.kind)
def test_padding_on_either_side_changes_nothing_and_gives_zeros(pattern, kernel):
    x = drawn(1, 2, 5, 7)
    alone = attend(x, x, x, pattern=pattern)
    for before, after in ((0, 3), (2, 0), (1, 2)):
        wide = torch.cat([1e3 * drawn(1, 2, before, 7), x, 1e3 * drawn(1, 2, after, 7)], 2)
        real = torch.tensor([[False] * before + [True] * 5 + [False] * after])
        tokens = Tokens.padded(real)
        out = attend(wide, wide, wide, queries=tokens, keys=tokens, pattern=pattern, kernel=kernel)
        assert torch.allclose(out[:, :, real[0]], alone)
        assert (out[:, :, ~real[0]] == 0).all()


@settings(max_examples=25, deadline=None)
@given(
    lengths=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=5),
    pattern=st.sampled_from([Full(), Causal(), Causal() & Window(1), Window(2), Causal() | Prefix(2), ~Causal(), ~Window(1)]),
    bias=st.booleans(),
    spare=st.integers(0, 3),
    seed=st.integers(0, 99),
)
def test_packed_padded_and_alone_give_the_same_numbers(lengths, pattern, bias, spare, seed):
    ours, theirs = (torch.tensor(side) for side in zip(*lengths, strict=True))
    if pattern.band is None or pattern != Full():
        theirs = ours  # positions of two sequences are no neighbours
    x, y = drawn(1, 2, int(ours.sum()), 5, seed=seed), drawn(1, 2, int(theirs.sum()), 5, seed=seed + 100)
    axes = {"pattern": pattern} | ({"bias": ALiBi()} if bias else {})
    queries = Tokens.packed(ours, longest=int(ours.max()) + spare)
    keys = queries if theirs is ours else Tokens.packed(theirs)
    packed = {kernel: attend(x, y, y, queries=queries, keys=keys, kernel=kernel, **axes) for kernel in KERNELS}
    for n, (rows, memory) in enumerate(zip(x.split(ours.tolist(), 2), y.split(theirs.tolist(), 2), strict=True)):
        T, S = rows.shape[2], memory.shape[2]
        alone = attend(rows, memory, memory, queries=Tokens.plain(1, T), keys=Tokens.plain(1, S), **axes)
        for out in packed.values():
            assert torch.allclose(out.split(ours.tolist(), 2)[n], alone)
        wide = torch.cat([memory, drawn(1, 2, 3, 5, seed=seed)], 2)
        real = torch.arange(S + 3)[None] < S
        assert torch.allclose(attend(rows, wide, wide, queries=Tokens.plain(1, T), keys=Tokens.padded(real), **axes), alone)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_row_that_may_see_nothing_gives_zero_and_zero_gradient(kernel):
    tokens = Tokens.packed(torch.tensor([1, 3]))
    query, key, value = (drawn(1, 2, 4, 5, seed=n).requires_grad_() for n in range(3))
    out = attend(query, key, value, queries=tokens, keys=tokens, pattern=~Causal(), kernel=kernel)  # nothing after the last token
    assert (out[:, :, [0, 3]] == 0).all() and (out[:, :, [1, 2]] != 0).all()
    gradients = torch.autograd.grad(out.sum(), [query, key, value])
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert (gradients[0][:, :, [0, 3]] == 0).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_broken_document_stays_its_own_affair(kernel):
    tokens = Tokens.packed(torch.tensor([2, 3, 1]))
    x = drawn(1, 2, 6, 5)
    broken = x.clone()
    broken[:, :, 5] = torch.nan if kernel == "gathered" else 1e30
    for pattern in (Full(), Causal()):
        out = [attend(v, v, v, queries=tokens, keys=tokens, pattern=pattern, kernel=kernel) for v in (x, broken)]
        assert torch.equal(out[0][:, :, :5], out[1][:, :, :5])


def test_attention_is_no_linear_map_of_the_positions():
    x, y = drawn(1, 1, 5, 7), drawn(1, 1, 5, 7, seed=1)

    def f(z):
        return attend(z, z, z)

    assert not torch.allclose(f(x + y), f(x) + f(y), atol=1e-2)
    jacobians = [torch.autograd.functional.jacobian(f, z) for z in (x, y)]
    assert not torch.allclose(*jacobians, atol=1e-2)
    assert [f(drawn(1, 1, T, 7)).shape[2] for T in (3, 5, 11)] == [3, 5, 11]  # the same (no) weights at any length


def test_scores_of_projected_rows_are_one_bilinear_form_of_low_rank():
    D, d_k, T = 11, 3, 7
    x, w_q, w_k = drawn(T, D), drawn(D, d_k, seed=1), drawn(D, d_k, seed=2)
    form = w_q @ w_k.T
    assert torch.allclose(ScaledDot().pairwise((x @ w_q)[None, None], (x @ w_k)[None, None])[0, 0] * math.sqrt(d_k), x @ form @ x.T)
    assert torch.linalg.matrix_rank(form) == d_k
    eigenvalues = torch.linalg.eigvalsh(form + form.T)
    assert eigenvalues.min() < -1e-6 and eigenvalues.max() > 1e-6 and not torch.allclose(form, form.T)
