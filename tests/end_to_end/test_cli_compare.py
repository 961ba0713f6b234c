"""`regard compare` through the real command line: the sweep of widths, shrunk; what is finished is not made again."""

import json
import re
from pathlib import Path

import pytest

import small_run
from regard import recipes
from regard.compare.sweep import FOLDER

FEW = ["--train.steps", "4", "--train.evaluate_every", "2", "--train.save_every", "2", "--train.device", "cpu", "--train.precision", "fp32"]


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The committed sweep over fewer strings and narrower models."""
    folder = tmp_path_factory.mktemp("sweep")
    recipe = re.sub(r"count = \d+", "count = 60", recipes.find("strings-reverse").read_text("utf-8"))
    (folder / "few.toml").write_text(recipe, "utf-8")
    text = (FOLDER / "width.toml").read_text("utf-8").replace('"strings-reverse"', '"few.toml"').replace("[1, 2, 3]", "[1, 2]")
    text = re.sub(r"^(256|512) = .*\n", "", text, flags=re.MULTILINE).replace("= 1024 }", "= 32 }").replace("= 128 }", "= 16 }")
    (folder / "width.toml").write_text(text, "utf-8")
    return folder / "width.toml"


@pytest.fixture(scope="module")
def out(sweep: Path) -> Path:
    out = sweep.parent / "runs"
    ended = small_run.regard("compare", sweep, "--out", out, *FEW, "--progress", "none", "--json", "--curves", out.parent / "curves.svg")
    assert ended.code == 0, ended.error
    (sweep.parent / "first.json").write_text(ended.out)
    assert ended.error.count(", seed ") == 12
    return out


def test_one_table_of_all_variants(sweep: Path, out: Path):
    found = json.loads((sweep.parent / "first.json").read_text())
    assert [row["name"] for row in found["variants"]] == [f"{s}-{w}" for s in ("scaled-dot", "dot", "additive") for w in (128, 1024)]
    assert found["score"] == "exact" and found["signatures"]["exact"] == "exact|nrefs:1|case:mixed"
    for row in found["variants"]:
        assert row["runs"] == 2 and len(row["scores"]["exact"]["values"]) == 2 and row["scores"]["exact"]["spread"] is not None
        assert row["training_flops"] > 0 and row["memory"] > 0 and row["steps"] == 4 and row["score"] in ("scaled-dot", "dot", "additive")
    sizes = {row["name"]: row["parameters"] for row in found["variants"]}
    assert sizes["dot-128"] == sizes["scaled-dot-128"] < sizes["additive-128"] < sizes["dot-1024"]
    assert "additive-1024: " in (sweep.parent / "curves.svg").read_text()


def test_what_is_finished_is_not_made_again_and_what_is_missing_is(sweep: Path, out: Path):
    kept = {path: path.stat().st_mtime_ns for path in out.rglob("report.json")}
    gone = out / "dot-128" / "seed-2"
    (gone / "report.json").unlink()  # as if it had been killed at its end
    ended = small_run.regard("compare", sweep, "--out", out, *FEW, "--progress", "none")
    assert ended.code == 0, ended.error
    assert re.findall(r"\d+ of 12: (.*)", ended.error) == ["dot-128, seed 2"]
    assert {path: path.stat().st_mtime_ns for path in kept if gone not in path.parents} == {
        path: when for path, when in kept.items() if gone not in path.parents
    }
    assert "scaled-dot" in ended.out and "±" in ended.out and "p: Welch's t-test" in ended.out
    lines = (gone / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines if json.loads(line).get("event") == "evaluate"] == [
        2,
        4,
    ]  # gone on with, not begun again


def test_the_same_number_as_by_train_alone(sweep: Path, out: Path, tmp_path: Path):
    small = ["--model.d_model", "16", "--train.seed", "2", "--model.decoder.cross.score.kind", "dot"][:4]
    text = (sweep.parent / "few.toml").read_text().replace("heads = 1", 'heads = 1, own = { score = "dot" }, cross = { score = "dot" }')
    (tmp_path / "alone.toml").write_text(text)
    ended = small_run.regard("train", tmp_path / "alone.toml", "--out", tmp_path / "alone", *FEW, *small, "--progress", "none")
    assert ended.code == 0, ended.error
    one, other = (json.loads((folder / "report.json").read_text()) for folder in (tmp_path / "alone", out / "dot-128" / "seed-2"))
    assert one["scores"] == other["scores"] and one["target_tokens"] == other["target_tokens"]
    losses = [small_run.log_of(folder)[-1].get("loss") for folder in (tmp_path / "alone", out / "dot-128" / "seed-2")]
    assert losses[0] == losses[1]


def test_one_sentence_side_by_side(sweep: Path, out: Path, tmp_path: Path):
    figure = tmp_path / "side.svg"
    ended = small_run.regard("compare", sweep, "--out", out, *FEW, "--dry-run", "--look", "a b c", "--figure", figure)
    assert ended.code == 0, ended.error
    text = figure.read_text("utf-8")
    places = [float(re.search(rf'x="([\d.]+)"[^>]*>{name}<', text)[1]) for name in ("scaled-dot-128", "dot-1024", "additive-1024")]
    assert places == sorted(places) and places[2] > places[1] + 200 and text.count("looked at") >= 6
    alone = small_run.regard("compare", sweep, "--look", "a b c")
    assert alone.code == 2 and "a sentence and a file belong together" in alone.error
    none = small_run.regard("compare", sweep, "--out", tmp_path / "no", *FEW, "--dry-run", "--look", "a", "--figure", figure)
    assert none.code == 2 and "no finished run of it can be looked into" in none.error


def test_a_run_of_other_settings_is_not_taken_for_it(sweep: Path, out: Path):
    ended = small_run.regard("compare", sweep, "--out", out, *FEW, "--train.steps", "5", "--progress", "none")
    assert ended.code == 2 and "was made with other settings than the sweep has now" in ended.error and not ended.out


def test_saying_what_there_is_makes_nothing(sweep: Path, tmp_path: Path):
    ended = small_run.regard("compare", sweep, "--out", tmp_path / "none", "--dry-run")
    assert ended.code == 0 and ended.error.count("to be made") == 12 and "no run is finished" in ended.out
    assert not (tmp_path / "none").exists()


def test_the_sweeps_of_the_package_are_listed():
    assert any(line.startswith("width ") for line in small_run.regard("compare").out.splitlines())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["widht"], "did you mean width?"),
        (["absent.toml"], "there is no such sweep"),
        (["width", "--seeds", "1,x"], "'1,x' are no seeds"),
        (["width", "--train.stepz", "4"], "--train.stepz is not a setting"),
    ],
)
def test_what_cannot_be_compared(words: list[str], says: str):
    ended = small_run.regard("compare", *words)
    assert ended.code == 2 and says in ended.error and ended.error.count("\n") == 1
