"""From a run's configuration to a trained, scored model in a run folder: every part is made here, and put together."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from regard.config.toml import dumps, load, unstructure
from regard.data.batch import PairBatch
from regard.data.batching import Batches
from regard.data.parallel import Corpus, read_pairs
from regard.data.prepare import prepare_pairs
from regard.data.stream import PairCache
from regard.data.tokenise import Tokenizer, load_tokenizer, train_tokenizers
from regard.decode.sample import Greedy
from regard.decode.translator import translate_texts
from regard.errors import DataError, ModelError, UsageError
from regard.evaluate.translations import score_translations
from regard.models.build import build
from regard.models.folder import publish, replace_text
from regard.models.saved import Saved, load_model, save_model, tokenizer_files, with_vocabularies
from regard.models.tensors import restore, state_of
from regard.models.translator import Translator
from regard.run import Run, check_files, root_of
from regard.train.auto import faster_precision, fit_tokens
from regard.train.average import MovingAverage
from regard.train.checkpoint import Checkpoints, Origin
from regard.train.device import Machine, machine, seed_everything
from regard.train.display import Show, display
from regard.train.events import Evaluate, Every, LogStep, Sample, save
from regard.train.log import Log, write_report
from regard.train.loop import Budget, Parts, train
from regard.train.loss import CrossEntropy, Objective
from regard.train.optimise import build_optimiser
from regard.train.parallel import Ranks, join
from regard.train.signals import Signals
from regard.train.step import Learner

TOKENIZERS = "tokenizers"  # folder inside a run


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@dataclass(frozen=True, eq=False)
class Prepared:
    """The data of a run, ready to be read."""

    tokenizers: tuple[Tokenizer, Tokenizer]
    cache: PairCache
    valid: list[tuple[str, str]]
    valid_cache: PairCache | None


def begin(run: Run, out: Path, *, resume: bool) -> None:
    """Make the run's folder, or see that it is one."""
    if (out / "run.toml").exists() and not resume:
        raise UsageError("there is a run in this folder already", where=str(out), do=f"go on with --resume {out}, or choose another --out")
    if not resume:
        check_files(run.data)
        out.mkdir(parents=True, exist_ok=True)
        replace_text(out / "run.toml", dumps(run))


def read_begun(out: Path) -> Run:
    """The run that a folder holds."""
    if not (out / "run.toml").is_file():
        raise ModelError("is not a run folder (it has no run.toml)", where=str(out), do="give the folder that --out named")
    return load(Run, out / "run.toml")


def train_run(
    run: Run, out: Path, *, resume: bool = False, warm: Saved | None = None, force: bool = False, show: Show = "auto"
) -> dict[str, Any]:
    """Train as the run says, score the best model on the test pairs, and return the report."""
    started = time.monotonic()
    ranks = join(cuda=run.train.device != "cpu" and torch.cuda.is_available())
    chosen = machine(run.train.device, run.train.precision, compile=run.train.compile, local_rank=ranks.local)
    with Signals() as signals, contextlib.ExitStack() as stack:
        stack.callback(ranks.leave)
        if ranks.first:
            begin(run, out, resume=resume)
        ranks.wait()
        data = prepare(run, out, ranks=ranks, signals=signals, tokenizers=(warm.source, warm.target) if warm else None)
        run = replace(run, model=with_vocabularies(run.model, data.tokenizers))
        model = new_model(run, device=chosen.device, warm=warm)
        run = replace(run, batching=run.batching.suited(packs=model.packs))
        run, chosen = fitted(run, data, model, chosen, out=out, ranks=ranks)
        parts = assemble(run, out, data, model, machine=chosen, ranks=ranks, signals=signals, show=show if ranks.first else "none")
        stack.callback(parts.log.close)
        if resume:
            parts.resume(force=force)
        train(parts)
        parts.log.close()
        if not ranks.first:
            return {}
        return finish(run, out, data, parts, signals=signals, seconds=time.monotonic() - started)


def prepare(run: Run, out: Path, *, ranks: Ranks, signals: Signals, tokenizers: tuple[Tokenizer, Tokenizer] | None = None) -> Prepared:
    """Tokenizers and caches; made by the first rank, read by all."""
    root = root_of(run.data)
    if ranks.first and not (out / TOKENIZERS).is_dir():
        made = tokenizers or train_tokenizers(run.tokenizer, run.data.train, root=root, filters=run.data.filters, seed=run.train.seed)
        publish(out / TOKENIZERS, tokenizer_files(made))
    ranks.wait()
    pair = load_tokenizer(out / TOKENIZERS, "source"), load_tokenizer(out / TOKENIZERS, "target")
    folder = Path(run.data.cache) if run.data.cache else out / "cache"

    def cached(corpora: Sequence[Corpus], sides: tuple[Tokenizer, Tokenizer]) -> PairCache:
        return prepare_pairs(
            corpora,
            sides,
            folder,
            root=root,
            filters=run.data.filters,
            seed=run.train.seed,
            workers=run.data.workers,
            progress=lambda *_: signals.check(),
        )

    if not ranks.first:
        ranks.wait()
    cache = cached(run.data.train, pair)
    plain = tuple(without_sampling(tokenizer) for tokenizer in pair)
    valid_cache = cached(run.data.valid, (plain[0], plain[1])) if run.data.valid else None
    if ranks.first:
        ranks.wait()
    if not len(cache):
        raise DataError("no usable pair is left", where="data.train", do="look at the filters, or run `regard check` on the files")
    valid = [sides for corpus in run.data.valid for sides in read_pairs(corpus, root=root)]
    return Prepared(pair, cache, valid, valid_cache)


def without_sampling(tokenizer: Tokenizer) -> Tokenizer:
    return Tokenizer(tokenizer.vocabulary, surface=tokenizer.surface, language=tokenizer.language, tags=tokenizer.tags)


def fitted(run: Run, data: Prepared, model: Translator, chosen: Machine, *, out: Path, ranks: Ranks) -> tuple[Run, Machine]:
    """What only the device can tell, written into run.toml so that going on does not ask again: the token budget and the precision."""
    objective = Objective(model, run.train.loss)

    def largest(tokens: int) -> PairBatch:
        return Batches(data.cache, replace(run.batching, tokens=tokens), seed=run.train.seed).largest()

    if not run.batching.tokens:
        (tokens,) = ranks.from_first(fit_tokens(objective, largest, machine=chosen))
        run = replace(run, batching=replace(run.batching, tokens=int(tokens)))
    if run.train.precision == "auto":
        precision = chosen.precision
        if chosen.device.type == "cpu":
            precision, took = faster_precision(objective, largest(min(run.batching.tokens, 2048)), machine=chosen)
            precision = "bf16" if ranks.from_first(precision == "bf16")[0] else "fp32"
            say("  ".join(f"{kind}: {1000 * spent:.0f} ms a step" for kind, spent in took.items()) + f"; training in {precision}")
        run = replace(run, train=replace(run.train, precision=precision))
    if ranks.first:
        replace_text(out / "run.toml", dumps(run))
    return run, replace(chosen, precision=run.train.precision)  # type: ignore[arg-type]


def new_model(run: Run, *, device: torch.device, warm: Saved | None) -> Translator:
    """Fresh parameters, a function of the seed, or those of another model."""
    seed_everything(run.train.seed)
    model = build(run.model)
    assert isinstance(model, Translator)
    if warm is not None:
        restore(model, state_of(warm.model), where=str(warm.folder))
    return model.to(device).train()


def assemble(
    run: Run, out: Path, data: Prepared, model: Translator, *, machine: Machine, ranks: Ranks, signals: Signals, show: Show
) -> Parts:
    """The parts of training."""
    config = run.train
    ranks.same(model)
    batches = Batches(data.cache, run.batching, seed=config.seed, rank=ranks.rank, world=ranks.world)
    learner = Learner(
        machine.compiled(Objective(model, config.loss)),  # type: ignore[arg-type]
        build_optimiser(config.optimiser, model),
        machine=machine,
        ranks=ranks,
        average=MovingAverage(model, config.ema) if config.ema else None,
        clip=config.clip,
        seed=config.seed,
    )
    text = dumps(replace(run, train=replace(config, device="auto")))
    parts = Parts(
        learner=learner,
        batches=batches,
        schedule=config.schedule,
        budget=Budget(
            config.steps,
            config.epochs,
            config.seconds,
            config.patience,
            batches_in_epoch=max(1, sum(1 for _ in batches.plan(0)) // ranks.world),
        ),
        checkpoints=Checkpoints(out / "checkpoints", keep=config.keep, keep_best=config.keep_best),
        log=Log(
            out / "log.jsonl" if ranks.first else None,
            display=display(show),
            tensorboard=out / "tensorboard" if config.tensorboard and ranks.first else None,
        ),  # type: ignore[arg-type]
        signals=signals,
        origin=Origin(hashlib.sha256(text.encode()).hexdigest(), data.cache.fingerprint),
        accumulate=config.accumulate,
        bad_steps=config.bad_steps,
        rate=config.optimiser.rate,
        width=run.model.d_model,
    )
    parts.events = events(run, out, data, model, parts, learner)
    return parts


def events(run: Run, out: Path, data: Prepared, model: Translator, parts: Parts, learner: Learner) -> list[Every]:
    """What happens between the steps of this run."""
    config, found = run.train, []
    found.append(Every("log", LogStep(), steps=config.log_every))
    if data.valid and config.sample_every:
        texts = [data.valid[place] for place in range(0, len(data.valid), max(1, len(data.valid) // 7))][:7]
        greedy = replace(run.decoding, search=Greedy())

        def sample() -> list[tuple[str, str]]:
            source, _ = texts[parts.progress.step // config.sample_every % len(texts)]
            found = translate_texts(model, [source], tokenizers=data.tokenizers, decoding=greedy)
            return [(source, found[0].text)]

        found.append(Every("sample", Sample(sample), steps=config.sample_every, last=False))
    if data.valid:
        measured = measure(run, data, model, learner)
        better = "higher" if config.score == "bleu" else "lower"
        export = lambda: export_model(run, out / "best", model, data)
        found.append(Every("evaluate", Evaluate(measured, score=config.score, better=better, export=export), steps=config.evaluate_every))
    found.append(Every("save", save, steps=config.save_every))
    return found


def measure(run: Run, data: Prepared, model: Translator, learner: Learner) -> Callable[[Callable[[], None]], Mapping[str, float]]:
    """The loss on the validation pairs and, where it decides, BLEU of greedy translations."""
    sources, references = [source for source, _ in data.valid], [target for _, target in data.valid]
    objective = Objective(model, CrossEntropy(smoothing=0.0))
    assert data.valid_cache is not None
    batches = Batches(data.valid_cache, run.batching, seed=run.train.seed)
    greedy = replace(run.decoding, search=Greedy())
    name = "bleu" if data.tokenizers[1].surface.lossless else "multi-bleu"  # of the text as the model writes it

    def measured(check: Callable[[], None]) -> dict[str, float]:
        total = tokens = 0.0
        for batch in batches.once():
            check()
            with learner.machine.autocast():
                total += float(objective(batch.to(learner.machine.device)))
            tokens += batch.target_tokens
        found = {"loss": total / max(1.0, tokens)}
        if run.train.score == "bleu":
            with learner.machine.autocast():
                answers = translate_texts(model, sources, tokenizers=data.tokenizers, decoding=greedy, check=check)
            found["bleu"] = score_translations([name], answers, references, target=data.tokenizers[1])[name]["score"]
        return found

    return measured


def export_model(run: Run, folder: Path, model: Translator, data: Prepared) -> None:
    save_model(
        folder,
        model,
        run.model,
        tokenizers=data.tokenizers,
        tables={"decoding": unstructure(run.decoding)},
        readme=readme(run, data),
    )


def readme(run: Run, data: Prepared) -> str:
    named = "\n".join(f"- {json.dumps(unstructure(corpus), ensure_ascii=False)}" for corpus in run.data.train)
    return f"""# A translation model made with regard

Trained on {len(data.cache):,} sentence pairs:

{named}

Use it with `regard translate FOLDER < sentences.txt`. The licence of the data decides what may be done with the model.
"""


def finish(run: Run, out: Path, data: Prepared, parts: Parts, *, signals: Signals, seconds: float) -> dict[str, Any]:
    """Export the last model, score the best one on the test pairs, write report.json."""
    model = parts.learner.model
    assert isinstance(model, Translator)
    with parts.learner.at_rest():
        export_model(run, out / "last", model, data)
    final = load_model(out, device=model.device)
    scores = {}
    pairs = [sides for corpus in run.data.test for sides in read_pairs(corpus, root=root_of(run.data))]
    if pairs:
        say(f"translating the {len(pairs):,} test sentences")
        with parts.learner.machine.autocast():
            sources = [source for source, _ in pairs]
            answers = translate_texts(final.model, sources, tokenizers=data.tokenizers, decoding=run.decoding, check=signals.check)
        scores = score_translations(run.metrics, answers, [target for _, target in pairs], target=data.tokenizers[1])
    progress = parts.progress
    report = {
        "scores": scores,
        "seconds": round(seconds, 1),
        "train_seconds": round(progress.elapsed, 1),
        "target_tokens_per_second": round(progress.target_tokens / max(progress.elapsed, 1e-9), 1),
        "padding_share": round(float(getattr(parts.batches, "padding_share", 0.0)), 4),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "steps": progress.step,
        "skipped": progress.skipped,
        "best_step": progress.best,
        "seed": run.train.seed,
        "device": parts.learner.machine.name,
        "precision": parts.learner.machine.precision,
        "versions": {"regard": version(), "torch": torch.__version__, "python": sys.version.split()[0]},
        "data": dict(data.cache.counts),
    }
    write_report(out, report)
    return report


def version() -> str:
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("regard")
    except PackageNotFoundError:
        return "source"
