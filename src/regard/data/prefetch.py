"""An iterator run ahead by a thread: the next batches are made while the device works on this one."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from typing import TypeVar

T = TypeVar("T")


def prefetch(make: Callable[[], Iterator[T]], *, ahead: int = 4) -> Generator[T, None, None]:
    """What make() yields, at most `ahead` items early. An error in the thread is raised here; closing the iterator ends the thread."""
    ready: queue.Queue = queue.Queue(ahead)
    stopped = threading.Event()

    def fill() -> None:
        last: object = None
        try:
            for item in make():
                if not _put(ready, (item,), stopped):
                    return
        except BaseException as error:  # whatever it was belongs to the reader
            last = error
        _put(ready, last, stopped)

    thread = threading.Thread(target=fill, name="regard-prefetch", daemon=True)
    thread.start()
    try:
        while isinstance(found := ready.get(), tuple):
            yield found[0]
        if found is not None:
            raise found
    finally:
        stopped.set()
        thread.join()


def _put(ready: queue.Queue, item: object, stopped: threading.Event) -> bool:
    while not stopped.is_set():
        try:
            ready.put(item, timeout=0.1)
            return True
        except queue.Full:
            continue
    return False
