"""`regard check`: the data doctor says what is wrong in these files, where, in which line. Leaves with 3 when something is."""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="text (train.de and train.en belong together), .tsv or .jsonl; plain, .gz, .xz, .zst"
    )
    parser.add_argument("--examples", type=int, default=3, metavar="N", help="lines shown of each kind (3)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")


def run(arguments: argparse.Namespace) -> int:
    import json

    from regard.data.doctor import check
    from regard.errors import UsageError

    if arguments.examples < 1:
        raise UsageError(f"--examples {arguments.examples} shows nothing", do="take 1 or more")
    report = check(arguments.files, examples=arguments.examples)
    print(json.dumps(report.data(), ensure_ascii=False) if arguments.json else report.text(), end="\n" if arguments.json else "")
    return report.code
