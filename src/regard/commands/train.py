"""`regard train`: a recipe, a TOML file, or two text files, to a run folder."""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipe", nargs="?", help="name of a recipe (see `regard recipes`) or a TOML file")
    parser.add_argument("--source", help="file of source sentences: with --target, no recipe is needed")
    parser.add_argument("--target", help="file of target sentences, line by line")
    parser.add_argument("--out", help="the run's folder; runs/NAME unless it is given")
    parser.add_argument("--resume", metavar="DIR", help="go on with the run in this folder")
    parser.add_argument("--force", action="store_true", help="with --resume: even if the data or the configuration changed")
    parser.add_argument("--from", dest="warm", metavar="MODEL", help="begin with the parameters and tokenizers of this model")
    parser.add_argument("--data-root", default="", help="what the paths of the recipe are relative to")
    parser.add_argument("--progress", choices=["auto", "rich", "plain", "none"], default="auto", help="how to show what happens")
    parser.add_argument("--dry-run", action="store_true", help="print the merged configuration and stop")
    parser.set_defaults(settings={})
    parser.epilog = "Any other flag is a setting of the configuration, such as --train.steps 100 or --preset tiny: see docs/config.md."


def run(arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from regard import recipes
    from regard.assemble import read_begun, say, train_run
    from regard.config.toml import dumps
    from regard.errors import UsageError
    from regard.models.saved import load_model
    from regard.run import read_run

    settings = arguments.settings
    if arguments.resume:
        if arguments.recipe or settings:
            raise UsageError("--resume goes on with the run as it was begun", do="leave recipe and settings out, or start a new run")
        out = Path(arguments.resume)
        report = train_run(read_begun(out), out, resume=True, force=arguments.force, show=arguments.progress)
    else:
        if arguments.source or arguments.target:
            from regard.own_files import run_from_files

            out, configured = run_from_files(arguments.source, arguments.target, out=arguments.out, settings=settings)
        elif arguments.recipe:
            path = recipes.find(arguments.recipe)
            configured = read_run(path, flags=settings, data_root=arguments.data_root)
            out = Path(arguments.out or f"runs/{path.stem}")
        else:
            raise UsageError("nothing to train", do="name a recipe (see `regard recipes`), a TOML file, or give --source and --target")
        if arguments.dry_run:
            print(dumps(configured), end="")
            return 0
        warm = load_model(arguments.warm) if arguments.warm else None
        report = train_run(configured, out, warm=warm, show=arguments.progress)
    if report:
        for name, found in report["scores"].items():
            say(f"{name} {found['score']:.2f}  ({found['signature']})")
        say(f"{out}/best is the model; try: regard translate {out}/best FILE")
    return 0
