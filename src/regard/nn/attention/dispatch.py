"""Which kernel serves a call, and why: one pure function of what the call needs."""

from __future__ import annotations

from typing import Literal, NamedTuple, assert_never, get_args

import torch

from regard.errors import UsageError
from regard.nn.attention.biases import Asks, NoBias
from regard.nn.attention.normalise import Normaliser, Softmax
from regard.nn.attention.patterns import Full, together
from regard.nn.attention.predicate import EVERYWHERE, PAST, Band, Predicate
from regard.nn.attention.scores import Pairwise, Product, ScaledDot

Kernel = Literal["reference", "sdpa", "gathered", "blocked", "flex", "varlen"]
FULL, SCALED, NO_BIAS, SOFTMAX = Full(), ScaledDot(), NoBias(), Softmax()
LONG_ON_CPU = 1024  # queries from which going block by block is worth its bookkeeping
LONG = 2048  # queries and keys from which a mask in memory costs more than flex's compiling is worth


class Need(NamedTuple):
    """What a call asks of a kernel: facts alone, so that a plan can ask before there is a model."""

    product: bool = True  # the score is a dot product in some basis
    widens: bool = False  # and that basis has more coordinates than the heads
    softmax: bool = True
    asks: Asks = "nothing"  # what the bias is a function of
    band: Band | None = EVERYWHERE  # the pattern, where it is only a reach into past and future
    sparse: bool = False  # it leaves out most of a long row, and there are queries enough to go block by block
    device: str = "cpu"
    dtype: torch.dtype = torch.float32
    widths: tuple[int, int] = (64, 64)  # per head: of the keys, of the values
    packed: bool = False  # both sides are packed rows with spans
    plain: bool = False  # neither side has tokens
    same: bool = True  # queries and keys are the same tokens
    length: int = 0  # the larger of T and S, and of packed rows the longest document; 0 if not known
    dropout: bool = False  # on the weights
    gradient: bool = True
    watched: bool = False  # the weights are asked for

    @staticmethod
    def of(
        pattern: Predicate | tuple[Predicate, ...] = FULL,
        *,
        score: Product | Pairwise = SCALED,
        bias=NO_BIAS,
        normalise: Normaliser = SOFTMAX,
    ) -> Need:
        """The need of these axes, configurations or what they build; `_replace` the facts that one knows."""
        pattern = together(pattern)
        return Need(score.product, score.widens, normalise.kind == "softmax", bias.asks, pattern.band, pattern.sparse)


class Choice(NamedTuple):
    kernel: Kernel
    reason: str


def choose(need: Need, kernel: Kernel | Literal["auto"] = "auto") -> Choice:
    """The first kernel, in the order of `preference`, that can serve; or the one that was named, if it can."""
    if kernel != "auto":
        if kernel not in get_args(Kernel):
            raise UsageError(f"there is no kernel {kernel!r}", where="attention", do=f"choose auto, {', '.join(get_args(Kernel))}")
        if refused := refusal(kernel, need):
            raise UsageError(f"the kernel {kernel} cannot serve: {refused}", where="attention", do="name another one, or auto")
        return Choice(kernel, "asked for by name")
    passed = []
    for candidate, reason in preference(need):
        refused = refusal(candidate, need)
        if not refused:
            return Choice(candidate, "; ".join([reason, *passed]))
        passed.append(f"not {candidate}: {refused}")
    raise AssertionError("reference serves everything")


def preference(need: Need) -> tuple[tuple[Kernel, str], ...]:
    """The candidates, best first, each with what speaks for it."""
    definition: tuple[Kernel, str] = ("reference", "the definition serves everything")
    gathered: tuple[Kernel, str] = ("gathered", "packed rows: each document attends within itself")
    sdpa: tuple[Kernel, str] = ("sdpa", "rows: torch's fused attention")
    long: tuple[tuple[Kernel, str], ...] = ()
    if need.sparse and need.length >= (LONG_ON_CPU if need.device == "cpu" else LONG):
        long = (("blocked", "long rows under a sparse pattern: only the blocks that it may see"),)
    if need.device == "cpu":
        return (*long, gathered, sdpa, definition) if need.packed else (*long, sdpa, definition)
    if need.packed:
        return (("varlen", "packed rows in sixteen bits: flash attention by offsets"), *long, gathered, sdpa, definition)
    if need.device == "cuda" and need.length >= LONG and not (need.plain and need.band in (EVERYWHERE, PAST)):
        return (("flex", "long rows under a pattern: no mask in memory"), *long, sdpa, definition)
    return *long, sdpa, definition


def refusal(kernel: Kernel, need: Need) -> str:
    """Why this kernel cannot serve this need, or nothing."""
    if kernel == "reference":
        return ""
    if need.watched:
        return "it never has the weights in hand, and they are asked for"
    if not need.softmax:
        return "its weights are a softmax"
    if not need.product:
        return "the score is no dot product"
    if need.asks == "values":
        return "the bias also moves the values"
    match kernel:
        case "sdpa" | "blocked":
            return ""
        case "gathered":
            return "" if need.packed else "it needs packed rows with spans on both sides"
        case "flex":
            if need.asks == "query":
                return "the bias depends on the query"
            if need.dropout:
                return "it has no dropout on weights"
            return "it has no gradient on the CPU" if need.device == "cpu" and need.gradient else ""
        case "varlen":
            return _varlen_refusal(need)
        case _:
            assert_never(kernel)


def _varlen_refusal(need: Need) -> str:
    if need.device != "cuda":
        return "it needs CUDA"
    if need.dtype not in (torch.float16, torch.bfloat16):
        return "it needs sixteen-bit numbers"
    if not need.packed:
        return "it needs packed rows with spans on both sides"
    if need.asks != "nothing":
        return "it knows no bias"
    if need.dropout:
        return "it has no dropout on weights"
    if need.band is None:
        return "the pattern is no reach into past and future"
    if need.band != EVERYWHERE and not need.same:
        return "the pattern asks for positions, and queries and keys are not the same tokens"
    if need.widens or need.widths[0] != need.widths[1] or need.widths[0] % 8 or need.widths[0] > 256:
        return "the heads' width must be one multiple of 8 up to 256"
    return ""
