"""Scores by hand-checked values and by the identities between them."""

import math

import pytest
import torch

from regard.errors import UsageError
from regard.nn.attention import (
    Additive,
    Bilinear,
    Causal,
    Cosine,
    Dot,
    Epanechnikov,
    Gaussian,
    NegativeDistance,
    ScaledDot,
    attend,
    attention_weights,
)

X, Y = torch.tensor([1.36, 3.40, 6.05]), torch.tensor([1.79, -1.77, -2.17])  # Nadaraya-Watson, asked at 4.21


@pytest.mark.parametrize(
    ("axes", "weights", "prediction"),
    [
        ({"score": NegativeDistance()}, (0.0874, 0.6725, 0.2401), -1.5547),
        ({"score": Gaussian(1.0)}, (0.0187, 0.7816, 0.1997), -1.7833),
        ({"score": Gaussian(0.5)}, None, -1.7717),
        ({"score": Gaussian(2.0)}, None, -1.2398),
        ({"score": NegativeDistance(), "normalise": Epanechnikov(1.0)}, (0, 1, 0), -1.7700),
        ({"score": NegativeDistance(), "normalise": Epanechnikov(2.0)}, (0, 0.8448, 0.1552), -1.8321),
    ],
)
def test_kernel_regression(axes, weights, prediction):
    query, key, value = torch.tensor(4.21).view(1, 1, 1, 1), X.view(1, 1, 3, 1), Y.view(1, 1, 3, 1)
    assert attend(query, key, value, **axes).item() == pytest.approx(prediction, abs=6e-5)
    if weights is not None:
        assert attention_weights(query, key, **axes).flatten().tolist() == pytest.approx(weights, abs=6e-5)


def pair(T=3, S=5, width=7, *, heads=2):
    torch.manual_seed(0)
    return torch.randn(2, heads, T, width, dtype=torch.float64), torch.randn(2, heads, S, width, dtype=torch.float64)


def test_products_by_hand():
    query, key = torch.tensor([[[[3.0, 4.0]]]]), torch.tensor([[[[1.0, 2.0], [-2.0, 0.0]]]])
    assert Dot().pairwise(query, key).flatten().tolist() == [11.0, -6.0]
    assert ScaledDot().pairwise(query, key).flatten().tolist() == pytest.approx([11 / math.sqrt(2), -6 / math.sqrt(2)])
    assert Cosine(0.5).pairwise(query, key).flatten().tolist() == pytest.approx([2 * 11 / (5 * math.sqrt(5)), -2 * 0.6])
    assert NegativeDistance().pairwise(query, key).flatten().tolist() == pytest.approx([-math.sqrt(8), -math.sqrt(41)])
    assert Gaussian(2.0).pairwise(query, key).flatten().tolist() == pytest.approx([-1.0, -41 / 8])


def test_a_bilinear_score_with_the_identity_is_dot():
    query, key = pair()
    score = Bilinear().build(2, 7, 7)
    score.weight_HQK.data = torch.eye(7).expand(2, 7, 7).double()
    assert torch.allclose(score.pairwise(query, key), Dot().pairwise(query, key))


def test_bilinear_and_additive_take_two_widths_and_count_their_parameters():
    query, key = pair(width=7)[0], pair(width=5)[1]
    for config, count in (
        (Bilinear(scaled=True), 2 * 7 * 5),
        (Additive(11), 2 * (7 + 5 + 1) * 11),
        (Additive(11, biased=True), 2 * 14 * 11),
    ):
        score = config.build(2, 7, 5)
        assert sum(parameter.numel() for parameter in score.parameters()) == count
        assert attend(query, key, key, score=score).shape == (2, 2, 3, 5)
    left = query[0, 1, 2] @ (score := Bilinear(scaled=True).build(2, 7, 5)).weight_HQK[1].double() @ key[0, 1, 4] / math.sqrt(5)
    assert torch.allclose(score.pairwise(query, key)[0, 1, 2, 4], left)


def test_an_additive_score_is_one_matrix_on_both_vectors_end_to_end():
    query, key = pair()
    score = Additive(11, biased=True).build(2, 7, 7).double()
    torch.nn.init.normal_(score.bias_HA)
    both = torch.cat([query[1, 1, 2], key[1, 1, 3]])
    whole = torch.cat([score.query_HEA[1], score.key_HEA[1]])
    expected = score.vector_HA[1] @ torch.tanh(both @ whole + score.bias_HA[1])
    assert (score.pairwise(query, key)[1, 1, 2, 3] - expected).abs() < 1e-14


def test_the_variance_of_a_dot_product_grows_with_the_width_and_the_scale_stops_it():
    torch.manual_seed(1)
    for width in (4, 64, 1024):
        query, key = torch.randn(1, 1, 1, width).expand(1, 4000, 1, width), torch.randn(1, 4000, 1, width)
        query = torch.randn_like(key)
        assert Dot().pairwise(query, key).var().item() == pytest.approx(width, rel=0.1)
        assert ScaledDot().pairwise(query, key).var().item() == pytest.approx(1, rel=0.1)


@pytest.mark.parametrize(("width", "unscaled"), [(4, 0.35), (64, 0.81), (512, 0.94), (1024, 0.96)])
def test_unscaled_weights_saturate_with_the_width(width, unscaled):
    torch.manual_seed(2)
    query, key = torch.randn(400, 1, 1, width), torch.randn(400, 1, 32, width)
    assert attention_weights(query, key, score=Dot()).amax(-1).mean().item() == pytest.approx(unscaled, abs=0.03)
    assert attention_weights(query, key, score=ScaledDot()).amax(-1).mean().item() == pytest.approx(0.16, abs=0.02)


def test_cosine_does_not_see_lengths_and_survives_zero():
    query, key = pair()
    assert torch.allclose(Cosine().pairwise(query * 13, key / 7), Cosine().pairwise(query, key))
    assert Cosine().pairwise(query * 0, key).abs().max() == 0
    learned = Cosine(temperature=0.25, learned=True).build(2, 7, 7)
    assert torch.allclose(learned.pairwise(query, key), Cosine(temperature=0.25).pairwise(query, key))
    assert [parameter.numel() for parameter in learned.parameters()] == [1]


def test_gaussian_weights_equal_those_of_dot_when_keys_are_equally_long():
    query, key = pair()
    key = torch.nn.functional.normalize(key, dim=-1)
    weights = attention_weights(query, key, score=Gaussian(0.7))
    assert torch.allclose(weights, attention_weights(query / 0.7**2, key, score=Dot()))


def test_the_gaussian_basis_is_exact_even_in_sixteen_bits():
    torch.manual_seed(3)
    query, key = torch.randn(1, 1, 3, 64).bfloat16(), 3 * torch.randn(1, 1, 11, 64).bfloat16()
    left, right = Gaussian().basis(query, key)
    scores, exact = left.double() @ right.double().mT, Gaussian().pairwise(query.double(), key.double())
    difference = scores - exact  # |q|^2 / 2, the same for all keys
    assert (difference - difference.mean(-1, keepdim=True)).abs().max() < 1e-4


def test_what_has_parameters_must_be_built():
    query, key = pair()
    for score in (Bilinear(), Additive(), Cosine(learned=True)):
        with pytest.raises(UsageError, match=r"build"):
            attend(query, key, key, score=score)
    with pytest.raises(UsageError, match="width 7 does not fit a key of width 5"):
        attend(query, key[..., :5], key)
    for wrong in (lambda: Gaussian(0), lambda: Cosine(-1.0), lambda: Epanechnikov(0)):
        with pytest.raises(UsageError):
            wrong()
    with pytest.raises(UsageError, match="negative-distance"):
        attend(query, key, key, normalise=Epanechnikov())


def test_a_built_score_without_parameters_is_its_own_config():
    for score in (Dot(), ScaledDot(), Cosine(), Gaussian(), NegativeDistance()):
        assert score.build(3, 5, 5) is score
    assert Causal() == Causal()
