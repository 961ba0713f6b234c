"""Sweeps: which runs a file means, what it may not mix, and what the table says of finished runs."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from regard.compare.significance import tails, welch
from regard.compare.sweep import FOLDER, find, listed, read_sweep
from regard.compare.table import as_json, page, rows_of
from regard.errors import UsageError
from regard.models.build import build

SWEEP = """
recipe = "strings-reverse"
seeds = [5, 7]

[settings.train]
steps = 11

[grid.score.scaled.model]
decoder = { cross = { score = "scaled-dot" } }

[grid.score.additive.model]
decoder = { cross = { score = { kind = "additive", width = 8 } } }

[grid.layers]
1 = {}
2 = { model = { decoder = { layers = 2 } } }
"""


def swept(folder: Path, text: str, **given):
    (folder / "some.toml").write_text(text)
    return read_sweep(folder / "some.toml", **given)


def test_a_grid_is_every_choice_with_every_other(tmp_path: Path):
    sweep = swept(tmp_path, SWEEP, flags={"train.log_every": "3"})
    assert [variant.name for variant in sweep.variants] == ["scaled-1", "scaled-2", "additive-1", "additive-2"]
    assert sweep.axes == ("score", "layers") and sweep.head.seeds == (5, 7)
    kinds = [(variant.run.model.decoder.cross.score.kind, variant.run.model.decoder.layers) for variant in sweep.variants]
    assert kinds == [("scaled-dot", 1), ("scaled-dot", 2), ("additive", 1), ("additive", 2)]
    run = sweep.variants[3].seeded(7)
    assert (run.train.steps, run.train.log_every, run.train.seed, run.model.decoder.heads) == (11, 3, 7, 1)
    assert run.model.decoder.cross.score.width == 8 and run.model.encoder.own.score.kind == "scaled-dot"


def test_variants_may_name_recipes_of_their_own(tmp_path: Path):
    text = '[grid.model]\ngru = { recipe = "multi30k-ladder-gru-de-en" }\nlstm = { recipe = "multi30k-ladder-lstm-de-en" }\n'
    sweep = swept(tmp_path, text)
    assert [variant.run.model.encoder.cell for variant in sweep.variants] == ["gru", "lstm"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("1 = {}", "1 = { metrics = ['bleu'] }", "scaled-1 and scaled-2 differ in their metrics"),
        ("1 = {}", "1 = { data = { hold_out = 4 } }", "scaled-1 and scaled-2 differ in their data"),
        ("1 = {}", "'../1' = {}", "'../1' is no name of a variant"),
        ("1 = {}", "1 = { model = { layres = 1 } }", "model.layres is not a key"),
        ("[grid.layers]", "[grod.layers]", "grod"),
        ("seeds = [5, 7]", "seeds = [5, 5]", "give one or more, each once"),
        ('recipe = "strings-reverse"', "", "no recipe is named"),
        ('recipe = "strings-reverse"', 'recipe = "string-reverse"', "did you mean strings-reverse?"),
    ],
)
def test_what_is_no_sweep(tmp_path: Path, old: str, new: str, says: str):
    with pytest.raises(UsageError) as wrong:
        swept(tmp_path, SWEEP.replace(old, new))
    assert says in str(wrong.value)


@pytest.mark.parametrize("name", [name for name, _ in listed()])
def test_the_sweeps_of_the_package_can_be_read(name: str):
    sweep = read_sweep(find(name))
    assert len(sweep.variants) > 1 and (FOLDER / f"{name}.toml").read_text("utf-8").startswith("# ")


def test_the_sweep_of_widths_is_about_scores_and_widths_alone():
    sweep = read_sweep(find("width"))
    assert len(sweep.variants) == 12 and sweep.head.seeds == (1, 2, 3)
    one = {variant.name: variant.run for variant in sweep.variants}
    assert one["dot-1024"].model.d_model == 1024 and one["dot-128"].model.decoder.cross.score.kind == "dot"
    assert {run.train for run in one.values()} == {one["dot-128"].train}


def finished(out: Path, name: str, seed: int, scores: dict[str, float], *, signature: str = "v1") -> None:
    folder = out / name / f"seed-{seed}"
    folder.mkdir(parents=True)
    report = {"scores": {of: {"score": score, "signature": f"{of}|{signature}"} for of, score in scores.items()}}
    report |= {"parameters": 1234, "steps": 11, "train_seconds": 2.5, "target_tokens_per_second": 4000.0, "target_tokens": 10}
    (folder / "report.json").write_text(json.dumps(report))


@pytest.fixture
def unplanned(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("regard.compare.table.costs", lambda folder, reports: {"training_flops": 2e9, "memory": 3e6})


def test_mean_spread_and_significance(tmp_path: Path, unplanned: None):
    sweep = swept(tmp_path, SWEEP)
    for name, values in {"scaled-1": (40.0, 42.0), "scaled-2": (50.0, 53.0), "additive-1": (41.0,)}.items():
        for seed, value in zip(sweep.head.seeds, values):
            finished(tmp_path, name, seed, {"exact": value, "ter": 3.0})
    found = as_json(sweep, rows_of(sweep, tmp_path), {})
    assert (found["score"], found["better"], found["best"]) == ("exact", "higher", "scaled-2")
    first, best, lone = found["variants"]
    assert first["scores"]["exact"] == {"mean": 41.0, "spread": pytest.approx(2**0.5), "values": [40.0, 42.0]}
    assert best["p_value"] is None and lone["p_value"] is None and lone["scores"]["exact"]["spread"] is None
    assert first["p_value"] == pytest.approx(0.0396, abs=2e-3) and first["layers"] == "1"
    text = page(found, sweep.axes)
    assert "41.00 ± 1.41" in text and "not finished: additive-1: 1 of 2 seeds" in text and "2.00e+09" in text
    assert [line.split()[:2] for line in text.splitlines()[3:6]] == [["scaled", "1"], ["scaled", "2"], ["additive", "1"]]


def test_lower_is_better_of_a_loss(tmp_path: Path, unplanned: None):
    sweep = swept(tmp_path, SWEEP.replace("seeds", 'score = "loss"\nseeds'))
    finished(tmp_path, "scaled-1", 5, {"exact": 9.0, "loss": 0.2})
    finished(tmp_path, "scaled-2", 5, {"exact": 8.0, "loss": 0.1})
    assert as_json(sweep, rows_of(sweep, tmp_path), {})["best"] == "scaled-2"


def test_figures_of_two_versions_are_not_for_one_table(tmp_path: Path, unplanned: None):
    sweep = swept(tmp_path, SWEEP)
    finished(tmp_path, "scaled-1", 5, {"exact": 9.0})
    finished(tmp_path, "scaled-2", 5, {"exact": 8.0}, signature="v2")
    with pytest.raises(UsageError, match=r"its exact is exact\|v2, that of others exact\|v1"):
        rows_of(sweep, tmp_path)


def test_students_distribution_by_its_tables():
    assert tails(2.776, 4) == pytest.approx(0.05, abs=1e-4) and tails(12.706, 1) == pytest.approx(0.05, abs=1e-4)
    assert tails(0.0, 3) == pytest.approx(1)
    assert welch([1, 2, 3], [4, 5, 6]) == pytest.approx(0.02131, abs=1e-4)
    assert welch([1.0, 1.0], [2.0, 2.0]) == 0 and welch([1.0, 1.0], [1.0, 1.0]) == 1 and welch([1.0], [2.0, 3.0]) is None


def test_each_sweep_says_what_is_claimed():
    for name, says in listed():
        text = (FOLDER / f"{name}.toml").read_text("utf-8")
        assert "Claimed" in text or "Published" in text, says
        assert tomllib.loads(text)["grid"]


@pytest.mark.parametrize("name", ["positions", "scores", "width"])
def test_every_variant_can_be_built(name: str):
    for variant in read_sweep(find(name)).variants:
        with torch.device("meta"):
            build(replace(variant.run.model, source_vocabulary=30, target_vocabulary=30))


def test_the_ladder_has_the_published_rungs():
    sweep = read_sweep(find("ladder"))
    assert [variant.name for variant in sweep.variants] == ["lstm", "gru", "gru-attention", "convolutions", "transformer"]
    assert len({variant.run.data.test for variant in sweep.variants}) == 1
