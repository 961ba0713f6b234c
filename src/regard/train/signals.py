"""SIGTERM, SIGUSR1 and SIGINT while training: finish the step, save, leave with code 75; a second one leaves at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from regard.errors import Interrupted

KINDS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)
SAME_REQUEST = 0.5  # seconds: a terminal signals torchrun and its workers, and torchrun then passes the signal on


class Signals:
    """A flag that signals raise and every loop looks at: `with Signals() as signals`, and `signals.check()` wherever time passes."""

    def __init__(self):
        self.asked = ""  # the name of the signal that came
        self._when = 0.0
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():  # elsewhere Python allows no handlers; then nobody asks
            self._before = {kind: signal.signal(kind, self._take) for kind in KINDS}
        return self

    def __exit__(self, *_: object) -> None:
        for kind, handler in self._before.items():
            signal.signal(kind, handler)  # type: ignore[arg-type]
        self._before = {}

    def check(self) -> None:
        """Go on, or raise Interrupted if a signal came. For loops that can be left at any point: evaluation, decoding, data preparation."""
        if self.asked:
            raise Interrupted(f"stopped by {self.asked}")

    def _take(self, number: int, _: object) -> None:
        now = time.monotonic()
        if self.asked and now - self._when > SAME_REQUEST:
            os._exit(128 + number)
        if not self.asked:
            self.asked, self._when = signal.Signals(number).name, now
            # print() is not safe inside a handler: it may interrupt another print
            os.write(
                sys.__stderr__.fileno() if sys.__stderr__ else 2, b"\nstopping after this step and saving; once more to stop at once\n"
            )
