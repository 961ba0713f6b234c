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
from regard.look.trace import load

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
    looked_at(tmp_path / "run", graph, trunk, lines[7]["labels"][0]["label"], tmp_path / "a.trace")
    with pytest.raises(UsageError, match="labels the nodes of graphs"):
        load_classifier(tmp_path / "run").classify(["picture.png"])


def looked_at(run: Path, graph: Path, trunk: str, label: str, path: Path) -> None:
    """Node 7 looks at itself and its neighbours, and at nobody else."""
    done = small_run.regard("look", run, f"{graph}:7", "--save", path)
    if trunk == "graph-convolution":
        assert done.code == 2 and "graph convolutions, which have no attention" in done.error
        return
    assert done.code == 0, done.error
    trace, edges = load(path), read_graph(graph).edges
    nodes = [int(token.text.removeprefix("node ")) for token in trace.source]
    seen = set(edges.source[edges.target == 7].tolist())
    assert nodes[0] == 7 and seen <= set(nodes) and trace.answers[0].text == label
    weights = trace.weights("enc-self", 0)[:, 0]
    assert weights.shape == (8, len(nodes)) and weights.sum(1) == pytest.approx(1, abs=0.05)
    assert {node for node, weight in zip(nodes, weights.max(0)) if weight > 0.001} <= seen
    walked = small_run.regard("look", run, f"{graph}:7", "--walk", "0", "--json")
    stages = {stage["name"]: stage for stage in json.loads(walked.out)["stages"]}
    assert {"nodes.sum", "graph.0.scores", "graph.0.weights", "graph.0.stream", "graph.1.stream"} <= set(stages)
    logits = torch.tensor(stages["graph.1.stream"]["values"][0])
    assert logits.log_softmax(-1).max() == pytest.approx(trace.answers[0].log_prob, abs=1e-4)
    assert "there is no node 60" in small_run.regard("look", run, f"{graph}:60", "--save", path).error
    assert "write FILE:NODE" in small_run.regard("look", run, graph, "--save", path).error


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
