"""Pictures and their labels: what an image classifier learns."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from regard.data.images import Arrays, Folder, Idx, Pictures, Table, join_pictures, read_pictures
from regard.data.picture_batch import PictureBatch
from regard.errors import DataError
from regard.models.image_classifier import ImageClassifier, ImageLabeller
from regard.run import Run, root_of
from regard.tasks.labelling import Labelling, parted
from regard.tasks.refusing import no_metrics, only
from regard.train.loss import CrossEntropy, Objective

KINDS = (Idx, Folder, Table, Arrays)


@dataclass(frozen=True, eq=False)
class PictureExamples:
    """Pictures as examples; each costs one place."""

    pictures: Pictures

    @property
    def costs(self) -> NDArray[np.int64]:
        return np.ones(len(self.pictures), np.int64)

    @property
    def answers(self) -> list[str]:
        return [self.pictures.names[label] for label in self.pictures.labels.tolist()]

    def batch(self, places: NDArray[np.int64]) -> PictureBatch:
        rows = torch.from_numpy(places)
        return PictureBatch(self.pictures.pixels[rows], self.pictures.labels[rows], tuple(places.tolist()))

    def some(self, places: NDArray[np.int64]) -> PictureExamples:
        rows = torch.from_numpy(places)
        return PictureExamples(replace(self.pictures, pixels=self.pictures.pixels[rows], labels=self.pictures.labels[rows]))


def open_pictures(run: Run, config: ImageClassifier) -> Labelling:
    no_metrics(run)
    root = root_of(run.data)
    found = []
    for part in ("train", "valid", "test"):
        corpora = only(getattr(run.data, part), KINDS, part=part, reader="an image classifier")
        found.append([read_pictures(corpus, root=root) for corpus in corpora])
    whole = join_pictures([pictures for part in found for pictures in part])
    edges = np.cumsum([0, *(sum(map(len, part)) for part in found)])
    train, valid, test = (
        PictureExamples(replace(whole, pixels=whole.pixels[start:end], labels=whole.labels[start:end])) if end > start else None
        for start, end in pairwise(edges)
    )
    if train is None:
        raise DataError("there is no picture to learn from", where="data.train")
    learned, held = parted(run, train)
    size = (int(whole.pixels.shape[2]), int(whole.pixels.shape[3]))
    return Labelling(
        run=run,
        config=replace(config, channels=int(whole.pixels.shape[1]), size=size, labels=whole.names),
        train=learned,
        valid=valid or held,
        test=test,
        fingerprint=hashlib.blake2b(learned.pictures.pixels.numpy().tobytes() + learned.pictures.labels.numpy().tobytes()).hexdigest()[:32],
        what="pictures",
        goal=lambda model, loss: _goal(model, loss),
        read=answers,
        on_cpu=128,
    )


def _goal(model: nn.Module, loss: CrossEntropy) -> nn.Module:
    return Objective(model, loss)  # type: ignore[arg-type]


def answers(model: nn.Module, batch: PictureBatch) -> list[str]:
    """The likeliest label of each picture."""
    assert isinstance(model, ImageLabeller)
    return [model.config.labels[place] for place in model.output(model(batch)).argmax(-1).tolist()]
