"""The kernels of the GPU against the definition: outputs and gradients in the numbers that they are made for."""

import inspect

import pytest
import torch

from regard.nn.attention import (
    ALiBi,
    BigBird,
    Bilinear,
    Causal,
    Cosine,
    Dilated,
    Full,
    Gaussian,
    Global,
    NoBias,
    Prefix,
    Relative,
    ScaledDot,
    T5Buckets,
    Window,
    attend,
)
from regard.nn.view import Tokens

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="varlen and compiled flex need a CUDA device; there is none here")

H, E = 4, 32
PATTERNS = [Full(), Causal(), Causal() & Window(5), Window(7), Causal() | Prefix(4), ~Causal()]


def name(thing):
    return getattr(thing, "kind", str(thing))


@pytest.fixture(autouse=True)
def fresh():
    torch.manual_seed(0)
    torch._dynamo.reset()


def packed(*lengths):
    return Tokens.packed(torch.tensor(lengths)).to("cuda")


def inputs(T, S, *, rows=1, groups=H, dtype=torch.bfloat16):
    shapes = (rows, H, T, E), (rows, groups, S, E), (rows, groups, S, E)
    return [torch.randn(shape, device="cuda", dtype=dtype).requires_grad_() for shape in shapes]


def outputs_and_gradients(tensors, **axes):
    out = attend(*tensors, **axes)
    return [out, *torch.autograd.grad(out.float().square().sum(), tensors)]


def assert_near(tensors, kernel, **axes):
    """Compared with the definition in double precision on the same numbers, relative to the largest."""
    tolerance = {torch.bfloat16: 2e-2, torch.float16: 4e-3, torch.float32: 1e-3}[tensors[0].dtype]
    exact = outputs_and_gradients([tensor.detach().double().requires_grad_() for tensor in tensors], kernel="reference", **axes)
    for ours, truth in zip(outputs_and_gradients(tensors, kernel=kernel, memo={}, **axes), exact, strict=True):
        assert ours.isfinite().all()
        assert (ours - truth).abs().max() <= tolerance * (1 + truth.abs().max())


def built(config, *sizes):
    made = config.build(*sizes)
    if isinstance(made, torch.nn.Module):
        made.cuda()
        for parameter in made.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
    return made


@pytest.mark.parametrize("kernel", ["varlen", "gathered", "blocked", "flex", "sdpa"])
@pytest.mark.parametrize("pattern", [Full(), Causal(), Causal() & Window(5), Window(7)], ids=name)
def test_packed_rows(kernel, pattern):
    tokens = packed(13, 1, 64, 29, 5)
    for groups in (H, 2):
        assert_near(inputs(112, 112, groups=groups), kernel, queries=tokens, keys=tokens, pattern=pattern)


@pytest.mark.parametrize("kernel", ["varlen", "gathered", "flex", "sdpa"])
def test_packed_rows_across(kernel):
    target, source = packed(13, 1, 64), packed(7, 30, 2)
    assert_near(inputs(78, 39), kernel, queries=target, keys=source)


@pytest.mark.parametrize("kernel", ["varlen", "gathered", "flex"])
@pytest.mark.parametrize("pattern", [Full(), Causal()], ids=name)
def test_a_filler_document_gives_zeros(kernel, pattern):
    tokens = packed(13, 40, 11)
    real = torch.ones_like(tokens.real)
    real[:, 53:] = False
    tokens = Tokens(tokens.positions, tokens.documents, real, tokens.spans)
    tensors = inputs(64, 64)
    assert_near(tensors, kernel, queries=tokens, keys=tokens, pattern=pattern)
    assert (attend(*tensors, queries=tokens, keys=tokens, pattern=pattern, kernel=kernel)[:, :, 53:] == 0).all()


@pytest.mark.parametrize("score", [ScaledDot(), Cosine(0.2), Bilinear(scaled=True), Gaussian(3.0)], ids=name)
@pytest.mark.parametrize("kernel", ["varlen", "flex", "sdpa", "gathered"])
def test_scores(kernel, score):
    if kernel == "varlen" and score.widens:
        pytest.skip("dispatch refuses it: the heads would be wider than the values")
    tokens = packed(13, 1, 64, 29, 5)
    assert_near(inputs(112, 112), kernel, queries=tokens, keys=tokens, pattern=Causal(), score=built(score, H, E, E))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("bias", [NoBias(), ALiBi(), T5Buckets(), Relative(9)], ids=name)
@pytest.mark.parametrize("pattern", PATTERNS, ids=name)
def test_rows_with_padding(pattern, bias, dtype):
    real = torch.arange(130, device="cuda") < torch.tensor([130, 67, 1], device="cuda")[:, None]
    tokens = Tokens.padded(real.flip(1))  # padding on the left: empty rows
    axes = {"queries": tokens, "keys": tokens, "pattern": pattern, "bias": built(bias, H, E)}
    assert_near(inputs(130, 130, rows=3, groups=2, dtype=dtype), "sdpa", **axes)
    if not isinstance(bias, Relative):
        assert_near(inputs(130, 130, rows=3, groups=2, dtype=dtype), "flex", **axes)


@pytest.mark.parametrize("kernel", ["blocked", "flex", "gathered"])
@pytest.mark.parametrize("pattern", [Window(9) | Global(2), Causal() & Dilated(3, (1, 2)), BigBird(16, random=1)], ids=name)
def test_sparse_patterns(pattern, kernel):
    tokens = packed(300, 1, 64)
    assert_near(inputs(365, 365, groups=2), kernel, queries=tokens, keys=tokens, pattern=pattern, bias=ALiBi())


def test_the_gradient_of_a_table_inside_flex():
    tokens, bias = packed(13, 51), built(T5Buckets(8, 16), H, E)
    tensors = inputs(64, 64, dtype=torch.float32)
    gradients = []
    for kernel in ("reference", "flex"):
        out = attend(*tensors, queries=tokens, keys=tokens, bias=bias, kernel=kernel)
        gradients.append(torch.autograd.grad(out.square().sum(), bias.table)[0])
    assert torch.allclose(gradients[0], gradients[1], atol=1e-3, rtol=1e-2)


def test_the_triangle_of_plain_rows_and_a_cache():
    assert_near(inputs(65, 65, rows=2), "sdpa", pattern=Causal())
    places = torch.tensor([[30, 31]], device="cuda")
    queries = Tokens(places, torch.zeros_like(places), places >= 0)
    for kernel in ("sdpa", "flex"):
        assert_near(inputs(2, 32), kernel, queries=queries, keys=Tokens.plain(1, 32, device="cuda"), pattern=Causal())


@pytest.mark.parametrize("kernel", ["varlen", "gathered", "flex", "sdpa"])
def test_each_kernel_compiles_as_one_graph(kernel):
    tokens = packed(13, 1, 64, 29, 5)
    tensors = inputs(112, 112)
    memo, pattern = {}, Causal()
    attend(*tensors, queries=tokens, keys=tokens, pattern=pattern, kernel=kernel, memo=memo)  # what is worked out once is worked out here

    def twice(query, key, value, tokens):
        axes = {"queries": tokens, "keys": tokens, "pattern": pattern, "kernel": kernel, "memo": memo}
        return attend(attend(query, key, value, **axes), key, value, **axes)

    compiled = torch.compile(twice, fullgraph=True)
    assert torch.allclose(compiled(*tensors, tokens).float(), twice(*tensors, tokens).float(), atol=3e-2)
    torch.autograd.grad(compiled(*tensors, tokens).float().sum(), tensors)


def test_varlen_still_takes_a_window():
    from torch.nn.attention.varlen import varlen_attn

    assert "window_size" in inspect.signature(varlen_attn).parameters
