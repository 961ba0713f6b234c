"""Texts and labels from a file to `regard classify`, through the real command line: trained, asked by lines, and refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import regard
import small_text
from regard.data.text_batch import labelled_texts
from regard.loaded.classifier import LoadedClassifier
from regard.look.trace import load
from regard.models.build import build
from regard.models.configs import TextClassifier
from regard.models.text_classifier import TextLabeller
from regard.nn.embed import Embedding
from regard.nn.feedforward import FeedForward
from regard.nn.trunk_convolutional import Convolutional
from regard.nn.trunk_recurrent import Recurrent
from regard.nn.trunk_transformer import Transformer
from small_run import regard as command

RECIPE = """
[data]
train = [{ kind = "labelled", path = "train.tsv" }]
test = [{ kind = "labelled", path = "test.tsv", columns = [2, 1], header = true }]
hold_out = 20

[tokenizer]
kind = "word"

[model]
kind = "text-classifier"
d_model = 16
encoder = { layers = 1, heads = 2, placement = "pre", dropout = 0.0, feed_forward = { d_ff = 32 } }
embedding = { dropout = 0.0 }

[batching]
tokens = 128
max_length = 16

[train]
steps = 60
device = "cpu"
precision = "fp32"
optimiser = { kind = "adamw", rate = 1e-2 }
schedule = { kind = "constant" }
log_every = 20
evaluate_every = 20
save_every = 30
"""
TRUNKS = {
    "transformer": Transformer(layers=1, heads=2, dropout=0.0, feed_forward=FeedForward(d_ff=20)),
    "recurrent": Recurrent(bidirectional=True, dropout=0.0),
    "convolutional": Convolutional(layers=2, dropout=0.0),
}


def label(line: str) -> str:
    return "large" if int(line.split()[0]) >= 6 else "small"


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    test, train = small_text.LINES[::5], [line for place, line in enumerate(small_text.LINES) if place % 5]
    (folder / "train.tsv").write_text("".join(f"{label(line)}\t{line}\n" for line in train))
    (folder / "test.tsv").write_text("text\tlabel\n" + "".join(f"{line}\t{label(line)}\n" for line in test))
    (folder / "labels.toml").write_text(RECIPE)
    done = command("train", folder / "labels.toml", "--out", folder / "run", "--progress", "plain")
    assert done.code == 0, done.error
    assert "regard classify" in done.error and "accuracy" in done.error
    return folder / "run"


def test_it_learns_and_the_report_says_so(learned: Path):
    report = json.loads((learned / "report.json").read_text())
    assert report["scores"]["accuracy"]["score"] >= 95 and report["data"] == {"read": 115, "held out": 20, "kept": 95}


def test_lines_in_labels_out(learned: Path, tmp_path: Path):
    lines = ["11 and 3 make 14", "", "2 and 9 make 11", "7 and 7 make 14 " * 9]
    (tmp_path / "lines.txt").write_text("".join(line + "\n" for line in lines))
    by_file, by_pipe = command("classify", learned, tmp_path / "lines.txt"), command("classify", learned, stdin="\n".join(lines) + "\n")
    assert by_file.code == 0 and by_file.out == by_pipe.out
    rows = [row.split("\t") for row in by_file.out.splitlines()]
    assert [row[0] for row in rows] == lines
    assert [rows[place][1].split()[0] for place in (0, 2, 3)] == ["large", "small", "large"]
    told = [json.loads(line) for line in command("classify", learned, "--json", "--top", "2", stdin="5 and 5 make 10\n").out.splitlines()]
    assert told[0]["text"] == "5 and 5 make 10" and sum(one["probability"] for one in told[0]["labels"]) == pytest.approx(1, abs=1e-5)
    model = regard.load(learned)
    assert isinstance(model, LoadedClassifier) and model.classify(["9 and 1 make 10"])[0].best == "large"


def test_a_text_is_looked_into(learned: Path, tmp_path: Path):
    done = command("look", learned, "11 and 3 make 14", "--save", tmp_path / "a.trace", "--export", tmp_path / "a.html")
    assert done.code == 0, done.error
    trace = load(tmp_path / "a.trace")
    assert [token.text for token in trace.source] == ["<s>", "11", "and", "3", "make", "14"] and not trace.steps
    assert trace.answers[0].text == "large" and trace.weights("enc-self", 0).shape == (2, 6, 6)
    assert command("look", learned, "11 and 3 make 14", "--table", "next").out.split()[0] == "large"
    scores = command("look", learned, "11 and 3 make 14", "--table", "scores", "--heads", "1").out
    assert scores.startswith("encoder.0.own.scores, head 1")


@pytest.mark.parametrize("pool", ["first", "mean"])
@pytest.mark.parametrize("trunk", TRUNKS)
def test_together_as_alone(trunk, pool):
    torch.manual_seed(2)
    config = TextClassifier(d_model=8, encoder=TRUNKS[trunk], embedding=Embedding(dropout=0.0), pool=pool, labels=("a", "b"), vocabulary=9)
    model = build(config).double().eval()
    assert isinstance(model, TextLabeller)
    texts = [[4, 5, 6], [], [7, 8, 4, 5, 5, 6]]
    batch = lambda some: labelled_texts(some, torch.zeros(len(some), dtype=torch.long), range(len(some)))
    together = model(batch(texts))
    for place, text in enumerate(texts):
        torch.testing.assert_close(together[place], model(batch([text]))[0], atol=1e-9, rtol=0)
        torch.testing.assert_close(together[place], model(batch(texts).part(range(place, 3)))[0], atol=1e-9, rtol=0)


def test_what_is_wrong_is_one_line(learned: Path, tmp_path: Path):
    recipe = learned.parent / "labels.toml"
    (tmp_path / "train.tsv").write_text("good\ta text\nno tab here\n")
    (tmp_path / "test.tsv").write_text("text\tlabel\na text\tnever seen\n")
    (tmp_path / "other.toml").write_text(RECIPE.replace('"labelled", path = "train.tsv"', '"text", path = "train.tsv"'))
    for given, says in ((recipe, "train.tsv:2"), (tmp_path / "other.toml", "cannot read a corpus of kind text")):
        done = command("train", given, "--data-root", tmp_path, "--out", tmp_path / "run", "--progress", "none")
        assert done.code in (2, 3) and done.error.count("\n") == 1 and says in done.error, done.error
    (tmp_path / "train.tsv").write_text("good\ta text\nbad\tanother\n")
    done = command("train", recipe, "--data-root", tmp_path, "--out", tmp_path / "run", "--progress", "none")
    assert done.code == 3 and "no training text has the label 'never seen'" in done.error
