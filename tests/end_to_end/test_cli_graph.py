"""A graph from a file to labelled nodes, through the real command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import small_graph
import small_run
from regard.data.batch import IGNORED, halve
from regard.data.graph import read_graph
from regard.data.graph_batch import GraphBatch
from regard.errors import UsageError
from regard.loaded import load_classifier

RECIPE = """
[data]
train = [{ kind = "graph", path = "camps.npz" }]

[model]
kind = "graph-classifier"
trunk = { kind = "TRUNK", layers = 2 }

[train]
steps = 60
device = "cpu"
precision = "fp32"
evaluate_every = 10
loss = { smoothing = 0.0, l2 = 5e-4 }
optimiser = { kind = "adamw", rate = 2e-2 }
schedule = { kind = "constant" }
"""


@pytest.mark.parametrize("trunk", ["graph-attention", "graph-convolution"])
def test_two_camps_are_told_apart(trunk: str, tmp_path: Path):
    graph = small_graph.write(tmp_path / "camps.npz")
    recipe = small_run.write(tmp_path, "camps.toml", RECIPE.replace("TRUNK", trunk).strip().split("\n"))
    ended = small_run.regard("train", recipe, "--out", tmp_path / "run", "--progress", "none")
    assert ended.code == 0, ended.error
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["scores"]["accuracy"]["score"] > 85 and report["scores"]["accuracy"]["signature"] == "accuracy|n:30"
    assert report["data"] == {"read": 60, "kept": 10}
    ended = small_run.regard("classify", tmp_path / "run", graph, "--json")
    lines = [json.loads(line) for line in ended.out.splitlines()]
    assert [line["file"] for line in lines] == [f"{graph}:{node}" for node in range(small_graph.NODES)]
    right = sum(line["labels"][0]["label"] == str(node % 2) for node, line in enumerate(lines))
    assert right > 50
    with pytest.raises(UsageError, match="labels the nodes of graphs"):
        load_classifier(tmp_path / "run").classify(["picture.png"])


def test_a_graph_brings_its_own_split(tmp_path: Path):
    small_graph.write(tmp_path / "camps.npz")
    text = RECIPE.replace("[model]", 'test = [{ kind = "graph", path = "camps.npz" }]\n\n[model]').replace("TRUNK", "graph-attention")
    recipe = small_run.write(tmp_path, "camps.toml", text.strip().split("\n"))
    ended = small_run.regard("train", recipe, "--out", tmp_path / "run", "--progress", "none")
    assert ended.code == 2 and "a graph brings its own split" in ended.error


def test_halves_of_a_batch_ask_for_other_nodes_of_the_same_graph(tmp_path: Path):
    graph = read_graph(small_graph.write(tmp_path / "camps.npz"))
    whole = GraphBatch.of(graph, graph.train)
    first, second = halve(whole)
    assert first.pairs + second.pairs == whole.pairs and first.edges is whole.edges
    assert (first.labels != IGNORED).sum() == (second.labels != IGNORED).sum() == 5
    both = torch.where(first.labels != IGNORED, first.labels, second.labels)
    assert torch.equal(both, whole.labels) and whole.to("cpu").target_tokens == 10
