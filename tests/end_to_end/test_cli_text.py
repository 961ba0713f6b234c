"""A language model from a file of text to `regard generate`, through the real command line: trained, resumed, asked, and refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import regard
import small_text
from regard.look.trace import load
from regard.models.tensors import read_tensors
from small_run import regard as command


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a model that learned sums. Read-only by agreement."""
    folder = tmp_path_factory.mktemp("text")
    done = command("train", small_text.corpus(folder), "--out", folder / "run", "--progress", "plain")
    assert done.code == 0, done.error
    assert "regard generate" in done.error and "learned from 115 of 144 examples" in done.error and "->" in done.error
    return folder / "run"


def test_the_report_has_what_may_be_compared(learned: Path):
    scores = json.loads((learned / "report.json").read_text())["scores"]
    assert list(scores) == ["loss", "perplexity", "word-perplexity", "bits-per-character"]
    lines = [json.loads(line) for line in (learned / "log.jsonl").read_text().splitlines()]
    watched = [line["loss"] for line in lines if "perplexity" in line]
    assert len(watched) >= 4 and watched[-1] < watched[0]
    assert scores["loss"]["score"] < 1.3  # characters of a text of a dozen words
    assert {path.name for path in (learned / "best").iterdir()} >= {"tokenizer.text.json", "model.safetensors"}


def test_it_goes_on_with_what_it_is_given(learned: Path):
    one = command("generate", learned, "--prompt", "3 and", "--beam", "1", "--max-length", "20")
    assert one.code == 0 and one.out.startswith("3 and ") and " make " in one.out and one.out.count("\n") == 1
    drawn = command("generate", learned, "--seed", "3", "--count", "4", "--temperature", "0.7", "--top-k", "9", "--top-p", "0.9")
    again = command("generate", learned, "--seed", "3", "--count", "4", "--temperature", "0.7", "--top-k", "9", "--top-p", "0.9")
    assert drawn.out == again.out and len(drawn.out.splitlines()) == 4
    assert drawn.out != command("generate", learned, "--seed", "4", "--count", "4").out


def test_prompts_by_line_and_json(learned: Path):
    done = command(
        "generate", learned, "--prompt", "-", "--json", "--beam", "3", "--count", "2", "--max-length", "15", stdin="1 and\n\n7 a\n"
    )
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [one["prompt"] for one in found] == ["1 and", "1 and", "", "", "7 a", "7 a"]
    model = regard.load(learned)
    for one in found:
        (score,) = model.score([one["prompt"] + one["text"]])
        assert score.log_probs[len(one["prompt"]) :][: len(one["log_probs"])] == pytest.approx(one["log_probs"], abs=1e-4)
        assert one["log_prob"] == pytest.approx(sum(one["log_probs"]))


def test_going_on_after_a_stop_gives_the_same_bits(learned: Path, tmp_path: Path):
    recipe = learned.parent / "text.toml"
    first = command("train", recipe, "--out", tmp_path / "run", "--train.steps", "30", "--progress", "none")
    assert first.code == 0, first.error
    merged = tmp_path / "run" / "run.toml"
    merged.write_text(merged.read_text().replace("steps = 30", "steps = 80"))
    gone_on = command("train", "--resume", tmp_path / "run", "--force", "--progress", "none")
    assert gone_on.code == 0, gone_on.error
    straight, resumed = (read_tensors(run / "last" / "model.safetensors") for run in (learned, tmp_path / "run"))
    assert all(straight[name].equal(resumed[name]) for name in straight)


def test_documents_apart_held_out_and_other_trunks(learned: Path, tmp_path: Path):
    recipe = tmp_path / "other.toml"
    text = (learned.parent / "text.toml").read_text()
    text = text.replace('valid = [{ kind = "text", path = "sums.txt", start = 0.8, stop = 0.9 }]', "hold_out = 9")
    text = text.replace('trunk = { layers = 1, heads = 2, placement = "pre", dropout = 0.0, feed_forward = { d_ff = 64 } }', TRUNK)
    recipe.write_text(text)
    settings = ["--data-root", learned.parent, "--batching.within", "true", "--train.steps", "20", "--tokenizer.byte_fallback", "true"]
    done = command("train", recipe, *settings, "--out", tmp_path / "run", "--progress", "plain")
    assert done.code == 0, done.error
    assert "perplexity" in done.error
    assert command("generate", tmp_path / "run", "--max-length", "5").code == 0


TRUNK = 'trunk = { kind = "recurrent", cell = "lstm", attention = { kind = "none" } }'


def test_a_model_can_be_the_beginning_of_another(learned: Path, tmp_path: Path):
    recipe = learned.parent / "text.toml"
    settings = ["--train.steps", "2", "--train.evaluate_every", "1", "--train.optimiser.rate", "1e-4"]
    done = command("train", recipe, "--from", learned, *settings, "--out", tmp_path / "run", "--progress", "none")
    assert done.code == 0, done.error
    ours, theirs = (json.loads((run / "report.json").read_text())["scores"]["loss"]["score"] for run in (tmp_path / "run", learned))
    assert abs(ours - theirs) < 0.1


def test_prompt_separator_completion(learned: Path, tmp_path: Path):
    """A prompt, a separator that is one token, and its completion: a language model does what an encoder-decoder does."""
    lines = (learned.parent / "sums.txt").read_text().replace(" make ", " <is> ")
    (tmp_path / "sums.txt").write_text(lines)
    recipe = tmp_path / "tagged.toml"
    recipe.write_text(small_text.RECIPE.replace("byte_fallback = false", 'byte_fallback = false\ntags = ["<is>"]'))
    done = command("train", recipe, "--out", tmp_path / "run", "--batching.within", "true", "--progress", "none")
    assert done.code == 0, done.error
    out = command("generate", tmp_path / "run", "--prompt", "-", "--beam", "2", "--json", stdin="3 and 4 <is>\n7 and 1 <is>\n")
    found = [json.loads(line) for line in out.out.splitlines()]
    assert len(found) == 2 and all(one["ended"] and one["text"].strip().isdigit() for one in found), found
    pieces = regard.load(tmp_path / "run").text.encode("3 and 4 <is> 7")
    assert len(pieces) == len("3 and 4 ") + 1 + len(" 7")


def test_what_is_wrong_is_one_line(learned: Path, trained: Path, tmp_path: Path):
    valid = 'valid = [{ kind = "text", path = "sums.txt", start = 0.8, stop = 0.9 }]'
    greedy = tmp_path / "greedy.toml"
    greedy.write_text(small_text.RECIPE.replace(valid, "hold_out = 999"))
    done = command("train", greedy, "--data-root", learned.parent, "--out", tmp_path / "b")
    assert done.code == 3 and "999 cannot be held out of 115" in done.error, done.error
    for words, says in (
        (["generate", trained], "use regard translate"),
        (["translate", learned], "use regard generate"),
        (["classify", learned, "x.png"], "use regard generate"),
        (["generate", learned, "--max-length", "0"], "1 or more"),
        (["generate", learned, "--count", "0"], "1 or more"),
        (["generate", learned, "--beam", "2", "--count", "3"], "widen"),
        (["generate", learned, "--temperature", "0"], "temperature"),
        (["train", learned.parent / "text.toml", "--out", tmp_path / "a", "--metrics", "bleu"], "metrics"),
    ):
        done = command(*words)
        assert done.code == 2 and says in done.error and done.error.count("\n") == 1, done.error


def test_a_model_that_remembers_is_trained_resumed_and_asked(learned: Path, tmp_path: Path):
    """Transformer-XL: rows of 8 letters and a memory of 24 hold a whole line; a run that was stopped goes on with what it remembered."""
    recipe = tmp_path / "xl.toml"
    text = small_text.RECIPE.replace("layers = 1, heads = 2,", 'layers = 1, heads = 2, own = { kind = "transformer-xl", memory = 24 },')
    text = text.replace("embedding = { dropout = 0.0 }", 'embedding = { dropout = 0.0, positions = "none" }')
    recipe.write_text(text.replace("max_length = 32", "max_length = 8"))
    settings = ["--data-root", learned.parent, "--progress", "none", "--train.accumulate", "2"]
    done = command("train", recipe, *settings, "--out", tmp_path / "straight")
    assert done.code == 0, done.error
    first = command("train", recipe, *settings, "--out", tmp_path / "run", "--train.steps", "33")
    assert first.code == 0, first.error
    merged = tmp_path / "run" / "run.toml"
    merged.write_text(merged.read_text().replace("steps = 33", "steps = 80"))
    assert command("train", "--resume", tmp_path / "run", "--force", "--progress", "none").code == 0
    straight, resumed = (read_tensors(tmp_path / run / "last" / "model.safetensors") for run in ("straight", "run"))
    assert all(straight[name].equal(resumed[name]) for name in straight)
    assert json.loads((tmp_path / "straight" / "report.json").read_text())["scores"]["loss"]["score"] < 1.3
    seen = command("look", tmp_path / "run", "3 and 4", "--export", tmp_path / "page.html")
    assert seen.code == 0, seen.error
    out = command("generate", tmp_path / "run", "--prompt", "3 and", "--beam", "1", "--json", "--max-length", "15")
    found = json.loads(out.out)
    (score,) = regard.load(tmp_path / "run").score([found["prompt"] + found["text"]])
    assert score.log_probs[len("3 and") :][: len(found["log_probs"])] == pytest.approx(found["log_probs"], abs=1e-4)


def test_it_is_looked_into(learned: Path, tmp_path: Path):
    """A trace and a page, a table of next words, the walk of one token, the scores of a head."""
    done = command(
        "look", learned, "3 and 4", "--save", tmp_path / "a.trace", "--export", tmp_path / "a.html", "--figure", tmp_path / "a.svg"
    )
    assert done.code == 0, done.error
    trace = load(tmp_path / "a.trace")
    assert not trace.source and [token.text for token in trace.target[1:]] == list("3 and 4") and len(trace.steps) == 8
    assert {one.kind for one in trace.maps} == {"dec-self"} and trace.weights("dec-self", 0).shape == (2, 8, 8)
    told = json.loads(command("look", learned, "3 and 4", "--table", "next", "--json").out)
    (score,) = regard.load(learned).score(["3 and 4"])
    assert [one["chosen"]["log_prob"] for one in told[:-1]] == pytest.approx(score.log_probs[:7], abs=1e-5)
    assert [one["after"] for one in told[1:]] == list("3 and 4") and all(len(one["top"]) == 8 for one in told)
    assert command("look", learned, "3 and 4", "--table", "next").out.count("\n") == 8
    walked = command("look", learned, "3 and 4", "--walk", "7", "--layer", "0", "--heads", "1")
    assert walked.out.startswith("token 7: 4\n") and "what it expects: number, log-probability, probability" in walked.out
    masked = json.loads(command("look", learned, "3 and 4", "--table", "masked", "--json").out)["values"]
    assert [[one is None for one in row] for row in masked] == [[column > row for column in range(8)] for row in range(8)]
    assert "choose scores, bias" in command("look", learned, "3", "--table", "sores").error
    assert "there is: dec-self" in command("look", learned, "3", "--kind", "cross", "--figure", tmp_path / "b.svg").error
