"""Published tables as data, with the columns that a plan adds to them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from regard.config.toml import nearest, read_toml, structure
from regard.errors import UsageError
from regard.models.configs import Model
from regard.models.presets import PRESETS, merge
from regard.plan.budget import Plan, plan
from regard.plan.part import Load

FOLDER = Path(__file__).parent
Row = dict[str, Any]


def read(name: str) -> dict[str, Any]:
    """The tables of one file of this folder."""
    return read_toml(FOLDER / f"{name}.toml")


def published(name: str) -> dict[str, Any]:
    """A published table by name, each row with what the formulas say of it."""
    if name not in TABLES:
        raise UsageError(f"there is no table {name}", where="--table", do=nearest(name, TABLES))
    table = read(name)
    return table | {"rows": [TABLES[name](row) for row in table["rows"]]}


def transformer(row: Row) -> Row:
    """Parameters by formula beside the paper's."""
    variation = {key: row[key] for key in ("d_model", "encoder", "decoder") if key in row}
    found = of_preset(row.get("preset", "base"), variation).parameters
    return {"name": row["name"], "parameters": found, "paper": row["paper"] * 1e6, "difference": found / (row["paper"] * 1e6) - 1}


def wmt14(row: Row) -> Row:
    """Both costs, where the paper tells how it came to its own: by hardware time, and by what the model needs."""
    if "preset" not in row:
        return row
    hardware = row["hours"] * 3600 * row["devices"] * row["sustained"]
    model = 6 * of_preset(row["preset"]).parameters * row["tokens"] * row["steps"]
    kept = {key: row[key] for key in row if key not in ("preset", "hours", "devices", "sustained", "steps", "tokens")}
    return kept | {"flops_by_hardware_time": hardware, "flops_of_the_model": float(model), "share": model / hardware}


def wikisum(row: Row) -> Row:
    return row | {"perplexity": math.exp(row["log_perplexity"])}


def gpt3(row: Row) -> Row:
    """Parameters as the shapes are printed, and as they fit together, beside the paper's; and what training them took."""
    shape = {key: row[key] for key in ("name", "layers", "heads", "d_head", "d_model")}
    found = of_preset(row["preset"]).parameters
    if "paper" not in row:
        return shape | {"parameters": found}
    width = row["heads"] * row["d_head"]
    trunk = {"heads": row["heads"], "d_head": row["d_head"], "feed_forward": {"d_ff": 4 * row["d_model"]}}
    printed = {"d_model": row["d_model"], "trunk": trunk}
    fits = width == row["d_model"]
    return shape | {
        "parameters": found,
        "as_printed": found if fits else of_preset(row["preset"], printed).parameters,
        "paper": row["paper"] * 1e6,
        "difference": found / (row["paper"] * 1e6) - 1,
        "flops": 6.0 * found * 300e9,
        "paper_flops": row["paper_flops"],
        "flag": "" if fits else f"{row['heads']} x {row['d_head']} = {width:,} is not {row['d_model']:,}",
    }


def of_preset(preset: str, variation: dict[str, Any] | None = None) -> Plan:
    """The plan of a preset with some keys laid over it."""
    return plan(structure(Model, merge(PRESETS[preset], variation or {})), Load(), name=preset)


TABLES: dict[str, Callable[[Row], Row]] = {"wmt14": wmt14, "wikisum": wikisum, "transformer": transformer, "gpt3": gpt3}
