"""The one place that knows the device, the precision and the compiler."""

from __future__ import annotations

import contextlib
import random
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy
import torch
from torch import Tensor, nn

from regard.errors import UsageError

Precision = Literal["auto", "fp32", "bf16"]
M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True)
class Machine:
    """Where the numbers are, and in which type matrix products are taken. Parameters, moments and losses stay fp32."""

    device: torch.device
    precision: Literal["fp32", "bf16"] = "fp32"
    compile: bool = False

    def autocast(self) -> contextlib.AbstractContextManager:
        if self.precision == "fp32":
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)

    def compiled(self, module: M) -> M:
        """The module, compiled in place (its state keeps its names) where that was asked for."""
        if self.compile:
            module.compile(dynamic=True)
        return module

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def free(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    @property
    def name(self) -> str:
        if self.device.type == "cuda":
            return torch.cuda.get_device_name(self.device)
        return f"CPU, {torch.get_num_threads()} threads"


def machine(
    device: Literal["auto", "cpu", "cuda"] = "auto", precision: Precision = "auto", *, compile: bool = False, local_rank: int = 0
) -> Machine:
    """The machine that these words mean here. "auto" precision is bf16 on CUDA; on a CPU, time it (auto.py) or take fp32."""
    if device == "cuda" and not torch.cuda.is_available():
        raise UsageError("no CUDA device is to be seen", where="device", do='take device = "cpu" or "auto"')
    kind = "cuda" if device == "cuda" or (device == "auto" and torch.cuda.is_available()) else "cpu"
    if kind == "cuda":
        torch.cuda.set_device(local_rank)
        torch.set_float32_matmul_precision("high")
    chosen = ("bf16" if kind == "cuda" else "fp32") if precision == "auto" else precision
    return Machine(torch.device(kind, local_rank) if kind == "cuda" else torch.device("cpu"), chosen, compile)


def seed_everything(*numbers: int) -> None:
    """Seed every global generator from these numbers alone.

    Done before each micro-batch with (seed, step, micro-batch, rank), so dropout does not depend on what was drawn before: a resumed
    run needs no stored generator state, and sampling in an event disturbs nothing.
    """
    mixed = 0
    for number in numbers:  # splitmix64's finaliser, so that neighbours share nothing
        mixed = (mixed + number + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        mixed ^= mixed >> 31
    torch.manual_seed(mixed >> 1)
    random.seed(mixed)
    numpy.random.seed(mixed & 0xFFFFFFFF)


def is_out_of_memory(error: BaseException) -> bool:
    """CUDA has a class for it; the CPU's allocator only a sentence."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)


class Late:
    """A number on the device, read by the host without waiting: the copy is started at once and looked at one step later."""

    def __init__(self, value: Tensor):
        self.event: torch.cuda.Event | None = None
        if value.device.type == "cuda":
            self.copy = torch.empty(value.shape, dtype=value.dtype, pin_memory=True)
            self.copy.copy_(value, non_blocking=True)
            self.event = torch.cuda.Event()
            self.event.record()
        else:
            self.copy = value

    def read(self) -> Tensor:
        if self.event is not None:
            self.event.synchronize()
        return self.copy
