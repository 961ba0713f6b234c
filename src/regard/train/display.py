"""Training before one's eyes: a bar with loss, speed, time left and the latest translation on a terminal; plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Literal, TextIO

from regard.train.log import Display, Value

Show = Literal["auto", "rich", "plain", "none"]


class Plain:
    """One line of text for each line of the log."""

    def __init__(self, file: TextIO):
        self.file = file

    def show(self, line: Mapping[str, Value]) -> None:
        print(sentence(line), file=self.file, flush=True)

    def close(self) -> None: ...


class Rich:
    """A live bar; evaluations stay above it, the sample below is replaced by the next one."""

    def __init__(self, file: TextIO):
        from rich.console import Console, Group
        from rich.live import Live
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.text import Text

        self.console = Console(file=file)
        self.bar = Progress(TextColumn("{task.description}"), BarColumn(None), TextColumn("{task.percentage:>3.0f}%"), console=self.console)
        self.task = self.bar.add_task("beginning", total=1.0)
        self.sample = Text()
        self.live = Live(Group(self.bar, self.sample), console=self.console, refresh_per_second=4)

    def show(self, line: Mapping[str, Value]) -> None:
        self.live.start()  # at the first line; afterwards it does nothing
        match line.get("event"):
            case None:
                self.bar.update(self.task, description=sentence(line), completed=float(line.get("share") or 0))  # type: ignore[arg-type]
            case "sample":
                self.sample.plain = sentence(line)
            case _:
                self.console.print(sentence(line), markup=False, highlight=False)

    def close(self) -> None:
        self.live.stop()


def display(kind: Show = "auto", *, file: TextIO | None = None) -> Display | None:
    """The display that suits the place: rich only where somebody watches a terminal."""
    place = file or sys.stderr
    match kind:
        case "none":
            return None
        case "rich":
            return Rich(place)
        case "plain":
            return Plain(place)
        case "auto":
            return Rich(place) if place.isatty() else Plain(place)


def sentence(line: Mapping[str, Value]) -> str:
    """A line of the log, for people."""
    step = f"step {line.get('step')}"
    match line.get("event"):
        case None:
            parts = [step]
            if (loss := line.get("loss")) is not None:
                parts.append(f"loss {loss:.3f}")
            if speed := line.get("tokens_per_second"):
                parts.append(f"{speed:,.0f} tokens/s")
            if (left := line.get("seconds_left")) is not None:
                parts.append(f"{duration(float(left))} left")  # type: ignore[arg-type]
            if skipped := line.get("skipped"):
                parts.append(f"{skipped} skipped")
            return "  ".join(parts)
        case "sample":
            return f"{step}  {line.get('source')}  ->  {line.get('translation')}"
        case event:
            facts = ", ".join(f"{key} {_short(value)}" for key, value in line.items() if key not in ("step", "event"))
            return f"{step}  {event}: {facts}"


def duration(seconds: float) -> str:
    """12 s, 3:05 or 2:03:05."""
    whole = max(0, round(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}" if minutes else f"{rest} s"


def _short(value: Value) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple) and len(value) > 8:
        return f"{', '.join(map(str, value[:8]))} and {len(value) - 8} more"
    return str(value)
