"""Music from a file of pieces, or from MIDI files, to a MIDI file that goes on with another one, through the real command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import regard
import small_music
from regard.data.music import midi_of, piece_of_midi
from regard.models.tensors import read_tensors
from small_run import regard as command

RECIPE = """
[data]
train = [{ kind = "music", path = "songs.json", part = "train" }]
valid = [{ kind = "music", path = "songs.json", part = "valid" }]
test = [{ kind = "music", path = "songs.json", part = "test" }]

[tokenizer]
kind = "pitches"
voices = 2

[model]
kind = "language-model"
d_model = 32
embedding = { positions = "none", dropout = 0.0 }

[model.trunk]
layers = 2
heads = 2
placement = "pre"
dropout = 0.0
own = { bias = { kind = "relative", reach = 12, sides = "past" } }
feed_forward = { d_ff = 64 }

[batching]
tokens = 256
max_length = 16

[train]
steps = 90
device = "cpu"
precision = "fp32"
loss = { smoothing = 0.0 }
optimiser = { kind = "adamw", rate = 5e-3 }
schedule = { kind = "constant" }
log_every = 10
evaluate_every = 30
save_every = 30
"""

OWN = 'own = { bias = { kind = "relative", reach = 12, sides = "past" } }'


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a model that learned scales. Read-only by agreement."""
    folder = tmp_path_factory.mktemp("music")
    small_music.write(folder / "songs.json")
    (folder / "music.toml").write_text(RECIPE)
    done = command("train", folder / "music.toml", "--out", folder / "run", "--progress", "plain")
    assert done.code == 0, done.error
    assert "learned from 16 of 16 examples" in done.error
    return folder / "run"


def test_it_knows_more_than_copying(learned: Path):
    scores = json.loads((learned / "report.json").read_text())["scores"]
    assert list(scores) == ["note-nll", "copy-floor"]
    assert scores["note-nll"]["score"] < 0.5 < scores["copy-floor"]["score"]
    assert scores["note-nll"]["signature"] == "notes:96|voices:2|steps:4|rests:counted|repeats:counted|rows:16"


def test_it_goes_on_with_a_midi_file_and_writes_one(learned: Path, tmp_path: Path):
    song = np.array(small_music.pieces(1)[0])
    (tmp_path / "begun.mid").write_bytes(midi_of(song[:6], steps=4))
    words = ["generate", learned, "--prompt", tmp_path / "begun.mid", "--beam", "1", "--max-length", "12"]
    done = command(*words, "--midi", tmp_path / "song.mid")
    assert done.code == 0 and done.out.strip() == str(tmp_path / "song.mid")
    found = piece_of_midi((tmp_path / "song.mid").read_bytes(), voices=2, steps=4, where="x")
    assert found[:6].tolist() == song[:6].tolist() and found.tolist() == song.tolist()
    assert regard.load(learned).generate([command(*words).out.split("\n")[0]], max_length=1)
    assert command(*words).out.strip() == " ".join(map(str, song.flatten()))
    drawn = command("generate", learned, "--count", "2", "--max-length", "9", "--midi", tmp_path / "some.midi", "--seed", "3")
    assert drawn.code == 0, drawn.error
    assert drawn.out.split() == [str(tmp_path / "some-1.midi"), str(tmp_path / "some-2.midi")]
    assert all(Path(name).read_bytes()[:4] == b"MThd" for name in drawn.out.split())


def test_from_midi_files_in_a_folder_in_constant_shapes_and_resumed(learned: Path, tmp_path: Path):
    (tmp_path / "songs").mkdir()
    for number, piece in enumerate(small_music.pieces(9)):
        (tmp_path / "songs" / f"{number}.mid").write_bytes(midi_of(np.array(piece), steps=4))
    lines = RECIPE.strip().split("\n")
    lines[1:4] = ['train = [{ kind = "music", path = "songs" }]', "hold_out = 2"]
    text = "\n".join(lines).replace("voices = 2", "voices = 2\ntranspose = 2").replace(OWN, "")
    text = text.replace("max_length = 16", 'layout = "padded"\nstatic = true').replace('positions = "none",', "")
    (tmp_path / "music.toml").write_text(text)
    for name, steps in (("straight", 9), ("run", 5)):
        done = command("train", tmp_path / "music.toml", "--out", tmp_path / name, "--progress", "none", "--train.steps", steps)
        assert done.code == 0, done.error
    merged = tmp_path / "run" / "run.toml"
    merged.write_text(merged.read_text().replace("steps = 5\n", "steps = 9\n"))
    done = command("train", "--resume", tmp_path / "run", "--force", "--progress", "none")
    assert done.code == 0, done.error
    straight, resumed = (read_tensors(tmp_path / run / "last" / "model.safetensors") for run in ("straight", "run"))
    assert all(straight[name].equal(resumed[name]) for name in straight)
    assert json.loads((tmp_path / "run" / "report.json").read_text())["data"] == {"read": 7, "kept": 7}


def test_what_is_wrong_is_one_line_that_names_the_file(learned: Path, tmp_path: Path):
    whole = midi_of(np.array(small_music.pieces(1)[0]), steps=4)
    (tmp_path / "cut.mid").write_bytes(whole[:-9])
    (tmp_path / "text.mid").write_text("no music")
    (tmp_path / "still.mid").write_bytes(midi_of(np.full((4, 2), -1), steps=4))
    (tmp_path / "songs").mkdir()
    (tmp_path / "songs" / "cut.mid").write_bytes(whole[:-9])
    xl = 'own = { kind = "transformer-xl" }'
    recipes = {
        "folder": RECIPE.replace('"songs.json", part = "train"', '"songs"'),
        "voices": RECIPE.replace("voices = 2", "voices = 3"),
        "part": RECIPE.replace('"valid"', '"dev"'),
        "held": RECIPE.replace(RECIPE.split("\n")[3], "hold_out = 16"),
        "static": RECIPE.replace("max_length = 16", "static = true"),
        "memory": RECIPE.replace(OWN, xl),
        "text": RECIPE.replace('kind = "pitches"\nvoices = 2', 'kind = "byte"'),
        "none": RECIPE.replace("voices = 2", "voices = 0"),
    }
    small_music.write(tmp_path / "songs.json")
    for name, text in recipes.items():
        (tmp_path / f"{name}.toml").write_text(text)
    train = lambda name: ["train", tmp_path / f"{name}.toml", "--out", tmp_path / f"run-{name}", "--progress", "none"]
    for words, code, says in (
        (["generate", learned, "--prompt", tmp_path / "cut.mid"], 3, "cut.mid: it is cut short"),
        (["generate", learned, "--prompt", tmp_path / "text.mid"], 3, "text.mid: it is no MIDI file"),
        (["generate", learned, "--prompt", tmp_path / "still.mid"], 3, "still.mid: there is no note"),
        (["generate", learned, "--prompt", tmp_path / "none.mid"], 3, "none.mid"),
        (["generate", learned, "--midi", tmp_path / "a.wav"], 2, "does not end in .mid"),
        (["generate", learned, "--midi", tmp_path / "x" / "a.mid"], 2, "no such folder"),
        (["generate", learned, "--midi", tmp_path / "a.mid", "--max-length", "1"], 3, "not one whole step"),
        (train("folder"), 3, "songs/cut.mid: it is cut short"),
        (train("voices"), 3, "songs.json, piece 1: a piece is a list of steps with 3 pitches"),
        (train("part"), 3, "there is no part dev"),
        (train("held"), 3, "16 cannot be held out"),
        (train("static"), 2, 'set layout = "padded"'),
        (train("memory"), 2, "pieces are read whole"),
        (train("text"), 2, "a language model cannot read a corpus of kind music"),
        (train("none"), 2, "0 voices"),
    ):
        done = command(*words)
        assert done.code == code and says in done.error and done.error.count("\n") == 1, (words, done.error)
