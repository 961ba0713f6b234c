"""Trunks of any kinds from configuration alone, through the real command line: trained, used, planned and looked into."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import small_run
from regard.look.trace import load
from small_run import regard

SMALL = "heads = 2, layers = 1, feed_forward = { d_ff = 32 }"
MODELS = {  # [model], and the maps that there are to be seen
    "a Transformer reads, a GRU writes": (
        f"""encoder = {{ kind = "transformer", {SMALL} }}
decoder = {{ kind = "recurrent", output = 16, forcing = 0.75, attention = {{ keys = "projected", score = "cosine" }} }}""",
        {"enc-self", "cross"},
    ),
    "two encoders": (
        f"""encoder = {{ kind = "recurrent", cell = "lstm", bidirectional = true, output = 16 }}
more_encoders = [{{ kind = "convolutional", layers = 2 }}]
decoder = {{ kind = "transformer", {SMALL} }}""",
        {"cross", "dec-self"},
    ),
    "sparse, low-rank and compressed": (
        f"""encoder = {{ kind = "transformer", {SMALL}, own = {{ kind = "longformer", reach = 2 }} }}
more_encoders = [{{ kind = "transformer", {SMALL}, own = {{ pattern = {{ kind = "bigbird", size = 2, random = 1 }} }} }}]

[model.decoder]
heads = 2
layers = 2
feed_forward = {{ d_ff = 32 }}
cross = {{ kind = "linformer", rank = 4, length = 200 }}
cycle = [{{ kind = "attention", pattern = {{ kind = "block-local", size = 8 }} }}, {{ kind = "compressed", size = 3 }}]""",
        {"dec-self"},
    ),
    "no attention": ('encoder = "recurrent"\ndecoder = { kind = "recurrent", attention = "none", output = 16 }', set()),
}


@pytest.mark.parametrize("name", MODELS)
def test_from_configuration_alone(name: str, tmp_path: Path):
    model, maps = MODELS[name]
    start, end = small_run.RECIPE.index("d_model = 32"), small_run.RECIPE.index("[batching]")
    recipe = small_run.corpus(tmp_path, recipe=f"{small_run.RECIPE[:start]}d_model = 16\n{model}\n\n{small_run.RECIPE[end:]}")
    done = regard("train", recipe, "--out", tmp_path / "run", "--train.steps", 4, "--train.evaluate_every", 2, "--progress", "none")
    assert done.code == 0, done.error
    assert 'layout = "padded"' in (tmp_path / "run" / "run.toml").read_text("utf-8")
    report = json.loads((tmp_path / "run" / "report.json").read_text("utf-8"))
    planned = json.loads(regard("plan", tmp_path / "run" / "run.toml", "--json").out)
    assert report["parameters"] == planned["parameters"]
    translate = ["translate", tmp_path / "run", "--beam", 2]
    out = regard(*translate, *(["--alignment"] if "cross" in maps else []), stdin="Der Hund sieht Brot.\n\nEin Wort\n")
    assert out.code == 0, out.error
    assert out.out.count("\n") == 3
    if "cross" not in maps:
        refused = regard(*translate, "--alignment", stdin="Der Hund\n")
        assert refused.code == 2 and "no attention to the source" in refused.error
    page = ["--export", tmp_path / "a.html"] if maps else []
    done = regard("look", tmp_path / "run", "Der Hund sieht Brot.", "--save", tmp_path / "a.trace", *page)
    assert done.code == 0, done.error
    assert {one.kind for one in load(tmp_path / "a.trace").maps} == maps
