"""The nodes of one graph: all of it is seen in every step, and the labels of some nodes are learned from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from regard.data.batching import Batching, Cursor
from regard.data.graph import Graph, GraphFile, read_graph
from regard.data.graph_batch import GraphBatch
from regard.errors import UsageError
from regard.evaluate.accuracy import accuracy
from regard.models.graph_classifier import GraphClassifier
from regard.models.saved import save_model
from regard.run import Run, root_of
from regard.tasks.protocol import Check
from regard.tasks.refusing import no_metrics, only
from regard.tasks.telling import readme
from regard.train.device import Machine
from regard.train.loss import CrossEntropy, Objective


class WholeGraph:
    """The same batch again and again: an epoch is a step."""

    padding_share = 0.0
    in_epoch = 1

    def __init__(self, batch: GraphBatch):
        self.batch = batch

    def after(self, cursor: Cursor | None = None) -> Generator[tuple[GraphBatch, Cursor], None, None]:
        epoch = cursor.epoch if cursor else 0
        while True:
            epoch += 1
            yield self.batch, Cursor(epoch, 0)

    def once(self) -> Iterator[GraphBatch]:
        yield self.batch

    def largest(self) -> GraphBatch:
        return self.batch


@dataclass(frozen=True, eq=False)
class NodeLabels:
    """A run that learns the labels of nodes."""

    run: Run
    config: GraphClassifier
    graph: Graph
    fingerprint: str

    usual = "accuracy"
    on_cpu = 1  # a batch is the graph
    most = 1

    @property
    def counts(self) -> Mapping[str, int]:
        return {"read": len(self.graph.labels), "kept": len(self.graph.train)}

    def batches(self, batching: Batching, *, rank: int = 0, world: int = 1) -> WholeGraph:
        return WholeGraph(GraphBatch.of(self.graph, self.graph.train))

    def objective(self, model: nn.Module) -> nn.Module:
        return Objective(model, self.run.train.loss)  # type: ignore[arg-type]

    def watch(self, model: nn.Module, machine: Machine, batching: Batching) -> Callable[[Check], Mapping[str, float]] | None:
        if not len(self.graph.valid):
            return None
        goal = Objective(model, CrossEntropy(smoothing=0.0))  # type: ignore[arg-type]

        def watched(check: Check) -> dict[str, float]:
            check()
            batch = GraphBatch.of(self.graph, self.graph.valid).to(machine.device)
            with machine.autocast():
                loss = float(goal(batch)) / batch.target_tokens
            return {"loss": loss, "accuracy": self._accuracy(model, machine, self.graph.valid).score}

        return watched

    def sample(self, model: nn.Module) -> None:
        return None

    def save(self, folder: Path, model: nn.Module) -> None:
        page = readme(
            "A classifier of nodes",
            learned=f"the labels of {len(self.graph.train):,} of {len(self.graph.labels):,} nodes",
            corpora=self.run.data.train,
            use="regard classify FOLDER GRAPH.npz",
        )
        save_model(folder, model, self.config, tokenizers={}, tables={}, readme=page)

    def score(self, model: nn.Module, machine: Machine, batching: Batching, check: Check) -> dict[str, dict[str, Any]]:
        check()
        return {"accuracy": self._accuracy(model, machine, self.graph.test).json()} if len(self.graph.test) else {}

    def _accuracy(self, model: nn.Module, machine: Machine, nodes: Int[Tensor, "M"]):
        with torch.no_grad(), machine.autocast():
            found = model(GraphBatch.of(self.graph, nodes).to(machine.device)).argmax(-1).cpu()
        return accuracy(*([self.config.labels[label] for label in labels[nodes].tolist()] for labels in (found, self.graph.labels)))


def open_graph(run: Run, config: GraphClassifier) -> NodeLabels:
    no_metrics(run)
    corpora = only(run.data.train, (GraphFile,), part="train", reader="a classifier of nodes")
    if len(corpora) != 1 or run.data.valid or run.data.test:
        raise UsageError("a graph brings its own split", where="data", do="name one graph in train, and nothing in valid and test")
    path = root_of(run.data) / corpora[0].path
    graph = read_graph(path)
    names = tuple(map(str, range(graph.classes)))
    return NodeLabels(
        run, replace(config, features=graph.features.width, labels=names), graph, hashlib.blake2b(path.read_bytes()).hexdigest()[:32]
    )
