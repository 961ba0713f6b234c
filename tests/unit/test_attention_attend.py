"""The whole of attend: published examples, shared heads, dropout, taps, and clear errors."""

import pytest
import torch
from torch import nn

from regard.errors import UsageError
from regard.nn.attention import Causal, Dot, Full, Hard, Sparsemax, Window, attend, attention_weights
from regard.nn.tap import record, replace
from regard.nn.view import Tokens


def given(weights):
    """Query and key whose dot-product softmax is this matrix."""
    return weights.clamp_min(1e-30).log()[None, None], torch.eye(weights.shape[1])[None, None]


def test_weights_average_the_values_and_can_be_had_back_from_them():
    A = torch.tensor([[0.6, 0.1, 0.3], [0.3, 0.5, 0.2], [0.2, 0.1, 0.7]])
    V = torch.tensor([[2, 1], [-0.5, 2], [-1, -0.5]])
    query, key = given(A)
    out = attend(query, key, V[None, None], score=Dot())[0, 0]
    assert torch.allclose(out, torch.tensor([[0.85, 0.65], [0.15, 1.2], [-0.35, 0.05]]), atol=1e-6)
    corners = torch.cat([V.T, torch.ones(1, 3)])  # barycentric coordinates
    assert torch.allclose(torch.linalg.solve(corners, torch.cat([out.T, torch.ones(1, 3)])).T, A, atol=1e-5)


def test_a_word_becomes_a_sum_of_words():
    rows = torch.tensor([[0.5, 0.1, 0, 0.2, 0.2, 0], [0.2, 0.6, 0, 0, 0.2, 0]])  # of: I like going to movies <end>
    query, key = given(rows)
    assert torch.allclose(attention_weights(query, key, score=Dot())[0, 0], rows, atol=1e-6)
    assert torch.allclose(attend(query, key, torch.eye(6)[None, None], score=Dot())[0, 0], rows, atol=1e-6)


def heads(H, T, E=5, *, batch=2):
    return torch.randn(batch, H, T, E, dtype=torch.float64)


@pytest.mark.parametrize("kernel", ["reference", "sdpa", "flex"])
def test_key_value_heads_are_shared_by_neighbours(kernel):
    torch.manual_seed(0)
    query, key, value = heads(6, 3), heads(2, 7), heads(2, 7, 3)
    out = attend(query, key, value, kernel=kernel)
    assert out.shape == (2, 6, 3, 3)
    for head in range(6):
        alone = attend(query[:, [head]], key[:, [head // 3]], value[:, [head // 3]], kernel="reference")
        assert torch.allclose(out[:, [head]], alone)


def test_lengths_and_widths_are_independent():
    out = attend(heads(2, 3, 5), heads(2, 7, 5), heads(2, 7, 11))
    assert out.shape == (2, 2, 3, 11) and out.dtype == torch.float64


def test_causal_with_two_lengths_must_be_told_the_positions():
    query, key = heads(2, 3), heads(2, 7)
    for pattern in (Causal(), Window(2), Causal() & Window(2), (Full(), Causal())):
        with pytest.raises(UsageError, match="3 queries and 7 keys"):
            attend(query, key, key, pattern=pattern)
    with pytest.raises(UsageError, match="Tokens of both sides"):
        attend(query, key, key, pattern=Causal(), keys=Tokens.plain(2, 7))
    late = Tokens(torch.tensor([[4, 5, 6]] * 2), torch.zeros(2, 3, dtype=torch.long), torch.ones(2, 3, dtype=torch.bool))
    whole = attend(torch.cat([heads(2, 4), query], 2), key, key, pattern=Causal())
    assert torch.allclose(attend(query, key, key, pattern=Causal(), queries=late, keys=Tokens.plain(2, 7)), whole[:, :, 4:])


def test_one_side_alone_may_have_padding():
    query, key = heads(2, 3), heads(2, 7)
    real = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    out = attend(query, key, key, keys=Tokens.padded(real))
    assert torch.allclose(out[1], attend(query[1:], key[1:, :, :4], key[1:, :, :4])[0])


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(UsageError, match=r"key \(2, 2, 7, 5\) and value \(2, 2, 3, 5\)"):
        attend(heads(2, 3), heads(2, 7), heads(2, 3))
    with pytest.raises(UsageError, match="divide"):
        attend(heads(3, 3), heads(2, 7), heads(2, 7))


def test_a_kernel_that_cannot_serve_is_an_error_and_no_silent_fallback():
    query = heads(2, 3)
    with pytest.raises(UsageError, match="sdpa cannot serve: its weights are a softmax"):
        attend(query, query, query, normalise=Sparsemax(), kernel="sdpa")
    with pytest.raises(UsageError, match="gathered cannot serve"):
        attend(query, query, query, kernel="gathered")
    with pytest.raises(UsageError, match="flex cannot serve: it has no gradient on the CPU"):
        attend(query.requires_grad_(), query, query, kernel="flex")


def test_documents_must_meet_in_equal_number():
    two, three = Tokens.packed(torch.tensor([2, 3])), Tokens.packed(torch.tensor([1, 2, 2]))
    with pytest.raises(UsageError, match="2 documents of queries cannot meet 3"):
        attend(heads(2, 5, batch=1), heads(2, 5, batch=1), heads(2, 5, batch=1), queries=two, keys=three)


def test_the_weights_can_be_seen_and_replaced():
    query, key, value = heads(2, 3), heads(2, 7), heads(2, 7)
    watching = torch.nn.Identity()
    with record(watching, "mine.weights") as seen, replace(watching, "mine.weights", lambda weights: torch.full_like(weights, 1 / 7)):
        out = attend(query, key, value, taps="mine.")
        with pytest.raises(UsageError, match="asked for"):
            attend(query, key, value, taps="mine.", kernel="sdpa")
    assert list(seen) == ["mine.weights"] and torch.allclose(seen["mine.weights"][0], attention_weights(query, key))
    assert torch.allclose(out, value.mean(2, keepdim=True).expand_as(out))


@pytest.mark.parametrize("kernel", ["reference", "sdpa", "gathered"])
def test_dropout_drops_weights_and_keeps_their_mean(kernel):
    torch.manual_seed(3)
    tokens = Tokens.packed(torch.tensor([2, 3]))
    query = torch.zeros(1, 1, 5, 2)
    value = torch.ones(1, 1, 5, 500)
    tokens_or_none = {} if kernel == "sdpa" else {"queries": tokens, "keys": tokens}
    drawn = torch.cat([attend(query, query, value, kernel=kernel, dropout=0.5, **tokens_or_none) for _ in range(100)])
    assert drawn.mean().item() == pytest.approx(1, abs=0.05)
    assert drawn.std().item() > 0.3
    assert torch.equal(attend(query, query, value, kernel=kernel, **tokens_or_none), torch.ones(1, 1, 5, 500))


def test_scores_are_wide_even_for_narrow_inputs():
    query = torch.tensor([[[[1.0, 1.0]]]], dtype=torch.bfloat16)
    key = torch.tensor([[[[256.0, 0.5], [256.0, 0.0]]]], dtype=torch.bfloat16)  # 256.5 is no sixteen-bit number
    weights = attention_weights(query, key, score=Dot())
    assert weights.dtype == torch.float32
    assert weights.flatten().tolist() == pytest.approx([0.6225, 0.3775], abs=6e-5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(attention_weights(query, key, score=Dot()), weights)
        for kernel in ("reference", "sdpa"):
            out = attend(query.float(), key.float(), torch.eye(2)[None, None], score=Dot(), kernel=kernel)
            assert out.flatten().tolist() == pytest.approx([0.6225, 0.3775], abs=6e-5)
    assert attend(query, key, key, score=Dot()).dtype == torch.bfloat16


def test_hard_attention_is_a_lookup():
    key = torch.eye(3)[None, None]
    value = torch.tensor([[[[5.0], [7.0], [11.0]]]])
    assert attend(key[:, :, [2, 0]], key, value, normalise=Hard()).flatten().tolist() == [11, 5]
    assert attend(key[:, :, :1] + key[:, :, 1:2], key, value, normalise=Hard()).flatten().tolist() == [6]


def test_a_memo_changes_nothing():
    torch.manual_seed(4)
    tokens, memo = Tokens.packed(torch.tensor([2, 3])), {}
    query = heads(2, 5, batch=1)
    for _ in range(2):
        for pattern in (Full(), Causal(), Window(1)):
            for kernel in ("reference", "sdpa", "gathered"):
                axes = {"queries": tokens, "keys": tokens, "pattern": pattern, "kernel": kernel}
                assert torch.equal(attend(query, query, query, memo=memo, **axes), attend(query, query, query, **axes))
    assert memo


@pytest.mark.parametrize("kernel", ["reference", "sdpa", "gathered"])
def test_it_compiles_as_one_graph(kernel):
    tokens = Tokens.packed(torch.tensor([2, 3]))

    class Twice(nn.Module):
        def forward(self, query, memo):
            axes = {"queries": tokens, "keys": tokens, "pattern": Causal() & Window(2), "kernel": kernel, "memo": memo}
            return attend(attend(query, query, query, **axes), query, query, **axes)

    query = heads(2, 5, batch=1)
    compiled = torch.compile(Twice(), backend="eager", fullgraph=True)
    assert torch.allclose(compiled(query, {}), Twice()(query, None))


def test_rows_without_padding_need_no_mask(monkeypatch):
    torch.manual_seed(5)
    query, masks = heads(2, 5), []
    fused = torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(
        torch.nn.functional, "scaled_dot_product_attention", lambda *x, **axes: masks.append(axes["attn_mask"]) or fused(*x, **axes)
    )
    rows, short = Tokens.plain(2, 5), Tokens.padded(torch.tensor([[True] * 5, [True] * 4 + [False]]))
    two = Tokens(rows.positions, torch.tensor([[0, 0, 1, 1, 1]] * 2), rows.real)
    later = Tokens(rows.positions + 1, rows.documents, rows.real)
    for queries, keys, pattern, masked in (
        (rows, rows, Full(), False),
        (rows, Tokens.plain(2, 5), Full(), False),
        (rows, rows, Causal(), False),
        (rows, Tokens.plain(2, 5), Causal(), True),
        (rows, short, Full(), True),
        (short, rows, Full(), True),
        (two, two, Full(), True),
        (later, later, Causal(), True),
        (rows, rows, Window(1), True),
    ):
        axes = {"queries": queries, "keys": keys, "pattern": pattern}
        assert torch.allclose(attend(query, query, query, kernel="sdpa", **axes), attend(query, query, query, kernel="reference", **axes))
        assert (masks.pop() is not None) == masked
