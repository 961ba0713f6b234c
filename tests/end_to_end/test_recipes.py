"""Every recipe of the package, shrunk, through the real command line, over small files that bear the names it asks for."""

from __future__ import annotations

import json
import lzma
import re
import struct
import tomllib
import zlib
from pathlib import Path

import numpy as np
import pytest

import small_graph
import small_handbook
import small_music
import small_run
import small_sound
from regard import recipes
from small_run import regard

NAMES = [name for name, _ in recipes.listed()]
SHRUNK = {
    "model.d_model": 16,
    "train.steps": 3,
    "train.seconds": 0.0,
    "train.epochs": 0.0,
    "train.log_every": 1,
    "train.evaluate_every": 2,
    "train.save_every": 2,
    "train.device": "cpu",
    "train.precision": "fp32",
    "batching.tokens": 300,
}
TRUNKS = {
    "transformer": {"layers": 1, "heads": 2, "feed_forward.d_ff": 32},
    "recurrent": {"layers": 1, "width": 16},
    "convolutional": {"layers": 2, "width": 24},
}


def shrunk(tables: dict) -> dict[str, object]:
    """The settings that make a run of this recipe small."""
    model = tables.get("model", {})
    if model.get("kind") == "graph-classifier":
        return {key: value for key, value in SHRUNK.items() if key != "model.d_model"}
    if model.get("kind") == "language-model":
        return SHRUNK | {f"model.trunk.{key}": value for key, value in TRUNKS[model["trunk"]["kind"]].items()} | {"train.sample_every": 2}
    if model.get("kind") in ("masked-language-model", "tagger"):
        pieces = {"tokenizer.size": 330, "train.sample_every": 2}
        return SHRUNK | pieces | {f"model.encoder.{key}": value for key, value in TRUNKS["transformer"].items()}
    if model.get("kind") == "image-captioner":
        trunks = {"encoder": "transformer", "decoder": model["decoder"]["kind"]}
        sizes = {f"model.{side}.{key}": value for side, kind in trunks.items() for key, value in TRUNKS[kind].items()}
        return SHRUNK | sizes | ({"model.decoder.output": 16} if trunks["decoder"] == "recurrent" else {})
    if model.get("kind") == "pointer-network":
        return SHRUNK | {f"model.{side}.width": 16 for side in ("encoder", "decoder")} | {"decoding.search.size": 2}
    if model.get("kind") == "text-classifier":
        return SHRUNK | {f"model.encoder.{key}": value for key, value in TRUNKS["transformer"].items()}
    if model.get("kind", "translator") != "translator":
        small = TRUNKS["transformer"] if "encoder" in model["body"] else {}
        held = {"data.hold_out": 5} if tables["data"].get("hold_out") else {}
        return SHRUNK | {f"model.body.encoder.{key}": value for key, value in small.items()} | held
    trunks = {side: TRUNKS[model.get(side, {}).get("kind", "transformer")] for side in ("encoder", "decoder")}
    sizes = {f"model.{side}.{key}": value for side, small in trunks.items() for key, value in small.items()}
    beam = {} if tables["decoding"]["search"] == "greedy" else {"decoding.search.size": 2}
    pieces = {"tokenizer.size": 330} if tables["tokenizer"]["kind"] != "word" else {}
    return SHRUNK | pieces | {"decoding.max_extra": 3} | sizes | beam


def packed(path: Path, text: str | bytes) -> None:
    """The file, compressed as its ending says."""
    data = text.encode() if isinstance(text, str) else text
    if path.suffix == ".gz":
        squeeze = zlib.compressobj(wbits=31)
        data = squeeze.compress(data) + squeeze.flush()
    if path.suffix == ".xz":
        data = lzma.compress(data)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def idx(numbers: np.ndarray) -> bytes:
    """Bytes in the form of MNIST's files."""
    return struct.pack(f">4B{numbers.ndim}I", 0, 0, 8, numbers.ndim, *numbers.shape) + numbers.astype(np.uint8).tobytes()


def files(tables: dict, folder: Path) -> None:
    """Small corpora under the names that the recipe asks for."""
    parts = {"train": small_run.TRAIN, "valid": small_run.VALID, "test": small_run.TEST}
    for part, pairs in parts.items():
        for corpus in tables["data"].get(part, []):
            corpus = corpus.get("pictures", corpus)
            match corpus["kind"]:
                case "lines":
                    for side, key in enumerate(("source", "target")):
                        packed(folder / corpus[key], "".join(pair[side] + "\n" for pair in pairs))
                case "tsv":
                    packed(folder / corpus["path"], "".join("\t".join(pair) + "\n" for pair in pairs))
                case "idx":
                    random = np.random.default_rng(3)
                    packed(folder / corpus["images"], idx(random.integers(0, 256, (20, 28, 28))))
                    packed(folder / corpus["labels"], idx(np.arange(20) % 10))
                case "table":
                    rows = np.random.default_rng(3).integers(0, 17, (1460, 65))
                    rows[:, -1] = np.arange(len(rows)) % 10
                    packed(folder / corpus["path"], "".join(",".join(map(str, row)) + "\n" for row in rows))
                case "graph":
                    small_graph.write(folder / corpus["path"])
                case "text":
                    packed(folder / corpus["path"], "\n\n".join(f"{source}:\n{target}" for source, target in small_run.TRAIN))
                case "tagged":
                    words = (word for pair in small_run.TRAIN for word in (*pair[0].split(), ""))
                    lines = (f"{word}\t{'B-person' if word[0].isupper() else 'O'}\n" if word else "\n" for word in words)
                    packed(folder / corpus["path"], "".join(lines))
                case "recordings":
                    small_sound.archive(folder / corpus["path"], small_sound.digits(9))
                case "labelled":
                    lines = [f"{place % 2}\t{source}\n" for place, (source, _) in enumerate(pairs)]
                    packed(folder / corpus["path"], "".join(["label\tsentence\n"] * corpus["header"] + lines))
                case "music":
                    small_music.write(folder / corpus["path"], voices=tables["tokenizer"]["voices"], steps=70)
                case "sections":
                    packed(folder / corpus["path"], "".join(f"{row}\n" for row in small_handbook.rows()))
                case "points" | "strings" | "listops":
                    pass  # made, not read
                case kind:
                    pytest.fail(f"make files of the kind {kind} here")


def with_few_points(name: str, tables: dict, folder: Path) -> str | Path:
    """The recipe; one whose corpora are made as large as it says, as a copy that says less."""
    if tables["data"]["train"][0]["kind"] not in ("points", "strings", "listops", "scenes"):
        return name
    few = re.sub(r"count = \d+", "count = 12", recipes.find(name).read_text("utf-8"))
    few = few.replace('"listops", count = 12', '"listops", sizes = [4, 60], count = 200')  # with every label
    (folder / "few.toml").write_text(few, "utf-8")
    return folder / "few.toml"


@pytest.mark.parametrize("name", NAMES)
def test_each_recipe(name: str, tmp_path: Path):
    tables = tomllib.loads(recipes.find(name).read_text("utf-8"))
    files(tables, tmp_path / "data")
    settings = [f"--{key}={value}" for key, value in shrunk(tables).items()]
    recipe = with_few_points(name, tables, tmp_path)
    done = regard("train", recipe, "--data-root", tmp_path / "data", "--out", tmp_path / "run", *settings, "--progress", "none")
    assert done.code == 0, done.error
    report = json.loads((tmp_path / "run" / "report.json").read_text("utf-8"))
    assert report["steps"] == 3 and list(report["scores"]) == scores_of(tables)
    merged = tomllib.loads((tmp_path / "run" / "run.toml").read_text("utf-8"))
    assert merged["train"]["optimiser"]["kind"] == tables["train"]["optimiser"]["kind"]  # shrunk, but the same recipe
    if "bleu" in report["scores"] and tables.get("model", {}).get("kind", "translator") == "translator":
        out = regard("translate", tmp_path / "run", "--beam", "1", stdin="Der Hund sieht Brot.\n\nEin Wort\n")
        assert out.code == 0 and out.out.count("\n") == 3 and out.out.split("\n")[1] == ""
    if tables.get("model", {}).get("kind") == "masked-language-model":
        out = regard("generate", tmp_path / "run", "--prompt", "Der <mask> sieht Brot.")
        assert out.code == 0 and out.out.count("\n") == 1 and "<mask>" not in out.out
    elif "perplexity" in report["scores"]:
        out = regard("generate", tmp_path / "run", "--prompt", "Der Hund:", "--max-length", "300", "--temperature", "0.8")
        assert out.code == 0 and out.out.startswith("Der Hund:") and len(out.out) > 300


def scores_of(tables: dict) -> list[str]:
    """What the report of this recipe has."""
    match tables.get("model", {}).get("kind", "translator"), tables.get("model", {}).get("output"):
        case "masked-language-model", _:
            return ["loss", "perplexity", "accuracy"]
        case "image-captioner", _:
            return ["accuracy", "bleu"]
        case "tagger", _:
            return ["accuracy", "f1"]
        case "translator", _:
            return tables.get("metrics", ["bleu", "chrf", "ter"])
        case "language-model", _ if tables.get("tokenizer", {}).get("kind") == "pitches":
            return ["note-nll", "copy-floor"]
        case "language-model", _:
            return ["loss", "perplexity", "word-perplexity", "bits-per-character"]
        case "pointer-network", _:
            hull = tables["data"]["train"][0]["problem"] == "hull"
            return ["accuracy", "area"] if hull else ["accuracy", "tour-length", "tour-ratio"]
        case _, "ctc":
            return ["accuracy", "cer"]
        case _:
            return ["accuracy"]


@pytest.mark.parametrize("name", NAMES)
def test_each_recipe_says_what_it_is_and_what_was_published(name: str):
    first, second = recipes.find(name).read_text("utf-8").splitlines()[:2]
    assert first.startswith("# ") and len(first) < 140
    assert second.startswith("# Published") or "by the very settings of" in first, "say the published figure, or that there is none"


def test_they_are_listed_and_shown():
    listed = regard("recipes").out.splitlines()
    assert [line.split()[0] for line in listed] == NAMES
    assert regard("recipes", NAMES[0]).out == recipes.find(NAMES[0]).read_text("utf-8")
