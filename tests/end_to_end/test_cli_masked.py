"""Hidden words and labels of words, through the real command line: trained, resumed, asked, looked into, and refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import regard
import small_text
from regard.loaded.reader import LoadedReader
from regard.look.trace import load
from regard.models.tensors import read_tensors
from small_run import regard as command

MASKED = (
    small_text.RECIPE.replace("steps = 80", "steps = 160")
    .replace('kind = "character"\nbyte_fallback = false', 'kind = "word"')
    .replace('kind = "language-model"', 'kind = "masked-language-model"')
    .replace("trunk = {", "encoder = {")
    .replace("max_length = 32", "max_length = 32\nwithin = true")
    .replace("embedding = { dropout = 0.0 }", 'embedding = { dropout = 0.0, norm = "layer" }')
)
TAGGER = """
[data]
train = [{ kind = "tagged", path = "train.conll" }]
test = [{ kind = "tagged", path = "test.conll" }]
hold_out = 20

[tokenizer]
kind = "unigram"
size = 300

[model]
kind = "tagger"
d_model = 16
encoder = { layers = 1, heads = 2, placement = "pre", dropout = 0.0, feed_forward = { d_ff = 32 } }
embedding = { dropout = 0.0 }

[batching]
tokens = 256
max_length = 32

[train]
steps = 60
device = "cpu"
precision = "fp32"
optimiser = { kind = "adamw", rate = 1e-2 }
schedule = { kind = "constant" }
log_every = 20
evaluate_every = 20
"""


@pytest.fixture(scope="module")
def filler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("masked")
    recipe = small_text.corpus(folder)
    recipe.write_text(MASKED)
    done = command("train", recipe, "--out", folder / "run", "--progress", "plain")
    assert done.code == 0, done.error
    assert "regard generate" in done.error and "<mask>" in done.error
    return folder / "run"


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first number and what follows it is one name, a number behind "make" another."""
    folder = tmp_path_factory.mktemp("tagged")
    labels = ("B-first", "I-first", "O", "O", "B-sum")
    for part, lines in {"test": small_text.LINES[::5], "train": [line for n, line in enumerate(small_text.LINES) if n % 5]}.items():
        texts = ("".join(f"{word}\t{label}\n" for word, label in zip(line.split(), labels, strict=True)) for line in lines)
        (folder / f"{part}.conll").write_text("\n".join(texts))
    (folder / "tagger.toml").write_text(TAGGER)
    done = command("train", folder / "tagger.toml", "--out", folder / "run", "--progress", "none")
    assert done.code == 0, done.error
    assert "regard classify" in done.error and "f1" in done.error
    return folder / "run"


def test_hidden_words_are_filled_in(filler: Path):
    scores = json.loads((filler / "report.json").read_text())["scores"]
    assert list(scores) == ["loss", "perplexity", "accuracy"] and scores["accuracy"]["score"] > 20
    assert scores["accuracy"]["signature"].startswith("masked|share:0.15|masked:0.8|random:0.1|n:")
    one = command("generate", filler, "--prompt", "3 <mask> 4 <mask> 7")
    assert one.code == 0 and one.out == "3 and 4 make 7\n"
    lines = command("generate", filler, "--prompt", "-", "--json", stdin="3 <mask> 4 make 7\n1 and 1 <mask> 2\n").out.splitlines()
    told = [json.loads(line) for line in lines]
    assert [line["text"] for line in told] == ["3 and 4 make 7", "1 and 1 make 2"] and len(told[0]["masks"][0]) == 5
    assert command("generate", filler, "--prompt", "3 <mask> 4", "--count", "3").out.startswith("and 0.")
    model = regard.load(filler)
    assert isinstance(model, LoadedReader) and model.fill(["5 <mask> 6 make 11"])[0].choices[0][0][0] == "and"


def test_a_stopped_run_hides_the_same_words(filler: Path, tmp_path: Path):
    settings = ["--data-root", filler.parent, "--progress", "none"]
    done = command("train", filler.parent / "text.toml", *settings, "--out", tmp_path / "run", "--train.steps", "33")
    assert done.code == 0, done.error
    merged = tmp_path / "run" / "run.toml"
    merged.write_text(merged.read_text().replace("steps = 33", "steps = 160"))
    assert command("train", "--resume", tmp_path / "run", "--force", "--progress", "none").code == 0
    one, other = (read_tensors(folder / "last" / "model.safetensors") for folder in (filler, tmp_path / "run"))
    assert all(one[name].equal(other[name]) for name in one)


def test_words_get_labels(tagger: Path):
    report = json.loads((tagger / "report.json").read_text())
    assert report["scores"]["f1"]["score"] > 95 and report["scores"]["f1"]["signature"] == "entity-f1|n:58"
    assert set(report["scores"]["f1"]["detail"]["types"]) == {"first", "sum"} and report["scores"]["accuracy"]["score"] > 95
    told = command("classify", tagger, stdin="3 and 4 make 7\n\n11 and 2 make 13\n")
    assert told.code == 0 and told.out.splitlines()[0] == "3/B-first and/I-first 4/O make/O 7/B-sum" and told.out.count("\n") == 3
    (line,) = command("classify", tagger, "--json", stdin="3 and 4 make 7 " + "and 5 " * 30 + "\n").out.splitlines()
    words = json.loads(line)["words"]
    assert len(words) == 65 and words[0]["label"] == "B-first" and words[0]["probability"] > 0.5
    assert words[-1] == {"word": "5", "label": "", "probability": 0.0}  # behind the longest text that it reads


def test_both_are_looked_into(filler: Path, tagger: Path, tmp_path: Path):
    assert command("look", filler, "3 <mask> 4 make 7", "--save", tmp_path / "a.trace").code == 0
    trace = load(tmp_path / "a.trace")
    assert trace.answers[0].text == "and" and [token.text for token in trace.source][2] == "<mask>"
    assert command("look", filler, "3 <mask> 4 make 7", "--table", "next").out.startswith("and\t0.")
    assert command("look", tagger, "3 and 4 make 7", "--save", tmp_path / "b.trace", "--export", tmp_path / "b.html").code == 0
    assert load(tmp_path / "b.trace").answers[0].text == "B-first I-first O O B-sum"


def test_what_they_cannot_do_is_one_line(filler: Path, tagger: Path, tmp_path: Path):
    for words, says in {
        ("generate", filler, "--prompt", "3 and 4"): "nothing is hidden in the text",
        ("generate", tagger, "--prompt", "3 and 4"): "use regard classify",
        ("classify", filler): "use regard generate",
        ("train", tagger.parent / "tagger.toml", "--out", tmp_path / "a", "--model.kind", "x"): "",
    }.items():
        done = command(*words)
        assert done.code == 2 and says in done.error and done.error.count("\n") == 1, done.error
    recipe = tmp_path / "wrong.toml"
    recipe.write_text(TAGGER.replace('kind = "tagged", path = "train.conll"', 'kind = "text", path = "train.conll"'))
    done = command("train", recipe, "--out", tmp_path / "a", "--data-root", tagger.parent)
    assert done.code == 2 and "cannot read a corpus of kind text" in done.error
