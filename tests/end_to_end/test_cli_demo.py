"""`regard demo`, shrunk: the whole way from the corpora inside the package to translations and a page, by the ordinary verbs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import small_run
from regard import recipes
from small_run import regard

SHRUNK = {  # of the recipe's own text, so that nothing else of it changes
    r"^d_model = \d+": "d_model = 16",
    r"^layers = \d+": "layers = 1",
    r"^heads = \d+": "heads = 2",
    r"d_ff = \d+": "d_ff = 32",
    r"^size = [\d_]+": "size = 400",
    r"^training_pairs = [\d_]+": "training_pairs = 2000",
    r"^sample_every = \d+": "sample_every = 1",
    r"^log_every = \d+": "log_every = 1",
    r"(train|test|dev)\.tsv(\.xz)?": r"\1.tsv",
}


@pytest.fixture
def little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The recipes with a small model, over the first pairs of the corpora."""
    from regard.data import corpora
    from regard.data.text import read_lines

    inside, folder = Path(corpora.__file__).parent, tmp_path / "package"
    for pair in ("de-en", "fr-en"):
        (folder / pair).mkdir(parents=True)
        for name, ending, count in (("train", ".xz", 600), ("dev", "", 20), ("test", "", 24)):
            lines = [line.text for line, _ in zip(read_lines(inside / pair / f"{name}.tsv{ending}"), range(count))]
            small_run.write(folder / pair, f"{name}.tsv", lines)
        text = (recipes.FOLDER / f"demo-{pair}.toml").read_text("utf-8")
        for pattern, becomes in SHRUNK.items():
            assert re.search(pattern, text, re.MULTILINE), pattern
            text = re.sub(pattern, becomes, text, flags=re.MULTILINE)
        (folder / f"demo-{pair}.toml").write_text(text, "utf-8")
    monkeypatch.setattr(corpora, "__file__", str(folder / "__init__.py"))
    monkeypatch.setattr(recipes, "FOLDER", folder)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "demo").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize("pair", ["de-en", "fr-en"])
def test_from_the_corpora_inside_to_a_page(little: Path, pair: str):
    run = little / "runs" / "demo"
    small_run.write(run, "run.toml", regard("train", f"demo-{pair}", "--dry-run").out.splitlines())  # an earlier demo, which is replaced
    small_run.write(run, "of-before.txt", ["old"])
    done = regard("demo", "--pair", pair, "--seconds", "1.5", "--progress", "plain")
    assert done.code == 0, done.error
    assert not (run / "of-before.txt").exists()
    report = json.loads((run / "report.json").read_text("utf-8"))
    assert report["scores"]["bleu"]["signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a")
    assert report["steps"] >= 1 and 1.4 < report["train_seconds"] < 30
    assert "takes about" in done.error
    assert re.search(r"^step \d+  loss [\d.]+  [\d,]+ tokens/s  \S+.* left$", done.error, re.MULTILINE)  # what one watches
    assert re.search(r"^step \d+  .+  ->  ", done.error, re.MULTILINE)
    assert re.search(r"fp32: \d+ ms a step  bf16: \d+ ms a step; training in (fp32|bf16)", done.error)
    assert f"regard train demo-{pair} --out runs/demo" in done.error  # the ordinary commands that it stands for
    shown = re.findall(r"^  \S.*\n    ->", done.error, re.MULTILINE)
    assert len(shown) == 12
    if pair == "fr-en":
        assert [line.split("\n")[0].strip() for line in shown[-2:]] == ["bonjour le monde .", "Je suis étudiant"]
    page = (run / "look.html").read_text("utf-8")
    assert page.startswith("<!") and ("Katze" if pair == "de-en" else "tudiant") in page
    assert not re.findall(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", page)  # nothing is fetched


def test_what_is_no_earlier_demo_is_not_replaced(little: Path):
    (little / "notes").mkdir()
    (little / "notes" / "mine.txt").write_text("mine")
    refused = regard("demo", "--out", "notes")
    assert refused.code == 2 and "notes: is not empty" in refused.error and (little / "notes" / "mine.txt").read_text() == "mine"
