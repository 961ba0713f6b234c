"""Checkpoints: when one is written, which are kept, and how the newest sound one is found again."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from regard.errors import Interrupted, ModelError, UsageError
from regard.models import folder
from regard.models.tensors import read_tensors, size_of, written
from regard.train.progress import Progress

LATEST = "latest"
STATE = "state.json"
SUFFIX = ".safetensors"


@dataclass(frozen=True)
class Origin:
    """What a run is made from: to go on with another configuration or other data would not be the same run."""

    config: str = ""  # hash of the resolved configuration
    data: str = ""  # hash of the data


@dataclass(frozen=True, eq=False)
class Snapshot:
    """All that a run needs to go on as if nothing had happened. Generators are not part of it: they are seeded anew in each step."""

    tensors: Mapping[str, Mapping[str, Tensor]]  # by file: model, optimiser, average, left
    progress: Progress
    origin: Origin = Origin()


class Checkpoints:
    """The folder `checkpoints/` of a run: `step-N/` each, and `latest`, a text file that names the newest."""

    def __init__(self, place: Path, *, keep: int = 2, keep_best: int = 1, retries: int = 3, warn: Callable[[str], None] | None = None):
        if keep < 2:
            raise UsageError("fewer than two checkpoints would be kept", where="keep", do="keep at least 2: the newest may be damaged")
        self.place, self.keep, self.keep_best, self.retries = place, keep, keep_best, retries
        self.warn = warn or (lambda text: print(text, file=sys.stderr))
        self.failures = 0

    def save(self, snapshot: Snapshot) -> bool:
        """Write, verify, point to it, prune. A full or failing disk does not end the run until it has failed `retries` times in a row."""
        target = self.place / f"step-{snapshot.progress.step}"
        try:
            self.place.mkdir(parents=True, exist_ok=True)
            folder.sweep(self.place)
            if not _sound(target):
                self._write(target, snapshot)
            folder.replace_text(self.place / LATEST, target.name + "\n")
            self._prune()
        except (OSError, ModelError) as error:
            self.failures += 1
            full = isinstance(error, OSError) and error.errno in folder.FULL
            what = "the disk is full" if full else str(error)
            if self.failures >= self.retries:
                raise Interrupted(
                    f"saving failed {self.failures} times in a row: {what}", where=str(target), do="make room, then go on with --resume"
                ) from error
            self.warn(f"{target}: not saved, {what}; training goes on and will try again")
            return False
        self.failures = 0
        return True

    def load(self) -> Snapshot | None:
        """The newest sound checkpoint, None where there is none at all; each damaged one is named, and if all are, that is an error."""
        folder.sweep(self.place)
        steps = self.steps()
        reasons = []
        for step in reversed(steps):
            try:
                snapshot = read(self.place / f"step-{step}")
            except ModelError as error:
                reasons.append(str(error))
                self.warn(f"skipped a damaged checkpoint: {error}")
                continue
            return snapshot
        if reasons:
            raise ModelError("no checkpoint is sound: " + " / ".join(reasons), where=str(self.place), do="start again without --resume")
        return None

    def steps(self) -> list[int]:
        """The steps that have a checkpoint, sound or not, rising."""
        names = os.listdir(self.place) if self.place.is_dir() else []
        return sorted(int(name[5:]) for name in names if re.fullmatch(r"step-[0-9]+", name))

    def _write(self, target: Path, snapshot: Snapshot) -> None:
        progress = snapshot.progress
        state = {"progress": progress.to_json(), "config": snapshot.origin.config, "data": snapshot.origin.data}
        text = json.dumps(state, indent=1, allow_nan=False).encode()
        score = progress.scores[-1] if progress.scored and progress.scored[-1] == progress.step else None
        folder.publish(
            target,
            {**{name + SUFFIX: written(tensors) for name, tensors in snapshot.tensors.items()}, STATE: [text]},
            facts={"step": progress.step, "score": score},
            expected=sum(size_of(tensors) for tensors in snapshot.tensors.values()) + len(text),
        )
        folder.verify(target)  # read it again before an older one may go

    def _prune(self) -> None:
        """Keep the newest `keep` that are sound, and the `keep_best` best of the rest; what is older and damaged is no loss."""
        sound: list[tuple[int, float | None]] = []
        for step in reversed(self.steps()):
            try:  # only those that will be relied on are read again
                path = self.place / f"step-{step}"
                manifest = folder.verify(path) if len(sound) < self.keep else folder.read_manifest(path)
                score = manifest.get("score")
                sound.append((step, float(score) if isinstance(score, int | float) else None))
            except ModelError as error:
                self.warn(f"found a damaged checkpoint: {error}")
        if len(sound) <= self.keep:
            return
        best = sorted((score, step) for step, score in sound if score is not None)[-self.keep_best :] if self.keep_best else []
        kept = {step for step, _ in sound[: self.keep]} | {step for _, step in best}
        for step in self.steps():
            if step not in kept:
                shutil.rmtree(self.place / f"step-{step}", ignore_errors=True)


def read(path: Path) -> Snapshot:
    """One checkpoint, verified."""
    manifest = folder.verify(path)
    state = folder.read_json(path / STATE)
    if not isinstance(state, dict) or not {"progress", "config", "data"} <= set(state):
        raise ModelError("it lacks the run's state", where=str(path / STATE))
    tensors = {name.removesuffix(SUFFIX): read_tensors(path / name) for name in manifest["files"] if name.endswith(SUFFIX)}
    return Snapshot(tensors, Progress.from_json(state["progress"]), Origin(str(state["config"]), str(state["data"])))


def check_origin(stored: Origin, now: Origin, *, where: str) -> None:
    """Refuse to go on with another configuration or other data."""
    for name in ("config", "data"):
        was, is_now = getattr(stored, name), getattr(now, name)
        if was != is_now:
            what = "configuration" if name == "config" else "data"
            raise UsageError(
                f"the {what} changed since this run was begun ({was[:12]} -> {is_now[:12]})",
                where=where,
                do="start a new run, warm it with --from, or insist with --force",
            )


def _sound(path: Path) -> bool:
    try:
        folder.verify(path)
    except ModelError:
        return False
    return True
