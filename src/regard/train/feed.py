"""Micro-batches gathered into steps and laid on the device. Whoever makes them may do so ahead of time; here they are only taken."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from typing import Protocol

import torch

from regard.data.batch import Batch
from regard.data.batching import Cursor


class Stream(Protocol):
    """Endless batches, whose order is a pure function of the seed: what follows a cursor is always the same."""

    def after(self, cursor: Cursor, /) -> Iterator[tuple[Batch, Cursor]]: ...


Step = tuple[list[Batch], Cursor]  # the micro-batches, and the cursor after them


def steps(stream: Stream, cursor: Cursor, *, accumulate: int, device: torch.device) -> Generator[Step, None, None]:
    """Steps of `accumulate` micro-batches, from the cursor on. Closing it closes the stream, which may have a thread."""
    batches = stream.after(cursor)
    try:
        while True:
            step = []
            for _ in range(accumulate):
                batch, cursor = next(batches)
                step.append(batch.to(device))
            yield step, cursor
    finally:
        with contextlib.suppress(AttributeError):  # an iterator need not have it
            batches.close()  # type: ignore[attr-defined]
