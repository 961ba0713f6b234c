"""Points, and the hull or the tour that answers them: what a pointer network learns."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Int
from numpy import ndarray as Array
from torch import nn

from regard.config.toml import unstructure
from regard.data.point_batch import PointBatch
from regard.data.points import PointExamples, Points, read_back, spelled
from regard.decode.engine import Search
from regard.decode.pointing import answer
from regard.errors import DataError, UsageError
from regard.evaluate.accuracy import accuracy
from regard.evaluate.measure import Score
from regard.evaluate.plane import area, tour_length
from regard.models.configs import PointerNetwork
from regard.models.pointer_network import Pointer
from regard.run import Run
from regard.tasks.labelling import Labelling, parted
from regard.tasks.refusing import no_metrics, only
from regard.train.loss import CrossEntropy
from regard.train.pointing_loss import PointingObjective


def open_points(run: Run, config: PointerNetwork) -> Labelling:
    no_metrics(run)
    parts = {part: only(getattr(run.data, part), (Points,), part=part, reader="a pointer network") for part in ("train", "valid", "test")}
    examples = {part: PointExamples.of(corpora) if corpora else None for part, corpora in parts.items()}
    if examples["train"] is None:
        raise DataError("there is no set of points to learn from", where="data.train")
    problem = _one_problem(parts, config)
    learned, held = parted(run, examples["train"])
    return Labelling(
        run=run,
        config=replace(config, problem=problem),
        train=learned,
        valid=examples["valid"] or held,
        test=examples["test"],
        fingerprint=hashlib.blake2b(repr((problem, parts["train"], len(learned.costs))).encode()).hexdigest()[:32],
        what="sets of points",
        goal=_goal,
        read=lambda model, batch: answers(model, batch, search=run.decoding.search),
        on_cpu=1024,
        judge=judged,
        makes="A pointer network",
        usual="accuracy" if problem == "hull" else "loss",
        tables={"decoding": unstructure(run.decoding)},
    )


def _one_problem(parts: dict[str, list[Points]], config: PointerNetwork):
    """What all corpora, and the model, are about; and none of them holds the sets of another."""
    corpora = [corpus for part in parts.values() for corpus in part]
    problems = {corpus.problem for corpus in corpora} | ({config.problem} if config.problem else set())
    if len(problems) > 1:
        raise UsageError(f"there are {' and '.join(sorted(problems))} at once", where="data", do="choose one problem for a run")
    seeds = [corpus.seed for corpus in corpora]
    if len(set(seeds)) < len(seeds):
        twice = next(seed for seed in seeds if seeds.count(seed) > 1)
        raise UsageError(f"two corpora are drawn with seed = {twice} and share their sets", where="data", do="give each a seed of its own")
    return corpora[0].problem


def _goal(model: nn.Module, loss: CrossEntropy) -> nn.Module:
    assert isinstance(model, Pointer)
    return PointingObjective(model, loss)


def answers(model: nn.Module, batch: PointBatch, *, search: Search) -> list[str]:
    """The best answer to each set of the batch."""
    assert isinstance(model, Pointer)
    sets = [points[:count] for points, count in zip(batch.points, batch.lengths.tolist(), strict=True)]
    return [spelled(ranked[0].tokens) for ranked in answer(model, sets, search=search)]


def judged(found: Sequence[str], examples: PointExamples) -> list[Score]:
    """How many answers are the best one, and what the others are worth."""
    points = [examples.points(place).astype(float) for place in range(len(examples.costs))]
    ours, best = ([read_back(one) for one in texts] for texts in (found, examples.answers))
    others = [area(points, ours, best)] if examples.problem == "hull" else tour_length(points, ours, best)
    return [accuracy([outline(one) for one in ours], [outline(one) for one in best]), *others]


def outline(corners: Int[Array, "C"]) -> str:
    """The same for all ways to name a polygon: from its first corner on, towards the earlier of its neighbours."""
    if not len(corners):
        return ""
    around = np.roll(corners, -int(corners.argmin()))
    return spelled(min(around.tolist(), [around[0], *around[:0:-1].tolist()]))
