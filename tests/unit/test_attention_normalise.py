"""Normalisers on scores whose weights are known."""

import pytest
import torch

from regard.nn.attention import Epanechnikov, Hard, Sigmoid, Softmax, Sparsemax

SCORES = torch.tensor([[1.0, 0, -1, -1], [1, 1, -1, 0], [0, 1, 1, -1], [-1, -1, 2, 1]])
TRIANGLE = torch.ones(4, 4).tril().bool()
CAUSAL = torch.tensor([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.1554, 0.4223, 0.4223, 0], [0.0339, 0.0339, 0.6815, 0.2507]])
ALL = (Softmax(), Sparsemax(), Hard(), Sigmoid(), Epanechnikov(3.0))


def weights(normalise, scores, allowed=None):
    return normalise.weights(scores[None, None], torch.ones_like(scores, dtype=torch.bool) if allowed is None else allowed)[0, 0]


def test_softmax_with_and_without_the_triangle():
    open_rows = torch.tensor(
        [
            [0.6103, 0.2245, 0.0826, 0.0826],
            [0.3995, 0.3995, 0.0541, 0.1470],
            [0.1470, 0.3995, 0.3995, 0.0541],
            [0.0339, 0.0339, 0.6815, 0.2507],
        ]
    )
    assert torch.allclose(weights(Softmax(), SCORES), open_rows, atol=6e-5)
    assert torch.allclose(weights(Softmax(), SCORES, TRIANGLE), CAUSAL, atol=6e-5)
    assert weights(Softmax(), SCORES.double())[1, 1].item() == pytest.approx(0.39949, abs=6e-6)


def test_multiplying_scores_by_the_triangle_leaks_and_multiplying_exponentials_does_not():
    trap = torch.tensor([[0.4754, 0.1749, 0.1749, 0.1749], [0.3655, 0.3655, 0.1345, 0.1345], [0.1345, 0.3655, 0.3655, 0.1345]])
    assert torch.allclose(weights(Softmax(), SCORES * TRIANGLE)[:3], trap, atol=6e-5)
    right = SCORES.exp() * TRIANGLE
    assert torch.allclose(right / right.sum(-1, keepdim=True), weights(Softmax(), SCORES, TRIANGLE))


def test_softmax_of_large_scores_neither_overflows_nor_depends_on_a_shift():
    scores = torch.tensor([[1e4, 1e4 - 1.0], [-1e4, -1e4 - 1.0]])
    assert weights(Softmax(), scores).flatten().tolist() == pytest.approx([0.7311, 0.2689] * 2, abs=6e-5)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([2.0, 0.0, 0.0], [1, 0, 0]),
        ([0.5, 0.2, -1.0], [0.65, 0.35, 0]),
        ([0.3, 0.3, 0.3], [1 / 3, 1 / 3, 1 / 3]),
        ([0.6, 0.5, 0.4], [0.4333333, 0.3333333, 0.2333333]),
        ([1e4, 1e4 - 0.5, 0.0], [0.75, 0.25, 0]),
    ],
)
def test_sparsemax_by_hand(scores, expected):
    assert weights(Sparsemax(), torch.tensor([scores]))[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_sparsemax_forgets_what_is_forbidden():
    allowed = torch.tensor([[False, True, True, False]])
    assert weights(Sparsemax(), torch.tensor([[9.0, 0.5, 0.2, 9.0]]), allowed)[0].tolist() == pytest.approx([0, 0.65, 0.35, 0])
    assert weights(Sparsemax(), torch.tensor([[9.0, -50.0, -50.2, 9.0]]), allowed)[0].tolist() == pytest.approx([0, 0.6, 0.4, 0])


def test_hard_shares_ties_and_is_the_limit_of_a_falling_temperature():
    assert weights(Hard(), SCORES).tolist() == [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 1, 0]]
    assert torch.allclose(weights(Softmax(), SCORES / 1e-3), weights(Hard(), SCORES))
    assert weights(Hard(), SCORES, TRIANGLE)[2].tolist() == [0, 0.5, 0.5, 0]


def test_sigmoid_takes_each_score_by_itself():
    assert weights(Sigmoid(), torch.tensor([[0.0, 2.0]])).flatten().tolist() == pytest.approx([0.5, 0.8808], abs=6e-5)


@pytest.mark.parametrize("normalise", ALL, ids=lambda normalise: normalise.kind)
def test_an_empty_row_gives_zeros_and_zero_gradient(normalise):
    scores = SCORES.double().requires_grad_()
    allowed = TRIANGLE.clone()
    allowed[2] = False
    out = weights(normalise, scores, allowed)
    assert out[2].tolist() == [0, 0, 0, 0]
    assert not out.detach().isnan().any()
    assert (out.detach()[~allowed] == 0).all()
    if normalise.kind != "hard":
        with torch.autograd.detect_anomaly(check_nan=True):
            (gradient,) = torch.autograd.grad(out.square().sum(), scores)
        assert gradient[2].tolist() == [0, 0, 0, 0]
        assert gradient.isfinite().all()
        assert (gradient[~allowed] == 0).all()


def test_an_epanechnikov_row_out_of_reach_of_everything_is_empty():
    out = weights(Epanechnikov(1.0), torch.tensor([[-2.0, -3.0], [-0.5, -0.8]]))
    assert out[0].tolist() == [0, 0]
    assert out[1].tolist() == pytest.approx([0.75 / 1.11, 0.36 / 1.11])


@pytest.mark.parametrize("normalise", [n for n in ALL if n.kind != "hard"], ids=lambda normalise: normalise.kind)
def test_gradients(normalise):
    torch.manual_seed(0)
    scores = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    allowed = torch.rand(5, 7) < 0.6
    allowed[3] = False
    assert torch.autograd.gradcheck(lambda s: weights(normalise, s, allowed), scores)
