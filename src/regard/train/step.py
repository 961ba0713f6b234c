"""One step: the gradients of its micro-batches, divided by what was counted, clipped, judged and applied."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.data.batch import Batch, halve
from regard.errors import OutOfMemory
from regard.train.average import MovingAverage
from regard.train.device import Late, Machine, is_out_of_memory, seed_everything
from regard.train.optimise import Optimiser
from regard.train.parallel import Ranks
from regard.train.segments import Left, SegmentObjective


@dataclass(frozen=True, eq=False)
class Report:
    """What a step found. The tensors stay on the device until somebody wants to log them."""

    step: int
    loss: Float[Tensor, ""]  # summed over the labels of all ranks
    norm: Float[Tensor, ""]  # of the gradient of the mean loss, before clipping
    bad: Float[Tensor, ""]  # 1 where loss or gradient was not finite, and nothing moved
    factor: float  # of the schedule
    source_tokens: int
    target_tokens: int
    pairs: int


@dataclass(frozen=True)
class Verdict:
    """A step that was judged, as the host learns of it."""

    step: int
    bad: bool
    pairs: tuple[int, ...]


class Learner:
    """Objective, optimiser and average, and how a step is taken with them.

    Whether a step is good is decided on the device (`bad`), which gates the update there, so a GPU never waits for the host. The host
    hears of it one step later; only then does its count of skipped steps, and with it the schedule, know. On the CPU it knows at once.
    """

    def __init__(
        self,
        objective: nn.Module,
        optimiser: Optimiser,
        *,
        machine: Machine,
        ranks: Ranks = Ranks(),  # noqa: B008  (frozen)
        average: MovingAverage | None = None,
        clip: float = 1.0,
        seed: int = 1,
    ):
        self.objective, self.optimiser, self.average = objective, optimiser, average
        self.machine, self.ranks = machine, ranks
        self.clip, self.seed = clip, seed
        self.largest = 2**62  # tokens of the largest micro-batch that is tried whole; falls when memory runs out
        self.splits = 0
        self._unread: deque[tuple[int, Late, tuple[int, ...]]] = deque()

    @property
    def model(self) -> nn.Module:
        return self.objective.model  # type: ignore[return-value]

    @property
    def left(self) -> Left | None:
        """What the last segments left, where the model reads on from one to the next."""
        return self.objective.left if isinstance(self.objective, SegmentObjective) else None

    @left.setter
    def left(self, left: Left | None) -> None:
        if isinstance(self.objective, SegmentObjective):
            self.objective.left = left

    def step(self, batches: Sequence[Batch], *, step: int, updates: int, factor: float) -> Report:
        """Take step number `step`, after `updates` good ones, at `factor` times the optimiser's rate."""
        loss = self._gradients(batches, step)
        source, target, pairs = (
            int(n)
            for n in self.ranks.sum(
                sum(b.source_tokens for b in batches), sum(b.target_tokens for b in batches), sum(len(b.pairs) for b in batches)
            )
        )
        gradients = self._summed_gradients(loss)
        norm = torch.nn.utils.get_total_norm(gradients) / target
        bad = (~(norm.isfinite() & loss.isfinite())).float()
        scale = (self.clip / norm.clamp_min(self.clip) if self.clip else 1.0) / target
        torch._foreach_mul_(gradients, scale)  # pyright: ignore[reportPrivateImportUsage]
        self.optimiser.step(factor, bad=bad)
        if self.average is not None:
            self.average.update(updates, bad=bad)
        self.optimiser.clear()
        self._unread.append((step, Late(bad), tuple(p for b in batches for p in b.pairs)))
        return Report(step, loss, norm, bad, factor, source, target, pairs)

    @contextlib.contextmanager
    def at_rest(self) -> Iterator[None]:
        """The model as it would be exported: without dropout, without gradients, averaged if an average is kept."""
        training = self.model.training
        self.model.eval()
        try:
            with torch.no_grad(), self.average.worn() if self.average is not None else contextlib.nullcontext():
                yield
        finally:
            self.model.train(training)

    def verdicts(self, *, all: bool = False) -> list[Verdict]:
        """The steps judged since this was last asked; on a GPU the latest is left for the next time, unless `all` are wanted."""
        behind = 0 if all or self.machine.device.type == "cpu" else 1
        read = []
        while len(self._unread) > behind:
            step, bad, pairs = self._unread.popleft()
            read.append(Verdict(step, bool(bad.read()), pairs))
        return read

    def _gradients(self, batches: Sequence[Batch], step: int) -> Tensor:
        """Accumulate the gradient of the summed loss. Out of memory on any rank: all begin the step again, with halves."""
        pieces = list(batches)
        while True:
            pieces = self._small_enough(pieces)
            short = hopeless = False
            left = self.left
            try:
                loss = self._accumulate(pieces, step)
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
                short, hopeless = True, all(len(piece.pairs) < 2 for piece in pieces)
                loss = None
            short, hopeless = self.ranks.any(short, hopeless)
            if loss is not None and not short:
                return loss
            # what was accumulated may be torn: the backward pass adds to one parameter after the other
            loss = None
            self.left = left
            self.optimiser.clear()
            self.machine.free()
            if hopeless:
                raise OutOfMemory(
                    "a single pair does not fit into memory", where=f"step {step}", do="lower the longest length, or the model"
                )
            self.splits += 1
            self.largest = max(_size(piece) for piece in pieces) - 1

    def _accumulate(self, pieces: Sequence[Batch], step: int) -> Tensor:
        losses = []
        for number, piece in enumerate(pieces):
            seed_everything(self.seed, step, number, self.ranks.rank)
            with self.machine.autocast():
                loss = self.objective(piece)
            loss.backward()
            losses.append(loss.detach())
        return torch.stack(losses).sum()

    def _small_enough(self, pieces: list[Batch]) -> list[Batch]:
        done: list[Batch] = []
        while pieces:
            halves = halve(pieces[0]) if _size(pieces[0]) > self.largest else (pieces[0],)
            if len(halves) == 1:
                done.append(pieces[0])
            pieces = [*(halves if len(halves) > 1 else ()), *pieces[1:]]
        return done

    def _summed_gradients(self, loss: Tensor) -> list[Tensor]:
        """The gradients and the loss, over all ranks."""
        if self.ranks.world > 1:
            for parameter in self.optimiser.parameters:
                if parameter.grad is None:  # unused here, maybe used elsewhere: the sum must have the same members everywhere
                    parameter.grad = torch.zeros_like(parameter)
        gradients = [parameter.grad for parameter in self.optimiser.parameters if parameter.grad is not None]
        self.ranks.add([*gradients, loss])
        return gradients


def _size(batch: Batch) -> int:
    return batch.source_tokens + batch.target_tokens
