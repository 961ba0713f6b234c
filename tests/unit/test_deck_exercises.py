"""Exercises and claims of the lecture decks, with the decks' own numbers. The row of docs/checklist.md stands before each."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from laws.test_model_laws import SOURCES, TARGETS, batch_of, model_of
from regard.data.batch import IGNORED
from regard.models.build import translator
from regard.nn.attention import (
    Additive,
    ALiBi,
    Bilinear,
    Causal,
    Cosine,
    Dot,
    Gaussian,
    NegativeDistance,
    ScaledDot,
    Softmax,
    attend,
    attention_weights,
)
from regard.nn.attention.multihead import Attention, MultiHead
from regard.nn.positions import Sinusoid, sinusoid
from regard.nn.view import Memory, Tokens, View

PLAIN = [Dot(), ScaledDot(), Cosine(), Gaussian(), NegativeDistance()]
SCORES = torch.tensor([[1.0, 0, -1, -1], [1, 1, -1, 0], [0, 1, 1, -1], [-1, -1, 2, 1]])  # B-8


def given(weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Query and key whose weights by plain dot products are these rows."""
    return weights.clamp_min(1e-30).log()[None, None], torch.eye(weights.shape[1])[None, None]


def module(heads: int = 2, *, d_model: int = 8, config: Attention = Attention()) -> MultiHead:  # noqa: B008  (frozen)
    torch.manual_seed(0)
    return MultiHead(config, d_model, heads=heads, groups=heads, d_head=d_model // heads, pattern=(), name="own").double()


def row(T: int, *, d_model: int = 8, seed: int = 1) -> tuple[torch.Tensor, Tokens]:
    return torch.randn(1, T, d_model, dtype=torch.double, generator=torch.Generator().manual_seed(seed)), Tokens.plain(1, T)


def test_three_words_as_sums_of_words():
    """A-6"""
    weights = torch.tensor([[0.6, 0.1, 0.3], [0.3, 0.5, 0.2], [0.2, 0.1, 0.7]])
    value = torch.tensor([[2.0, 1.0], [-0.5, 2.0], [-1.0, -0.5]])
    out = attend(*given(weights), value[None, None], score=Dot())[0, 0]
    torch.testing.assert_close(out, torch.tensor([[0.85, 0.65], [0.15, 1.2], [-0.35, 0.05]]), atol=1e-6, rtol=0)
    corners, points = (torch.cat([each.T, torch.ones(1, 3)]) for each in (value, out))
    torch.testing.assert_close(torch.linalg.solve(corners, points).T, weights, atol=1e-5, rtol=0)  # back from the point to its weights


def test_attention_is_not_tied_to_a_length_and_costs_few_parameters():
    """A-9"""
    attention, T, D, d_k = module(d_model=64, heads=1), 512, 64, 64
    for length in (3, 5, 11):
        x, tokens = row(length, d_model=64)
        assert attention(x, View(tokens)).shape == (1, length, D)
    scores = sum(map(torch.numel, (attention.query.weight, attention.key.weight)))
    assert (scores, T * T) == (2 * D * d_k, 262_144) and scores == 8_192
    x, tokens = row(3, d_model=64)
    jacobians = [torch.autograd.functional.jacobian(lambda x: attention(x, View(tokens)), factor * x) for factor in (1, 2)]
    assert not torch.allclose(*jacobians)


@pytest.mark.parametrize("score", [*PLAIN, Bilinear(), Additive(5)], ids=lambda score: score.kind)
def test_queries_keys_and_values_of_different_number_and_width(score):
    """A-10: T_Q and T_V, D_Q and D_V; keys may have a width of their own where the score can mix them"""
    width = 7 if score in PLAIN else 4
    query, key, value = torch.randn(2, 3, 5, 7), torch.randn(2, 3, 11, width), torch.randn(2, 3, 11, 6)
    built = score.build(3, 7, width)
    assert attend(query, key, value, score=built).shape == (2, 3, 5, 6)
    assert attention_weights(query, key, score=built).shape == (2, 3, 5, 11)


@pytest.mark.parametrize("score", PLAIN, ids=lambda score: score.kind)
def test_scores_and_weights_are_two_things(score):
    """A-11: what the kernel function f says, and A, its normalised form"""
    query, key = torch.randn(1, 1, 3, 4), torch.randn(1, 1, 5, 4)
    scores, weights = score.pairwise(query, key), attention_weights(query, key, score=score)
    torch.testing.assert_close(scores.softmax(-1), weights)
    assert not torch.allclose(scores, weights)


@pytest.mark.parametrize("heads", [1, 2, 8])
def test_concatenated_heads_times_w_o_are_a_sum_of_heads(heads):
    """A-14a, E-11"""
    attention = module(heads)
    x, tokens = row(5)
    found = torch.zeros_like(x) + attention.output.bias
    width = 8 // heads
    for head in range(heads):
        part = slice(head * width, (head + 1) * width)
        q, k, v = (x @ each.weight[part].T + each.bias[part] for each in (attention.query, attention.key, attention.value))
        alone = (q @ k.mT / math.sqrt(width)).softmax(-1) @ v
        found = found + alone @ attention.output.weight[:, part].T
    torch.testing.assert_close(attention(x, View(tokens)), found)


def test_no_two_heads_share_parameters():
    """E-11"""
    attention = module(4)
    for each in (attention.query, attention.key, attention.value):
        parts = each.weight.split(2)
        assert all(not torch.equal(parts[one], parts[other]) for one in range(4) for other in range(one))
    x, tokens = row(5)
    out = attention(x, View(tokens))
    with torch.no_grad():
        attention.query.weight[:2] = 0  # of the first head alone
    assert not torch.allclose(attention(x, View(tokens)), out)


def test_the_five_lines_of_the_deck_and_the_scale_that_they_leave_out():
    """B-7"""
    query, key, value = torch.randn(3, 1, 1, 4, 16).unbind()
    scores = query @ key.mT
    mask = torch.triu(torch.ones(4, 4), diagonal=1).bool()
    scores = scores.masked_fill(mask, -torch.inf)
    deck = scores.softmax(-1) @ value
    torch.testing.assert_close(attend(query, key, value, pattern=Causal(), score=Dot()), deck)
    scaled = (scores / math.sqrt(16)).softmax(-1) @ value
    torch.testing.assert_close(attend(query, key, value, pattern=Causal()), scaled)


def test_the_quiz_of_the_masked_scores():
    """B-8: option B is 0.5, and without the mask it would be option C"""
    key = torch.eye(4)[None, None]
    masked, open_ = (attention_weights(SCORES[None, None], key, score=Dot(), **axes)[0, 0] for axes in ({"pattern": Causal()}, {}))
    assert masked[1, 1].item() == pytest.approx(0.5)
    assert open_[1, 1].item() == pytest.approx(math.e / (2 * math.e + 1 / math.e + 1))


def test_the_masked_matrix_of_the_deck():
    """C-17: rows that sum to 1, and both readings of "multiply with a triangle" """
    rows = torch.tensor([[1, 0, 0, 0], [0.3, 0.7, 0, 0], [0.2, 0.3, 0.5, 0], [0.1, 0.2, 0.1, 0.6]])
    query, key = given(rows)
    torch.testing.assert_close(attention_weights(query, key, score=Dot(), pattern=Causal())[0, 0], rows, atol=1e-6, rtol=0)
    ones, triangle = torch.ones(4, 4, dtype=torch.bool), torch.ones(4, 4).tril()
    leaks = Softmax().weights((SCORES * triangle)[None, None], ones)[0, 0]
    assert leaks[0].tolist() == pytest.approx([0.4754, 0.1749, 0.1749, 0.1749], abs=6e-5)
    right = SCORES.exp() * triangle
    masked = Softmax().weights(SCORES[None, None], triangle.bool())[0, 0]
    torch.testing.assert_close(right / right.sum(-1, keepdim=True), masked)


def test_dividing_by_eight():
    """C-2: the walk through two words, as numbers"""
    scores = torch.tensor([112.0, 96.0]) / math.sqrt(64)
    assert scores.tolist() == [14, 12]
    assert scores.softmax(0).tolist() == pytest.approx([0.8808, 0.1192], abs=6e-5)


def test_self_attention_is_attention_to_the_layer_below():
    """E-8: one module; it is given its own input as the memory"""
    attention = module(config=Attention(bias=ALiBi()))
    x, tokens = row(7)
    below = View(tokens, memories=(Memory(x, tokens),))
    torch.testing.assert_close(attention(x, below, 0), attention(x, below))


def test_the_form_between_words_is_one_matrix_a_head():
    """E-7: several bilinear forms in parallel are W_Q W_K^T, of low rank"""
    attention, (x, _) = module(2), row(5)
    for head in range(2):
        part = slice(head * 4, head * 4 + 4)
        form = attention.query.weight[part].T @ attention.key.weight[part]
        assert torch.linalg.matrix_rank(form) == 4
        score = Bilinear().build(1, 8, 8).double()
        score.weight_HQK.data = form[None]
        query, key = (x @ each.weight[part].T for each in (attention.query, attention.key))
        torch.testing.assert_close(score.pairwise(x[:, None], x[:, None])[:, 0], query @ key.mT)


def test_the_sinusoid_has_any_base():
    """D-1"""
    encoded = sinusoid(torch.tensor([4]), 6, Sinusoid(base=100.0))[0]
    expected = [f(4 / 100 ** (2 * i / 6)) for i in range(3) for f in (math.sin, math.cos)]
    assert encoded.tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("tie", ["all", "target", "none"])
def test_the_loss_reaches_the_encoder_through_the_decoder(tie):
    """B-10: one gradient through both, with W_o tied to the embedding or not"""
    batch = batch_of(SOURCES, TARGETS)
    config = replace(model_of().config, tie=tie)
    model = translator(config).double()
    loss = F.cross_entropy(model.scores(batch).flatten(0, 1), batch.labels.flatten(), ignore_index=IGNORED)
    loss.backward()
    encoder = [parameter.grad for parameter in model.encoder.parameters()]
    assert all(gradient is not None and gradient.abs().max() > 0 for gradient in encoder if gradient is not None and gradient.dim() > 1)
    assert (model.output.table is model.target.table) == (tie != "none")
    assert (model.source.table is model.target.table) == (tie == "all")
