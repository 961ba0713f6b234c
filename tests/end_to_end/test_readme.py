"""Every command of README.md, run in its order on small files: each finds what the one before it made."""

from __future__ import annotations

import glob
import gzip
import lzma
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import small_graph
import small_music
import small_run
import small_sound
from regard.data.music import midi_of

README = Path(__file__).parents[2] / "README.md"
NOT_RUN = {  # the beginning of a line -> why it is not run here
    "make demo": "it is `regard demo`, below",
    "make test": "it is what runs this",
    "torchrun": "two ranks are started in test_cli_train.py",
    "regard demo": "shrunk in test_cli_demo.py, where the whole of it is looked at",
}
TRUNK = {"layers": 1, "heads": 2, "feed_forward.d_ff": 32}
SMALL = {"model.d_model": 16, **{f"model.{side}.{key}": value for side in ("encoder", "decoder") for key, value in TRUNK.items()}}
SMALL_TEXT = {"model.d_model": 16, **{f"model.trunk.{key}": value for key, value in TRUNK.items()}}
SHORT = {"train.steps": 4, "train.evaluate_every": 2, "train.save_every": 2, "train.device": "cpu", "train.precision": "fp32"}
NO_RECIPE = {"preset": "tiny", "tokenizer.size": 330, "decoding.max_extra": 3, "batching.tokens": 300, **SMALL}


def lines() -> list[str]:
    """The lines of the page's shell blocks."""
    blocks = re.findall(r"^```sh\n(.*?)^```", README.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


def shrunk(words: list[str]) -> list[str]:
    """The command with what makes it small; nothing that it says itself is taken away but the number of steps."""
    if words[0] != "train":
        return words
    if "fsdd-transformer" in words:
        body = {f"model.body.encoder.{key}": value for key, value in TRUNK.items()}
        return [*words, *(f"--{name}={value}" for name, value in (SHORT | body | {"model.d_model": 16, "batching.tokens": 900}).items())]
    if "cora-attention" in words:
        return [*words, *(f"--{name}={value}" for name, value in SHORT.items())]
    if "wnut17-tagger" in words or "tinyshakespeare-masked" in words:
        encoder = {f"model.encoder.{key}": value for key, value in TRUNK.items()} | {"model.d_model": 16, "tokenizer.size": 330}
        return [*words, *(f"--{name}={value}" for name, value in (SHORT | encoder).items())]
    if "tinyshakespeare-cpu" in words or "jsb" in words:
        return [*words, *(f"--{name}={value}" for name, value in (SHORT | SMALL_TEXT).items())]
    if "--resume" in words or "--dry-run" in words:
        return [*words, "--progress", "none"]
    kept = [word for place, word in enumerate(words) if "--train.steps" not in words[max(0, place - 1) : place + 1]]
    settings = SHORT | SMALL | (NO_RECIPE if "--source" in words else {})
    return [*kept, *(f"--{name}={value}" for name, value in settings.items() if name not in ("preset",) or "--preset" not in kept)]


def run(line: str) -> small_run.Ended:
    """One line of the shell: words and globs, what is piped or redirected into it, and the file that takes what comes out."""
    words, given, into = shlex.split(line, comments=True), b"", None
    if "|" in words:
        assert words[0] == "echo", f"only an echo is piped: {line}"
        given, words = f"{words[1]}\n".encode(), words[words.index("|") + 1 :]
    for sign in ("<", ">"):
        if sign in words:
            place = words.index(sign)
            file = Path(words[place + 1])
            del words[place : place + 2]
            given, into = (file.read_bytes(), into) if sign == "<" else (given, file)
    words = [found for word in words[1:] for found in (sorted(glob.glob(word)) or [word])]
    ended = small_run.regard(*shrunk(words), stdin=given)
    if into:
        into.write_text(ended.out, "utf-8")
    return ended


def with_pictures_and_tags(folder: Path) -> None:
    """Handwritten digits and a scene of them, and texts whose words have labels, as the recipes ask for them."""
    rows = np.random.default_rng(3).integers(0, 17, (1797, 65))
    rows[:, -1] = np.arange(len(rows)) % 10
    (folder / "digits.csv.gz").write_bytes(gzip.compress("".join(",".join(map(str, row)) + "\n" for row in rows).encode()))
    image = pytest.importorskip("PIL.Image", reason="Pillow, of the vision extra, reads PNG")
    image.fromarray((15 * rows[:4, :64]).astype(np.uint8).reshape(16, 16)).save(folder / "scene.png")
    words = [word for pair in small_run.PAIRS for word in (*pair[0].split(), "")]
    tagged = "".join(f"{word}\t{'B-person' if word.istitle() else 'O'}\n" if word else "\n" for word in words)
    for name in ("wnut17train.conll.xz", "emerging.dev.conll.xz", "emerging.test.annotated.xz"):
        (folder / name).write_bytes(lzma.compress(tagged.encode()))


def test_every_command_of_the_page_works_in_its_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    small_run.corpus(tmp_path)
    pairs = small_run.PAIRS
    for name, some in {"mine": [*pairs, *pairs[:5]], "sentences": pairs[:5], "test": pairs[5:12]}.items():
        for side, language in enumerate(("de", "en")):
            small_run.write(tmp_path, f"{name}.{language}", [pair[side] for pair in some])
    small_run.write(tmp_path, "theirs.en", [pair[1].replace("the", "a") for pair in pairs[5:12]])
    small_run.write(tmp_path, "input.txt", [side for pair in pairs for side in (*pair, "")])
    small_graph.write(tmp_path / "cora.npz")
    small_sound.archive(tmp_path / "recordings.tar.xz", small_sound.digits(9))
    small_music.write(tmp_path / "Jsb16thSeparated.json", voices=4)
    (tmp_path / "begun.mid").write_bytes(midi_of(np.array(small_music.pieces(1, voices=4)[0]), steps=4))
    (tmp_path / "one.wav").write_bytes(small_sound.wav(small_sound.tone(300)))
    with_pictures_and_tags(tmp_path)
    (tmp_path / "DIR").symlink_to(tmp_path)
    (tmp_path / "small.toml").rename(tmp_path / "mine.toml")
    monkeypatch.chdir(tmp_path)
    ran = 0
    for line in lines():
        if any(line.startswith(start) for start in NOT_RUN):
            continue
        assert "regard " in line, f"neither a command of ours nor named in NOT_RUN: {line}"
        ended = run(line)
        assert ended.code == (3 if "regard check" in line else 0), f"{line}\n{ended.error}"
        assert "Traceback" not in ended.error
        assert ended.out or "--to " in line or "train " in line, f"{line} says nothing"
        ran += 1
    assert ran >= 20
    assert len((tmp_path / "sentences.en").read_text("utf-8").splitlines()) == 5
    assert {"mine", "small", "tuned"} <= {path.name for path in (tmp_path / "runs").iterdir()}


def test_nothing_is_excused_that_is_not_there():
    assert all(any(line.startswith(start) for line in lines()) for start in NOT_RUN)


@pytest.mark.parametrize("link", re.findall(r"\]\(((?!https?:)[^)#]+)\)", README.read_text("utf-8")))
def test_links_lead_somewhere(link: str):
    assert (README.parent / link).exists()


def test_the_python_of_the_page_runs(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "demo").symlink_to(trained)
    names: dict = {"__name__": "readme"}
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert names["trace"] and names["out"].shape == (2, 8, 50, 64)
