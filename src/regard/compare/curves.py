"""How the variants learned: the validation score by step, the mean over the seeds, as one drawing."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from regard.compare.runs import folder_of
from regard.compare.sweep import Sweep
from regard.errors import UsageError
from regard.look.drawing import FAINT, PALE, SIZE, Drawing, Line, Mark, Words
from regard.look.palette import colour
from regard.train.log import read_log

WIDTH, HEIGHT, MARGIN, LEGEND = 640, 360, 56, 22  # pixels
TICKS = 4

Points = list[tuple[int, float]]


def curves(sweep: Sweep, out: Path) -> Drawing:
    """A line for each variant; the score that decides where it was watched, else the loss."""
    logs = {
        variant.name: [read_log(path) for seed in sweep.head.seeds if (path := folder_of(out, variant, seed) / "log.jsonl").is_file()]
        for variant in sweep.variants
    }
    watched = [line for several in logs.values() for log in several for line in log if line.get("event") == "evaluate"]
    names = [name for name in (sweep.head.score, "bleu", "accuracy", "loss") if name and watched and all(name in line for line in watched)]
    if not names:
        raise UsageError("no run was watched while it learned", where=sweep.name, do="name validation examples: [[data.valid]]")
    lines = {variant.name: averaged(logs[variant.name], names[0]) for variant in sweep.variants}
    return drawn(f"{sweep.name}: {names[0]}", {name: line for name, line in lines.items() if line})


def averaged(logs: list[list[dict]], name: str) -> Points:
    """The mean at each step that all seeds were watched at."""
    found = [{line["step"]: line[name] for line in log if line.get("event") == "evaluate" and line[name] is not None} for log in logs]
    if not found:
        return []
    return [(step, fmean(values[step] for values in found)) for step in sorted(set.intersection(*map(set, found)))]


def drawn(title: str, lines: dict[str, Points]) -> Drawing:
    steps, values = ([point[axis] for line in lines.values() for point in line] for axis in (0, 1))
    low, high, last = min(values), max(values), max(steps)
    high = high if high > low else low + 1

    def at(step: float, value: float) -> tuple[float, float]:
        return MARGIN + step / last * (WIDTH - 2 * MARGIN), MARGIN + (high - value) / (high - low) * (HEIGHT - 2 * MARGIN)

    marks: list[Mark] = [Words(title, MARGIN, MARGIN / 2, bold=True)]
    for tick in range(TICKS + 1):
        value, step = low + (high - low) * tick / TICKS, last * tick / TICKS
        (left, y), (x, bottom) = at(0, value), at(step, low)
        marks += [Line(((left, y), at(last, value)), PALE, 1)]
        marks += [Words(f"{value:.3g}", left - 8, y + 5, "end", FAINT, SIZE - 3)]
        marks += [Words(f"{step:,.0f}", x, bottom + 20, "middle", FAINT, SIZE - 3)]
    for number, (name, line) in enumerate(lines.items()):
        y = HEIGHT + number * LEGEND
        marks += [
            Line(tuple(at(*point) for point in line), colour(number), 2),
            Line(((MARGIN, y - 5), (MARGIN + 24, y - 5)), colour(number), 2),
        ]
        marks += [Words(f"{name}: {line[-1][1]:.4g} at step {line[-1][0]:,}", MARGIN + 32, y)]
    return Drawing(title, WIDTH, HEIGHT + len(lines) * LEGEND, tuple(marks))
