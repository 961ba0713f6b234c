"""`regard train` through the real command line: from a TOML, from two files, warm, stopped and resumed, and on two ranks."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
import torch

import small_run
from regard.models.tensors import read_tensors
from small_run import regard

QUIET = ("--progress", "none")


def weights(model: Path) -> dict[str, torch.Tensor]:
    return read_tensors(model / "model.safetensors")


def same(one: Path, other: Path) -> bool:
    a, b = weights(one), weights(other)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def final(run: Path) -> Path:
    """The newest checkpoint."""
    return run / "checkpoints" / (run / "checkpoints" / "latest").read_text("utf-8").strip()


def test_a_run_folder_is_what_it_promises(trained: Path):
    assert {"run.toml", "log.jsonl", "checkpoints", "best", "last", "report.json"} <= {path.name for path in trained.iterdir()}
    report = json.loads((trained / "report.json").read_text("utf-8"))
    assert {"scores", "seconds", "target_tokens_per_second", "padding_share", "parameters", "steps", "seed", "versions", "data"} <= set(
        report
    )
    assert set(report["scores"]) == {"bleu", "chrf"}
    assert report["scores"]["bleu"]["signature"].startswith("nrefs:1|case:mixed")
    assert report["scores"]["bleu"]["score"] > 30  # it has learned something of this small language
    assert (report["steps"], report["seed"], report["padding_share"]) == (120, 1, 0.0)
    assert report["data"] == {"read": len(small_run.TRAIN), "kept": len(small_run.TRAIN)}
    assert report["versions"]["torch"] == torch.__version__
    assert report["target_tokens_per_second"] > 0 < report["seconds"]
    assert report["parameters"] == sum(tensor.numel() for tensor in weights(trained / "best").values())
    log = small_run.log_of(trained)
    assert [line["step"] for line in log if "event" not in line] == list(range(5, 121, 5))
    assert [line["step"] for line in log if line.get("event") == "evaluate"] == [30, 60, 90, 120]
    assert [line["step"] for line in log if line.get("event") == "sample"] == [30, 60, 90, 120]
    assert all("loss" in line for line in log if "event" not in line)


@pytest.mark.parametrize("name", ["best", "last"])
def test_a_model_folder_vouches_for_its_files(trained: Path, name: str):
    folder = trained / name
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    assert manifest["format"] == 1 and manifest["kind"] == "translator"
    files = {path.name for path in folder.iterdir()}
    assert {"model.toml", "model.safetensors", "README.md", "manifest.json"} <= files
    assert any(one.startswith("tokenizer.") for one in files)
    assert set(manifest["files"]) == files - {"manifest.json"}
    for one, entry in manifest["files"].items():
        assert entry["sha256"] == hashlib.sha256((folder / one).read_bytes()).hexdigest()
        assert entry["bytes"] == (folder / one).stat().st_size
    tables = tomllib.loads((folder / "model.toml").read_text("utf-8"))
    assert tables["model"]["d_model"] == 32 and tables["decoding"]["search"]["size"] == 2
    assert "train.de" in (folder / "README.md").read_text("utf-8")


def test_flags_lie_over_the_file_and_the_file_over_the_preset(corpus: Path, tmp_path: Path):
    dry = ("--dry-run", "--out", tmp_path / "run")
    plain = regard("train", corpus / "small.toml", *dry)
    assert plain.code == 0 and not (tmp_path / "run").exists()
    assert tomllib.loads(plain.out)["train"]["steps"] == 120
    flagged = regard("train", corpus / "small.toml", "--train.steps", "7", "--train.clip=0.5", "--preset", "tiny", *dry)
    merged = tomllib.loads(flagged.out)
    assert (merged["train"]["steps"], merged["train"]["clip"]) == (7, 0.5)
    assert merged["model"]["d_model"] == 32  # the file's
    assert merged["preset"] == "tiny"


def test_the_toml_that_was_merged_makes_the_same_run_again(corpus: Path, tmp_path: Path):
    settings = ("--train.steps", "6", "--train.evaluate_every", "3", *QUIET)
    dry = regard("train", corpus / "small.toml", *settings, "--dry-run")
    (tmp_path / "merged.toml").write_text(dry.out, "utf-8")
    assert regard("train", corpus / "small.toml", *settings, "--out", tmp_path / "one").code == 0
    again = regard("train", tmp_path / "merged.toml", "--out", tmp_path / "two", *QUIET)
    assert again.code == 0, again.error
    assert small_run.log_of(tmp_path / "one") == small_run.log_of(tmp_path / "two")
    assert same(final(tmp_path / "one"), final(tmp_path / "two"))


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run from two files and nothing else but flags that shrink it."""
    folder = tmp_path_factory.mktemp("own")
    pairs = [*small_run.PAIRS, *small_run.PAIRS[:5], ("Nur links.", ""), ("", "Only right.")]
    source = small_run.write(folder, "mine.de", [pair[0] for pair in pairs])
    target = small_run.write(folder, "mine.en", [pair[1] for pair in pairs])
    shrunk = ["--preset", "tiny", "--tokenizer.size", "330", "--model.d_model", "16", "--decoding.max_extra", "3", "--train.device", "cpu"]
    for side in ("encoder", "decoder"):
        shrunk += [f"--model.{side}.layers", "1", f"--model.{side}.heads", "2", f"--model.{side}.feed_forward.d_ff", "32"]
    shrunk += ["--train.steps", "8", "--train.evaluate_every", "4", "--train.precision", "fp32", "--batching.tokens", "300"]
    done = regard("train", "--source", source, "--target", target, "--out", folder / "run", *shrunk, *QUIET)
    assert done.code == 0, done.error
    assert "217 pairs read" in done.error and "5 duplicates" in done.error and "1 empty source" in done.error
    return folder / "run"


def test_from_two_files_the_pairs_are_split_into_the_run(own: Path):
    parts = {}
    for part in ("train", "valid", "test"):
        source, target = ((own / "data" / f"{part}.{side}").read_text("utf-8").splitlines() for side in ("source", "target"))
        parts[part] = set(zip(source, target, strict=True))
        assert len(parts[part]) == len(source) and parts[part] <= set(small_run.PAIRS)  # pairs stay pairs, each once
    assert sum(map(len, parts.values())) == len(small_run.PAIRS)
    assert not parts["train"] & (parts["valid"] | parts["test"])
    assert len(parts["valid"]) == len(parts["test"]) == 10
    merged = tomllib.loads((own / "run.toml").read_text("utf-8"))
    assert merged["data"]["root"] == str(own / "data") and merged["train"]["steps"] == 8
    assert json.loads((own / "report.json").read_text("utf-8"))["scores"]["bleu"]["signature"]


def test_its_toml_reproduces_the_run(own: Path, tmp_path: Path):
    again = regard("train", own / "run.toml", "--out", tmp_path / "again", *QUIET)
    assert again.code == 0, again.error
    assert small_run.log_of(own) == small_run.log_of(tmp_path / "again")
    assert same(final(own), final(tmp_path / "again"))


def test_a_warm_start_begins_where_the_model_was(trained: Path, corpus: Path, tmp_path: Path):
    still = ("--train.optimiser.rate", "0.0", "--train.steps", "2", "--train.evaluate_every", "0", *QUIET)
    warm = regard("train", corpus / "small.toml", "--from", trained, *still, "--out", tmp_path / "warm")
    assert warm.code == 0, warm.error
    assert same(tmp_path / "warm" / "last", trained / "best")  # with a rate of 0 nothing has moved
    assert (tmp_path / "warm" / "tokenizers" / "tokenizer.source.json").read_bytes() == (
        trained / "best" / "tokenizer.source.json"
    ).read_bytes()


def test_a_finished_run_has_nothing_to_resume_and_stays_what_it_is(corpus: Path, tmp_path: Path):
    out = tmp_path / "run"
    assert regard("train", corpus / "small.toml", "--train.steps", "4", "--out", out, *QUIET).code == 0
    before, log = weights(final(out)), small_run.log_of(out)
    again = regard("train", "--resume", out, *QUIET)
    assert again.code == 0, again.error
    after = weights(final(out))
    assert all(torch.equal(before[name], after[name]) for name in before) and small_run.log_of(out) == log
    assert json.loads((out / "report.json").read_text("utf-8"))["steps"] == 4


def test_sigterm_then_resume_is_the_straight_run(corpus: Path, tmp_path: Path):
    settings = ("--train.steps", "200", "--train.log_every", "1", "--train.sample_every", "0", *QUIET)
    stopped = small_run.command("train", corpus / "small.toml", "--out", tmp_path / "cut", *settings)
    process = subprocess.Popen(stopped, env=small_run.environment(), stderr=subprocess.PIPE, text=True)
    log, patience = tmp_path / "cut" / "log.jsonl", time.monotonic() + 60
    while time.monotonic() < patience and not (log.is_file() and log.stat().st_size):
        time.sleep(0.005)
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 75, error
    assert "saved at step" in error and "--resume" in error and "Traceback" not in error
    assert len(small_run.log_of(tmp_path / "cut")) < 200

    resumed = regard("train", "--resume", tmp_path / "cut", *QUIET)
    assert resumed.code == 0, resumed.error
    assert regard("train", corpus / "small.toml", "--out", tmp_path / "straight", *settings).code == 0
    assert small_run.log_of(tmp_path / "cut") == small_run.log_of(tmp_path / "straight")
    for model in ("best", "last"):
        assert same(tmp_path / "cut" / model, tmp_path / "straight" / model)


def test_two_ranks_are_one(corpus: Path, tmp_path: Path):
    settings = ["--train.steps", "6", "--train.log_every", "1", "--train.evaluate_every", "3", *QUIET]
    settings += ["--model.encoder.dropout", "0", "--model.decoder.dropout", "0", "--model.embedding.dropout", "0"]
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "regard.cli"]
    words += ["train", str(corpus / "small.toml"), "--out", str(tmp_path / "two"), *settings]
    two = subprocess.run(words, env=small_run.environment(), capture_output=True, text=True, timeout=110, check=False)
    assert two.returncode == 0, two.stderr
    one = regard("train", corpus / "small.toml", "--out", tmp_path / "one", *settings, "--train.accumulate", "2")
    assert one.code == 0, one.error
    for ours, theirs in zip(small_run.log_of(tmp_path / "two"), small_run.log_of(tmp_path / "one"), strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-5)
        assert ours.get("target_tokens") == theirs.get("target_tokens")
    a, b = weights(final(tmp_path / "two")), weights(final(tmp_path / "one"))
    for name in a:
        assert torch.allclose(a[name], b[name], atol=1e-5), name
    assert json.loads((tmp_path / "two" / "report.json").read_text("utf-8"))["scores"]
