"""docs/tour.md against a small model: its Python runs, its taps are there in its order, and its sums come out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import regard
from regard.nn.attention import Need, choose
from regard.nn.tap import record
from regard.recipes import find
from regard.run import read_run
from small_run import regard as command

TOUR = (Path(__file__).parents[2] / "docs" / "tour.md").read_text("utf-8")
SENTENCE = "Der Hund sieht das Haus."


def test_its_python_runs(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "demo").symlink_to(trained)
    names: dict = {"__name__": "tour"}
    blocks = re.findall(r"^```python\n(.*?)^```", TOUR, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "tour.md", "exec"), names)
    printed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    told = [line.split()[0] for line in TOUR.splitlines() if re.match(r"    (source|encoder|decoder)\.\S+ +\d+ x", line)]
    assert told == [name for name in printed if name in told]  # in this order


def test_its_kernel_is_chosen():
    assert f"# {choose(Need(gradient=False, length=6))}" in TOUR


def test_what_it_says_of_shapes_calls_and_sums(trained: Path):
    model = regard.load(trained)
    with record(model.model, "*") as seen:
        answer = model.candidates([SENTENCE])[0].best
    ids = model.source.encode(SENTENCE)
    source, beam, heads = len(ids) + 1, 2, 2
    torch.testing.assert_close(seen["source.sum"][0], seen["source.token"][0] + seen["source.position"][0])
    assert seen["source.sum"][0].shape == (1, source, 32) and seen["encoder.0.own.query"][0].shape == (1, heads, source, 16)
    assert len(seen["decoder.0.cross.key"]) == 1  # once a sentence
    steps = len(seen["target.sum"])
    assert steps >= len(answer.pieces) + 1
    assert seen["decoder.0.own.weights"][-1].shape == (beam, heads, 1, steps)
    assert {tuple(map_.shape) for map_ in seen["decoder.0.cross.weights"]} == {(1, heads, beam, source)}
    length = len(answer.pieces) + 1
    assert answer.score == pytest.approx(answer.log_prob / ((5 + length) / 6) ** 0.6)


def test_its_recipe_is_the_one_it_speaks_of():
    run = read_run(find("demo-de-en"))
    model = run.model
    assert (model.encoder.layers, model.decoder.layers, model.d_model, model.encoder.heads) == (3, 3, 256, 4)
    assert model.encoder.feed_forward.d_ff == 1024 and model.encoder.placement == "pre"
    assert run.tokenizer.size == 6000 and run.decoding.search.size == 4 and run.decoding.limit(5) == 55
    parameters = re.search(r"([\d,]+) parameters", TOUR)
    assert parameters and f"demo-de-en: {parameters[1]} parameters" in command("plan", "demo-de-en").out
