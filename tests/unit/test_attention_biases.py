"""Biases by hand-computed slopes and buckets, and by naive loops."""

import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from regard.errors import UsageError
from regard.nn.attention import ALiBi, Causal, NoBias, Relative, T5Buckets, attend, attention_weights
from regard.nn.attention.biases import skewed
from regard.nn.view import Tokens


def slopes(heads):
    return (-ALiBi().at(torch.tensor(1), torch.arange(heads), heads)).tolist()


def test_alibi_slopes():
    assert slopes(8) == [2.0**-n for n in range(1, 9)]
    assert slopes(4) == [2.0**-n for n in (2, 4, 6, 8)]
    assert slopes(12) == pytest.approx([2.0**-n for n in (1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5)])
    assert slopes(1) == [2.0**-8]


def test_alibi_is_added_to_the_scaled_scores():
    query = torch.zeros(1, 2, 3, 5)
    weights = attention_weights(query, query, pattern=Causal(), bias=ALiBi())
    expected = torch.tensor([math.exp(-2 / 16), math.exp(-1 / 16), 1.0])
    assert torch.allclose(weights[0, 0, 2], expected / expected.sum())
    two_sided = attention_weights(query, query, bias=ALiBi())[0, 1, 0]
    expected = torch.tensor([1.0, math.exp(-1 / 256), math.exp(-2 / 256)])
    assert torch.allclose(two_sided, expected / expected.sum())


def test_t5_buckets_by_hand():
    distance = torch.tensor([0, -1, -7, -8, -9, -12, -16, -127, -128, -999, 1, 7, 8, 128])
    both = T5Buckets(buckets=32, reach=128).bucket(distance)  # 16 a side: 0-7 one each, then 8 steps of 16^(1/8)
    assert both.tolist() == [0, 1, 7, 8, 8, 9, 10, 15, 15, 15, 17, 23, 24, 31]
    past = T5Buckets(buckets=8, reach=16, sides="past").bucket(torch.tensor([5, 0, -1, -3, -4, -5, -6, -8, -11, -12, -99]))
    assert past.tolist() == [0, 0, 1, 3, 4, 4, 5, 6, 6, 7, 7]


def test_a_t5_table_starts_silent_and_then_speaks_by_bucket_and_head():
    torch.manual_seed(0)
    query, key = torch.randn(1, 3, 4, 5), torch.randn(1, 3, 4, 5)
    bias = T5Buckets(8, 16).build(3, 5)
    assert torch.equal(attend(query, key, key, bias=bias, kernel="reference"), attend(query, key, key, kernel="reference"))
    torch.nn.init.normal_(bias.table)
    scores = query @ key.mT / math.sqrt(5)
    for i in range(4):
        for j in range(4):
            scores[0, :, i, j] += bias.table.detach()[T5Buckets(8, 16).bucket(torch.tensor([j - i]))[0]]
    assert torch.allclose(attention_weights(query, key, bias=bias), scores.softmax(-1), atol=1e-6)


@pytest.mark.parametrize("sides", ["both", "past"])
@pytest.mark.parametrize("tables", ["shared", "per-head"])
def test_relative_scores_and_values_are_the_naive_loops(tables, sides):
    torch.manual_seed(1)
    H, T, E, reach = 2, 7, 5, 3
    query, key, value = (torch.randn(1, H, T, E, dtype=torch.float64) for _ in range(3))
    bias = Relative(reach, values=True, tables=tables, sides=sides).build(H, E).double()
    assert bias.keys_HRE.shape[1] == (2 * reach + 1 if sides == "both" else reach + 1)
    out, weights = attend(query, key, value, pattern=Causal(), bias=bias), attention_weights(query, key, pattern=Causal(), bias=bias)
    for h in range(H):
        row = h if tables == "per-head" else 0
        for i in range(T):
            clipped = [max(j - i, -reach) + reach for j in range(i + 1)]
            scores = [(query[0, h, i] @ (key[0, h, j] + bias.keys_HRE[row, clipped[j]])).item() / math.sqrt(E) for j in range(i + 1)]
            expected = torch.tensor(scores, dtype=torch.float64).softmax(0)
            assert torch.allclose(weights[0, h, i, : i + 1], expected)
            summed = sum(expected[j] * (value[0, h, j] + bias.values_HRE[row, clipped[j]]) for j in range(i + 1))
            assert torch.allclose(out[0, h, i], summed)


def test_one_cached_query_takes_the_rows_of_a_music_transformer_in_natural_order():
    torch.manual_seed(2)
    S, E, reach = 5, 3, 6
    query, key = torch.randn(1, 1, S, E, dtype=torch.float64), torch.randn(1, 1, S, E, dtype=torch.float64)
    bias = Relative(reach).build(1, E).double()
    whole = attention_weights(query, key, pattern=Causal(), bias=bias)
    step = Tokens(torch.tensor([[S - 1]]), torch.zeros(1, 1, dtype=torch.long), torch.ones(1, 1, dtype=torch.bool))
    last = attention_weights(query[:, :, -1:], key, queries=step, keys=Tokens.plain(1, S), pattern=Causal(), bias=bias)
    by_hand = (query[0, 0, -1] @ (key[0, 0] + bias.keys_HRE[0, reach - S + 1 : reach + 1]).T / math.sqrt(E)).softmax(-1)
    assert torch.allclose(last[0, 0, 0], whole[0, 0, -1])
    assert torch.allclose(last[0, 0, 0], by_hand)


def test_skew_of_the_paper():
    """Its own three columns are the left ones here; what it leaves undefined lies in the future."""
    three = torch.tensor([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]])
    found = skewed(torch.cat([three, torch.full((3, 2), math.nan)], 1)[None, None])[0, 0]
    assert found.isnan().tolist() == [[False, True, True], [False, False, True], [False, False, False]]
    assert found.nan_to_num(0).tolist() == skewed(three[None, None])[0, 0].tril().tolist() == [[3, 0, 0], [5, 6, 0], [7, 8, 9]]


@pytest.mark.parametrize("sides", ["both", "past"])
@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("reach", [0, 2, 5, 40])
def test_skewed_is_gathered_with_the_same_gradients(reach, sides, past):
    T = 7
    bias, query = Relative(reach, sides=sides, tables="per-head").build(2, 3), torch.randn(2, 2, T, 3, requires_grad=True)
    far = torch.arange(T)[None, :] - torch.arange(T)[:, None]
    weight, found = torch.randn(2, 2, T, T), []
    if past:
        weight = weight.tril()
    for scores in (bias.in_order(query, past=past), bias.scores(query, far[None])):
        scores = scores.tril() if past else scores
        found.append([scores, *torch.autograd.grad((scores * weight).sum(), [query, bias.keys_HRE])])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)


class Largest(TorchDispatchMode):
    """The most numbers that a tensor made meanwhile has."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else (made,):
            if isinstance(tensor, torch.Tensor):
                self.numbers = max(self.numbers, tensor.untyped_storage().nbytes() // tensor.element_size())
        return made


@pytest.mark.parametrize("order", [True, False])
def test_no_vector_is_written_out_for_each_pair(order):
    """Shaw's own form would make T x T x E numbers, 16 times as many as T x T here."""
    T, E = 64, 16
    bias, query = Relative(T, sides="past").build(1, E), torch.randn(1, 1, T, E, requires_grad=True)
    far = torch.arange(T)[None, :] - torch.arange(T)[:, None]
    with Largest() as largest:
        (bias.in_order(query) if order else bias.scores(query, far[None])).sum().backward()
    assert largest.numbers <= 2 * T * T < T * T * E


def test_a_bias_with_parameters_must_be_built_and_impossible_ones_are_refused():
    query = torch.randn(1, 2, 3, 5)
    for bias in (T5Buckets(), Relative(4)):
        with pytest.raises(UsageError, match="build"):
            attend(query, query, query, bias=bias)
    for wrong in (lambda: T5Buckets(buckets=2), lambda: T5Buckets(buckets=32, reach=8), lambda: Relative(-1)):
        with pytest.raises(UsageError):
            wrong()
    assert NoBias().build(2, 5) == NoBias() and ALiBi().build(2, 5) == ALiBi()
    with pytest.raises(UsageError, match="bias asks for positions"):
        attend(query, query[:, :, :2], query[:, :, :2], bias=ALiBi())
