"""The six systems of WikiSum by name, scaled down and shrunk, in one table by one command."""

import json
import re
from pathlib import Path

import pytest

import small_handbook
import small_run
from regard import recipes
from regard.compare.sweep import FOLDER
from regard.models.presets import PRESETS
from regard.plan.tables import published

SYSTEMS = ["seq2seq-attention", "t-ed", "t-d", "t-dmca", "t-dmca-moe-128", "t-dmca-moe-256"]
FEW = ["--train.steps", "3", "--train.epochs", "0", "--train.evaluate_every", "2", "--train.save_every", "2", "--model.d_model", "16"]
FEW += ["--tokenizer.size", "330", "--decoding.max_length", "5", "--decoding.search.size", "2", "--train.device", "cpu"]
FEW += ["--train.precision", "fp32", "--progress", "none", "--seeds", "1"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    folder = tmp_path_factory.mktemp("summaries")
    small_handbook.write(folder / "book.tsv")
    recipe = recipes.find("summaries").read_text("utf-8").replace("eng-de.tsv.xz", "book.tsv")
    (folder / "small.toml").write_text(recipe.replace("words = 160", "words = 30, least = 5"), "utf-8")
    sweep = (FOLDER / "summaries.toml").read_text("utf-8").replace('recipe = "summaries"', 'recipe = "small.toml"')
    (folder / "six.toml").write_text(re.sub(r"width = 128", "width = 16", sweep).replace("d_model = 128\n", ""), "utf-8")
    ended = small_run.regard("compare", folder / "six.toml", "--out", folder / "runs", *FEW, "--json")
    assert ended.code == 0, ended.error
    return folder, json.loads(ended.out)


def test_six_rows_with_their_scores(table):
    _, found = table
    assert [row["system"] for row in found["variants"]] == SYSTEMS
    for row in found["variants"]:
        assert list(row["scores"]) == ["rouge-l", "rouge-1", "rouge-2", "log-perplexity"]
        assert 3 < row["scores"]["log-perplexity"]["mean"] < 10 and row["training_flops"] > 0
    sizes = [row["parameters"] for row in found["variants"]]
    assert sizes[3] < sizes[4] < sizes[5]
    assert found["score"] == "rouge-l" and re.fullmatch(
        r"log-perplexity\|tokens:\d+\|tokenizer:\w{8}", found["signatures"]["log-perplexity"]
    )


def test_the_rows_are_those_of_the_published_table_and_of_the_presets(table):
    named = [row["name"].lower().replace(", ", "-").replace(" with ", "-") for row in published("wikisum")["rows"]]
    assert named == SYSTEMS and set(SYSTEMS) <= set(PRESETS)


def test_a_decoder_alone_goes_on_behind_the_separator(table):
    folder, _ = table
    prompt = "This command is used to sort the page. <sep>"
    ended = small_run.regard("generate", folder / "runs/t-dmca/seed-1", "--prompt", prompt, "--max-length", "3", "--seed", "1")
    assert ended.code == 0, ended.error
    assert ended.out.startswith("This command is used to sort the page. <sep>") and len(ended.out) > len(prompt) + 1


def test_names_as_the_papers_write_them():
    for name in ("T-ED", "T-D", "T-DMCA", "T-DMCA-MoE-128"):
        ended = small_run.regard("plan", name, "--json")
        assert ended.code == 0, ended.error
        assert json.loads(ended.out)["parameters"] == json.loads(small_run.regard("plan", name.lower(), "--json").out)["parameters"]


def test_a_memory_of_earlier_segments_is_refused_for_pairs(table, tmp_path: Path):
    folder, _ = table
    text = re.sub(r"preset.*\n", "", (folder / "small.toml").read_text())
    head, tail = text.split("[model]"), text.split("[batching]")[1]
    trunk = 'kind = "language-model"\nd_model = 16\ntrunk = { layers = 1, heads = 2, own = { kind = "transformer-xl" } }\n'
    (folder / "xl.toml").write_text(f"{head[0]}[model]\n{trunk}\n[batching]{tail}")
    ended = small_run.regard("train", folder / "xl.toml", "--out", tmp_path / "no", "--progress", "none")
    assert ended.code == 2 and "pairs are read one by one; take attention without a memory of earlier segments" in ended.error
