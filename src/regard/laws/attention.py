"""Laws of one call of attention, for what is an axis of it: score, pattern, bias, normaliser."""

from __future__ import annotations

from typing import Any, get_args

import torch
from torch import Tensor

from regard.laws.law import NotApplicable, Verdict, equal, law
from regard.laws.subject import D_HEAD, HEADS, Subject
from regard.nn.attention.attend import attend, attention_weights
from regard.nn.attention.dispatch import Kernel, Need, refusal
from regard.nn.attention.patterns import Causal, Window, together
from regard.nn.view import Tokens

LENGTHS = (5, 2, 4)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def rows(length: int, *, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value."""
    return (
        drawn(1, HEADS, length, D_HEAD, seed=seed),
        drawn(1, HEADS, length, D_HEAD, seed=seed + 1),
        drawn(1, HEADS, length, D_HEAD, seed=seed + 2),
    )


@law("every row of weights that sees something is convex: none below 0, sum 1", "axis", must=False)
def convex(subject: Subject) -> Verdict:
    query, key, _ = rows(7)
    weights = attention_weights(query, key, **subject.axes())
    sums = weights.sum(-1)
    seen = sums != 0
    return bool((weights >= -1e-12).all()) and equal(sums[seen], torch.ones_like(sums[seen]))


@law("without positions a reordering of the row reorders the answer", "axis", must=False)
def follows_reordering(subject: Subject) -> Verdict:
    if subject.role in ("pattern", "bias"):
        raise NotApplicable("it is about positions")
    (query, key, value), order = rows(7), torch.tensor([3, 0, 6, 1, 5, 2, 4])
    axes = subject.axes()
    moved = attend(query[:, :, order], key[:, :, order], value[:, :, order], **axes)
    return equal(moved, attend(query, key, value, **axes)[:, :, order])


@law("a row that may see nothing gives zeros, and no gradient", "axis")
def empty_rows(subject: Subject) -> Verdict:
    axes = subject.axes()
    axes["pattern"] = together((axes["pattern"], ~Causal()))  # the last token has nothing after it
    query, key, value = (part.requires_grad_() for part in rows(4))
    tokens = Tokens.plain(1, 4)
    out = attend(query, key, value, queries=tokens, keys=tokens, **axes)
    gradients = torch.autograd.grad(out.sum(), [query, key, value], allow_unused=True)
    if not bool((out[:, :, 3] == 0).all()):
        return "the row is not zero"
    finite = all(gradient is None or bool(gradient.isfinite().all()) for gradient in gradients)
    return finite and (gradients[0] is None or bool((gradients[0][:, :, 3] == 0).all()))


@law("every kernel that says it can serve gives what the definition gives", "axis")
def kernels_agree(subject: Subject) -> Verdict:
    axes = subject.axes()
    need = Need.of(axes["pattern"], score=axes["score"], bias=axes["bias"], normalise=axes["normalise"])
    tokens, (query, key, value) = Tokens.packed(torch.tensor(LENGTHS)), rows(sum(LENGTHS))
    fits = need._replace(packed=True, dtype=torch.float64, widths=(D_HEAD, D_HEAD))
    served = [kernel for kernel in get_args(Kernel) if kernel != "reference" and not refusal(kernel, fits)]
    if not served:
        raise NotApplicable("only the definition serves it")

    def by(kernel: Kernel) -> Tensor:
        return attend(query, key, value, queries=tokens, keys=tokens, kernel=kernel, **axes)

    wrong = [kernel for kernel in served if equal(by(kernel), by("reference")) is not True]
    return f"{', '.join(wrong)} gives other numbers" if wrong else True


@law("documents packed end to end, padded, and alone give the same numbers", "axis")
def layouts(subject: Subject) -> Verdict:
    axes, whole = subject.axes(), rows(sum(LENGTHS))
    packed = Tokens.packed(torch.tensor(LENGTHS))
    together_ = attend(*whole, queries=packed, keys=packed, **axes).split(LENGTHS, 2)
    for number, length in enumerate(LENGTHS):
        own = [part.split(LENGTHS, 2)[number] for part in whole]
        plain = Tokens.plain(1, length)
        alone = attend(*own, queries=plain, keys=plain, **axes)  # type: ignore[misc]
        wide = [torch.cat([100 * drawn(1, HEADS, 2, D_HEAD), part, 100 * drawn(1, HEADS, 1, D_HEAD)], 2) for part in own]
        tokens = Tokens.padded(torch.tensor([[False] * 2 + [True] * length + [False]]))
        padded = attend(*wide, queries=tokens, keys=tokens, **axes)[:, :, 2:-1]  # type: ignore[misc]
        for what, other in (("packed", together_[number]), ("padded", padded)):
            if (verdict := equal(other, alone)) is not True:
                return f"{what}: {verdict}"
    return True


@law("with a causal pattern nothing comes from the future", "axis")
def past_alone(subject: Subject) -> Verdict:
    axes: dict[str, Any] = subject.axes()
    axes["pattern"] = together((axes["pattern"], Causal() & Window(4)))
    whole, tokens = [part.requires_grad_() for part in rows(6)], Tokens.plain(1, 6)
    for place in range(6):
        out = attend(*whole, queries=tokens, keys=tokens, **axes)  # type: ignore[misc]
        for gradient in torch.autograd.grad(out[:, :, place].sum(), whole, allow_unused=True):
            if gradient is not None and bool(gradient[:, :, place + 1 :].any()):
                return f"position {place} hears of what follows it"
    return True
