"""Walks and tables as text for a terminal, and as plain values for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from regard.look.table import Form, Table
from regard.look.trace import Choice, Trace
from regard.look.walk import Stage, Walk

SHOWN = 6  # numbers of a vector
LEAST = 0.005  # of a weight in a sum of words


def told_walk(found: Walk) -> str:
    """A paragraph for each stage; of long vectors the first numbers and the length."""
    lines = [f"token {found.place}: {found.token.text}", ""]
    for stage in found.stages:
        lines += [f"{stage.name}  ({stage.says})", *_rows(stage), ""]
    return "\n".join(lines + told_choices(found.next)) + "\n"


def walk_json(found: Walk) -> dict[str, Any]:
    """Every number of every stage."""
    stages = [
        {"name": one.name, "says": one.says, "rows": one.rows, "columns": one.columns, "values": finite(one.values)} for one in found.stages
    ]
    return {"token": found.token.text, "place": found.place, "stages": stages, "next": [_choice(one) for one in found.next]}


def told_table(found: Table) -> str:
    """Rows look, columns are looked at."""
    first = max(map(len, found.rows), default=0)
    widths = [max(len(name), 7) for name in found.columns]
    lines = [f"{found.name}, head {found.head}: rows look, columns are looked at"]
    lines.append(" ".join([" " * first, *(name.rjust(width) for name, width in zip(found.columns, widths, strict=True))]))
    for name, values in zip(found.rows, found.values, strict=True):
        lines.append(" ".join([name.rjust(first), *(_number(value).rjust(width) for value, width in zip(values, widths, strict=True))]))
    return "\n".join(lines) + "\n"


def table_json(found: Table) -> dict[str, Any]:
    return {"name": found.name, "head": found.head, "rows": found.rows, "columns": found.columns, "values": finite(found.values)}


def told_form(found: Form) -> str:
    above, below = found.signs
    size = " x ".join(map(str, found.matrix.shape))
    kind = f"B = W_Q W_K^T: {size}, rank {found.rank}, |B - B'| / |B| = {found.asymmetry:.3f}, {above} eigenvalues of its symmetric part"
    return told_table(found.table) + f"{kind} are above 0, {below} below\n"


def form_json(found: Form) -> dict[str, Any]:
    facts = {"rank": found.rank, "asymmetry": found.asymmetry, "signs": found.signs}
    return table_json(found.table) | facts | {"matrix": finite(found.matrix)}


def told_next(trace: Trace) -> str:
    """What the model holds probable behind each token, or as the label of the whole."""
    if not trace.steps:
        return "".join(f"{one.text}\t{math.exp(one.log_prob):.4f}\n" for one in trace.answers)
    width = max(len(token.text) for token in trace.target)
    rows = (
        f"{token.text.rjust(width)}  {'  '.join(f'{one.token.text} {math.exp(one.log_prob):.3f}' for one in step.top)}\n"
        for token, step in zip(trace.target, trace.steps, strict=True)
    )
    return "".join(rows)


def next_json(trace: Trace) -> list[dict[str, Any]]:
    if not trace.steps:
        return [{"label": one.text, "log_prob": one.log_prob} for one in trace.answers]
    return [
        {"after": token.text, "chosen": _choice(step.chosen), "top": [_choice(one) for one in step.top]}
        for token, step in zip(trace.target, trace.steps, strict=True)
    ]


def told_choices(choices: Sequence[Choice]) -> list[str]:
    """Each with its place in the vocabulary, its logarithm and its probability."""
    if not choices:
        return []
    width = max(len(one.token.text) for one in choices)
    numbers = [str(one.token.id) if one.token.id >= 0 else "" for one in choices]
    return [
        "what it expects: number, log-probability, probability",
        *(
            f"  {one.token.text.ljust(width)} {number.rjust(7)} {one.log_prob:9.4f} {math.exp(one.log_prob):8.4f}"
            for one, number in zip(choices, numbers, strict=True)
        ),
    ]


def sum_of_words(weights: Iterable[float], words: Sequence[str]) -> str:
    """`0.6 I + 0.1 am + 0.3 Sam`."""
    return " + ".join(f"{weight:.2f} {word}" for weight, word in zip(weights, words, strict=True) if weight >= LEAST)


def finite(values: np.ndarray) -> list[Any]:
    """As JSON has numbers: minus infinity is null."""
    return [[float(one) if math.isfinite(one) else None for one in row] for row in values]


def _rows(stage: Stage) -> Iterable[str]:
    for name, values in zip(stage.rows, stage.values, strict=True):
        start = f"  {name}: " if name else "  "
        if not stage.columns:
            more = f" ... ({len(values)} numbers, length {np.linalg.norm(values):.4f})" if len(values) > SHOWN else ""
            yield start + " ".join(map(_number, values[:SHOWN])) + more
        elif stage.name.endswith("weights"):
            yield start + sum_of_words(values, stage.columns)
        else:
            yield start + "  ".join(f"{word} {_number(value)}" for word, value in zip(stage.columns, values, strict=True))


def _number(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "-inf" if value < 0 else str(value)


def _choice(one: Choice) -> dict[str, Any]:
    return {"token": one.token.text, "id": one.token.id, "log_prob": one.log_prob}
