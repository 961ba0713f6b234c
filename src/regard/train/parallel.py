"""Several processes, one run: started by torchrun, each with its own batches; gradients, counts and decisions are shared.

Gradients are summed after the backward pass, not during it. So no collective is open while a rank may still run out of memory or be
told to stop: each comes to the meeting point and says so, and all do the same. What overlapping would save is small beside that.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

BUCKET = 2**24  # elements summed in one call


@dataclass(frozen=True)
class Ranks:
    """Which of how many processes this is. `talk` is a gloo group for decisions, which live on the host and must not wait for a GPU."""

    rank: int = 0
    world: int = 1
    local: int = 0
    talk: dist.ProcessGroup | None = None

    @property
    def first(self) -> bool:
        return self.rank == 0

    def any(self, *flags: bool) -> tuple[bool, ...]:
        """Each flag, true if it is on any rank. A meeting point: all ranks must come."""
        if self.world == 1:
            return flags
        values = torch.tensor([int(flag) for flag in flags])
        dist.all_reduce(values, dist.ReduceOp.MAX, group=self.talk)
        return tuple(bool(value) for value in values.tolist())

    def sum(self, *numbers: float) -> tuple[float, ...]:
        if self.world == 1:
            return numbers
        values = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(values, group=self.talk)
        return tuple(values.tolist())

    def from_first(self, *numbers: float) -> tuple[float, ...]:
        """The first rank's numbers, for everybody: the clock, a score."""
        if self.world == 1:
            return numbers
        values = torch.tensor(numbers, dtype=torch.float64)
        dist.broadcast(values, 0, group=self.talk)
        return tuple(values.tolist())

    def gather(self, numbers: Sequence[int]) -> list[int]:
        """The numbers of all ranks, end to end."""
        if self.world == 1:
            return list(numbers)
        longest = int(max(self._all(torch.tensor([len(numbers)]))))
        padded = torch.full((longest,), -1)
        padded[: len(numbers)] = torch.tensor(numbers, dtype=torch.int64)
        return [number for number in self._all(padded) if number >= 0]

    def _all(self, values: Tensor) -> list[int]:
        gathered = [torch.empty_like(values) for _ in range(self.world)]
        dist.all_gather(gathered, values, group=self.talk)
        return torch.cat(gathered).tolist()

    def add(self, tensors: Sequence[Tensor]) -> None:
        """Sum tensors over the ranks, in place, on their device, in a few large calls."""
        if self.world == 1:
            return
        for bucket in _buckets(tensors):
            flat = torch.cat([tensor.flatten() for tensor in bucket])
            dist.all_reduce(flat)
            for tensor, summed in zip(bucket, flat.split([tensor.numel() for tensor in bucket])):
                tensor.copy_(summed.view_as(tensor))

    def same(self, model: nn.Module) -> None:
        """Give everybody the first rank's parameters and buffers."""
        if self.world > 1:
            for tensor in [*model.parameters(), *model.buffers()]:
                dist.broadcast(tensor.data, 0)

    def wait(self) -> None:
        if self.world > 1:
            dist.barrier(group=self.talk)

    def leave(self) -> None:
        if self.world > 1 and dist.is_initialized():
            dist.destroy_process_group()


def join(*, cuda: bool, patience: float = 1800.0) -> Ranks:
    """The place that torchrun gave this process; alone without torchrun. `patience` bounds any wait for another rank, in seconds."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        return Ranks()
    timeout = datetime.timedelta(seconds=patience)
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if cuda:
        torch.cuda.set_device(local)
    dist.init_process_group("nccl" if cuda else "gloo", timeout=timeout)
    talk = dist.new_group(backend="gloo", timeout=timeout)
    return Ranks(dist.get_rank(), world, local, talk)  # type: ignore[arg-type]


def _buckets(tensors: Iterable[Tensor]) -> Iterator[list[Tensor]]:
    bucket: list[Tensor] = []
    for tensor in tensors:
        if bucket and (sum(map(Tensor.numel, bucket)) + tensor.numel() > BUCKET or tensor.dtype != bucket[0].dtype):
            yield bucket
            bucket = []
        bucket.append(tensor)
    if bucket:
        yield bucket
