"""Scenes that are made of small pictures, and what is said of them; pictures with sentences from files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from regard.data.batch import IGNORED, halve
from regard.data.caption_batch import CaptionBatch
from regard.data.images import Arrays
from regard.data.scenes import Captions, Scenes, caption, read_captioned
from regard.errors import DataError, UsageError


def test_what_is_said_of_a_grid():
    assert caption(["two", None, "five", None], (2, 2)) == "a two at the top left and a five at the bottom left"
    assert caption([None, "eight"], (1, 2)) == "an eight at the right" and caption(["one"], (1, 1)) == "a one"
    assert caption([None, None, "ankle boot"], (3, 1)) == "an ankle boot at the bottom"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Three pictures of 2 x 3 pixels, each of one brightness: 10, 20 and 30, labels 0 to 2."""
    np.savez(tmp_path / "a.npz", images=np.repeat([10, 20, 30], 6).reshape(3, 2, 3).astype(np.uint8), labels=np.arange(3))
    return tmp_path


def test_each_cell_holds_what_is_said_of_it(small: Path):
    found = read_captioned([Scenes(Arrays("a.npz"), count=60, seed=4)], root=small)
    assert found.pixels.shape == (60, 1, 4, 6)
    for pixels, said in zip(found.pixels[:, 0], found.captions, strict=True):
        shades = [int(pixels[y, x]) for y in (0, 2) for x in (0, 3)]
        names = [{0: None, 10: "zero", 20: "one", 30: "two"}[shade] for shade in shades]
        assert said == caption(names, (2, 2)) and any(names)
        assert all((pixels[y : y + 2, x : x + 3] == pixels[y, x]).all() for y in (0, 2) for x in (0, 3))
    assert {said.count(" at ") for said in found.captions} >= {1, 2, 3}
    again, other = (read_captioned([Scenes(Arrays("a.npz"), count=60, seed=seed)], root=small) for seed in (4, 5))
    assert again.captions == found.captions != other.captions and torch.equal(again.pixels, found.pixels)


def test_labels_may_have_names(small: Path):
    found = read_captioned([Scenes(Arrays("a.npz"), count=9, grid=(1, 1), names=("shirt", "bag", "ankle boot"))], root=small)
    assert set(found.captions) == {"a shirt", "a bag", "an ankle boot"}
    with pytest.raises(DataError, match="2 names for 3 labels"):
        read_captioned([Scenes(Arrays("a.npz"), names=("shirt", "bag"))], root=small)
    for wrong in ({"grid": (4, 1)}, {"count": 0}, {"empty": 1.0}):
        with pytest.raises(UsageError, match="no such corpus"):
            Scenes(Arrays("a.npz"), **wrong)


def test_pictures_with_sentences_from_a_file(tmp_path: Path):
    image = pytest.importorskip("PIL.Image", reason="Pillow, of the vision extra, reads PNG")
    for name, shade in (("a", 7), ("b", 9)):
        image.fromarray(np.full((4, 5), shade, np.uint8)).save(tmp_path / f"{name}.png")
    (tmp_path / "all.tsv").write_text("a.png\ta dark square\nb.png\tone that is lighter\n")
    found = read_captioned([Captions("all.tsv")], root=tmp_path)
    assert found.pixels.shape == (2, 1, 4, 5) and found.captions == ("a dark square", "one that is lighter")
    (tmp_path / "bad.tsv").write_text("a.png\ta dark square\nb.png\n")
    with pytest.raises(DataError, match=r"bad\.tsv:2: a line is a path, a tab and a sentence"):
        read_captioned([Captions("bad.tsv")], root=tmp_path)


def test_half_a_batch_is_a_batch():
    pixels = torch.arange(3 * 4, dtype=torch.uint8).view(3, 1, 2, 2)
    batch = CaptionBatch.of(pixels, [[5, 6], [7], [8, 9, 4]], (0, 1, 2))
    assert batch.target.ids.tolist() == [[1, 5, 6, 0], [1, 7, 0, 0], [1, 8, 9, 4]]
    assert batch.labels.tolist() == [[5, 6, 2, IGNORED], [7, 2, IGNORED, IGNORED], [8, 9, 4, 2]] and batch.target_tokens == 9
    one, two = halve(batch)
    assert (one.target_tokens, two.target_tokens) == (3, 6) and torch.equal(two.pixels, pixels[1:]) and two.pairs == (1, 2)
