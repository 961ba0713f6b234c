"""Hulls and tours through the real command line: no file is read, a run is trained, resumed, scored and asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import small_run
from regard.data.plane import hull
from regard.data.points import read_points
from regard.loaded import load_classifier
from regard.models.tensors import read_tensors

RECIPE = """
[data]
train = [{ kind = "points", problem = "hull", count = 9000, sizes = [3, 4], seed = 1 }]
test = [{ kind = "points", problem = "hull", count = 60, sizes = [3, 4], seed = 3 }]
hold_out = 50

[model]
kind = "pointer-network"
d_model = 16
encoder = { kind = "recurrent", cell = "lstm", width = 64, dropout = 0.0 }
decoder = { kind = "recurrent", cell = "lstm", width = 64, dropout = 0.0, attention = "none" }
score = "bilinear"

[batching]
tokens = 512

[train]
steps = 300
device = "cpu"
precision = "fp32"
loss = { smoothing = 0.0 }
optimiser = { kind = "adamw", rate = 1e-2 }
schedule = { kind = "constant" }
log_every = 20
evaluate_every = 150
save_every = 100

[decoding]
search = { kind = "beam", size = 3, penalty = "none" }
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("points")
    small_run.write(folder, "hull.toml", RECIPE.strip().split("\n"))
    ended = small_run.regard("train", folder / "hull.toml", "--out", folder / "run", "--progress", "none")
    assert ended.code == 0, ended.error
    assert f"try: regard classify {folder}/run/best FILE" in ended.error
    return folder / "run"


def test_a_hull_from_nothing_to_a_score(trained: Path):
    report = json.loads((trained / "report.json").read_text())
    assert report["data"] == {"read": 9000, "held out": 50, "kept": 8950}
    assert list(report["scores"]) == ["accuracy", "area"]
    assert report["scores"]["accuracy"]["score"] > 70 and report["scores"]["area"]["score"] > 85
    evaluated = [line for line in small_run.log_of(trained) if line.get("event") == "evaluate"]
    assert len(evaluated) == 2 and all({"loss", "accuracy", "area"} <= line.keys() for line in evaluated)


def test_a_stopped_run_goes_on_to_the_same_bits(trained: Path):
    out = trained.parent / "again"
    small_run.regard("train", trained.parent / "hull.toml", "--out", out, "--progress", "none", "--train.steps", "100")
    run = out / "run.toml"
    run.write_text(run.read_text().replace("steps = 100", "steps = 300"))
    ended = small_run.regard("train", "--resume", out, "--force", "--progress", "none")
    assert ended.code == 0, ended.error
    one, other = (read_tensors(folder / "checkpoints" / "step-300" / "model.safetensors") for folder in (trained, out))
    assert all((one[name] == other[name]).all() for name in one)


def test_classify_answers_files_of_points(trained: Path, tmp_path: Path):
    sets = [b"0.1 0.2\n0.9 0.3\n0.4 0.8\n", b"0.9, 0.9\n0.1, 0.1\n0.9, 0.1\n0.1, 0.9\n"]
    files = [tmp_path / "three.txt", tmp_path / "four.csv"]
    for file, content in zip(files, sets):
        file.write_bytes(content)
    ended = small_run.regard("classify", trained, *files, "--json", "--top", "2")
    assert ended.code == 0, ended.error
    found = [json.loads(line)["labels"] for line in ended.out.splitlines()]
    assert all(one[0]["probability"] >= one[1]["probability"] > 0 and one[0]["label"] != one[1]["label"] for one in found)
    best = load_classifier(trained).classify([*files, *sets])
    assert [one.best for one in best[:2]] == [one.best for one in best[2:]]
    assert best[0].best == " ".join(map(str, hull(read_points(sets[0]).astype(float))))


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("classify {run} absent.txt", 3, "absent.txt: no such file or directory; check the path"),
        ("classify {run} wrong.txt", 3, "wrong.txt:2: this is no point; give two numbers a line"),
        ("translate {run}", 2, "is of kind pointer-network, and no translator; use regard classify"),
        ("train twice.toml", 2, "two corpora are drawn with seed = 1 and share their sets; give each a seed of its own"),
        ("train both.toml", 2, "there are hull and tour at once; choose one problem for a run"),
        ("train text.toml", 2, "a pointer network cannot read a corpus of kind tsv; give points"),
        ("train hull.toml --train.score bleu", 2, "bleu is no score of models of kind pointer-network; choose accuracy or loss"),
        ("train hull.toml --train.loss.r_drop 1", 2, "r_drop and other conventions than torch's are for words; leave them out"),
        ("train hull.toml --data.hold_out 9000", 3, "9000 cannot be held out of 9000; hold out fewer"),
    ],
)
def test_what_cannot_be_is_one_line(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, code: int, says: str):
    monkeypatch.chdir(tmp_path)
    Path("wrong.txt").write_text("0 1\n2\n")
    changes = {
        "hull": ("", ""),
        "twice": ("seed = 3", "seed = 1"),
        "both": ('"hull", count = 60', '"tour", count = 60'),
        "text": ("hold_out", 'valid = [{ kind = "tsv", path = "wrong.txt" }]\nhold_out'),
    }
    for name, (old, new) in changes.items():
        small_run.write(tmp_path, f"{name}.toml", RECIPE.replace(old, new).strip().split("\n"))
    given = words.format(run=trained).split()
    ended = small_run.regard(*given, *(("--out", "out", "--progress", "none") if given[0] == "train" else ()), stdin="")
    assert ended.code == code and not ended.out, ended.error
    assert ended.error.startswith("regard: ") and ended.error.count("\n") == 1 and says in ended.error, ended.error
    assert not Path("out").exists()
