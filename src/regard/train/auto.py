"""What is better measured than asked for: the largest batch that fits, and the precision that is faster here."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from torch import nn

from regard.data.batch import Batch
from regard.errors import OutOfMemory
from regard.train.device import Machine, is_out_of_memory

GPU_TOKENS = 65_536  # where larger steps stop paying even if they fit
SMALLEST = 256
STEPS = 50  # of an epoch, at least


def fit_tokens(
    objective: nn.Module, largest: Callable[[int], Batch], *, machine: Machine, on_cpu: int = 2048, most: int = GPU_TOKENS
) -> int:
    """The token budget for this device: `on_cpu`, or the first of most, most/2, ... whose worst batch, `largest(tokens)`, goes forward
    and back with a tenth of the memory to spare (optimisers need some, and the allocator's pieces do not fit perfectly)."""
    if machine.device.type == "cpu":
        return on_cpu
    tokens = most
    least = min(SMALLEST, most)
    while tokens >= least:
        if _fits(objective, largest(tokens + tokens // 10), machine):
            return tokens
        tokens //= 2
    raise OutOfMemory(f"not even a batch of {least} fits into memory", where=str(machine.device), do="make the model smaller")


def worth_trying(tokens: int) -> int:
    """The largest budget for a corpus of so many tokens: a power of two that leaves an epoch fifty steps, and no more than pays."""
    return min(GPU_TOKENS, 1 << max(4, (tokens // STEPS).bit_length() - 1))


def faster_precision(
    objective: nn.Module, batch: Batch, *, machine: Machine, seconds: float = 4.0
) -> tuple[Literal["fp32", "bf16"], dict[str, float]]:
    """The precision whose steps are faster, and the seconds of a step in each: the best of as many as the time allows, taken in turns."""
    batch = batch.to(machine.device)
    kinds: tuple[Literal["fp32", "bf16"], ...] = ("fp32", "bf16")
    best: dict[str, float] = dict.fromkeys(kinds, float("inf"))
    end = time.monotonic() + seconds
    for round_ in range(100):  # the first is for warming up
        for kind in kinds:
            spent = _timed(objective, batch, replace(machine, precision=kind))
            if round_:
                best[kind] = min(best[kind], spent)
        if round_ and time.monotonic() > end:
            break
    return min(kinds, key=lambda kind: best[kind]), dict(best)


def _fits(objective: nn.Module, batch: Batch, machine: Machine) -> bool:
    try:
        _timed(objective, batch.to(machine.device), machine)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        return False
    finally:
        objective.zero_grad(set_to_none=True)
        machine.free()
    return True


def _timed(objective: nn.Module, batch: Batch, machine: Machine) -> float:
    """Seconds of a forward and a backward pass; nothing is learned from it."""
    machine.wait()
    started = time.perf_counter()
    with machine.autocast():
        loss = objective(batch)
    loss.backward()
    machine.wait()
    spent = time.perf_counter() - started
    objective.zero_grad(set_to_none=True)
    return spent
