"""`regard compare`: variants of a recipe with several seeds each, and one table of them."""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sweep", nargs="?", help="a TOML file, or the name of a sweep of the package; without it, these are listed")
    parser.add_argument("--out", help="folder of the runs; runs/NAME unless it is given")
    parser.add_argument("--seeds", metavar="N,N", help="train with these seeds, not with those of the file")
    parser.add_argument("--data-root", default="", help="what the paths of the recipes are relative to")
    parser.add_argument("--progress", choices=["auto", "rich", "plain", "none"], default="auto", help="how to show what happens")
    parser.add_argument("--dry-run", action="store_true", help="only say which runs there are, and the table of those that are finished")
    parser.add_argument("--json", action="store_true", help="the table as JSON")
    parser.add_argument("--curves", metavar="FILE", help="draw the validation score by step: .svg, .pdf or .png")
    parser.add_argument("--look", metavar="TEXT", help="a sentence: draw what the clearest head of each variant looks at; with --figure")
    parser.add_argument("--figure", metavar="FILE", help="where that is drawn: .svg, .pdf or .png")
    parser.set_defaults(settings={})
    parser.epilog = "Any other flag is a setting of every run, such as --train.steps 100: see docs/config.md and docs/compare.md."


def run(arguments: argparse.Namespace) -> int:
    import json
    from pathlib import Path

    from regard.compare.sweep import find, listed, read_sweep
    from regard.errors import UsageError

    if bool(arguments.look) != bool(arguments.figure):
        raise UsageError("a sentence and a file belong together", do='give --look "TEXT" and --figure FILE.svg')
    if not arguments.sweep:
        for name, says in listed():
            print(f"{name:28} {says}")
        return 0
    path = find(arguments.sweep)
    sweep = read_sweep(path, flags=arguments.settings, data_root=arguments.data_root, seeds=numbers(arguments.seeds))
    out = Path(arguments.out or f"runs/{path.stem}")

    from regard.compare.runs import complete, folder_of
    from regard.compare.table import as_json, page, rows_of
    from regard.tasks.telling import say

    failed = {}
    if arguments.dry_run:
        for variant in sweep.variants:
            for seed in sweep.head.seeds:
                folder = folder_of(out, variant, seed)
                say(f"{folder}: {'finished' if (folder / 'report.json').is_file() else 'to be made'}")
    else:
        failed = complete(sweep, out, show=arguments.progress)
    found = as_json(sweep, rows_of(sweep, out), failed)
    print(json.dumps(found, indent=2) if arguments.json else page(found, sweep.axes))
    if arguments.curves:
        from regard.compare.curves import curves
        from regard.look.printing import write_figure

        write_figure(arguments.curves, curves(sweep, out))
    if arguments.look:
        from regard.compare.side_by_side import side_by_side
        from regard.look.printing import write_figure

        write_figure(arguments.figure, side_by_side(sweep, out, arguments.look))
    return 1 if failed else 0


def numbers(text: str | None) -> tuple[int, ...]:
    """`1,2,3` as numbers."""
    from regard.errors import UsageError

    try:
        return tuple(int(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise UsageError(f"{text!r} are no seeds", where="--seeds", do="write whole numbers with commas between them") from None
