"""`regard clean`: the same files again in another folder, without what `regard check` holds against them."""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="text (train.de and train.en belong together), .tsv or .jsonl; plain, .gz, .xz, .zst"
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="where the cleaned files and report.json go")
    parser.add_argument("--examples", type=int, default=3, metavar="N", help="pairs of each reason in the report (3)")


def run(arguments: argparse.Namespace) -> None:
    from regard.data.clean import clean
    from regard.errors import UsageError

    if arguments.examples < 1:
        raise UsageError(f"--examples {arguments.examples} shows nothing", do="take 1 or more")
    report = clean(arguments.files, arguments.out, examples=arguments.examples)
    for one in report["corpora"] + report["alone"]:
        left_out = ", ".join(f"{reason} {count:,}" for reason, count in one.get("left_out", {}).items() if count)
        print(f"{' + '.join(one['files'])}: kept {one['kept']:,} of {one['read']:,}{f' (left out: {left_out})' if left_out else ''}")
