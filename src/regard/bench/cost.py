"""What attention, feed-forward layers and recurrence cost by the length of the row, with fitted exponents, and where their costs cross."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from typing import Any

from regard.bench.longcontext import doubling, exponent, one_thread, too_long

# FLOPs of a forward pass over n vectors of width d, a multiply-add as two (Vaswani 2017, table 1, with the maps that it leaves out).
FORMULAS: dict[str, Callable[[int, int], int]] = {
    "core": lambda n, d: 4 * n * n * d,  # scores and weighted sums alone
    "attention": lambda n, d: 8 * n * d * d + 4 * n * n * d,  # with its four maps, in heads of 64
    "one-head": lambda n, d: 8 * n * d * d + 4 * n * n * d,
    "feed-forward": lambda n, d: 16 * n * d * d,  # four times as wide inside
    "rnn": lambda n, d: 4 * n * d * d,
    "gru": lambda n, d: 12 * n * d * d,
    "lstm": lambda n, d: 16 * n * d * d,
}
CROSSINGS = (("core", "rnn"), ("core", "lstm"), ("attention", "feed-forward"), ("attention", "rnn"), ("attention", "lstm"))


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--longest", type=int, default=8192, metavar="TOKENS", help="the longest row; they double from 64 on (8192)")
    parser.add_argument("--d-model", type=int, default=256, metavar="D", help="width of the vectors (256)")
    parser.add_argument("--rows", type=int, default=1, help="rows side by side (1)")
    parser.add_argument("--seconds", type=float, default=20.0, help="a length that would take longer than this is left out (20)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    lengths = doubling(64, arguments.longest)
    given = {"d_model": arguments.d_model, "rows": arguments.rows, "seconds": arguments.seconds, "device": arguments.device}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=one_thread) as pool:
        found = {part: pool.submit(measure, part, lengths, **given).result() for part in FORMULAS}
    said: dict[str, Any] = {}
    for part, points in found.items():
        said[part] = {str(length): f"{1000 * took:.3g} ms" for length, took in points}
        if len(points) > 1:
            said[part]["exponent"] = round(exponent(points), 2)
    said["dearer from"] = {}
    for one, other in CROSSINGS:
        measured, by_formula = crossing(found[one], found[other]), expected(one, other, arguments.d_model)
        said["dearer from"][f"{one} than {other}"] = f"{told(measured)} tokens; by the formulas {told(by_formula)}"
    return said


def measure(part: str, lengths: Sequence[int], *, d_model: int, rows: int, seconds: float, device: str) -> list[tuple[float, float]]:
    """For each length the best time of three, forward and backward; on the CPU that of one thread of the processor."""
    import torch

    clock = time.process_time if device == "cpu" else time.perf_counter
    found: list[tuple[float, float]] = []
    layer = built(part, d_model).to(device)
    for length in lengths:
        if found and too_long([(int(past), took) for past, took in found], length, seconds):
            break
        x = torch.randn(rows, length, d_model, device=device, requires_grad=True)
        took = []
        for _ in range(4):  # the first warms up
            started = clock()
            layer(x).sum().backward()
            if device != "cpu":
                torch.cuda.synchronize()
            took.append(clock() - started)
        found.append((length, min(took[1:])))
    return found


def built(part: str, d_model: int):
    """A module from vectors to vectors: those that the package's trunks are made of."""
    from torch import nn

    from regard.nn.attention.attend import attend
    from regard.nn.attention.multihead import Attention, MultiHead
    from regard.nn.feedforward import FeedForward, PositionWise
    from regard.nn.view import Tokens, View

    many = max(1, d_model // 64)

    class Core(nn.Module):
        def forward(self, x):
            heads = x.unflatten(-1, (many, -1)).transpose(1, 2)
            return attend(heads, heads, heads)

    class Layer(nn.Module):
        def __init__(self, heads: int):
            super().__init__()
            self.attention = MultiHead(Attention(), d_model, heads=heads, groups=heads, d_head=d_model // heads, pattern=(), name="own")

        def forward(self, x):
            return self.attention(x, View(Tokens.plain(len(x), x.shape[1], device=x.device)))

    class Read(nn.Module):
        def __init__(self, cell: nn.Module):
            super().__init__()
            self.cell = cell

        def forward(self, x):
            return self.cell(x)[0]

    match part:
        case "core":
            return Core()
        case "attention":
            return Layer(many)
        case "one-head":
            return Layer(1)
        case "feed-forward":
            return PositionWise(FeedForward(d_ff=4 * d_model), d_model)
        case _:
            cell = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}[part]
            return Read(cell(d_model, d_model, batch_first=True))


def crossing(one: Sequence[tuple[float, float]], other: Sequence[tuple[float, float]]) -> float | None:
    """The length from which `one` is dearer for good, between the measured ones by the slope of the logarithms; None: from none on."""
    beside = [(length, math.log(took / dict(other)[length])) for length, took in one if length in dict(other)]
    found = beside[0][0] if beside[0][1] > 0 else None
    for (short, below), (long, above) in pairwise(beside):
        if below <= 0 < above:
            found = math.exp(math.log(short) - below * (math.log(long) - math.log(short)) / (above - below))
        elif above <= 0:
            found = None
    return found


def expected(one: str, other: str, d_model: int) -> float | None:
    """The same by the formulas: the difference of two is linear in the length but for a factor of it."""
    less = [FORMULAS[one](n, d_model) / n - FORMULAS[other](n, d_model) / n for n in (1, 2)]
    slope = less[1] - less[0]
    return max(0.0, 1 - less[0] / slope) if slope > 0 else None


def told(length: float | None) -> str:
    if length is None:
        return "none"
    return f"{length:,.0f}" if length >= 1 else "any"
