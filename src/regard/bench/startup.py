"""How long `regard --help` takes, process start included, beside an interpreter that does nothing."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from statistics import median
from typing import Any

ASKED = 150  # milliseconds, of the median


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=15, metavar="N", help="processes of each kind, in turns (15)")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    from regard.errors import UsageError

    if arguments.runs < 1:
        raise UsageError(f"--runs {arguments.runs} measures nothing", do="take 1 or more")
    commands = {"help": ["-m", "regard.cli", "--help"], "python": ["-c", "pass"]}
    took: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(arguments.runs):
        for name, words in commands.items():
            started = time.perf_counter()
            subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
            took[name].append(1000 * (time.perf_counter() - started))
    help, python = median(took["help"]), median(took["python"])
    return {
        "help_ms": round(help, 1),
        "slowest_help_ms": round(max(took["help"]), 1),
        "python_ms": round(python, 1),
        "ratio": round(help / python, 2),
        "asked_ms": ASKED,
        "runs": arguments.runs,
    }
