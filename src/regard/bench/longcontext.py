"""How time and memory of each kind of attention grow with the row: one layer, forward and backward, with fitted exponents."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from regard.nn.attention.slot import Slot
    from regard.nn.view import Tokens

KINDS = ("full", "window", "dilated", "global", "bigbird", "longformer", "linformer", "compressed", "transformer-xl")
SEGMENT = 512  # of what goes through a row segment by segment


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--longest", type=int, default=65_536, metavar="TOKENS", help="the longest row; they double from 1024 on (65,536)")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, metavar="KIND", help=f"some of {', '.join(KINDS)}")
    parser.add_argument("--d-model", type=int, default=256, metavar="D", help="width of the layer, of heads of 64 (256)")
    parser.add_argument("--seconds", type=float, default=60.0, help="a length that would take longer than this is left out (60)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    lengths = doubling(1024, arguments.longest)
    return {
        kind: grown(kind, lengths, d_model=arguments.d_model, seconds=arguments.seconds, device=arguments.device)
        for kind in arguments.kinds
    }


def doubling(first: int, last: int) -> list[int]:
    """The first length, twice it, and so on, as far as the last one lets it."""
    lengths = [first]
    while 2 * lengths[-1] <= last:
        lengths.append(2 * lengths[-1])
    return lengths


def grown(kind: str, lengths: Sequence[int], *, d_model: int, seconds: float, device: str = "cpu") -> dict[str, Any]:
    """All lengths of one kind, in a fresh process, whose peak of memory is theirs alone."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=one_thread) as pool:
        found = pool.submit(measure, kind, lengths, d_model=d_model, seconds=seconds, device=device).result()
    said: dict[str, Any] = {str(length): {"seconds": round(took, 4), "peak_mb": round(peak, 1)} for length, took, peak in found}
    if len(found) > 1:
        said["time_exponent"] = round(exponent([(length, took) for length, took, _ in found]), 2)
        said["memory_exponent"] = round(exponent([(length, peak) for length, _, peak in found]), 2)
    return said


def one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def measure(kind: str, lengths: Sequence[int], *, d_model: int, seconds: float, device: str) -> list[tuple[int, float, float]]:
    """For each length the best time of three, and the peak of memory in MB beyond what was held at first; up to what takes too long.

    On the CPU it is the time of the processor, of one thread: what else runs there counts little.
    """
    import torch

    from regard.nn.view import Tokens

    found: list[tuple[int, float, float]] = []
    clock = time.process_time if device == "cpu" else time.perf_counter
    held = resident("VmRSS") if device == "cpu" else torch.cuda.memory_allocated() / 2**20
    for length in lengths:
        if found and too_long([(past, took) for past, took, _ in found], length, seconds):
            break
        torch.manual_seed(1)
        layer = built(kind, length, d_model).to(device)
        x = torch.randn(1, length, d_model, device=device, requires_grad=True)
        took = []
        for _ in range(3):
            started = clock()
            through(layer, x, Tokens.plain(1, length, device=device)).backward()
            if device != "cpu":
                torch.cuda.synchronize()
            took.append(clock() - started)
            if sum(took) > seconds / 4:
                break
        found.append((length, min(took), peak(device) - held))
        x.grad = None
    return found


def through(layer: Slot, x: Tensor, tokens: Tokens) -> Tensor:
    """The sum of what comes out; of one that remembers, segment by segment."""
    from regard.nn.attention.segments import TransformerXLAttention
    from regard.nn.view import View

    if not isinstance(layer, TransformerXLAttention):
        return layer(x, View(tokens)).sum()
    total, past = x.new_zeros(()), layer.new_cache(1, 0)
    for start in range(0, x.shape[1], SEGMENT):
        part = slice(start, start + SEGMENT)
        own = tokens.each(lambda fact, part=part: fact[:, part])
        total = total + layer.remember(x[:, part], View(own), past).sum()
    return total


def built(kind: str, length: int, d_model: int):
    """One layer of this kind, with what its paper has as sizes, or about that."""
    from regard.nn.attention import BigBird, Dilated, Global, Window
    from regard.nn.attention.compressed import Compressed
    from regard.nn.attention.longformer import Longformer
    from regard.nn.attention.lowrank import Linformer
    from regard.nn.attention.multihead import Attention
    from regard.nn.attention.segments import TransformerXL
    from regard.nn.attention.slots import build_attention

    config = {
        "full": Attention(),
        "window": Attention(pattern=(Window(256),)),
        "dilated": Attention(pattern=(Dilated(64, (1, 2, 3, 4)),)),
        "global": Attention(pattern=(Window(256) | Global(16),)),
        "bigbird": Attention(pattern=(BigBird(64, random=3),)),
        "longformer": Longformer(reach=256, first=16),
        "linformer": Linformer(rank=256, length=length),
        "compressed": Compressed(size=3),
        "transformer-xl": TransformerXL(memory=SEGMENT),
    }[kind]
    heads = max(1, d_model // 64)
    shape = {"heads": heads, "groups": heads, "d_head": d_model // heads}
    return build_attention(config, d_model, causal=kind == "transformer-xl", common={}, name="own", **shape)


def too_long(found: Sequence[tuple[int, float]], length: int, seconds: float) -> bool:
    """Whether this length would take longer, growing as the last two did (at least linearly; the first time as the square)."""
    (last, took), power = found[-1], 2.0
    if len(found) > 1:
        power = max(1.0, exponent(found[-2:]))
    return took * (length / last) ** power > seconds


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """The power p of y ~ x^p, by least squares on the logarithms."""
    logs = [(math.log(x), math.log(max(y, 1e-9))) for x, y in points]
    mean_x, mean_y = (sum(values) / len(logs) for values in zip(*logs, strict=True))
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


def peak(device: str) -> float:
    """The most that was held so far; lengths only grow, so it is the last one's."""
    import torch

    return resident("VmHWM") if device == "cpu" else torch.cuda.max_memory_allocated() / 2**20


def resident(what: str) -> float:
    """A line of the kernel's account of this process, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(what))
