"""A trained classifier in the hand: files in, labels (or whatever else answers them) with their probabilities out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from regard.config.toml import structure
from regard.data.audio import framed
from regard.data.frame_batch import FrameBatch
from regard.data.graph import read_graph
from regard.data.graph_batch import GraphBatch
from regard.data.images import read_picture
from regard.data.picture_batch import PictureBatch
from regard.data.points import read_points, spelled
from regard.data.text_batch import labelled_texts
from regard.decode.beam import Beam
from regard.decode.ctc import prefix_beam
from regard.decode.describe import describe
from regard.decode.engine import Search
from regard.decode.penalties import NoPenalty
from regard.decode.pointing import answer
from regard.decode.translate import Decoding
from regard.errors import UsageError
from regard.loaded.inside import Inside, Thing
from regard.models.captioner import Captioner
from regard.models.graph_classifier import NodeLabeller
from regard.models.image_classifier import ImageLabeller
from regard.models.pointer_network import Pointer
from regard.models.saved import Saved
from regard.models.speech import Listener
from regard.models.text_classifier import TextLabeller
from regard.train.device import Machine

if TYPE_CHECKING:
    from regard.look.reading import Reading

AT_ONCE = 64


@dataclass(frozen=True)
class Labels:
    """What a model says of one thing: its answers, likeliest first, and the probability of each."""

    names: tuple[str, ...]
    probabilities: tuple[float, ...]

    @property
    def best(self) -> str:
        return self.names[0]


class LoadedClassifier(Inside):
    """A model that labels pictures, recordings or nodes of graphs, spells what is said, or points at points."""

    def __init__(self, saved: Saved, machine: Machine):
        assert isinstance(saved.model, Captioner | ImageLabeller | Listener | NodeLabeller | Pointer | TextLabeller)
        self.saved, self.machine = saved, machine
        self.model, self.config = saved.model, saved.model.config

    def classify(self, things: Sequence[str | Path | bytes], *, top: int = 0) -> list[Labels]:
        """The labels of each text, or of each file (or of its bytes), all of them or the `top` likeliest."""
        found: list[Labels] = []
        with torch.inference_mode(), self.machine.autocast():
            for start in range(0, len(things), AT_ONCE):
                found += self._some(things[start : start + AT_ONCE], top=top)
        return found

    def classify_nodes(self, path: str | Path, *, top: int = 0) -> list[Labels]:
        """The labels of each node of a graph."""
        if not isinstance(self.model, NodeLabeller):
            raise UsageError("only a classifier of nodes reads graphs", where=str(path))
        graph = read_graph(path)
        if graph.features.width != self.model.config.features:
            what = f"its nodes have {graph.features.width} features, and the model knows {self.model.config.features}"
            raise UsageError(what, where=str(path))
        with torch.inference_mode(), self.machine.autocast():
            batch = GraphBatch.of(graph, torch.zeros(0, dtype=torch.long)).to(self.machine.device)
            return _ranked(self.model(batch), self.model.config.labels, top=top)

    def reading(self, thing: Thing, *, decoding: Decoding | None = None) -> Reading:
        """The text, the picture, or the node FILE:NUMBER."""
        from regard.look import reading, reading_graph

        match self.model:
            case TextLabeller():
                return reading.labelled_text(self.saved, str(thing))
            case ImageLabeller() | Captioner():
                return reading.picture(self.saved, thing)
            case NodeLabeller():
                return reading_graph.node(self.saved, thing)
            case _:
                raise UsageError(f"models of kind {self.config.kind} cannot be looked into yet", where=str(self.saved.folder))

    def _some(self, things: Sequence[str | Path | bytes], *, top: int) -> list[Labels]:
        model = self.model
        if isinstance(model, ImageLabeller):
            pixels = [read_picture(thing, channels=model.config.channels, size=model.config.size) for thing in things]
            batch = PictureBatch(torch.stack(pixels), torch.zeros(len(pixels), dtype=torch.long), tuple(range(len(pixels))))
            return _ranked(model.output(model(batch.to(self.machine.device))), model.config.labels, top=top)
        if isinstance(model, Captioner):
            return self._described(model, things, top=top)
        if isinstance(model, NodeLabeller):
            raise UsageError("this model labels the nodes of graphs", do="ask classify_nodes")
        if isinstance(model, Pointer):
            return self._pointed(model, things, top=top)
        if isinstance(model, TextLabeller):
            ids = [self.saved.tokenizers["text"].encode(str(thing))[: model.config.longest - 1] for thing in things]
            batch = labelled_texts(ids, torch.zeros(len(ids), dtype=torch.long), range(len(ids)))
            return _ranked(model.output(model(batch.to(self.machine.device))), model.config.labels, top=top)
        contents = [thing if isinstance(thing, bytes) else Path(thing) for thing in things]
        names = [str(thing) if not isinstance(thing, bytes) else "the recording" for thing in things]
        frames = [framed(content, model.config.features, where=name) for content, name in zip(contents, names)]
        batch = FrameBatch.of(frames, [[0]] * len(frames), np.arange(len(frames)).tolist()).to(self.machine.device)
        scores = model.output(model(batch))
        if model.config.output == "label":
            return _ranked(scores, model.config.labels, top=top)
        log_probs, ends = scores.float().log_softmax(-1).cpu(), model.lengths(batch.lengths).tolist()
        return [_spelled(rows[:end], model.config.labels, top=top) for rows, end in zip(log_probs, ends)]

    def _described(self, model: Captioner, things: Sequence[str | Path | bytes], *, top: int) -> list[Labels]:
        """Sentences for pictures."""
        pixels = torch.stack([read_picture(thing, channels=model.config.channels, size=model.config.size) for thing in things])
        search, text = self._search(top), self.saved.tokenizers["text"]
        found = describe(model, pixels, search=search, limit=model.config.longest - 1)
        return [
            Labels(tuple(text.detokenise(text.decode(one.tokens)) for one in ranked), tuple(float(np.exp(one.log_prob)) for one in ranked))
            for ranked in found
        ]

    def _search(self, top: int) -> Search:
        """What the model proposes where only the best is wanted."""
        proposed = structure(Decoding, self.saved.tables.get("decoding", {}), where=str(self.saved.folder / "model.toml")).search
        return Beam(max(top, 4), NoPenalty(), n_best=top) if top > 1 else proposed

    def _pointed(self, model: Pointer, things: Sequence[str | Path | bytes], *, top: int) -> list[Labels]:
        """Places of the points, counted from 0; by the search that the model proposes where only the best are wanted."""
        found = answer(model, [torch.from_numpy(read_points(thing)) for thing in things], search=self._search(top))
        return [
            Labels(tuple(spelled(one.tokens) for one in ranked), tuple(float(np.exp(one.log_prob)) for one in ranked)) for ranked in found
        ]


def _ranked(scores_BV: torch.Tensor, names: tuple[str, ...], *, top: int) -> list[Labels]:
    shares, places = scores_BV.float().softmax(-1).cpu().sort(dim=-1, descending=True, stable=True)
    count = top or len(names)
    return [
        Labels(tuple(names[place] for place in order[:count]), tuple(share[:count]))
        for order, share in zip(places.tolist(), shares.tolist())
    ]


def _spelled(log_probs_PV: torch.Tensor, letters: tuple[str, ...], *, top: int) -> Labels:
    found = prefix_beam(log_probs_PV)[: top or 1]
    texts = tuple("".join(letters[letter - 1] for letter in one.letters) for one in found)
    return Labels(texts, tuple(float(np.exp(one.log_prob)) for one in found))
