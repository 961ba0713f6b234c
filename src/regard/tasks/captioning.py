"""Pictures and sentences: what a captioner learns."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from regard.config.toml import unstructure
from regard.data.caption_batch import CaptionBatch
from regard.data.scenes import Captioned, Captions, Scenes, read_captioned
from regard.data.tokenise import Tokenizer, train_tokenizer
from regard.decode.describe import describe
from regard.decode.engine import Search
from regard.errors import DataError
from regard.evaluate.accuracy import accuracy
from regard.evaluate.bleu import score
from regard.evaluate.measure import Score
from regard.models.captioner import Captioner
from regard.models.configs import ImageCaptioner
from regard.run import Run, root_of
from regard.tasks.labelling import Labelling, Things, parted
from regard.tasks.refusing import no_metrics, only
from regard.tasks.tokenizers import kept
from regard.train.loss import CrossEntropy, Objective
from regard.train.parallel import Ranks


@dataclass(frozen=True, eq=False)
class CaptionExamples:
    """Pictures as examples; each costs the tokens of its sentence."""

    captioned: Captioned
    ids: Sequence[tuple[int, ...]]

    @property
    def costs(self) -> NDArray[np.int64]:
        return np.array([len(one) + 1 for one in self.ids], np.int64)

    @property
    def answers(self) -> Sequence[str]:
        return self.captioned.captions

    def batch(self, places: NDArray[np.int64]) -> CaptionBatch:
        rows = places.tolist()
        return CaptionBatch.of(self.captioned.pixels[torch.from_numpy(places)], [self.ids[row] for row in rows], rows)

    def some(self, places: NDArray[np.int64]) -> CaptionExamples:
        rows = places.tolist()
        captions = tuple(self.captioned.captions[row] for row in rows)
        return CaptionExamples(Captioned(self.captioned.pixels[torch.from_numpy(places)], captions), [self.ids[row] for row in rows])


def open_captions(run: Run, config: ImageCaptioner, out: Path, *, ranks: Ranks) -> Labelling:
    no_metrics(run)
    root = root_of(run.data)
    corpora = [only(getattr(run.data, part), (Captions, Scenes), part=part, reader="a captioner") for part in ("train", "valid", "test")]
    if not corpora[0]:
        raise DataError("there is no picture to learn from", where="data.train")
    parts = [read_captioned(some, root=root) if some else None for some in corpora]
    train = parts[0]
    assert train is not None
    for part, some in zip(("valid", "test"), parts[1:]):
        if some is not None and some.pixels.shape[1:] != train.pixels.shape[1:]:
            raise DataError("its pictures have another shape than those of train", where=f"data.{part}", do="scale them to one size")

    def made() -> dict[str, Tokenizer]:
        return {"text": train_tokenizer(run.tokenizer, list(train.captions), language=run.tokenizer.surface.target_language)}

    (tokenizer,) = kept(out, ("text",), made, ranks=ranks)
    most = run.batching.max_length
    examples = [some and CaptionExamples(some, [tuple(tokenizer.encode(text)[: most - 1]) for text in some.captions]) for some in parts]
    assert examples[0] is not None
    learned, held = parted(run, examples[0])
    digest = hashlib.blake2b(learned.captioned.pixels.numpy().tobytes() + "\n".join(learned.captioned.captions).encode())
    size = (int(train.pixels.shape[2]), int(train.pixels.shape[3]))
    search = run.decoding.search
    return Labelling(
        run=run,
        config=replace(config, channels=int(train.pixels.shape[1]), size=size, longest=most, vocabulary=tokenizer.size),
        train=learned,
        valid=examples[1] or held,
        test=examples[2],
        fingerprint=digest.hexdigest()[:32],
        what="pictures",
        goal=_goal,
        read=lambda model, batch: sentences(model, batch.pixels, tokenizer, search=search),
        on_cpu=2048,
        judge=partial(judged, lowercase=tokenizer.surface.lowercase),
        makes="A captioner",
        tables={"decoding": unstructure(run.decoding)},
        tokenizers={"text": tokenizer},
    )


def sentences(model: nn.Module, pixels: torch.Tensor, tokenizer: Tokenizer, *, search: Search) -> list[str]:
    """The best sentence for each picture."""
    assert isinstance(model, Captioner)
    found = describe(model, pixels, search=search, limit=model.config.longest - 1)
    return [tokenizer.detokenise(tokenizer.decode(ranked[0].tokens)) for ranked in found]


def judged(found: Sequence[str], things: Things, *, lowercase: bool) -> list[Score]:
    """How many sentences are right to the letter, and how near the others come."""
    return [accuracy(found, things.answers), score("bleu", found, [list(things.answers)], lowercase=lowercase)]


def _goal(model: nn.Module, loss: CrossEntropy) -> nn.Module:
    return Objective(model, loss)  # type: ignore[arg-type]
