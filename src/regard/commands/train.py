"""`regard train`: a recipe, a TOML file, or two text files, to a run folder."""

from __future__ import annotations

import argparse
from pathlib import Path


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
    from functools import partial

    from regard import recipes
    from regard.assemble import kept_whole, read_begun, train_run
    from regard.config.toml import dumps
    from regard.errors import UsageError
    from regard.models.saved import USES, load_model
    from regard.own_files import folder_of, run_from_files
    from regard.run import check_end, read_run
    from regard.tasks.telling import say

    settings, own = arguments.settings, bool(arguments.source or arguments.target)
    if arguments.resume:
        if arguments.recipe or settings or own:
            raise UsageError("--resume goes on with the run as it was begun", do="leave recipe and settings out, or start a new run")
        out = Path(arguments.resume)
        with kept_whole(out):
            configured = read_begun(out)
            report = train_run(configured, out, resume=True, force=arguments.force, show=arguments.progress)
    else:
        if own:
            out = folder_of(arguments.source, arguments.target, out=arguments.out)
            configure = partial(run_from_files, arguments.source, arguments.target, out=out, settings=settings)
        elif arguments.recipe:
            path = recipes.find(arguments.recipe)
            out = Path(arguments.out or f"runs/{path.stem}")
            configure = partial(read_run, path, flags=settings, data_root=arguments.data_root)
        else:
            raise UsageError("nothing to train", do="name a recipe (see `regard recipes`), a TOML file, or give --source and --target")
        with kept_whole(out):
            configured = configure()
            if arguments.dry_run:
                print(dumps(configured), end="")
                return 0
            check_end(configured.train)
            warm = load_model(arguments.warm) if arguments.warm else None
            report = train_run(configured, out, warm=warm, show=arguments.progress)
    if report:
        translator = configured.model.kind == "translator"
        say(left_out(report["data"], of="pairs" if translator else "examples"))
        for name, found in report["scores"].items():
            say(f"{name} {found['score']:.2f}  ({found['signature']})")
        asks = {"language-model": "", "masked-language-model": " --prompt 'A <mask> TEXT'"}.get(configured.model.kind, " FILE")
        use = f"{USES.get(configured.model.kind, 'look')} {{}}/best{asks}"
        say(f"{out}/best is the model; try: regard {use.format(out)}")
    return 0


def left_out(counts: dict[str, int], *, of: str) -> str:
    """How many pairs were not learned from, and why."""
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in counts.items() if reason not in ("read", "kept"))
    every = f"learned from {counts['kept']:,} of {counts['read']:,} {of}"
    lines = "; `regard check FILES` names the lines" if of == "pairs" else ""
    return f"{every} (left out: {reasons}{lines})" if reasons else every
