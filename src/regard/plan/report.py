"""A plan as a page for the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from regard.plan.budget import Plan
from regard.plan.models import UNITS
from regard.plan.part import Part
from regard.plan.tables import read

SPANS = (("year", 365.25 * 86400.0), ("day", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))


def as_json(plan: Plan, *, rate: float = 0.0) -> dict[str, Any]:
    """Everything that the page shows, as numbers: FLOPs, bytes, seconds."""
    load = plan.load
    return {
        "name": plan.name,
        "kind": plan.parts.name,
        "parameters": plan.parameters,
        "parts": {part.name: part.size for part in plan.parts.parts},
        "summary": [row(name, part) for name, _, part in plan.parts.walk()],
        "load": {"batch": load.batch, "source": load.source, "target": load.target, "bytes": load.width, "device": load.device},
        "tokens": plan.tokens,
        "tokens_from": plan.tokens_from,
        "training_flops": plan.training,
        "training_flops_of_parameters": plan.training_maps,
        "training_flops_with_recomputation": plan.training * 4 / 3,
        "forward_flops_per_token": plan.forward,
        "decoding_flops_per_source": plan.once,
        "decoding_flops_per_token": plan.step,
        "memory": plan.memory(),
        "kernels": {name: part.kernel for name, _, part in plan.parts.walk() if part.kernel},
        "seconds": {"at_rate": plan.training / rate} if rate else {},
        "yardsticks": [{"name": name, "rate": per, "seconds": plan.training / per} for name, per in yardsticks()],
    }


def row(name: str, part: Part) -> dict[str, Any]:
    return {
        "name": name,
        "shape": part.shape,
        "parameters": part.size,
        "layers": part.times,
        "forward_flops": part.forward,
        "note": part.note,
    }


def yardsticks() -> list[tuple[str, float]]:
    """Rates that others reached, in FLOP/s a device."""
    return [(one["name"], one["peak"] * one["mfu"]) for one in read("yardsticks")["rows"]]


def page(plan: Plan, *, rate: float = 0.0) -> str:
    """The summary: four parts, then what training and decoding cost."""
    load, memory = plan.load, plan.memory()
    lines = [f"{plan.name or plan.parts.name}: {plan.parameters:,} parameters", ""]
    lines += summary(plan)
    lines += ["", *kernels(plan)]
    two_sided = f"{load.source} source and {load.target} target" if plan.once and plan.step else f"{load.target}"
    unit = UNITS.get(plan.parts.name, "token")
    lines += ["", f"FLOPs (a multiply-add is two), rows of {two_sided} {unit}s"]
    writes = plan.step > 0
    lines += aligned(
        [
            (f"forward pass, a {unit}", flops(plan.forward)),
            (f"training, {count(plan.tokens)} {unit}s ({plan.tokens_from})", flops(plan.training)),
            (f"  of it in maps with parameters (6 N a {unit})" if unit == "token" else "  of it in maps", flops(plan.training_maps)),
            ("  with full recomputation", flops(plan.training * 4 / 3)),
            *([("decoding, once a source", flops(plan.once))] if plan.once and writes else []),
            *([(f"decoding, a {unit} after {load.target} others", flops(plan.step))] if writes else []),
        ]
    )
    lines += ["", f"memory, a batch of {load.batch} x {load.target} in {8 * load.width} bits"]
    lines += aligned([(name.replace("_", " "), size(amount)) for name, amount in memory.items()])
    lines += ["", "time to train on one device"]
    mine = [(f"at {rate:.3g} FLOP/s", span(plan.training / rate))] if rate else []
    lines += aligned([*mine, *((f"at {per / 1e12:.0f} TFLOP/s: {name}", span(plan.training / per)) for name, per in yardsticks())])
    return "\n".join(lines)


def summary(plan: Plan) -> list[str]:
    """Tokenisation, embedding, blocks, output: shapes and parameters, the layers of each below it."""
    rows = [("part", "shape", "parameters", "forward FLOPs", "")]
    for number, part in enumerate(plan.parts.parts, 1):
        for _, depth, one in part.walk():
            name = (
                f"{number} {one.name}" if not depth else "  " * (depth + 1) + (f"{one.times} x {one.name}" if one.times > 1 else one.name)
            )
            rows.append((name, one.shape, f"{one.size:,}", flops(one.forward) if one.forward else "-", one.note))
    return columns(rows, right=(2, 3))


def kernels(plan: Plan) -> list[str]:
    """Which kernel each slot gets, and why; equal answers are given once."""
    found: dict[str, list[str]] = {}
    for name, _, part in plan.parts.walk():
        if part.kernel:
            found.setdefault(part.kernel, []).append(name.partition(".blocks.")[2])
    return [f"kernel on {plan.load.device}", *(f"  {', '.join(slots)}: {why}" for why, slots in found.items())]


def table_page(table: dict[str, Any]) -> str:
    """A published table with its note and source."""
    keys = list(dict.fromkeys(key for row in table["rows"] for key in row))
    head = tuple(key.replace("_", " ") for key in keys)
    rows = [tuple(cell(key, row.get(key, "")) for key in keys) for row in table["rows"]]
    numbers = tuple(place for place, key in enumerate(keys) if any(isinstance(row.get(key), int | float) for row in table["rows"]))
    return "\n".join([table["title"], "", *columns([head, *rows], right=numbers), "", table.get("note", ""), f"Source: {table['source']}."])


def cell(key: str, value: Any) -> str:
    """A value as its column asks."""
    match value:
        case float() if key in ("difference", "share"):
            return f"{value:+.1%}" if key == "difference" else f"{value:.0%}"
        case float() if abs(value) >= 1e15:
            return f"{value:.3e}"
        case int() | float() if abs(value) >= 1e5:
            return f"{value / 1e6:,.2f}M"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.5g}"
        case _:
            return str(value)


def columns(rows: Sequence[tuple[str, ...]], *, right: Iterable[int] = ()) -> list[str]:
    """Rows as aligned text."""
    wide = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    right = set(right)
    return [
        "  ".join(word.rjust(w) if i in right else word.ljust(w) for i, (word, w) in enumerate(zip(row, wide))).rstrip() for row in rows
    ]


def aligned(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [f"  {line}" for line in columns(list(rows), right=(1,))]


def count(number: float) -> str:
    for power, letter in ((12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if number >= 10**power:
            return f"{number / 10**power:.4g}{letter}"
    return f"{number:.4g}"


def flops(number: float) -> str:
    return f"{number:.3e}"


def size(bytes_: float) -> str:
    """Bytes as people read them, in powers of 1,000."""
    return f"{count(bytes_)}B"


def span(seconds: float) -> str:
    """A time in its largest fitting unit."""
    for name, length in SPANS:
        if seconds >= length:
            found = seconds / length
            return f"{found:,.3g} {name}" + ("s" if name in ("year", "day") and found >= 1.005 else "")
    return f"{seconds:.3g} s"
