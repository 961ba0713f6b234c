"""Names that stand in no vocabulary, from raw text to raw text: learned to be copied, and a name that was never seen is copied out."""

import json
from itertools import cycle
from pathlib import Path
from random import Random

import pytest

import small_run

FRAMES = [
    ("ich heiße {} .", "my name is {} ."),
    ("{} wohnt hier .", "{} lives here ."),
    ("heute kommt {} an .", "{} arrives today ."),
    ("wo ist {} ?", "where is {} ?"),
    ("der hund mag {} .", "the dog likes {} ."),
]
RECIPE = """
metrics = ["exact", "log-perplexity"]

[data]
train = [{ kind = "tsv", path = "train.tsv" }]
valid = [{ kind = "tsv", path = "valid.tsv" }]
test = [{ kind = "tsv", path = "test.tsv" }]

[tokenizer]
kind = "word"
joint = true
min_count = 3

[model]
kind = "translator"
d_model = 32
tie = "none"
copy = COPY
encoder = { kind = "recurrent", cell = "gru", width = 32, bidirectional = true, dropout = 0.0 }
decoder = { kind = "recurrent", cell = "gru", width = 48, dropout = 0.0, attention = { kind = "luong", score = "bilinear" } }
embedding = { positions = "none", scale = false, dropout = 0.0 }

[batching]
tokens = 400

[train]
steps = 250
score = "loss"
device = "cpu"
precision = "fp32"
evaluate_every = 125
loss = { smoothing = 0.0 }
optimiser = { kind = "adamw", rate = 1e-2 }
schedule = { kind = "linear", warmup = 0.05 }

[decoding]
search = { kind = "beam", size = 2 }
"""
WAYS = {"joint": '"joint"', "pointer-generator": '{ kind = "pointer-generator", width = 32 }'}


def names(count: int, *, seed: int) -> list[str]:
    """Names that come once each, of any syllables."""
    random = Random(seed)
    found = {"".join(random.choice("bdfgklmnprstvz") + random.choice("aeiou") for _ in range(4)) for _ in range(3 * count)}
    return sorted(found, key=lambda name: random.random())[:count]


@pytest.fixture(scope="module", params=WAYS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    every = names(700, seed=3)
    for part, some in {"train": every[:600], "valid": every[600:650], "test": every[650:]}.items():
        pairs = (f"{source.format(name)}\t{target.format(name)}" for name, (source, target) in zip(some, cycle(FRAMES)))
        small_run.write(folder, f"{part}.tsv", list(pairs))
    small_run.write(folder, "copy.toml", RECIPE.replace("COPY", WAYS[request.param]).strip().split("\n"))
    ended = small_run.regard("train", folder / "copy.toml", "--out", folder / "run", "--progress", "none")
    assert ended.code == 0, ended.error
    return folder / "run"


def test_no_name_is_in_the_vocabulary(run: Path):
    words = json.loads((run / "best" / "tokenizer.source.json").read_text())["words"]
    assert len(words) < 40 and "heiße" in words


def test_names_never_seen_are_copied_out(run: Path):
    report = json.loads((run / "report.json").read_text())
    assert report["scores"]["exact"]["score"] > 90
    assert report["scores"]["log-perplexity"]["score"] < 0.3  # a word that no way led to would cost 46
    lines = "ich heiße Quixotl .\nwo ist Brzęczyszczykiewicz ?\n"
    ended = small_run.regard("translate", run, stdin=lines)
    assert ended.code == 0, ended.error
    assert ended.out == "my name is Quixotl .\nwhere is Brzęczyszczykiewicz ?\n"


def test_two_names_of_one_line_keep_their_places_and_lines_do_not_mix(run: Path):
    ended = small_run.regard("translate", run, "--json", "--alignment", "--beam", "3", stdin="der hund mag Xaver .\n\nYlva wohnt hier .\n")
    assert ended.code == 0, ended.error
    first, empty, last = map(json.loads, ended.out.splitlines())
    assert "Xaver" in json.dumps(first) and "Ylva" not in json.dumps(first)
    assert "Ylva" in json.dumps(last) and "Xaver" not in json.dumps(last) and empty


def test_given_translations_are_scored_with_the_name_that_was_copied(run: Path, tmp_path: Path):
    sources = small_run.write(tmp_path, "s", ["ich heiße Quixotl ."] * 2)
    targets = small_run.write(tmp_path, "t", ["my name is Quixotl .", "my name is Somebody ."])
    ended = small_run.regard("score", run, "--source", sources, "--target", targets)
    assert ended.code == 0, ended.error
    right, wrong = map(float, ended.out.split())
    assert right > -1 and wrong < right - 3


def test_the_name_is_seen_by_look(run: Path, tmp_path: Path):
    ended = small_run.regard("look", run, "ich heiße Quixotl .", "--export", tmp_path / "page.html")
    assert ended.code == 0, ended.error
    assert "Quixotl" in (tmp_path / "page.html").read_text("utf-8")
