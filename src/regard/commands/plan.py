"""`regard plan`: what a recipe or a preset costs, before it is paid."""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", help="a recipe, a preset (tiny, base, ...), a TOML file, or the folder of a model or run")
    parser.add_argument("--table", metavar="NAME", help="a published table beside what the formulas say: wmt14, wikisum, transformer, gpt3")
    parser.add_argument("--tokens", type=float, default=0.0, metavar="N", help="target tokens to train on, such as 2.5e9")
    parser.add_argument(
        "--length", type=int, default=0, metavar="n", help="tokens of a row (a translator: on either side), frames, nodes, points"
    )
    parser.add_argument("--batch", type=int, default=0, metavar="B", help="rows of a batch")
    parser.add_argument("--rate", type=float, default=0.0, metavar="FLOP/s", help="what the device sustains, such as 3e14")
    parser.add_argument("--vocabulary", type=int, default=0, metavar="V", help="entries, where the tokenizer does not say how many")
    parser.add_argument("--labels", type=int, default=0, metavar="N", help="how many, of a classifier that learns them from its corpus")
    parser.add_argument("--picture", default="", metavar="CxYxX", help="channels, height and width of pictures, such as 1x28x28")
    parser.add_argument("--features", type=int, default=0, metavar="N", help="how many a node of a graph may have")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto", help="for which kernels are chosen")
    parser.add_argument("--precision", choices=["auto", "fp32", "bf16"], default="auto")
    parser.add_argument("--json", action="store_true", help="the numbers, as JSON")
    parser.set_defaults(settings={})
    parser.epilog = "Any other flag is a setting of the configuration, such as --model.d_model 256: see docs/config.md."


def run(arguments: argparse.Namespace) -> None:
    import json

    from regard.errors import UsageError
    from regard.plan.report import as_json, page, table_page
    from regard.plan.tables import published

    for name in ("tokens", "length", "batch", "rate", "vocabulary", "labels", "features"):
        if getattr(arguments, name) < 0:
            raise UsageError(f"{getattr(arguments, name)} is below 0", where=f"--{name}", do="give a number above 0")
    if arguments.table:
        table = published(arguments.table)
        print(json.dumps(table, indent=2) if arguments.json else table_page(table))
        return
    if not arguments.what:
        raise UsageError("nothing to plan", do="name a recipe, a preset or a TOML file, or a table: --table wmt14")
    found = planned(arguments)
    print(json.dumps(as_json(found, rate=arguments.rate), indent=2) if arguments.json else page(found, rate=arguments.rate))


def planned(arguments: argparse.Namespace):
    """The plan that the arguments ask for."""
    from regard.plan.budget import plan
    from regard.plan.models import UNITS
    from regard.plan.part import Load
    from regard.plan.tables import read
    from regard.train.device import machine

    name, configured = wanted(arguments)
    model = with_labels(with_vocabulary(configured, arguments.vocabulary), arguments.labels)
    model = with_data(model, picture=arguments.picture, features=arguments.features)
    chosen = machine(arguments.device, arguments.precision)
    batch, source, target = shape_of(configured, model, length=arguments.length, batch=arguments.batch)
    tokens, says = arguments.tokens, "as asked"
    if not tokens and configured.train.steps and configured.batching.tokens:
        tokens = configured.train.steps * configured.train.accumulate * configured.batching.tokens
        says = f"{configured.train.steps:,} steps of the recipe"
    trained = read("training").get(name)
    if not tokens and trained:
        tokens, says = trained["tokens"], trained["says"]
    if not tokens and model.kind in UNITS:
        tokens, says = 1.0, "a single one, as nobody says how many"
    load = Load(
        batch=batch,
        source=source,
        target=target,
        width=2 if chosen.precision == "bf16" else 4,
        device=chosen.device.type,
        packed=configured.batching.layout != "padded" and model.kind not in UNITS,
    )
    return plan(
        model,
        load,
        name=name,
        tokens=tokens,
        tokens_from=says,
        tokenisation=configured.tokenizer.kind,
        optimiser=configured.train.optimiser,
        average=configured.train.ema > 0,
    )


def wanted(arguments: argparse.Namespace):
    """Name and run of a preset, a recipe, a file or a folder."""
    from pathlib import Path

    from regard import recipes
    from regard.config.flags import apply
    from regard.config.toml import load, nearest, read_toml, structure
    from regard.errors import UsageError
    from regard.models.presets import PRESETS
    from regard.run import Run, laid_over, read_run

    what = arguments.what
    folder = Path(what)
    if what.lower() in PRESETS:  # T-ED, as the papers write it
        return what, apply(structure(Run, laid_over({}, what.lower())), arguments.settings)
    for inside in ("run.toml", "model.toml"):
        if (folder / inside).is_file():
            if inside == "run.toml":
                return what, apply(load(Run, folder / inside), arguments.settings)
            tables = {"model": read_toml(folder / inside).get("model", {})}
            return what, apply(structure(Run, tables, where=str(folder / inside)), arguments.settings)
    known = [name for name, _ in recipes.listed()]
    if not what.endswith(".toml") and what not in known:
        raise UsageError(f"there is no recipe or preset {what}", do=nearest(what, [*PRESETS, *known]))
    path = recipes.find(what)
    return path.stem, read_run(path, flags=arguments.settings)


def with_vocabulary(configured, given: int):
    """The model with the sizes that the tokenizer would have; a plan needs no corpus."""
    from dataclasses import fields, replace

    from regard.errors import UsageError

    model, size = configured.model, given or getattr(configured.tokenizer, "size", 0)
    open_ = [field.name for field in fields(model) if field.name.endswith("vocabulary") and not getattr(model, field.name)]
    if open_ and configured.tokenizer.kind == "byte":
        size = size or 260
    if open_ and not size:
        what = f"a tokenizer of kind {configured.tokenizer.kind} learns from its corpus how many entries it has"
        raise UsageError(what, where="plan", do="say how many: --vocabulary 8000")
    return replace(model, **dict.fromkeys(open_, size))


def with_labels(model, given: int):
    """The model with so many labels, where it does not name its own."""
    from dataclasses import replace

    from regard.errors import UsageError

    if getattr(model, "labels", True):
        return model
    if not given:
        raise UsageError("a classifier learns from its corpus which labels there are", where="plan", do="say how many: --labels 10")
    return replace(model, labels=tuple(map(str, range(given))))


def with_data(model, *, picture: str, features: int):
    """The model with what it would learn of its pictures, nodes or points; a plan reads none of them."""
    import re
    from dataclasses import replace

    from regard.errors import UsageError

    if model.kind in ("image-classifier", "image-captioner") and not (model.channels and all(model.size)):
        if not (found := re.fullmatch(r"(\d+)x(\d+)x(\d+)", picture)):
            raise UsageError("the model learns from its corpus how large pictures are", where="plan", do="say it: --picture 1x28x28")
        channels, height, width = map(int, found.groups())
        return replace(model, channels=channels, size=(height, width))
    if model.kind == "graph-classifier" and not model.features:
        if not features:
            raise UsageError("the model learns from its graph which features there are", where="plan", do="say how many: --features 1433")
        return replace(model, features=features)
    return replace(model, problem="hull") if model.kind == "pointer-network" and not model.problem else model


def shape_of(configured, model, *, length: int, batch: int) -> tuple[int, int, int]:
    """Rows of a batch, and what a row reads and answers, in the units of the model."""
    from regard.nn.positions import Learned

    budget = configured.batching.tokens
    match model.kind:
        case "image-classifier":
            return batch or budget or 128, 1, 1
        case "speech":
            frames = length or 100  # a second, by the usual hop of ten milliseconds
            return batch or max(1, (budget or 4096) // frames), frames, 1
        case "graph-classifier":
            nodes = length or 2708  # Cora's
            return 1, nodes, nodes
        case "pointer-network":
            many = length or max((corpus.sizes[1] for corpus in configured.data.train), default=50)
            return batch or max(1, (budget or 1024) // many), many, many
        case _:
            places = model.embedding.positions
            tokens = length or (places.length if isinstance(places, Learned) else 128)
            return batch or max(1, (budget or 4096) // tokens), tokens, tokens
