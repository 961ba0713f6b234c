"""Micro-batches, gathered into steps and laid on the device; on a GPU a thread does so ahead of time."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from typing import Any, Protocol

import torch

from regard.data.batch import PairBatch

AHEAD = 2  # steps made ready on a GPU while another runs


class Stream(Protocol):
    """Endless batches, whose order is a pure function of the seed: what follows a cursor is always the same."""

    def after(self, cursor: Any, /) -> Iterator[tuple[PairBatch, Any]]: ...


Step = tuple[list[PairBatch], Any]  # the micro-batches, and the cursor after them


def steps(stream: Stream, cursor: Any, *, accumulate: int, device: torch.device) -> Iterator[Step]:
    """Steps of `accumulate` micro-batches, from the cursor on. The cursor of a step is known when the step is taken, not read ahead."""
    batches = stream.after(cursor)
    while True:
        step = []
        for _ in range(accumulate):
            batch, cursor = next(batches)
            step.append(batch.to(device))
        yield step, cursor


@contextlib.contextmanager
def feed(stream: Stream, cursor: Any, *, accumulate: int, device: torch.device) -> Iterator[Iterator[Step]]:
    """The same, read ahead by a thread where the CPU has nothing better to do."""
    made = steps(stream, cursor, accumulate=accumulate, device=device)
    if device.type == "cpu":
        yield made
        return
    ready: queue.Queue[Step | BaseException] = queue.Queue(AHEAD)
    ended = threading.Event()

    def offer(item: Step | BaseException) -> None:
        while not ended.is_set():
            with contextlib.suppress(queue.Full):
                ready.put(item, timeout=0.1)
                return

    def work() -> None:
        try:
            for step in made:
                offer(step)
                if ended.is_set():
                    return
        except BaseException as error:  # shown to whoever waits for the step
            offer(error)

    def taken() -> Iterator[Step]:
        while True:
            item = ready.get()
            if isinstance(item, BaseException):
                raise item
            yield item

    thread = threading.Thread(target=work, name="feed", daemon=True)
    thread.start()
    try:
        yield taken()
    finally:
        ended.set()
        thread.join()
