"""From a run's configuration to a trained, scored model in a run folder: every part is made here, and put together."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.config.extend import active, check_passed
from regard.config.toml import dumps, load, read_toml
from regard.data.batch import Batch
from regard.errors import Interrupted, ModelError, UsageError
from regard.models.build import build
from regard.models.folder import FULL, replace_text
from regard.models.saved import Saved, load_model
from regard.models.tensors import restore, state_of
from regard.run import Run, check_files
from regard.tasks.opening import open_task
from regard.tasks.protocol import Task
from regard.tasks.telling import say
from regard.train.auto import faster_precision, fit_tokens
from regard.train.average import MovingAverage
from regard.train.checkpoint import Checkpoints, Origin
from regard.train.device import Machine, machine, seed_everything
from regard.train.display import Show, display
from regard.train.events import Evaluate, Every, LogStep, Sample, save
from regard.train.log import Log, write_report
from regard.train.loop import Budget, Parts, train
from regard.train.optimise import build_optimiser
from regard.train.parallel import Ranks, join
from regard.train.signals import Signals
from regard.train.step import Learner
from regard.version import version


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
    check_passed(read_toml(out / "run.toml").get("extensions", {}), where=str(out / "run.toml"))
    return load(Run, out / "run.toml")


def with_extensions(run: Run, *, resume: bool, force: bool) -> Run:
    """The run, with the files of the user's that it is begun with; one that goes on does so with the same."""
    if resume and (changed := check_passed(run.extensions, where="extensions")) and not force:
        do = "pass it as it was, or go on all the same with --force"
        raise UsageError("the file is not what it was when the run began", where=changed[0], do=do)
    return replace(run, extensions=active())


@contextlib.contextmanager
def kept_whole(out: Path) -> Iterator[None]:
    """Whatever goes wrong, the run's folder is one that can be gone on with, or, if nothing was learned yet, as it was before: what was
    mistyped can be mended and the same command given again. Another run in the folder is never touched."""
    before = set(out.iterdir()) if out.is_dir() else set()
    begun, new = out / "run.toml" in before, not out.exists()
    try:
        yield
    except Interrupted:
        raise
    except Exception as error:
        if (out / "checkpoints" / "latest").is_file():
            if isinstance(error, OSError) and error.errno in FULL:
                where = str(error.filename or out)
                raise Interrupted("the disk is full", where=where, do=f"make room, then go on with --resume {out}") from error
        elif not begun and out.is_dir() and os.environ.get("RANK", "0") == "0":
            for path in [out] if new else set(out.iterdir()) - before:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        raise


def train_run(
    run: Run, out: Path, *, resume: bool = False, warm: Saved | None = None, force: bool = False, show: Show = "auto"
) -> dict[str, Any]:
    """Train as the run says, score the best model on the test pairs, and return the report."""
    started = time.monotonic()
    run = with_extensions(run, resume=resume, force=force)
    ranks = join(cuda=run.train.device != "cpu" and torch.cuda.is_available())
    chosen = machine(run.train.device, run.train.precision, compile=run.train.compile, local_rank=ranks.local)
    with Signals() as signals, contextlib.ExitStack() as stack:
        stack.callback(ranks.leave)
        if ranks.first:
            begin(run, out, resume=resume)
        ranks.wait()
        task = open_task(run, out, ranks=ranks, signals=signals, warm=warm)
        check_score(run, task)
        run = replace(run, model=task.config)
        model = new_model(run, device=chosen.device, warm=warm)
        run = replace(run, batching=run.batching.suited(packs=bool(getattr(model, "packs", False))))
        run, chosen = fitted(run, task, model, chosen, out=out, ranks=ranks)
        parts = assemble(run, out, task, model, machine=chosen, ranks=ranks, signals=signals, show=show if ranks.first else "none")
        stack.callback(parts.log.close)
        if resume:
            parts.resume(force=force)
        train(parts)
        parts.log.close()
        if not ranks.first:
            return {}
        return finish(run, out, task, parts, signals=signals, seconds=time.monotonic() - started)


def check_score(run: Run, task: Task) -> None:
    """The score that chooses is one that this job has."""
    if run.train.score not in ("usual", "loss", task.usual):
        what = f"{run.train.score} is no score of models of kind {run.model.kind}"
        raise UsageError(what, where="train.score", do=f"choose {task.usual} or loss")


def fitted(run: Run, task: Task, model: nn.Module, chosen: Machine, *, out: Path, ranks: Ranks) -> tuple[Run, Machine]:
    """What only the device can tell, written into run.toml so that going on does not ask again: the token budget and the precision."""
    objective = task.objective(model)

    def largest(tokens: int) -> Batch:
        return task.batches(replace(run.batching, tokens=tokens)).largest()

    if not run.batching.tokens:
        (tokens,) = ranks.from_first(fit_tokens(objective, largest, machine=chosen, on_cpu=task.on_cpu, most=task.most))
        run = replace(run, batching=replace(run.batching, tokens=int(tokens)))
    if run.train.precision == "auto":
        precision = chosen.precision
        if chosen.device.type == "cpu":
            precision, took = faster_precision(objective, largest(min(run.batching.tokens, task.on_cpu)), machine=chosen)
            precision = "bf16" if ranks.from_first(precision == "bf16")[0] else "fp32"
            say("  ".join(f"{kind}: {1000 * spent:.0f} ms a step" for kind, spent in took.items()) + f"; training in {precision}")
        run = replace(run, train=replace(run.train, precision=precision))
    if ranks.first:
        replace_text(out / "run.toml", dumps(run))
    return run, replace(chosen, precision=run.train.precision)  # type: ignore[arg-type]


def new_model(run: Run, *, device: torch.device, warm: Saved | None) -> nn.Module:
    """Fresh parameters, a function of the seed, or those of another model."""
    seed_everything(run.train.seed)
    model = build(run.model)
    if warm is not None:
        restore(model, state_of(warm.model), where=str(warm.folder))
    return model.to(device).train()


def assemble(run: Run, out: Path, task: Task, model: nn.Module, *, machine: Machine, ranks: Ranks, signals: Signals, show: Show) -> Parts:
    """The parts of training."""
    config = run.train
    ranks.same(model)
    batches = task.batches(run.batching, rank=ranks.rank, world=ranks.world)
    learner = Learner(
        machine.compiled(task.objective(model)),
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
            batches_in_epoch=max(1, batches.in_epoch // ranks.world),
        ),
        checkpoints=Checkpoints(out / "checkpoints", keep=config.keep, keep_best=config.keep_best),
        log=Log(
            out / "log.jsonl" if ranks.first else None,
            display=display(show),
            tensorboard=out / "tensorboard" if config.tensorboard and ranks.first else None,
        ),  # type: ignore[arg-type]
        signals=signals,
        origin=Origin(hashlib.sha256(text.encode()).hexdigest(), task.fingerprint),
        accumulate=config.accumulate,
        bad_steps=config.bad_steps,
        rate=config.optimiser.rate,
        width=run.model.d_model,
    )
    parts.events = events(run, out, task, model, parts)
    return parts


def events(run: Run, out: Path, task: Task, model: nn.Module, parts: Parts) -> list[Every]:
    """What happens between the steps of this run."""
    config, found = run.train, [Every("log", LogStep(), steps=run.train.log_every)]
    if config.sample_every and (sampled := task.sample(model)):
        sample = Sample(lambda: sampled(parts.progress.step // config.sample_every))
        found.append(Every("sample", sample, steps=config.sample_every, last=False))
    if watched := task.watch(model, parts.learner.machine, run.batching):
        score = task.usual if config.score == "usual" else config.score
        better = "lower" if score == "loss" else "higher"
        evaluate = Evaluate(watched, score=score, better=better, export=lambda: task.save(out / "best", model))
        found.append(Every("evaluate", evaluate, steps=config.evaluate_every))
    found.append(Every("save", save, steps=config.save_every))
    return found


def finish(run: Run, out: Path, task: Task, parts: Parts, *, signals: Signals, seconds: float) -> dict[str, Any]:
    """Export the last model, score the best one on the test examples, write report.json."""
    model, machine = parts.learner.model, parts.learner.machine
    with parts.learner.at_rest():
        task.save(out / "last", model)
    scores = task.score(load_model(out, device=machine.device).model, machine, run.batching, signals.check)
    progress = parts.progress
    report = {
        "scores": scores,
        "seconds": round(seconds, 1),
        "train_seconds": round(progress.elapsed, 1),
        "target_tokens_per_second": round(progress.target_tokens / max(progress.elapsed, 1e-9), 1),
        "padding_share": round(float(getattr(parts.batches, "padding_share", 0.0)), 4),
        "target_tokens": int(progress.target_tokens),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "steps": progress.step,
        "skipped": progress.skipped,
        "best_step": progress.best,
        "seed": run.train.seed,
        "device": parts.learner.machine.name,
        "precision": parts.learner.machine.precision,
        "versions": {"regard": version(), "torch": torch.__version__, "python": sys.version.split()[0]},
        "data": dict(task.counts),
    }
    write_report(out, report)
    return report
