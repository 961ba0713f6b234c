"""Which size of model suits which size of corpus: what `regard train --source F --target F` chooses by."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import UsageError

DEV, TEST = 1000, 1000


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", metavar="FILE", help="source, tab, target (plain, .gz, .xz, .zst); the embedded German-English unless given"
    )
    parser.add_argument("--pairs", type=int, nargs="+", default=[10_000, 50_000, 200_000], help="sizes of the corpus (10000 50000 200000)")
    parser.add_argument(
        "--rows", type=int, nargs="+", help="rows of the table to try, from 0; each corpus's own and its neighbours unless given"
    )
    parser.add_argument("--seconds", type=float, default=0.0, help="most seconds of a training; 0: as long as the table says")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default="runs/sizes", help="folder of the runs")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    from regard.data.corpora import __file__ as corpora
    from regard.data.holdout import hold_out
    from regard.data.parallel import Tsv, read_pairs

    path = Path(arguments.data or Path(corpora).parent / "de-en" / "train.tsv.xz").resolve()
    pairs = list(read_pairs(Tsv(str(path))))
    split = hold_out(pairs, dev=DEV, test=TEST, seed=1)
    if (most := max(arguments.pairs)) > len(split.train):
        raise UsageError(f"there are {len(split.train):,} pairs to learn from, and {most:,} are wanted", where=str(path), do="take fewer")
    shuffled = np.random.default_rng(arguments.seed).permutation(split.train)
    parts = {"valid": [pairs[place] for place in split.dev], "test": [pairs[place] for place in split.test]}
    found = {}
    for count in arguments.pairs:
        learned = [pairs[place] for place in sorted(shuffled[:count])]
        for row in arguments.rows or neighbours(count):
            out = Path(arguments.out, f"{count}-{row}")
            found[f"{count:,} pairs, row {row}"] = measured(
                {"train": learned, **parts}, row, out, seconds=arguments.seconds, seed=arguments.seed
            )
    return found


def neighbours(pairs: int) -> list[int]:
    """The row of the table that is for so many pairs, and those beside it."""
    from regard.own_files import SIZES

    own = next(place for place, size in enumerate(SIZES) if pairs <= size.pairs)
    return [row for row in (own - 1, own, own + 1) if 0 <= row < len(SIZES) - 1]


def measured(parts: dict[str, Sequence[tuple[str, str]]], row: int, out: Path, *, seconds: float, seed: int) -> dict[str, Any]:
    """One training by the table's row: scores on both held-out parts, and what it cost."""
    from regard.assemble import train_run
    from regard.config.toml import structure
    from regard.own_files import SIZES, tables_of
    from regard.run import Run

    folder = (out / "data").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    tables = tables_of(SIZES[row], pairs=len(parts["train"]))
    data: dict[str, Any] = {"root": str(folder)}
    for name, pairs in parts.items():
        for side, ending in enumerate(("source", "target")):
            (folder / f"{name}.{ending}").write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
        data[name] = [{"kind": "lines", "source": f"{name}.source", "target": f"{name}.target"}]
    configured = structure(Run, tables | {"data": data})
    train = replace(configured.train, seconds=seconds, seed=seed, sample_every=0, save_every=0)
    report = train_run(replace(configured, train=train, metrics=("bleu",)), out / "run", show="none")
    best = max(line["bleu"] for line in _evaluations(out / "run"))
    return asdict(SIZES[row]) | {
        "dev_bleu_greedy": round(best, 2),
        "test_bleu": round(report["scores"]["bleu"]["score"], 2),
        "parameters": report["parameters"],
        "steps": report["steps"],
        "best_step": report["best_step"],
        "seconds": report["train_seconds"],
    }


def _evaluations(run: Path) -> list[dict[str, Any]]:
    import json

    lines = map(json.loads, (run / "log.jsonl").read_text("utf-8").splitlines())
    return [line for line in lines if line.get("event") == "evaluate"]
