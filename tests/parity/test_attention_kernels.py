"""Every kernel against the definition: outputs and gradients, over patterns, biases, scores, shared heads and layouts."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from regard.nn.attention import (
    Additive,
    ALiBi,
    BigBird,
    Bilinear,
    BlockLocal,
    Causal,
    Cosine,
    Dilated,
    Dot,
    Epanechnikov,
    Full,
    Gaussian,
    Global,
    NegativeDistance,
    NoBias,
    Prefix,
    Relative,
    ScaledDot,
    Sigmoid,
    Softmax,
    Sparsemax,
    T5Buckets,
    Window,
    attend,
)
from regard.nn.attention.kernels import blocked
from regard.nn.view import Tokens

H, E, V = 4, 7, 5
PATTERNS = [Full(), Causal(), Causal() & Window(1), Window(2), Causal() | Prefix(2), ~Causal()]
SPARSE = [Window(1) | Global(1), Causal() & Dilated(2, (1, 2)), BlockLocal(2), BigBird(1, random=1)]
BIASES = [NoBias(), ALiBi(), T5Buckets(8, 16), Relative(3), Relative(2, tables="per-head")]
SCORES = [ScaledDot(), Dot(), Cosine(0.3), Cosine(learned=True), Gaussian(1.3), Bilinear()]


def name(thing):
    return getattr(thing, "kind", str(thing))


def built(config, *sizes):
    """In double precision, and with parameters that say something."""
    made = config.build(*sizes)
    if isinstance(made, nn.Module):
        made.double()
        for parameter in made.parameters():
            nn.init.normal_(parameter, std=0.5)
    return made


def layouts():
    source, target = Tokens.packed(torch.tensor([3, 5, 2])), Tokens.packed(torch.tensor([4, 1, 6]))
    padded = Tokens.padded(torch.tensor([[True] * 5, [False, False, True, True, True], [True, True, False, False, False]]))
    step = Tokens(torch.tensor([[6], [2], [1]]), torch.zeros(3, 1, dtype=torch.long), torch.ones(3, 1, dtype=torch.bool))
    cache = torch.tensor([[7, 1, 2, 3, 4, 5, 6], [0, 1, 2, -1, -1, -1, -1], [0, 1, -1, -1, -1, -1, -1]])
    filler = torch.tensor([[True] * 8 + [False] * 2])
    with_filler = Tokens(source.positions, source.documents, filler, source.spans)
    return {
        "plain": (None, None, (3, 5, 5)),
        "padded": (padded, padded, (3, 5, 5)),
        "cached": (step, Tokens(cache, torch.zeros_like(cache), cache >= 0), (3, 1, 7)),
        "packed": (source, source, (1, 10, 10)),
        "packed across": (target, source, (1, 11, 10)),
        "packed with a filler": (with_filler, with_filler, (1, 10, 10)),
    }


def inputs(shape, groups):
    B, T, S = shape
    sizes = (H, T, E), (groups, S, E), (groups, S, V)
    return [torch.randn(B, *size, dtype=torch.float64, requires_grad=True) for size in sizes]


def outputs_and_gradients(tensors, modules, **axes):
    out = attend(*tensors, **axes)
    parameters = [parameter for module in modules if isinstance(module, nn.Module) for parameter in module.parameters()]
    return [out, *torch.autograd.grad(out.square().sum(), [*tensors, *parameters])]


def assert_same(left, right):
    for a, b in zip(left, right, strict=True):
        assert torch.allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """So that short rows have many."""
    monkeypatch.setattr(blocked, "TILE", 4)


@pytest.mark.parametrize("layout", layouts())
@pytest.mark.parametrize("pattern", PATTERNS + SPARSE, ids=name)
@pytest.mark.parametrize("bias", BIASES, ids=name)
def test_patterns_and_biases(layout, pattern, bias):
    torch.manual_seed(0)
    queries, keys, shape = layouts()[layout]
    tensors, made = inputs(shape, 2), built(bias, H, E)
    axes = {"queries": queries, "keys": keys, "pattern": pattern, "bias": made}
    definition = outputs_and_gradients(tensors, [made], kernel="reference", **axes)
    assert_same(outputs_and_gradients(tensors, [made], kernel="sdpa", **axes), definition)
    assert_same(outputs_and_gradients(tensors, [made], kernel="blocked", memo={}, **axes), definition)
    if layout.startswith("packed"):
        assert_same(outputs_and_gradients(tensors, [made], kernel="gathered", memo={}, **axes), definition)


@pytest.mark.parametrize("layout", layouts())
@pytest.mark.parametrize("score", SCORES, ids=name)
def test_scores(layout, score):
    torch.manual_seed(1)
    queries, keys, shape = layouts()[layout]
    tensors, made = inputs(shape, 2), built(score, H, E, E)
    axes = {"queries": queries, "keys": keys, "pattern": Causal() & Window(3), "score": made}
    definition = outputs_and_gradients(tensors, [made], kernel="reference", **axes)
    assert_same(outputs_and_gradients(tensors, [made], kernel="sdpa", **axes), definition)
    assert_same(outputs_and_gradients(tensors, [made], kernel="blocked", memo={}, **axes), definition)
    if layout.startswith("packed"):
        assert_same(outputs_and_gradients(tensors, [made], kernel="gathered", **axes), definition)


FLEX = [*((pattern, ALiBi(), Gaussian(1.1)) for pattern in PATTERNS + SPARSE), (Causal(), T5Buckets(8, 16), Bilinear())]


@pytest.mark.parametrize("layout", ["padded", "cached", "packed across"])
@pytest.mark.parametrize(("pattern", "bias", "score"), FLEX, ids=name)
@torch.no_grad()
def test_flex_without_gradients(layout, pattern, bias, score):
    torch.manual_seed(2)
    torch._dynamo.reset()
    queries, keys, shape = layouts()[layout]
    axes = {"queries": queries, "keys": keys, "pattern": pattern, "bias": built(bias, H, E), "score": built(score, H, E, E)}
    tensors = [tensor.float() for tensor in inputs(shape, 2)]
    axes["bias"], axes["score"] = (module.float() if isinstance(module, nn.Module) else module for module in (axes["bias"], axes["score"]))
    assert torch.allclose(attend(*tensors, kernel="flex", **axes), attend(*tensors, kernel="reference", **axes), atol=1e-5)


@pytest.mark.parametrize("kernel", ["reference", "sdpa", "gathered", "blocked"])
def test_the_dtype_of_the_input_comes_back_and_narrow_numbers_stay_near(kernel):
    torch.manual_seed(3)
    queries, keys, shape = layouts()["packed across"]
    wide = inputs(shape, 2)
    exact = attend(*wide, queries=queries, keys=keys, kernel="reference")
    for dtype, tolerance in ((torch.float32, 1e-6), (torch.float16, 5e-3), (torch.bfloat16, 3e-2)):
        out = attend(*(tensor.to(dtype) for tensor in wide), queries=queries, keys=keys, kernel=kernel)
        assert out.dtype == dtype
        assert torch.allclose(out.double(), exact, atol=tolerance)


@pytest.mark.parametrize("normalise", [Softmax(), Sparsemax(), Sigmoid(), Epanechnikov(4.0)], ids=name)
@pytest.mark.parametrize("score", [ScaledDot(), NegativeDistance(), Additive(3), Gaussian(), Cosine(0.5)], ids=name)
def test_the_gradients_of_the_definition(score, normalise):
    if isinstance(normalise, Epanechnikov) and not isinstance(score, NegativeDistance):
        score = NegativeDistance()
    torch.manual_seed(4)
    queries, keys, shape = layouts()["packed across"]
    made, bias = built(score, H, V, V), built(Relative(2, values=True), H, V)
    tensors = [tensor[..., :V].detach().requires_grad_() for tensor in inputs(shape, 2)]
    axes = {
        "queries": queries,
        "keys": keys,
        "pattern": ~Causal(),
        "score": made,
        "bias": bias,
        "normalise": normalise,
        "kernel": "reference",
    }
    assert torch.autograd.gradcheck(lambda *x: attend(*x, **axes), tensors, fast_mode=True)


def test_plain_attention_is_torchs_own():
    torch.manual_seed(5)
    query, key, value = (torch.randn(3, 2, 7, 8) for _ in range(3))
    for kernel in ("reference", "sdpa"):
        assert torch.allclose(attend(query, key, value, kernel=kernel), F.scaled_dot_product_attention(query, key, value), atol=1e-6)
        causal = attend(query, key, value, pattern=Causal(), kernel=kernel)
        assert torch.allclose(causal, F.scaled_dot_product_attention(query, key, value, is_causal=True), atol=1e-6)


def test_multi_head_attention_is_torchs_own():
    torch.manual_seed(6)
    theirs = nn.MultiheadAttention(12, 3, batch_first=True)
    x, padding = torch.randn(2, 5, 12), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    query, key, value = (
        part.unflatten(-1, (3, 4)).transpose(1, 2) for part in F.linear(x, theirs.in_proj_weight, theirs.in_proj_bias).chunk(3, -1)
    )
    out = attend(query, key, value, keys=Tokens.padded(~padding))
    expected, _ = theirs(x, x, x, key_padding_mask=padding, need_weights=False)
    assert torch.allclose(theirs.out_proj(out.transpose(1, 2).flatten(2)), expected, atol=1e-6)


@pytest.mark.parametrize("sides", ["both", "past"])
def test_t5_buckets_are_hugging_faces(sides):
    from transformers.models.t5.modeling_t5 import T5Attention

    distance = torch.arange(-300, 301)
    for buckets, reach in ((32, 128), (16, 50), (8, 9)):
        theirs = T5Attention._relative_position_bucket(distance, bidirectional=sides == "both", num_buckets=buckets, max_distance=reach)
        assert torch.equal(T5Buckets(buckets, reach, sides).bucket(distance), theirs)
