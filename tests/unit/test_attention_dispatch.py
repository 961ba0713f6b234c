"""The choice of a kernel, as a table."""

import pytest
import torch

from regard.errors import UsageError
from regard.nn.attention import (
    Additive,
    ALiBi,
    Bilinear,
    Causal,
    Cosine,
    Document,
    Full,
    Gaussian,
    Need,
    NegativeDistance,
    Prefix,
    Relative,
    Sigmoid,
    Sparsemax,
    T5Buckets,
    Window,
    choose,
)
from regard.nn.attention.dispatch import LONG, LONG_ON_CPU, refusal

BF16 = torch.bfloat16
CUDA = {"device": "cuda", "dtype": BF16}

AUTO = [
    # on the CPU
    (Need(), {"plain": True}, "sdpa"),
    (Need(), {}, "sdpa"),
    (Need(), {"packed": True}, "gathered"),
    (Need.of(Causal()), {"packed": True, "dropout": True}, "gathered"),
    (Need.of(Full(), bias=ALiBi()), {"packed": True}, "gathered"),
    (Need.of(Full(), bias=Relative(3)), {"packed": True}, "gathered"),
    (Need.of(Full(), bias=Relative(3, values=True)), {"packed": True}, "reference"),
    (Need.of(Full(), normalise=Sparsemax()), {"packed": True}, "reference"),
    (Need.of(Full(), score=Additive()), {}, "reference"),
    (Need.of(Full(), score=Bilinear()), {}, "sdpa"),
    (Need(), {"watched": True, "packed": True}, "reference"),
    (Need(), {"length": 9999}, "sdpa"),
    (Need.of(Causal()), {"length": 9999}, "sdpa"),
    (Need.of(Causal() & Window(9)), {"length": LONG_ON_CPU}, "blocked"),
    (Need.of(Causal() & Window(9)), {"length": LONG_ON_CPU, "packed": True}, "blocked"),
    (Need.of(Causal() & Window(9)), {"length": LONG_ON_CPU - 1}, "sdpa"),
    (Need.of(Causal() & Window(9)), {"length": LONG_ON_CPU, "sparse": False}, "sdpa"),
    (Need.of(Window(9) | Prefix(1), bias=Relative(3)), {"length": LONG_ON_CPU}, "blocked"),
    (Need.of(Causal() | Window(9)), {"length": LONG_ON_CPU}, "sdpa"),
    (Need.of(~Window(9)), {"length": LONG_ON_CPU}, "sdpa"),
    (Need.of(Window(9), normalise=Sparsemax()), {"length": LONG_ON_CPU}, "reference"),
    # on CUDA
    (Need(), CUDA | {"plain": True}, "sdpa"),
    (Need(), CUDA | {"packed": True}, "varlen"),
    (Need.of((Causal(), Document(), Window(7))), CUDA | {"packed": True}, "varlen"),
    (Need.of(Causal()), CUDA | {"packed": True, "same": False}, "gathered"),
    (Need(), CUDA | {"packed": True, "same": False}, "varlen"),
    (Need(), {"device": "cuda", "packed": True}, "gathered"),
    (Need.of(Causal() | Prefix(2)), CUDA | {"packed": True}, "gathered"),
    (Need(), CUDA | {"packed": True, "dropout": True}, "gathered"),
    (Need.of(Full(), bias=ALiBi()), CUDA | {"packed": True}, "gathered"),
    (Need.of(Full(), score=Gaussian()), CUDA | {"packed": True}, "gathered"),
    (Need.of(Full(), score=Cosine()), CUDA | {"packed": True}, "varlen"),
    (Need(), CUDA | {"packed": True, "widths": (20, 20)}, "gathered"),
    (Need(), CUDA | {"packed": True, "widths": (64, 32)}, "gathered"),
    (Need.of(Causal() & Window(99)), CUDA | {"plain": True, "length": LONG}, "flex"),
    (Need.of(Causal() & Window(99)), CUDA | {"plain": True, "length": LONG - 1}, "sdpa"),
    (Need.of(Causal()), CUDA | {"plain": True, "length": LONG}, "sdpa"),
    (Need.of(Causal()), CUDA | {"length": LONG}, "flex"),
    (Need.of(Causal(), bias=Relative(3)), CUDA | {"length": LONG}, "sdpa"),
    (Need.of(Causal(), normalise=Sigmoid()), CUDA | {"length": LONG}, "reference"),
    (Need.of(Window(9), bias=Relative(3)), CUDA | {"length": LONG}, "blocked"),
    (Need.of(Window(9) | Prefix(1)), CUDA | {"length": LONG, "packed": True}, "blocked"),
    (Need.of(Window(9)), CUDA | {"length": LONG, "packed": True}, "varlen"),
    (Need.of(Full(), score=NegativeDistance()), CUDA, "reference"),
    (Need(), {"device": "mps", "dtype": BF16, "packed": True}, "gathered"),
]


@pytest.mark.parametrize(("need", "facts", "kernel"), AUTO)
def test_auto(need, facts, kernel):
    assert choose(need._replace(**facts)).kernel == kernel


REFUSED = [
    ("sdpa", Need(watched=True), "weights"),
    ("sdpa", Need(softmax=False), "softmax"),
    ("gathered", Need(product=False, packed=True), "dot product"),
    ("gathered", Need(), "spans"),
    ("sdpa", Need(asks="values"), "values"),
    ("flex", Need(asks="query", device="cuda"), "query"),
    ("flex", Need(dropout=True, device="cuda"), "dropout"),
    ("flex", Need(), "gradient on the CPU"),
    ("varlen", Need(packed=True), "CUDA"),
    ("varlen", Need(packed=True, device="cuda"), "sixteen-bit"),
    ("varlen", Need(device="cuda", dtype=BF16), "spans"),
    ("varlen", Need(asks="distance", packed=True, device="cuda", dtype=BF16), "no bias"),
    ("varlen", Need(dropout=True, packed=True, device="cuda", dtype=BF16), "dropout"),
    ("varlen", Need(band=None, packed=True, device="cuda", dtype=BF16), "reach"),
]


@pytest.mark.parametrize(("kernel", "need", "reason"), REFUSED)
def test_a_kernel_asked_for_by_name_serves_or_says_why_not(kernel, need, reason):
    with pytest.raises(UsageError, match=reason) as error:
        choose(need, kernel)
    assert kernel in str(error.value)


def test_names():
    assert choose(Need(), "reference") == ("reference", "asked for by name")
    assert choose(Need(gradient=False), "flex").kernel == "flex"
    with pytest.raises(UsageError, match="no kernel 'flash'"):
        choose(Need(), "flash")


def test_the_reason_tells_what_was_passed_over():
    choice = choose(Need(device="cuda", packed=True))
    assert choice.reason == "packed rows: each document attends within itself; not varlen: it needs sixteen-bit numbers"


def test_a_need_is_the_same_of_a_config_and_of_what_it_builds():
    for score in (Bilinear(), Additive(), Cosine(learned=True)):
        assert Need.of(Full(), score=score) == Need.of(Full(), score=score.build(2, 8, 8))
    for bias in (T5Buckets(), Relative(3), Relative(3, values=True)):
        assert Need.of(Full(), bias=bias) == Need.of(Full(), bias=bias.build(2, 8))


def test_reference_refuses_nothing():
    assert refusal("reference", Need(False, False, False, "values", None, watched=True, dropout=True)) == ""
