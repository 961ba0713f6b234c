"""How the variants learned: the validation score by step, the mean over the seeds, as one drawing."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from regard.compare.runs import folder_of
from regard.compare.sweep import Sweep
from regard.errors import UsageError
from regard.look.drawing import Drawing
from regard.look.plot import Points, plot
from regard.train.log import read_log


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
    told = {name: f"{name}: {line[-1][1]:.4g} at step {line[-1][0]:,}" for name, line in lines.items() if line}
    return plot(f"{sweep.name}: {names[0]}", {told[name]: lines[name] for name in told}, across="steps")


def averaged(logs: list[list[dict]], name: str) -> Points:
    """The mean at each step that all seeds were watched at."""
    found = [{line["step"]: line[name] for line in log if line.get("event") == "evaluate" and line[name] is not None} for log in logs]
    if not found:
        return []
    return [(step, fmean(values[step] for values in found)) for step in sorted(set.intersection(*map(set, found)))]
