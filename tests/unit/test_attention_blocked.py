"""Attention block by block: no square of the row anywhere, few tiles met, and the heads apart where they see differently."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from regard.nn.attention import ALiBi, BigBird, BlockLocal, Causal, Dilated, Full, Global, Relative, T5Buckets, Window, attend
from regard.nn.attention.kernels import blocked
from regard.nn.attention.sight import Sight
from regard.nn.view import Tokens


class Largest(TorchDispatchMode):
    """How many numbers the largest tensor has that any operation makes."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.numbers = max([self.numbers, *(leaf.numel() for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor))])
        return out


LONG = {
    "window": (Causal() & Window(100), ALiBi()),
    "dilated": (Dilated(20, (1, 3)), None),
    "block-local": (Causal() & BlockLocal(128), None),
    "global": (Window(100) | Global(2, at=(9000,)), T5Buckets().build(2, 4)),
    "bigbird": (BigBird(64, random=2), None),
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("layout", ["plain", "packed"])
def test_nothing_is_as_large_as_the_square_of_a_long_row(name, layout):
    n, H, E = 16_384, 2, 4
    pattern, bias = LONG[name]
    tokens = Tokens.packed(torch.tensor([n - 3000, 3000])) if layout == "packed" else None
    query, key, value = (torch.randn(1, H, n, E, requires_grad=True) for _ in range(3))
    axes = {"pattern": pattern, "queries": tokens, "keys": tokens, "memo": {}} | ({"bias": bias} if bias else {})
    with Largest() as largest:
        out = attend(query, key, value, **axes)
        out.sum().backward()
    assert largest.numbers < n * n / 12
    row = slice(n - 700, n - 650)  # by the definition, a few queries alone
    facts = tokens or Tokens.plain(1, n)
    few = Tokens(facts.positions[:, row], facts.documents[:, row], facts.real[:, row], lengths=facts.measured().lengths[:, row])
    expected = attend(query[:, :, row], key, value, **(axes | {"queries": few, "keys": facts, "memo": None, "kernel": "reference"}))
    assert torch.allclose(out[:, :, row], expected, atol=1e-5)


def layout(pattern, n, tokens=None, *, heads=1):
    return blocked._layout(Sight(tokens, tokens, pattern, lengths=(n, n), heads=heads, device=torch.device("cpu")), 1)


def met(pattern, n, tokens=None):
    return sum(len(group.keys) for group in layout(pattern, n, tokens).groups)


def test_few_tiles_are_met():
    n, tiles = 64 * 64, 64
    assert met(Causal() & Window(63), n) == 2 * tiles - 1
    assert met(BlockLocal(64), n) == tiles
    assert met(Window(64) | Global(1), n) <= 2 * tiles + 4 * tiles
    assert met(BigBird(64, random=3), n) <= 2 * tiles + 8 * tiles
    assert met(Full(), n) == tiles * tiles
    documents = Tokens.packed(torch.tensor([64] * 64))
    assert met(Full(), n, documents) == tiles


def test_heads_that_see_differently_do_not_pay_for_each_other(monkeypatch):
    monkeypatch.setattr(blocked, "TILE", 4)
    through = []
    whole = blocked._through
    monkeypatch.setattr(blocked, "_through", lambda *given, **axes: through.append(given[0].shape[1]) or whole(*given, **axes))
    torch.manual_seed(0)
    query, key = torch.randn(2, 4, 21, 3), torch.randn(2, 2, 21, 3)
    for pattern, bias, calls in (
        (BigBird(2, random=1), ALiBi(), [1, 1, 1, 1]),
        (Dilated(1, (1, 2)), Relative(3, tables="per-head").build(4, 3), [4]),
        (Window(2), ALiBi(), [4]),
    ):
        through.clear()
        axes = {"pattern": pattern, "bias": bias}
        out = attend(query, key, key, kernel="blocked", **axes)
        assert torch.allclose(out, attend(query, key, key, kernel="reference", **axes), atol=1e-6)
        assert through == calls


def test_what_was_gathered_is_not_kept_for_the_backward_pass():
    query, key, value = (torch.randn(1, 2, 4096, 8, requires_grad=True) for _ in range(3))
    kept = {}

    def keep(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        out = attend(query, key, value, pattern=Window(256), kernel="blocked")
    assert sum(kept.values()) < 4 * 4 * query.numel()  # four bytes a number: what is gathered is nine times the keys, and again the values
    out.sum().backward()
    with torch.no_grad():
        assert torch.allclose(attend(query, key, value, pattern=Window(256), kernel="blocked"), out, atol=1e-6)


def test_dropout_in_training_drops_the_same_backwards():
    torch.manual_seed(4)
    value = torch.ones(1, 1, 130, 1, requires_grad=True)
    query = torch.zeros(1, 1, 130, 1)
    out = attend(query, query, value, pattern=Window(9), kernel="blocked", dropout=0.5)
    assert torch.autograd.grad(out.sum(), value)[0].sum().item() == pytest.approx(out.sum().item(), rel=1e-5)


def test_dropout_drops_and_keeps_the_mean():
    torch.manual_seed(3)
    query, value = torch.zeros(20, 1, 70, 2), torch.ones(20, 1, 70, 1)
    drawn = attend(query, query, value, pattern=Window(9), kernel="blocked", dropout=0.5)
    assert drawn.mean().item() == pytest.approx(1, abs=0.05) and drawn.std().item() > 0.1


@pytest.mark.parametrize(("count", "rounded"), [(0, 1), (1, 1), (9, 9), (16, 16), (17, 18), (31, 32), (33, 36), (250, 256)])
def test_counts_are_rounded_so_that_groups_are_few(count, rounded):
    assert blocked._rounded(count) == rounded
