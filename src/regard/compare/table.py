"""What came out: the reports of a sweep as one table, with the mean and the spread over seeds, and what each variant costs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from regard.compare.runs import folder_of
from regard.compare.significance import welch
from regard.compare.sweep import Sweep
from regard.config.toml import load
from regard.errors import UsageError
from regard.models.saved import find_model
from regard.plan.report import columns, count, size
from regard.run import Run

LOWER = ("loss", "perplexity", "ter", "cer", "bits-per", "tour")  # what these begin with is better where it is lower


@dataclass(frozen=True)
class Row:
    """One variant over its finished seeds."""

    choices: tuple[str, ...]
    scores: dict[str, list[float]]
    reports: list[dict[str, Any]]
    costs: dict[str, float]

    @property
    def name(self) -> str:
        return "-".join(self.choices)

    def mean(self, of: str) -> float:
        return fmean(self.scores[of])

    def spread(self, of: str) -> float | None:
        """The standard deviation over the seeds; nobody knows it of one."""
        return stdev(self.scores[of]) if len(self.scores[of]) > 1 else None

    def average(self, key: str) -> float:
        return fmean(report[key] for report in self.reports)


def rows_of(sweep: Sweep, out: Path) -> list[Row]:
    """A row for each variant of which a run is finished."""
    rows, signatures = [], {}
    for variant in sweep.variants:
        folders = [folder_of(out, variant, seed) for seed in sweep.head.seeds]
        done = [folder for folder in folders if (folder / "report.json").is_file()]
        if not done:
            continue
        reports = [json.loads((folder / "report.json").read_text("utf-8")) for folder in done]
        for folder, report in zip(done, reports):
            for name, found in report["scores"].items():
                if signatures.setdefault(name, found["signature"]) != found["signature"]:
                    what = f"its {name} is {found['signature']}, that of others {signatures[name]}"
                    raise UsageError(what, where=str(folder), do="make them again with one version, or compare others")
        names = [name for name in reports[0]["scores"] if all(name in report["scores"] for report in reports)]
        scores = {name: [report["scores"][name]["score"] for report in reports] for name in names}
        rows.append(Row(variant.choices, scores, reports, costs(done[0], reports)))
    return rows


def costs(folder: Path, reports: list[dict[str, Any]]) -> dict[str, float]:
    """What the formulas say of this variant: FLOPs of its training and memory while it trains; nothing where there is no plan of it."""
    from regard.plan.budget import plan
    from regard.plan.part import Load

    run = load(Run, folder / "run.toml")
    model = load_config(folder)
    if model.kind in ("speech", "graph-classifier"):  # of frames and edges the report says nothing
        return {}
    length = min(run.batching.max_length, 128)
    rows, each = (run.batching.tokens, 1) if model.kind == "image-classifier" else (max(1, run.batching.tokens // length), length)
    shape = Load(batch=rows, source=each, target=each, packed=run.batching.layout != "padded")
    try:
        planned = plan(model, shape, tokens=fmean(report["target_tokens"] for report in reports), optimiser=run.train.optimiser)
    except UsageError:  # a kind of the user's own, of which no formula knows
        return {}
    return {"training_flops": planned.training, "memory": planned.memory()["training"]}


def load_config(folder: Path) -> Any:
    """The model that was built, which knows the size of its vocabulary."""
    from regard.config.toml import read_toml, structure
    from regard.models.configs import Model

    return structure(Model, read_toml(find_model(folder) / "model.toml")["model"])


def decisive(sweep: Sweep, rows: Sequence[Row]) -> tuple[str, bool]:
    """The score that decides, and whether higher is better."""
    shared = [name for name in rows[0].scores if all(name in row.scores for row in rows)]
    name = sweep.head.score or (shared[0] if shared else "")
    if name not in shared:
        raise UsageError(f"the runs have no score {name!r} in common", where=sweep.name, do=f"choose one of: {', '.join(shared) or 'none'}")
    higher = not name.startswith(LOWER) if not sweep.head.better else sweep.head.better == "higher"
    return name, higher


def as_json(sweep: Sweep, rows: Sequence[Row], failed: dict[str, str]) -> dict[str, Any]:
    """All that the table says, as numbers."""
    if not rows:
        return {"sweep": sweep.name, "variants": [], "failed": failed}
    score, higher = decisive(sweep, rows)
    best = top(rows, score, higher=higher)
    return {
        "sweep": sweep.name,
        "score": score,
        "better": "higher" if higher else "lower",
        "best": best.name,
        "seeds": list(sweep.head.seeds),
        "signatures": {name: found["signature"] for name, found in rows[0].reports[0]["scores"].items()},
        "variants": [
            {
                "name": row.name,
                **dict(zip(sweep.axes, row.choices, strict=True)),
                "runs": len(row.reports),
                "scores": {of: {"mean": row.mean(of), "spread": row.spread(of), "values": values} for of, values in row.scores.items()},
                "p_value": None if row is best else welch(best.scores[score], row.scores[score]),
                "parameters": int(row.average("parameters")),
                "steps": row.average("steps"),
                "seconds": row.average("train_seconds"),
                "target_tokens_per_second": row.average("target_tokens_per_second"),
                **row.costs,
            }
            for row in rows
        ],
        "failed": failed,
    }


def top(rows: Sequence[Row], score: str, *, higher: bool) -> Row:
    return (max if higher else min)(rows, key=lambda row: row.mean(score))


def page(found: dict[str, Any], axes: Sequence[str]) -> str:
    """The table for the terminal."""
    rows = found["variants"]
    if not rows:
        return f"{found['sweep']}: no run is finished"
    scores = [
        found["score"],
        *(name for name in rows[0]["scores"] if name != found["score"] and all(name in row["scores"] for row in rows)),
    ]
    head = (*axes, *scores, "seeds", "p", "parameters", "training FLOPs", "memory", "tokens/s", "seconds")
    lines = [head]
    for row in rows:
        told = [spoken(row["scores"][name]) for name in scores]
        p = "best" if row["name"] == found["best"] else "" if row["p_value"] is None else f"{row['p_value']:.3f}"
        flops = f"{row['training_flops']:.2e}" if "training_flops" in row else ""
        memory = size(row["memory"]) if "memory" in row else ""
        speed, seconds = count(row["target_tokens_per_second"]), f"{row['seconds']:.0f}"
        lines.append((*(row[axis] for axis in axes), *told, str(row["runs"]), p, f"{row['parameters']:,}", flops, memory, speed, seconds))
    notes = [f"p: Welch's t-test of {found['score']} over seeds, against {found['best']}; spreads are standard deviations over seeds"]
    notes += [f"{name}: {signature}" for name, signature in found["signatures"].items() if name in scores]
    missing = [f"{row['name']}: {row['runs']} of {len(found['seeds'])} seeds" for row in rows if row["runs"] < len(found["seeds"])]
    notes += [f"not finished: {', '.join(missing)}"] if missing else []
    notes += [f"failed: {name}: {why}" for name, why in found["failed"].items()]
    return "\n".join([found["sweep"], "", *columns(lines, right=range(len(axes), len(head))), "", *notes])


def spoken(found: dict[str, Any]) -> str:
    """Mean and spread with as many digits as make sense."""
    digits = 2 if abs(found["mean"]) >= 10 else 3
    spread = found["spread"]
    if not math.isfinite(found["mean"]):
        return str(found["mean"])
    return f"{found['mean']:.{digits}f}" + (f" ± {spread:.{digits}f}" if spread is not None else "")
