"""What a run says: a line of log.jsonl for each logged step and each event, always; TensorBoard and a display beside it."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TextIO

from regard.models.folder import replace_text

Value = float | int | str | bool | None | Sequence[int]


class Display(Protocol):
    """Where people look; display.py has one for terminals and one for plain lines."""

    def show(self, line: Mapping[str, Value]) -> None: ...

    def close(self) -> None: ...


class Log:
    """The log of a run. Without a path (on all ranks but the first) nothing is written."""

    def __init__(self, path: Path | None, *, display: Display | None = None, tensorboard: Path | None = None):
        self.path, self.display, self.tensorboard = path, display, tensorboard
        self.file: TextIO | None = None
        self.board = None

    def begin(self, *, after: int) -> None:
        """Open it for the steps after this one. Later lines are dropped, since a run that goes on makes these steps again."""
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists():
                kept = [line for line in read_log(self.path) if int(line.get("step", 0)) <= after]
                replace_text(self.path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in kept))
            self.file = self.path.open("a", encoding="utf-8")
        if self.tensorboard is not None:
            from torch.utils.tensorboard import SummaryWriter  # an extra; slow to import

            self.board = SummaryWriter(str(self.tensorboard), purge_step=after + 1)

    def write(self, line: Mapping[str, Value]) -> None:
        """One line; numbers that JSON has no word for (an infinite norm) become null."""
        finite = {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in line.items()}
        if self.file is not None:
            try:  # a full disk does not end the run; the file keeps what it could not write, and tries again with the next line
                self.file.write(json.dumps(finite, ensure_ascii=False, allow_nan=False) + "\n")
                self.file.flush()
            except OSError as error:
                print(f"{self.path}: a line was not written, {error.strerror}", file=sys.stderr)
        if self.board is not None:
            for key, value in finite.items():
                if isinstance(value, float | int) and not isinstance(value, bool) and key != "step":
                    self.board.add_scalar(key, value, int(line["step"]))  # type: ignore[arg-type]
        if self.display is not None:
            self.display.show(finite)

    def close(self) -> None:
        for part in (self.file, self.board, self.display):
            if part is not None:
                with contextlib.suppress(OSError):  # told when the line was written
                    part.close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """The lines of a log; a last line that was cut off by a crash does not count."""
    lines = []
    for text in path.read_bytes().split(b"\n"):
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict):
            lines.append(line)
    return lines


def write_report(folder: Path, report: Mapping[str, Any]) -> None:
    """report.json: the run in one object."""
    replace_text(folder / "report.json", json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
