"""The runs of a sweep, one folder each, made one after the other; what is finished is never made again."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from regard.assemble import kept_whole, read_begun, train_run
from regard.compare.sweep import Sweep, Variant
from regard.config.toml import dumps
from regard.errors import DataError, Interrupted, RegardError, UsageError
from regard.models.folder import replace_text
from regard.run import Run, check_end
from regard.tasks.telling import say
from regard.train.display import Show


def folder_of(out: Path, variant: Variant, seed: int) -> Path:
    return out / variant.name / f"seed-{seed}"


def complete(sweep: Sweep, out: Path, *, show: Show) -> dict[str, str]:
    """Make what is not there yet; why a run failed, by its name. The same command, given again while it works, shares the work."""
    wanted = [(variant, seed) for variant in sweep.variants for seed in sweep.head.seeds]
    for variant, seed in wanted:
        check_end(variant.run.train)
        check_asked(asked(variant, seed, out), folder_of(out, variant, seed))
    failed = {}
    for number, (variant, seed) in enumerate(wanted, 1):
        folder, run = folder_of(out, variant, seed), asked(variant, seed, out)
        if (folder / "report.json").is_file():
            continue
        folder.parent.mkdir(parents=True, exist_ok=True)
        with claimed(note_of(folder)) as mine:
            if not mine or (folder / "report.json").is_file():
                continue
            replace_text(note_of(folder), dumps(run))
            say(f"{number} of {len(wanted)}: {variant.name}, seed {seed}")
            try:
                make(run, folder, show=show)
            except (UsageError, DataError, Interrupted):  # the others would end in the same way
                raise
            except RegardError as error:
                failed[f"{variant.name}, seed {seed}"] = str(error)
                say(f"{variant.name}, seed {seed}: {error}")
    return failed


def asked(variant: Variant, seed: int, out: Path) -> Run:
    """The run of this seed; all runs share one folder of tokenised corpora."""
    run = variant.seeded(seed)
    return run if run.data.cache else replace(run, data=replace(run.data, cache=str((out / "cache").resolve())))


def make(run: Run, folder: Path, *, show: Show) -> None:
    """Train it, from its last checkpoint where it has one."""
    begun = (folder / "checkpoints" / "latest").is_file()
    if not begun and folder.exists():  # killed before anything was learned
        shutil.rmtree(folder)
    with kept_whole(folder):
        train_run(read_begun(folder) if begun else run, folder, resume=begun, show=show)


def note_of(folder: Path) -> Path:
    """What the run of a folder was asked to be; it lies beside it, for the folder itself says what became of that."""
    return folder.with_suffix(".toml")


def check_asked(run: Run, folder: Path) -> None:
    """A run that is there is the one that is asked for, or no table could have it."""
    note = note_of(folder)
    if note.is_file() and (said := note.read_text("utf-8")) and said != dumps(run):
        do = "remove its folder and this file, or choose another --out"
        raise UsageError("this run was made with other settings than the sweep has now", where=str(note), do=do)


@contextlib.contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Whether nobody else works at it; the claim ends with the process, however that ends."""
    with path.with_suffix(".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
