"""Pictures and recordings from files to a scored classifier, through the real command line: trained, resumed, asked, and refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import small_run
import small_sound
from regard.look.trace import load
from regard.models.tensors import read_tensors

SIZE, CLASSES = 8, 3

PICTURES = """
[data]
train = [{ kind = "arrays", path = "train.npz" }]
test = [{ kind = "arrays", path = "test.npz" }]
hold_out = 30

[model]
kind = "image-classifier"
d_model = 16

[model.body]
kind = "patches"
embedding = { patch = 4 }
encoder = { layers = 1, heads = 2, placement = "pre", dropout = 0.0, feed_forward = { d_ff = 32 } }

[batching]
tokens = 24

[train]
steps = 60
device = "cpu"
precision = "fp32"
optimiser = { kind = "adamw", rate = 1e-2 }
schedule = { kind = "constant" }
log_every = 10
evaluate_every = 20
save_every = 25
"""

SPEECH = """
[data]
train = [{ kind = "recordings", path = "all.tar.xz", label = "^(.)_", only = "^[ag]_.*_[0-6]$", spelled = ["a=ab", "g=ba"] }]
valid = [{ kind = "recordings", path = "all.tar.xz", label = "^(.)_", only = "^[ag]_.*_7$", spelled = ["a=ab", "g=ba"] }]
test = [{ kind = "recordings", path = "all.tar.xz", label = "^(.)_", only = "^[ag]_.*_[89]$", spelled = ["a=ab", "g=ba"] }]

[model]
kind = "speech"
d_model = 16
output = "OUTPUT"
features = { rate = 8000, mels = 20, normalise = "none" }
body = { kind = "transformer", encoder = { layers = 1, heads = 2, placement = "pre", dropout = 0.0, feed_forward = { d_ff = 32 } } }

[batching]
tokens = 300

[train]
steps = 80
device = "cpu"
precision = "fp32"
optimiser = { kind = "adamw", rate = 5e-3 }
schedule = { kind = "constant" }
log_every = 20
evaluate_every = 40
loss = { smoothing = 0.0 }
"""


def bars(count: int, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A bar that lies, one that stands, and none, in noise."""
    random = np.random.default_rng(seed)
    pixels = random.integers(0, 90, (count, SIZE, SIZE))
    labels = np.arange(count) % CLASSES
    for picture, label in zip(pixels, labels):
        place = random.integers(1, SIZE - 1)
        if label == 0:
            picture[place] = 255
        elif label == 1:
            picture[:, place] = 255
    return pixels.astype(np.uint8), labels


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    for name, count, seed in (("train", 240, 1), ("test", 60, 2)):
        images, labels = bars(count, seed=seed)
        np.savez(folder / f"{name}.npz", images=images, labels=labels)
    small_run.write(folder, "bars.toml", PICTURES.strip().split("\n"))
    return folder


@pytest.fixture(scope="module")
def trained(pictures: Path) -> Path:
    out = pictures / "run"
    ended = small_run.regard("train", pictures / "bars.toml", "--out", out, "--progress", "none")
    assert ended.code == 0, ended.error
    assert "accuracy" in ended.error
    return out


def test_a_vision_transformer_from_files_to_a_score(trained: Path):
    report = json.loads((trained / "report.json").read_text())
    assert report["scores"]["accuracy"]["score"] > 85
    assert report["scores"]["accuracy"]["signature"] == "accuracy|n:60"
    assert report["data"] == {"read": 240, "held out": 30, "kept": 210}
    evaluated = [line for line in small_run.log_of(trained) if line.get("event") == "evaluate"]
    assert len(evaluated) == 3 and all({"loss", "accuracy"} <= line.keys() for line in evaluated)


def test_a_stopped_run_goes_on_to_the_same_bits(pictures: Path, trained: Path):
    out = pictures / "again"
    small_run.regard("train", pictures / "bars.toml", "--out", out, "--progress", "none", "--train.steps", "25")
    run = out / "run.toml"
    run.write_text(run.read_text().replace("steps = 25", "steps = 60"))
    ended = small_run.regard("train", "--resume", out, "--force", "--progress", "none")
    assert ended.code == 0, ended.error
    one, other = (read_tensors(folder / "checkpoints" / "step-60" / "model.safetensors") for folder in (trained, out))
    assert all((one[name] == other[name]).all() for name in one)


def test_a_picture_is_looked_into(trained: Path, tmp_path: Path):
    """Attention over the picture: a trace that holds it, a figure from the class and from a patch, the walk of a patch."""
    image = pytest.importorskip("PIL.Image", reason="Pillow, of the vision extra, reads PNG")
    pixels = bars(2, seed=5)[0][1]
    image.fromarray(pixels).save(tmp_path / "a.png")
    look = ("look", trained, tmp_path / "a.png")
    done = small_run.regard(*look, "--save", tmp_path / "a.trace", "--figure", tmp_path / "a.svg", "--export", tmp_path / "a.html")
    assert done.code == 0, done.error
    trace = load(tmp_path / "a.trace")
    assert [token.text for token in trace.source] == ["class", "0,0", "0,1", "1,0", "1,1"] and not trace.target
    assert (trace.pictures[0].unpacked()[..., 0] == pixels).all() and trace.pictures[0].grid == (2, 2)
    told = small_run.regard("classify", trained, tmp_path / "a.png", "--top", "3").out.rstrip("\n").split("\t")[1:]
    assert [f"{one.text} {np.exp(one.log_prob):.4f}" for one in trace.answers] == told
    drawn = (tmp_path / "a.svg").read_text()
    assert drawn.count("<rect") == 1 + 3 * SIZE * SIZE and "what class looks at" in drawn  # the ground, the picture, two heads
    weights = trace.weights("enc-self", 0)[0, 3, 1:].reshape(2, 2)
    one = small_run.regard(*look, "--figure", tmp_path / "b.svg", "--from", "1,0", "--heads", "0")
    assert one.code == 0, one.error
    assert f"head 0, at most {weights.max():.2f}" in (tmp_path / "b.svg").read_text()
    assert "there is no patch or word 7,7" in small_run.regard(*look, "--figure", tmp_path / "b.svg", "--from", "7,7").error
    walked = json.loads(small_run.regard(*look, "--walk", "1,0", "--json").out)
    stages = {stage["name"]: stage for stage in walked["stages"]}
    assert np.allclose(
        np.array(stages["patches.token"]["values"]) + stages["patches.position"]["values"], stages["patches.sum"]["values"], atol=1e-5
    )
    assert stages["encoder.0.own.weights"]["columns"][0] == "class"


def test_classify_names_each_picture(trained: Path, tmp_path: Path):
    image = pytest.importorskip("PIL.Image", reason="Pillow, of the vision extra, reads PNG")
    images, labels = bars(9, seed=5)
    files = [tmp_path / f"{place}.png" for place in range(9)]
    for file, pixels in zip(files, images):
        image.fromarray(pixels).save(file)
    ended = small_run.regard("classify", trained, *files, "--json", "--top", "2")
    assert ended.code == 0, ended.error
    lines = [json.loads(line) for line in ended.out.splitlines()]
    assert [line["file"] for line in lines] == [str(file) for file in files]
    right = sum(line["labels"][0]["label"] == str(label) for line, label in zip(lines, labels))
    assert right >= 7
    assert all(len(line["labels"]) == 2 and line["labels"][0]["probability"] >= line["labels"][1]["probability"] for line in lines)
    by_name = small_run.regard("classify", trained, stdin="\n".join(map(str, files)))
    assert [line.split("\t")[0] for line in by_name.out.splitlines()] == [str(file) for file in files]


def test_what_a_classifier_cannot_do_is_said(trained: Path, pictures: Path, tmp_path: Path):
    ended = small_run.regard("translate", trained, stdin="Hallo\n")
    assert (ended.code, ended.out) == (2, "") and "is of kind image-classifier, and no translator" in ended.error
    ended = small_run.regard("classify", trained, tmp_path / "absent.png")
    assert ended.code == 3 and "absent.png" in ended.error
    text = PICTURES.replace('kind = "arrays", path = "train.npz"', 'kind = "tsv", path = "bars.toml"')
    recipe = small_run.write(pictures, "wrong.toml", text.strip().split("\n"))
    ended = small_run.regard("train", recipe, "--out", tmp_path / "no", "--progress", "none")
    assert ended.code == 2 and "cannot read a corpus of kind tsv" in ended.error
    ended = small_run.regard("train", pictures / "bars.toml", "--out", tmp_path / "no", "--train.score", "bleu", "--progress", "none")
    assert ended.code == 2 and "bleu is no score of models of kind image-classifier" in ended.error


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("classify {run} absent.png", 3, "absent.png: there is no such file; check the path"),
        ("classify {run} short.png", 3, "short.png: the picture is damaged or cut short (image file is truncated); fetch the file again"),
        ("classify {run} nothing.png", 3, "nothing.png: it is no picture that can be read; give a PNG or JPEG"),
        ("classify {run} text.png", 3, "text.png: it is no picture that can be read; give a PNG or JPEG"),
        ("classify {run} fine.png --top 0", 2, "--top 0 shows nothing; take 1 or more"),
        ("train bars.toml --data.hold_out 900", 3, "data.hold_out: 900 cannot be held out of 240; hold out fewer"),
        ("train bars.toml --data.hold_out -1", 2, "data: hold_out and workers cannot be negative; take 0 or more"),
        ("train unlike.toml", 3, "labels: 4 labels for 5 pictures"),
        ("train unnamed.toml", 3, "it has no array 'labels'; give it images, labels"),
        ("train text.toml", 3, "it is no whole .npz file of plain arrays (ValueError); fetch the file again"),
        (
            "train bars.toml --model.body.embedding.patch 3",
            2,
            "patches of 3 x 3 do not cover a picture of 8 x 8 pixels evenly; scale or cut",
        ),
    ],
)
def test_bad_pictures_are_one_line(
    trained: Path, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, code: int, says: str
):
    image = pytest.importorskip("PIL.Image", reason="Pillow, of the vision extra, reads PNG")
    monkeypatch.chdir(tmp_path)
    images, labels = bars(5, seed=3)
    image.fromarray(images[0]).save("fine.png")
    for name, content in {"short": Path("fine.png").read_bytes()[:60], "nothing": b"", "text": b"hello"}.items():
        Path(f"{name}.png").write_bytes(content)
    np.savez("unlike.npz", images=images, labels=labels[:4])
    np.savez("unnamed.npz", images=images)
    Path("text.npz").write_bytes(b"hello")
    for name in ("bars", "unlike", "unnamed", "text"):
        corpus = f"{pictures}/train.npz" if name == "bars" else f"{name}.npz"
        text = PICTURES.replace("train.npz", corpus).replace("test.npz", f"{pictures}/test.npz")
        small_run.write(tmp_path, f"{name}.toml", text.strip().split("\n"))
    given = words.format(run=trained).split()
    ended = small_run.regard(*given, *(("--out", "out", "--progress", "none") if given[0] == "train" else ()))
    assert ended.code == code and not ended.out, ended.error
    assert ended.error.startswith("regard: ") and ended.error.count("\n") == 1 and says in ended.error, ended.error
    assert not Path("out").exists()


def test_paths_that_come_by_standard_input(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    image = pytest.importorskip("PIL.Image", reason="Pillow, of the vision extra, reads PNG")
    monkeypatch.chdir(tmp_path)
    images, _ = bars(2, seed=3)
    names = [b"a.png", b"sch\xf6n.png"]  # a name is bytes, whatever its writer took them for
    for name, pixels in zip(names, images):
        image.fromarray(pixels).save(b"./" + name, format="PNG")
    ended = small_run.regard("classify", trained, stdin=b"\n".join([names[0], b"", names[1]]) + b"\n")
    assert ended.code == 0 and ended.out.count("\n") == 2, ended.error


@pytest.mark.parametrize("output", ["label", "ctc"])
def test_recordings_from_an_archive_to_a_score(output: str, tmp_path: Path):
    small_sound.archive(tmp_path / "all.tar.xz", small_sound.digits(10, names="abcdefg"))
    recipe = small_run.write(tmp_path, "sounds.toml", SPEECH.replace("OUTPUT", output).strip().split("\n"))
    ended = small_run.regard("train", recipe, "--out", tmp_path / "run", "--progress", "none")
    assert ended.code == 0, ended.error
    scores = json.loads((tmp_path / "run" / "report.json").read_text())["scores"]
    assert scores["accuracy"]["score"] > 70
    assert ("cer" in scores) == (output == "ctc")
    sound = tmp_path / "one.wav"
    sound.write_bytes(small_sound.wav(small_sound.tone(200, noise=0.05, seed=3)))
    ended = small_run.regard("classify", tmp_path / "run", sound)
    assert ended.code == 0 and ended.out.startswith(f"{sound}\tab ")
