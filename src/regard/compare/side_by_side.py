"""What each variant looks at while it reads or writes one sentence, in one drawing."""

from __future__ import annotations

from pathlib import Path

from regard.compare.runs import folder_of
from regard.compare.sweep import Sweep
from regard.errors import UsageError
from regard.loaded import load
from regard.look.drawing import Drawing, Mark, Words, moved
from regard.look.figure import figure
from regard.look.opening import clearest
from regard.tasks.telling import say

ABOVE = 28  # pixels, for the name of each variant


def side_by_side(sweep: Sweep, out: Path, text: str) -> Drawing:
    """The clearest head of the first finished seed of each variant; who has no attention maps is told and left out."""
    marks: list[Mark] = []
    width = height = 0.0
    for variant in sweep.variants:
        folders = (folder_of(out, variant, seed) for seed in sweep.head.seeds)
        done = next((folder for folder in folders if (folder / "report.json").is_file()), None)
        if done is None:
            continue
        try:
            trace = load(done, device="cpu").look(text)
            opening = clearest(trace)
        except UsageError as error:
            say(f"{variant.name}: {error.what}")
            continue
        one = figure(trace, opening.kind, opening.layer, [opening.head])
        marks += [Words(variant.name, width + 24, 20, bold=True), *(moved(mark, width, ABOVE) for mark in one.marks)]
        width, height = width + one.width, max(height, one.height + ABOVE)
    if not marks:
        raise UsageError("no finished run of it can be looked into", where=sweep.name, do="make its runs first")
    return Drawing(f"{sweep.name}: {text}", width, height, tuple(marks))
