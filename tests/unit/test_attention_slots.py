"""Attention slots of their own kind: low rank, compressed, Longformer's; and layers that take turns."""

import math
import tomllib

import pytest
import torch

from regard.config.toml import structure
from regard.errors import UsageError
from regard.nn.attention import ALiBi, BlockLocal, Causal, Window, attend
from regard.nn.attention.compressed import Closing, Compressed, CompressedAttention
from regard.nn.attention.longformer import Longformer, LongformerAttention
from regard.nn.attention.lowrank import Linformer, LinformerAttention
from regard.nn.attention.multihead import Attention, MultiHead
from regard.nn.init import Xavier, initialise
from regard.nn.trunk_transformer import Transformer, TransformerTrunk
from regard.nn.view import Tokens, View

SHAPE = {"heads": 2, "groups": 2, "d_head": 3, "name": "own"}
D = 6


def linformer(*, causal=False, common=None, **axes):
    torch.manual_seed(0)
    return LinformerAttention(Linformer(**axes), D, causal=causal, common=common if common is not None else {}, **SHAPE).double()


def compressed(*, causal=True, **axes):
    torch.manual_seed(0)
    return CompressedAttention(Compressed(**axes), D, causal=causal, **SHAPE).double()


def rows(T, *, batch=2):
    return torch.randn(batch, T, D, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def plain(like):
    """Full attention with the projections of this slot."""
    full = MultiHead(Attention(), D, pattern=(), **SHAPE).double()
    full.load_state_dict({name: value for name, value in like.state_dict().items() if name in full.state_dict()})
    return full


@pytest.mark.parametrize("sharing", ["none", "headwise", "key-value", "layerwise"])
def test_a_mixture_for_each_token_is_full_attention(sharing):
    T = 7
    slot, x = linformer(rank=T, length=T, sharing=sharing), rows(T)
    for mixing in (slot.key_mixing, slot.value_mixing):
        if mixing is not None:
            mixing.data[:] = torch.eye(T)
    view = View(Tokens.plain(2, T))
    assert torch.allclose(slot(x, view), plain(slot)(x, view))


def test_mixtures_by_the_formula():
    slot, x = linformer(rank=3, length=9, sharing="none"), rows(5)
    out = slot(x, View(Tokens.plain(2, 5)))
    query, key, value = (layer(x).unflatten(-1, (2, 3)).transpose(1, 2) for layer in (slot.query, slot.key, slot.value))
    weights = (query @ (slot.key_mixing[:, :, :5] @ key).mT / math.sqrt(3)).softmax(-1)
    expected = slot.output((weights @ (slot.value_mixing[:, :, :5] @ value)).transpose(1, 2).flatten(2))
    assert torch.allclose(out, expected)


@pytest.mark.parametrize(("sharing", "matrices"), [("none", 288), ("headwise", 24), ("key-value", 12), ("layerwise", 1)])
def test_how_many_matrices_twelve_layers_of_twelve_heads_have(sharing, matrices):
    rank, length = 5, 7
    config = Transformer(layers=12, heads=12, own=Linformer(rank, length, sharing))
    trunk = TransformerTrunk(config, 12, causal=False, name="encoder")
    mixing = {id(p): p for name, p in trunk.named_parameters() if "mixing" in name}
    assert sum(p.numel() for p in mixing.values()) == matrices * rank * length
    other = TransformerTrunk(config, 12, causal=False, name="encoder")
    assert not mixing.keys() & {id(p) for p in other.parameters()}


def test_what_mixes_the_future_cannot_write():
    with pytest.raises(UsageError, match="the future too"):
        linformer(causal=True)
    slot, x = linformer(rank=3, length=9), rows(5, batch=1).requires_grad_()
    (gradient,) = torch.autograd.grad(slot(x, View(Tokens.plain(1, 5)))[0, 1].sum(), x)
    assert gradient[0, 4].abs().max() > 0
    with pytest.raises(UsageError, match="no position"):
        Linformer(attention=Attention(bias=ALiBi()))
    with pytest.raises(UsageError, match="1 or more"):
        Linformer(rank=0)


def test_rows_longer_than_its_matrices_are_refused_and_longer_padding_is_not():
    slot = linformer(rank=3, length=4)
    with pytest.raises(UsageError, match="a row of 5 tokens"):
        slot(rows(5), View(Tokens.plain(2, 5)))
    real = torch.tensor([[True, True, True, False, False, False], [False, False, True, True, True, True]])
    x = rows(6)
    out = slot(x, View(Tokens.padded(real)))
    assert torch.allclose(out[0, :3], slot(x[:1, :3], View(Tokens.plain(1, 3)))[0])
    assert torch.allclose(out[1, 2:], slot(x[1:, 2:], View(Tokens.plain(1, 4)))[0])


def test_slots_that_each_query_sees():
    slot, x = compressed(), rows(9, batch=1)
    slot.query.weight.data.zero_(), slot.query.bias.data.zero_()  # so that all that is seen weighs the same
    seen = []
    for i in range(9):
        (gradient,) = torch.autograd.grad(slot(y := x.clone().requires_grad_(), View(Tokens.plain(1, 9)))[0, i].sum(), y)
        reached = gradient[0].abs().amax(-1) > 0
        assert torch.equal(reached[:6:3], reached[2:6:3])
        seen.append([m for m in range(3) if reached[3 * m]])
    assert seen == [[], [], [0], [0], [0], [0, 1], [0, 1], [0, 1], [0, 1, 2]]
    assert torch.equal(slot(x, View(Tokens.plain(1, 9)))[0, :2], slot.output.bias.expand(2, D))


def strided(slot):
    """Convolutions that take the last token of each slot as it is."""
    for layer in (slot.key_convolution, slot.value_convolution):
        layer.weight.data[:] = 0
        layer.weight.data[:, :, -1] = torch.eye(D)
        layer.bias.data[:] = 0


@pytest.mark.parametrize("causal", [True, False])
def test_a_convolution_that_takes_the_last_token_gives_every_third_key(causal):
    slot, x = compressed(causal=causal), rows(11)
    strided(slot)
    query, key, value = (layer(x).unflatten(-1, (2, 3)).transpose(1, 2) for layer in (slot.query, slot.key, slot.value))
    third = torch.tensor([[2, 5, 8]] * 2)
    facts = Tokens(third, third * 0, third >= 0)
    axes = {"pattern": Causal()} if causal else {}
    expected = attend(query, key[:, :, 2::3], value[:, :, 2::3], queries=Tokens.plain(2, 11), keys=facts, **axes)
    assert torch.allclose(slot(x, View(Tokens.plain(2, 11))), slot.output(expected.transpose(1, 2).flatten(2)))


@pytest.mark.parametrize("null", [False, True])
def test_compressed_attention_is_the_naive_loop(null):
    slot, x = compressed(size=2, null=null), rows(5, batch=1)
    if null:
        for table in slot.null:
            torch.nn.init.normal_(table)
    query, key, value = (layer(x)[0].unflatten(-1, (2, 3)) for layer in (slot.query, slot.key, slot.value))
    found = torch.zeros(5, 2, 3, dtype=torch.float64)
    for i in range(5):
        for head in range(2):
            keys, values = ([table[head]] if null else [] for table in (slot.null if null else (None, None)))
            for m in range((i + 1) // 2):
                for made, raw, layer in ((keys, key, slot.key_convolution), (values, value, slot.value_convolution)):
                    taps = sum(layer.weight[:, :, t] @ raw[2 * m + t].flatten() for t in range(2))
                    made.append((taps + layer.bias).view(2, 3)[head])
            if keys:
                weights = (torch.stack(keys) @ query[i, head] / math.sqrt(3)).softmax(0)
                found[i, head] = weights @ torch.stack(values)
    assert torch.allclose(slot(x, View(Tokens.plain(1, 5)))[0], slot.output(found.flatten(1)))


def test_the_cache_keeps_closed_slots_and_the_tokens_of_the_open_one():
    trunk = TransformerTrunk(Transformer(layers=1, heads=2, own=Compressed()), D, causal=True, name="decoder").eval()
    state = trunk.new_state(2, 20)
    (kept,) = state.layers
    assert isinstance(kept, Closing)
    x = torch.randn(2, 8, D)
    tokens = Tokens.plain(2, 8)
    state.write(tokens, longest=8)
    trunk(x, View(tokens), state)
    assert kept.open.shape == (2, 2, 2 * D) and kept.closed.shape == (2, 6 + 1, 2 * D)
    assert kept.lengths.tolist() == [8, 8] and kept.real(3).tolist() == [[True, True, False]] * 2
    with pytest.raises(UsageError, match="cannot forget"):
        state.trim(5)
    state.clear([1])
    assert kept.lengths.tolist() == [8, 0] and not kept.open[1].any() and kept.open[0].any()


def test_longformers_second_set_of_maps_begins_as_the_first():
    slot = LongformerAttention(Longformer(reach=2, first=1), D, causal=False, **SHAPE)
    assert not torch.equal(slot.global_key.weight, slot.key.weight)
    initialise(slot, Xavier(), layers=1)
    for name in ("query", "key", "value"):
        assert torch.equal(getattr(slot, f"global_{name}").weight, getattr(slot, name).weight)
    x, view = torch.randn(2, 9, D), View(Tokens.plain(2, 9))
    patterned = MultiHead(Attention(pattern=(slot.pattern | slot.everything,)), D, pattern=(), **SHAPE)
    patterned.load_state_dict({name: value for name, value in slot.state_dict().items() if "global" not in name})
    assert torch.allclose(slot(x, view), patterned(x, view), atol=1e-6)
    with pytest.raises(UsageError, match="still writing"):
        LongformerAttention(Longformer(), D, causal=True, **SHAPE)


def test_layers_take_turns():
    text = 'layers = 5\nheads = 2\ncycle = [{ kind = "attention", pattern = { kind = "block-local", size = 256 } }, "compressed"]'
    config = structure(Transformer, tomllib.loads(text))
    assert config.cycle == (Attention(pattern=(BlockLocal(256),)), Compressed())
    trunk = TransformerTrunk(config, D, causal=True, name="decoder")
    assert [type(block.own) for block in trunk.blocks] == [MultiHead, CompressedAttention] * 2 + [MultiHead]
    assert not trunk.packs and trunk.own_maps == (0, 2, 4)
    assert TransformerTrunk(Transformer(layers=1, own=Attention(pattern=(Window(2),))), 8, causal=True, name="decoder").packs


def test_the_kind_of_a_slot_may_be_left_out_and_a_wrong_one_is_named():
    assert structure(Transformer, {"own": {"bias": "alibi"}}).own == Attention(bias=ALiBi())
    assert structure(Transformer, {"own": {"kind": "linformer", "rank": 3}}).own == Linformer(3)
    with pytest.raises(UsageError, match="compressed"):
        structure(Transformer, {"cross": {"kind": "compressed"}})
    with pytest.raises(UsageError, match="1 or more"):
        Compressed(size=0)
