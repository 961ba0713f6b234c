"""Runs the groups of tests, two at a time on a core each, and prints the time of each group against its budget.

python tests/groups.py [GROUP...]
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
BUDGETS = {  # seconds; all together under 20 minutes on two cores
    "end_to_end": 420,
    "learn": 240,
    "compiled": 180,
    "faults": 240,
    "parity": 180,
    "laws": 180,
    "lessons": 60,
    "browser": 120,
    "unit": 180,
    "tree": 60,
}
NO_TESTS = 5  # pytest's word for an empty group


def run(group: str) -> tuple[str, int, float]:
    """The group's name, pytest's exit status and the seconds; its output is printed whole when it is done."""
    started = time.monotonic()
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE.parent / "src")}
    command = [sys.executable, "-m", "pytest", "--durations=3", "--durations-min=5", str(HERE / group)]
    done = subprocess.run(
        command, cwd=HERE.parent, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    seconds = time.monotonic() - started
    print(f"=== {group}\n{done.stdout.rstrip()}", flush=True)
    return group, done.returncode, seconds


def main() -> int:
    unknown = [name for name in sys.argv[1:] if name not in BUDGETS]
    if unknown:
        print(f"no such group: {', '.join(unknown)} (known: {', '.join(BUDGETS)})", file=sys.stderr)
        return 2
    groups = [group for group in sys.argv[1:] or BUDGETS if any((HERE / group).glob("test_*.py"))]
    started = time.monotonic()
    with ThreadPoolExecutor(max_workers=2) as pool:
        results = list(pool.map(run, groups))
    print(f"\n{'group':<12}{'seconds':>9}{'budget':>9}")
    for group, status, seconds in results:
        verdict = "" if status in (0, NO_TESTS) else "  FAILED"
        late = "  over its budget" if seconds > BUDGETS[group] else ""
        print(f"{group:<12}{seconds:>9.1f}{BUDGETS[group]:>9}{verdict}{late}")
    print(f"{'all':<12}{time.monotonic() - started:>9.1f}{1200:>9}")
    return int(any(status not in (0, NO_TESTS) for _, status, _ in results))


if __name__ == "__main__":
    sys.exit(main())
