"""The small parts of a model, by numbers worked out by hand."""

import math

import pytest
import torch
from torch import nn

from regard.errors import UsageError
from regard.nn.embed import Embedding, TokenEmbedding, new_table
from regard.nn.feedforward import FeedForward, PositionWise
from regard.nn.norms import BatchNorm, LayerNorm, NoNorm, RmsNorm, build_norm
from regard.nn.positions import Learned, Rotary, Sinusoid, SinusoidTable, build_positions, rotate, sinusoid
from regard.nn.residual import Residual
from regard.nn.tap import record, replace, tap, watched
from regard.nn.view import Spans, Tokens

# golden D-1: position 4, base 10,000
POSITION_4 = {
    4: [-0.7568, -0.6536, 0.0400, 0.9992],
    8: [-0.7568, -0.6536, 0.3894, 0.9211, 0.0400, 0.9992, 0.0040, 1.0000],
    16: [-0.7568, -0.6536, 0.9536, 0.3011],
    512: [-0.7568, -0.6536, -0.6572, -0.7537],
}


@pytest.mark.parametrize("width", POSITION_4)
def test_sinusoid_golden(width):
    expected = torch.tensor(POSITION_4[width])
    encoded = sinusoid(torch.tensor([4]), width, Sinusoid())[0, : len(expected)]
    torch.testing.assert_close(encoded, expected, atol=5e-5, rtol=0)


def test_sinusoid_halves_are_a_permutation_of_the_interleaved():
    positions = torch.arange(7)
    interleaved, halves = sinusoid(positions, 10, Sinusoid()), sinusoid(positions, 10, Sinusoid(layout="halves"))
    torch.testing.assert_close(halves, torch.cat([interleaved[:, 0::2], interleaved[:, 1::2]], dim=1))


def test_sinusoid_of_odd_width_ends_on_a_sine():
    encoded = sinusoid(torch.tensor([1]), 3, Sinusoid())[0]
    torch.testing.assert_close(encoded, torch.tensor([math.sin(1), math.cos(1), math.sin(10_000 ** (-2 / 3))]))
    assert sinusoid(torch.arange(2), 3, Sinusoid(layout="halves")).shape == (2, 3)


def test_sinusoid_table_grows():
    table = SinusoidTable(Sinusoid(), 6, length=3)
    table.reach(11)
    torch.testing.assert_close(table(torch.tensor([[10]]))[0], sinusoid(torch.tensor([10]), 6, Sinusoid()))


def test_learned_positions_end():
    table = build_positions(Learned(length=5), 4)
    table.reach(5)
    with pytest.raises(UsageError, match="learned 5 positions"):
        table.reach(6)


def test_rotary_scores_depend_on_the_distance_alone():
    torch.manual_seed(1)
    q, k = torch.randn(1, 1, 1, 6), torch.randn(1, 1, 1, 6)

    def score(i, j):
        at = lambda p: torch.tensor([[p]])
        return (rotate(q, at(i), Rotary()) * rotate(k, at(j), Rotary())).sum()

    torch.testing.assert_close(score(3, 1), score(13, 11))
    assert (score(3, 1) - score(3, 2)).abs() > 1e-3
    with pytest.raises(UsageError, match="pairs of coordinates"):
        rotate(torch.randn(1, 1, 1, 3), torch.tensor([[0]]), Rotary())


def test_layer_norm_golden():
    # golden B-5: the biased variance; the unbiased one would give -1.1619
    normed = build_norm(LayerNorm(), 4)(torch.tensor([[[1.0, 2, 3, 4]]]))
    torch.testing.assert_close(normed[0, 0], torch.tensor([-1.3416, -0.4472, 0.4472, 1.3416]), atol=5e-5, rtol=0)


def test_other_norms():
    x = torch.tensor([[[3.0, 4.0]]])
    torch.testing.assert_close(build_norm(RmsNorm(eps=0.0), 2)(x)[0, 0], torch.tensor([3.0, 4.0]) / math.sqrt(12.5))
    assert build_norm(NoNorm(), 2)(x) is x
    normed = build_norm(BatchNorm(), 2)(torch.tensor([[[1.0, 5.0], [3.0, 9.0]]]))
    torch.testing.assert_close(normed[0], torch.tensor([[-1.0, -1.0], [1.0, 1.0]]), atol=1e-4, rtol=0)


def test_feed_forward_by_hand():
    layer = PositionWise(FeedForward(d_ff=2), 2)
    with torch.no_grad():
        layer.inner.weight.copy_(torch.tensor([[1.0, 1.0], [1.0, -1.0]]))
        layer.inner.bias.copy_(torch.tensor([0.0, 0.5]))
        layer.outer.weight.copy_(torch.tensor([[1.0, 2.0], [0.0, 3.0]]))
        layer.outer.bias.copy_(torch.tensor([0.1, 0.2]))
    # [2, 3] -> hidden relu[5, -0.5] = [5, 0] -> [5.1, 0.2];  [2, 1] -> [3, 1.5] -> [6.1, 4.7]
    torch.testing.assert_close(layer(torch.tensor([[[2.0, 3.0], [2.0, 1.0]]]))[0], torch.tensor([[5.1, 0.2], [6.1, 4.7]]))


def test_gated_feed_forward_multiplies():
    layer = PositionWise(FeedForward(d_ff=3, gated=True, activation="silu", biases=False), 2)
    x = torch.randn(1, 5, 2)
    expected = layer.outer(nn.functional.silu(layer.inner(x)) * layer.gate(x))
    torch.testing.assert_close(layer(x), expected)


def test_residual_places():
    x, double, real = torch.tensor([[[1.0, 3.0]]]), lambda y: 2 * y, torch.ones(1, 1, dtype=torch.bool)
    options = {"dropout": 0.0, "skip": True}
    torch.testing.assert_close(Residual(NoNorm(), 2, placement="pre", **options)(x, double, real), 3 * x)
    post = Residual(LayerNorm(eps=0.0), 2, placement="post", **options)(x, double, real)
    torch.testing.assert_close(post, torch.tensor([[[-1.0, 1.0]]]))
    pre = Residual(LayerNorm(eps=0.0), 2, placement="pre", **options)(x, double, real)
    torch.testing.assert_close(pre, torch.tensor([[[-1.0, 5.0]]]))
    torch.testing.assert_close(Residual(NoNorm(), 2, placement="pre", dropout=0.0, skip=False)(x, double, real), 2 * x)


def test_gradient_of_a_residual_is_identity_plus_jacobian():
    weight = torch.randn(3, 3)
    residual, real = Residual(NoNorm(), 3, placement="pre", dropout=0.0, skip=True), torch.ones(1, 1, dtype=torch.bool)
    jacobian = torch.autograd.functional.jacobian(lambda x: residual(x[None, None], lambda y: y @ weight.T, real)[0, 0], torch.randn(3))
    torch.testing.assert_close(jacobian, torch.eye(3) + weight)


def test_embedding_is_token_times_root_d_plus_position():
    table = new_table(7, 4)
    assert not table[0].any()
    embed = TokenEmbedding(Embedding(dropout=0.0), table, name="source")
    x = embed(torch.tensor([[5, 3]]), Tokens.plain(1, 2))
    torch.testing.assert_close(x[0, 1], 2 * table[3] + sinusoid(torch.tensor([1]), 4, Sinusoid())[0])


def test_tap_is_free_until_watched():
    model, x = nn.Linear(2, 2), torch.ones(2)
    assert tap(x, "a.b") is x
    with record(model, "a.*") as seen:
        assert watched("a.b")
        tap(x, "a.b")
        tap(2 * x, "c")
    assert list(seen) == ["a.b"]
    with replace(model, "a.b", lambda y: y * 0):
        assert not tap(x, "a.b").any()
    assert tap(x, "a.b") is x
    assert not watched("a.b")


def test_spans_lay_documents_side_by_side():
    spans = Spans.of(torch.tensor([2, 3, 1]))
    assert spans.offsets.tolist() == [0, 2, 5, 6]
    assert spans.gather.tolist() == [[0, 1, 6], [2, 3, 4], [5, 6, 6]]
    assert spans.scatter.tolist() == [0, 1, 3, 4, 5, 6]


def test_tokens_of_padded_and_packed_rows():
    left = Tokens.padded(torch.tensor([[False, False, True, True]]))
    assert left.positions.tolist() == [[0, 0, 0, 1]]
    packed = Tokens.packed(torch.tensor([2, 3]))
    assert packed.positions.tolist() == [[0, 1, 0, 1, 2]]
    assert packed.documents.tolist() == [[0, 0, 1, 1, 1]]
    assert packed.to("cpu").spans.longest == 3
