"""`regard plan`: what a recipe or a preset costs, before it is paid."""

from __future__ import annotations

import argparse

PLANNED = ("translator", "language-model", "masked-language-model", "tagger", "text-classifier")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", help="a recipe, a preset (tiny, base, ...), a TOML file, or the folder of a model or run")
    parser.add_argument("--table", metavar="NAME", help="a published table beside what the formulas say: wmt14, wikisum, transformer, gpt3")
    parser.add_argument("--tokens", type=float, default=0.0, metavar="N", help="target tokens to train on, such as 2.5e9")
    parser.add_argument("--length", type=int, default=0, metavar="n", help="tokens of a row; of a translator, on either side")
    parser.add_argument("--batch", type=int, default=0, metavar="B", help="rows of a batch")
    parser.add_argument("--rate", type=float, default=0.0, metavar="FLOP/s", help="what the device sustains, such as 3e14")
    parser.add_argument("--vocabulary", type=int, default=0, metavar="V", help="entries, where the tokenizer does not say how many")
    parser.add_argument("--labels", type=int, default=0, metavar="N", help="how many, of a classifier that learns them from its corpus")
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

    for name in ("tokens", "length", "batch", "rate", "vocabulary", "labels"):
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
    from regard.errors import UsageError
    from regard.plan.budget import plan
    from regard.plan.part import Load
    from regard.plan.tables import read
    from regard.train.device import machine

    name, configured = wanted(arguments)
    if configured.model.kind not in PLANNED:
        what = f"it is of kind {configured.model.kind}, and only models of text can be planned yet"
        raise UsageError(what, where=name, do="name the recipe of a translator or a language model")
    model = with_labels(with_vocabulary(configured, arguments.vocabulary), arguments.labels)
    chosen = machine(arguments.device, arguments.precision)
    length = arguments.length or length_of(model)
    tokens, says = arguments.tokens, "as asked"
    if not tokens and configured.train.steps and configured.batching.tokens:
        tokens = configured.train.steps * configured.train.accumulate * configured.batching.tokens
        says = f"{configured.train.steps:,} steps of the recipe"
    trained = read("training").get(name)
    if not tokens and trained:
        tokens, says = trained["tokens"], trained["says"]
    batch = arguments.batch or max(1, (configured.batching.tokens or 4096) // length)
    load = Load(
        batch=batch,
        source=length,
        target=length,
        width=2 if chosen.precision == "bf16" else 4,
        device=chosen.device.type,
        packed=configured.batching.layout != "padded",
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


def length_of(model) -> int:
    """A length that suits the model: that of a table of positions, or of a sentence."""
    from regard.nn.positions import Learned

    places = model.embedding.positions
    return places.length if isinstance(places, Learned) else 128
