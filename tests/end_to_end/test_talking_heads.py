"""The escape hatch: an attention that is no point of the five axes stands in its place as a whole, from a file outside the package."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

import small_run
import small_text
from regard.config.extend import extended
from regard.config.toml import structure
from regard.errors import UsageError
from regard.laws.book import findings
from regard.models.build import build
from regard.models.configs import EncoderDecoder, LanguageModel
from regard.nn.attention.slot import Slot
from regard.nn.trunk_transformer import Transformer, TransformerTrunk
from regard.nn.view import Tokens, View
from small_run import regard
from talking_heads import TalkingHeads

FILE = Path(__file__).parents[1] / "talking_heads.py"
D, H, E = 12, 3, 4


def slot(*, causal=True):
    torch.manual_seed(0)
    return TalkingHeads().build(D, heads=H, groups=H, d_head=E, causal=causal, name="own").double()


def test_it_is_the_naive_double_loop():
    made, T = slot(), 5
    x = torch.randn(1, T, D, dtype=torch.double)
    query, key, value = (layer(x)[0].unflatten(-1, (H, E)) for layer in made.maps_in)
    found = torch.zeros(T, H, E, dtype=torch.double)
    for i in range(T):
        scores = torch.zeros(H, i + 1, dtype=torch.double)
        for j in range(i + 1):
            for g in range(H):
                scores[g, j] = sum(made.before_HH[g, h] * (query[i, h] @ key[j, h]) / math.sqrt(E) for h in range(H))
        weights = scores.softmax(1)
        for g in range(H):
            for j in range(i + 1):
                found[i, g] += sum(made.after_HH[g, h] * weights[h, j] for h in range(H)) * value[j, g]
    torch.testing.assert_close(made(x, View(Tokens.plain(1, T)))[0], made.output(found.flatten(1)))


def test_it_keeps_every_law():
    with extended([FILE]) as (extension,):
        found = [finding for finding in findings(extension) if finding.subject.startswith("TalkingHeads")]
    assert len(found) >= 9 and not [finding for finding in found if finding.result == "broken"], found
    assert sum(finding.result == "holds" for finding in found) >= 9


def test_no_other_file_has_to_know_it():
    """In every place of an encoder-decoder, from a table."""
    trunk = {"layers": 2, "heads": H, "own": "talking-heads", "cross": "talking-heads", "dropout": 0.0}
    table = {"d_model": D, "encoder": trunk, "decoder": trunk, "source_vocabulary": 9, "target_vocabulary": 9, "tie": "none"}
    model = build(structure(EncoderDecoder, table, extra={"talking-heads": TalkingHeads}))
    assert sum(type(part).__name__ == "TalkingHeadsAttention" for part in model.modules()) == 6


def test_one_that_only_reads_says_so():
    class Mean(Slot):
        def forward(self, x, view, memory=None):
            return x.mean(1, keepdim=True).expand_as(x)

    made = TransformerTrunk(Transformer(layers=1, heads=H), D, causal=False, name="encoder")
    made.blocks[0].own = Mean()
    assert made(torch.randn(1, 3, D), View(Tokens.plain(1, 3))).shape == (1, 3, D)
    with pytest.raises(UsageError, match="Mean does not say how it writes"):
        made.new_state(1, 5)


def test_a_language_model_learns_and_writes_with_it(tmp_path: Path):
    small_text.corpus(tmp_path)
    recipe = tmp_path / "text.toml"
    recipe.write_text(recipe.read_text().replace("heads = 2,", 'heads = 2, own = "talking-heads",'))
    done = regard("train", recipe, "--extend", FILE, "--out", tmp_path / "run", "--progress", "none")
    assert done.code == 0, done.error
    assert json.loads((tmp_path / "run" / "report.json").read_text())["scores"]["loss"]["score"] < 1.3
    written = regard("generate", tmp_path / "run", "--extend", FILE, "--prompt", "3 and", "--beam", "2", "--max-length", "12")
    assert written.code == 0 and written.out.startswith("3 and "), written.error
    seen = regard("look", tmp_path / "run", "3 and 4 make 7", "--extend", FILE, "--export", tmp_path / "page.html")
    assert seen.code == 0, seen.error
    told = json.loads(regard("plan", recipe, "--extend", FILE, "--vocabulary", "20", "--json").out)
    config = LanguageModel(d_model=32, trunk=Transformer(layers=1, heads=2, own=TalkingHeads(), placement="pre"), vocabulary=20)  # type: ignore[arg-type]
    attention = sum(p.numel() for name, p in build(config).named_parameters() if ".own." in name)
    assert json.dumps(told).count("a kind from outside") >= 1 and f'"parameters": {attention}' in json.dumps(told)


def test_a_translator_writes_with_beams_over_it(corpus: Path, tmp_path: Path):
    with (corpus / "small.toml").open() as file:
        lines = [line.replace("heads =", 'own = "talking-heads", cross = "talking-heads", heads =') for line in file]
    (tmp_path / "small.toml").write_text("".join(lines))
    words = ["train", tmp_path / "small.toml", "--extend", FILE, "--data-root", corpus, "--out", tmp_path / "run", "--train.steps", "4"]
    done = regard(*words, "--progress", "none")
    assert done.code == 0, done.error
    assert (tmp_path / "run" / "run.toml").read_text().count("talking-heads") == 4
    wide = regard("translate", tmp_path / "run", "--extend", FILE, "--beam", "3", stdin=small_run.PAIRS[0][0] + "\n")
    assert wide.code == 0 and wide.out.count("\n") == 1, wide.error
