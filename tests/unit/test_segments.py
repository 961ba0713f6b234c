"""Transformer-XL's slot: the score of two positions by hand, naive loops, what is remembered and what is not."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from regard.errors import UsageError
from regard.nn.attention import ALiBi, Causal, RelativeSinusoid, ScaledDot, attention_weights
from regard.nn.attention.multihead import Attention
from regard.nn.attention.scores import OffsetDot
from regard.nn.attention.segments import Recent, TransformerXL, TransformerXLAttention
from regard.nn.cache import new_state
from regard.nn.feedforward import FeedForward
from regard.nn.tap import record
from regard.nn.trunk_transformer import Transformer, TransformerTrunk
from regard.nn.view import Tokens, View
from unit.test_attention_biases import Largest

D, H, E = 6, 2, 3


def slot(**axes):
    torch.manual_seed(0)
    made = TransformerXLAttention(TransformerXL(**axes), D, heads=H, groups=H, d_head=E, causal=True, name="own").double()
    for offset in (getattr(made.score, "offset_HE", None), getattr(made.bias, "offset_HE", None)):
        if offset is not None:
            torch.nn.init.normal_(offset)
    return made.eval()


def trunk(*, layers=2, placement="post", **axes):
    torch.manual_seed(1)
    config = Transformer(
        layers=layers, heads=H, own=TransformerXL(**axes), feed_forward=FeedForward(d_ff=11), dropout=0.0, placement=placement
    )
    made = TransformerTrunk(config, D, causal=True, name="trunk").double().eval()
    for name, parameter in made.named_parameters():
        if "offset" in name:
            torch.nn.init.normal_(parameter)
    return made


def rows(T, *, batch=2, seed=1):
    return torch.randn(batch, T, D, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def facts(start, stop, *, batch=2):
    positions = torch.arange(start, stop).expand(batch, -1)
    return Tokens(positions, torch.zeros_like(positions), torch.ones_like(positions, dtype=torch.bool))


def in_segments(made, x, *edges):
    """The same row, one segment after the other, each remembered."""
    state = made.new_state(len(x), 1)
    return torch.cat([made(x[:, a:b], View(facts(a, b, batch=len(x))), state) for a, b in pairwise(edges)], 1)


def test_the_score_of_two_positions_by_hand():
    """q = (1, 2), k = (3, -1), u = (1, 0), v = (0, -1), distance 2: (2, 2).(3, -1) = 4; r = (sin 2, cos 2), W = 1: (1, 1).r."""
    score, bias = OffsetDot().build(1, 2, 2).double(), RelativeSinusoid().build(1, 2).double()
    with torch.no_grad():
        score.offset_HE.copy_(torch.tensor([[1.0, 0.0]]))
        bias.offset_HE.copy_(torch.tensor([[0.0, -1.0]]))
        bias.map.weight.copy_(torch.eye(2))
    query, key = torch.tensor([[[[1.0, 2.0]]]]).double(), torch.tensor([[[[3.0, -1.0]]]]).double()
    assert score.pairwise(query, key).item() == pytest.approx(4 / math.sqrt(2))
    assert bias.scores(query, torch.tensor([[[-2]]])).item() == pytest.approx((math.sin(2) + math.cos(2)) / math.sqrt(2))


def test_weights_by_naive_loops():
    T = 5
    made, x = slot(), rows(T, batch=1)
    query, (key, _) = made._query(x, facts(0, T)), made.project(x, facts(0, T))
    found = attention_weights(query, key, pattern=Causal(), score=made.score, bias=made.bias)
    frequency = [10_000 ** (-2 * i / D) for i in range(D // 2)]
    for h in range(H):
        for i in range(T):
            scores = []
            for j in range(i + 1):
                far = torch.tensor([math.sin((i - j) * f) for f in frequency] + [math.cos((i - j) * f) for f in frequency]).double()
                far = (made.bias.map.weight @ far)[h * E : (h + 1) * E]
                content = (query[0, h, i] + made.score.offset_HE[h]) @ key[0, h, j]
                scores.append((content + (query[0, h, i] + made.bias.offset_HE[h]) @ far) / math.sqrt(E))
            torch.testing.assert_close(found[0, h, i, : i + 1], torch.stack(scores).softmax(0))


@pytest.mark.parametrize("placement", ["post", "pre"])
@pytest.mark.parametrize("edges", [(0, 4, 8), (0, 1, 2, 3, 8), (0, 5, 6, 8)])
def test_with_memory_enough_segments_are_one_long_row(edges, placement):
    made, x = trunk(memory=8, placement=placement), rows(8)
    torch.testing.assert_close(in_segments(made, x, *edges), made(x, View(facts(0, 8))), atol=1e-12, rtol=0)


@pytest.mark.parametrize("edges", [(0, 3, 6, 11), tuple(range(12)), (0, 7, 8, 11)])
def test_of_the_same_length_steps_and_segments_are_the_whole_row_however_long(edges):
    made, x = trunk(memory=3, same_length=True), rows(11)
    torch.testing.assert_close(in_segments(made, x, *edges), made(x, View(facts(0, 11))), atol=1e-12, rtol=0)


def test_same_length_sees_exactly_so_many():
    made, x = slot(memory=3, same_length=True), rows(7)
    with record(made, "own.weights") as seen:
        made(x, View(facts(0, 7)))
    assert (seen["own.weights"][0][0, 0] > 0).sum(-1).tolist() == [1, 2, 3, 3, 3, 3, 3]


@pytest.mark.parametrize(("segments", "reached"), [(1, 3), (2, 5), (3, 7)])
def test_each_layer_and_segment_widens_the_reach(segments, reached):
    """Memory of 2, segments of 1: a layer sees two tokens back, L layers 2 L; what a further segment back held only further layers see."""
    made, x = trunk(layers=segments, memory=2), rows(9, batch=1)
    changed = x.clone()
    out = in_segments(made, x, *range(10))[0, -1]
    for back in range(9):
        changed = x.clone()
        changed[0, 8 - back] += 1
        same = torch.equal(in_segments(made, changed, *range(10))[0, -1], out)
        assert same == (back >= reached), back


def test_no_gradient_goes_through_the_memory():
    made, x = trunk(memory=4), rows(8).requires_grad_()
    in_segments(made, x, 0, 4, 8)[:, 4:].square().sum().backward()
    assert x.grad is not None and not x.grad[:, :4].any() and x.grad[:, 4:].all()


def test_where_the_text_stands_changes_nothing():
    made, x = trunk(memory=4), rows(8)
    found = []
    for shift in (0, 1000):
        state = made.new_state(2, 1)
        found.append(torch.cat([made(x[:, a:b], View(facts(a + shift, b + shift)), state) for a, b in ((0, 4), (4, 8))], 1))
    torch.testing.assert_close(*found, atol=1e-9, rtol=0)


def test_an_empty_memory_and_other_documents_take_no_weight():
    made, x = slot(memory=4), rows(3)
    past, view = Recent(2, 4), View(facts(0, 3))
    alone = made(x, View(facts(0, 3)))
    torch.testing.assert_close(made.remember(x, view, past), alone, atol=1e-12, rtol=0)
    other = facts(0, 3)
    other = Tokens(other.positions, other.documents + 1, other.real)
    torch.testing.assert_close(made.remember(x, View(other), past), alone, atol=1e-12, rtol=0)


def test_the_last_real_ones_are_remembered_whatever_lies_between():
    past = Recent(2, 3)
    real = torch.tensor([[True, False, True, True, True, False], [False, False, True, False, False, False]])
    tokens = Tokens.padded(real)
    x = torch.arange(12.0).view(2, 6, 1)
    past.extend(x, View(tokens))
    assert past.states[0, :, 0].tolist() == [2, 3, 4] and past.tokens.positions[0].tolist() == [1, 2, 3]
    assert past.states[1, -1].item() == 8 and past.tokens.real.tolist() == [[True] * 3, [False, False, True]]
    past.reorder(torch.tensor([1, 1]), 0)
    assert past.tokens.real.tolist() == [[False, False, True]] * 2
    past.clear([0])
    assert past.tokens.real.tolist() == [[False] * 3, [False, False, True]]
    with pytest.raises(UsageError, match="begin the row again"):
        past.trim(1)


def test_what_is_not_seen_may_stand_anywhere_and_costs_nothing():
    """A memory of another document, and one that was left behind: their distances have no vectors."""
    made, x = slot(memory=4), rows(3)
    past = Recent(2, 4)
    made.remember(rows(4, seed=2), View(facts(10**7, 10**7 + 4)), past)
    assert past.tokens is not None
    past.tokens = replace(past.tokens, documents=past.tokens.documents + 1, real=past.tokens.real & (torch.arange(2)[:, None] > 0))
    with Largest() as largest:
        found = made.remember(x, View(facts(0, 3)), past)
    assert largest.numbers < 10**4
    torch.testing.assert_close(found, made(x, View(facts(0, 3))), atol=1e-12, rtol=0)


def test_clamped_distances_are_one():
    made = slot(attention=Attention(score=OffsetDot(), bias=RelativeSinusoid(clamp=2), biases=False))
    bias = made.bias.scores(rows(1).view(2, 1, H, E).transpose(1, 2), torch.tensor([[[-9, -3, -2, -1, 0]]]).expand(2, 1, 5))
    far = made.bias.scores(rows(1).view(2, 1, H, E).transpose(1, 2), torch.full((2, 1, 1), -9))
    torch.testing.assert_close(far[..., 0], bias[..., 0])
    assert torch.equal(bias[..., 0], bias[..., 2]) and torch.equal(bias[..., 1], bias[..., 2])
    assert not torch.isclose(bias[..., 2], bias[..., 3]).any()


def test_other_scores_remember_too():
    made, x = trunk(memory=8, attention=Attention(score=ScaledDot(), bias=ALiBi())), rows(8)
    torch.testing.assert_close(in_segments(made, x, 0, 3, 8), made(x, View(facts(0, 8))), atol=1e-12, rtol=0)


def test_a_longer_memory_once_trained():
    made = trunk(memory=2, remembered=8)
    assert [cache.size for cache in made.new_state(1, 1).layers] == [8, 8]
    assert [cache.size for cache in made.train().new_state(1, 1).layers] == [2, 2]


def test_what_cannot_be_is_refused():
    for wrong in (
        lambda: TransformerXL(memory=0),
        lambda: TransformerXL(same_length=True, remembered=9),
        lambda: RelativeSinusoid(clamp=-1),
    ):
        with pytest.raises(UsageError):
            wrong()
    with pytest.raises(UsageError, match="encoder"):
        TransformerTrunk(Transformer(own=TransformerXL(), heads=2), D, causal=False, name="encoder")
    mixed = Transformer(heads=2, cycle=(Attention(), TransformerXL()))
    with pytest.raises(UsageError, match="some do not"):
        TransformerTrunk(mixed, D, causal=True, name="trunk")
    query = torch.randn(1, H, 2, E)
    for axes in ({"bias": RelativeSinusoid()}, {"score": OffsetDot()}):
        with pytest.raises(UsageError, match="build"):
            attention_weights(query, query, **axes)
    assert new_state(1, 1, layers=[Recent(1, 2)], fixed=0, memories=0, beam=1, device="cpu").layers
