"""Sentences for pictures, through the real command line: trained on scenes, asked, looked into; and the laws of its decoder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import small_run
from regard.data.caption_batch import CaptionBatch
from regard.decode.beam import Beam
from regard.decode.describe import describe
from regard.decode.sample import Greedy
from regard.look.trace import load
from regard.models.build import build
from regard.models.captioner import Captioner
from regard.models.configs import ImageCaptioner
from regard.nn.embed_patches import PatchEmbedding
from regard.nn.feedforward import FeedForward
from regard.nn.trunk_convolutional import Convolutional
from regard.nn.trunk_recurrent import Bahdanau, NoAttention, Recurrent
from regard.nn.trunk_transformer import Transformer

RECIPE = """
[data]
train = [{ kind = "scenes", count = 400, seed = 1, grid = [1, 2], names = ["bar", "post"], pictures = { kind = "arrays", path = "a.npz" } }]
valid = [{ kind = "scenes", count = 40, seed = 2, grid = [1, 2], names = ["bar", "post"], pictures = { kind = "arrays", path = "a.npz" } }]
test = [{ kind = "scenes", count = 60, seed = 3, grid = [1, 2], names = ["bar", "post"], pictures = { kind = "arrays", path = "a.npz" } }]

[tokenizer]
kind = "word"

[model]
kind = "image-captioner"
d_model = 32
patches = { patch = 2, dropout = 0.0 }
encoder = { layers = 1, heads = 2, placement = "pre", dropout = 0.0, feed_forward = { d_ff = 32 } }
decoder = { kind = "transformer", layers = 1, heads = 2, placement = "pre", dropout = 0.0, feed_forward = { d_ff = 32 } }
embedding = { dropout = 0.0 }

[batching]
tokens = 256
max_length = 16

[train]
steps = 250
device = "cpu"
precision = "fp32"
optimiser = { kind = "adamw", rate = 4e-3 }
schedule = { kind = "constant" }
loss = { smoothing = 0.0 }
log_every = 50
evaluate_every = 50

[decoding]
search = "greedy"
"""
SMALL = Transformer(layers=2, heads=2, dropout=0.0, feed_forward=FeedForward(d_ff=20))
DECODERS = {
    "transformer": SMALL,
    "attending": Recurrent(attention=Bahdanau(), dropout=0.0),
    "blind": Recurrent(attention=NoAttention(every_step=True), dropout=0.0),
    "convolutional": Convolutional(layers=2, dropout=0.0),
}


def drawn() -> np.ndarray:
    """A bar that lies and a post that stands, in four by four pixels."""
    pictures = np.zeros((2, 4, 4), np.uint8)
    pictures[0, 1], pictures[1, :, 2] = 255, 255
    return pictures


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scenes")
    np.savez(folder / "a.npz", images=drawn(), labels=np.arange(2))
    small_run.write(folder, "scenes.toml", RECIPE.strip().split("\n"))
    done = small_run.regard("train", folder / "scenes.toml", "--out", folder / "run", "--progress", "none")
    assert done.code == 0, done.error
    assert "regard classify" in done.error
    return folder / "run"


def test_it_says_what_stands_where(trained: Path, tmp_path: Path):
    image = pytest.importorskip("PIL.Image", reason="Pillow, of the vision extra, reads PNG")
    scores = json.loads((trained / "report.json").read_text())["scores"]
    assert scores["accuracy"]["score"] == 100 and scores["bleu"]["score"] == pytest.approx(100)
    bar, post = drawn()
    image.fromarray(np.concatenate([post, bar], 1)).save(tmp_path / "a.png")
    image.fromarray(np.concatenate([0 * bar, post], 1)).save(tmp_path / "b.png")
    told = small_run.regard("classify", trained, tmp_path / "a.png", tmp_path / "b.png")
    answers = [line.split("\t")[1].rpartition(" ")[0] for line in told.out.splitlines()]
    assert answers == ["a post at the left and a bar at the right", "a post at the right"]
    top = json.loads(small_run.regard("classify", trained, tmp_path / "b.png", "--top", "3", "--json").out)["labels"]
    assert len(top) == 3 and top[0]["label"] == answers[1] and top[0]["probability"] >= top[1]["probability"]


def test_the_word_looks_at_its_patch(trained: Path, tmp_path: Path):
    image = pytest.importorskip("PIL.Image", reason="Pillow, of the vision extra, reads PNG")
    image.fromarray(np.concatenate(drawn()[::-1], 1)).save(tmp_path / "a.png")
    look = ("look", trained, tmp_path / "a.png")
    done = small_run.regard(*look, "--save", tmp_path / "a.trace", "--export", tmp_path / "a.html", "--figure", tmp_path / "a.svg")
    assert done.code == 0, done.error
    trace = load(tmp_path / "a.trace")
    assert {one.kind for one in trace.maps} == {"enc-self", "cross", "dec-self"} and trace.answers[0].text.startswith("a post")
    assert trace.shape("cross") == (len(trace.steps), 8) and [token.text for token in trace.source][:5] == [
        "0,0",
        "0,1",
        "0,2",
        "0,3",
        "1,0",
    ]
    one = small_run.regard(*look, "--kind", "cross", "--from", "bar", "--figure", tmp_path / "b.svg")
    assert one.code == 0 and "what bar looks at" in (tmp_path / "b.svg").read_text()
    walked = json.loads(small_run.regard(*look, "--walk", "1", "--json").out)
    assert "decoder.0.cross.weights" in {stage["name"] for stage in walked["stages"]} and walked["next"][0]["token"] == "post"


def captioner(decoder) -> Captioner:
    torch.manual_seed(2)
    config = ImageCaptioner(
        d_model=12, patches=PatchEmbedding(patch=2), encoder=SMALL, decoder=decoder, channels=1, size=(4, 6), longest=9, vocabulary=11
    )
    model = build(config).eval()
    assert isinstance(model, Captioner)
    return model


@pytest.mark.parametrize("decoder", DECODERS)
@torch.inference_mode()
def test_word_by_word_as_all_at_once(decoder: str):
    model, noise = captioner(DECODERS[decoder]), torch.Generator().manual_seed(3)
    pixels = torch.randint(0, 256, (5, 1, 4, 6), generator=noise, dtype=torch.uint8)
    for search in (Greedy(), Beam(3, n_best=3)):
        found = describe(model, pixels, search=search, limit=6)
        for number, ranked in enumerate(found):
            for one in ranked:
                batch = CaptionBatch.of(pixels[number : number + 1], [one.tokens], (0,))
                log_probs_TV = model.output(model(batch))[0].log_softmax(-1)
                told = log_probs_TV.gather(1, batch.labels[0][:, None])[:, 0]
                assert torch.allclose(told[: len(one.tokens)], torch.tensor(one.log_probs[: len(one.tokens)]), atol=1e-4)


@pytest.mark.parametrize("decoder", DECODERS)
def test_the_loss_reaches_the_patches(decoder: str):
    model = captioner(DECODERS[decoder]).train()
    batch = CaptionBatch.of(torch.randint(0, 256, (2, 1, 4, 6), dtype=torch.uint8), [[5, 6, 7], [8]], (0, 1))
    model.output(model(batch)).logsumexp(-1).sum().backward()
    gradient = model.body.embedding.project.weight.grad
    assert gradient is not None and gradient.abs().max() > 0
