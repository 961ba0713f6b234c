"""Pictures: files read and refused, patches as a linear map, places on other grids, sizes of models, and augmentation."""

from __future__ import annotations

import gzip
import io
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.data.images import Arrays, Folder, Idx, Table, join_pictures, read_idx, read_picture, read_pictures
from regard.data.picture_batch import PictureBatch
from regard.errors import DataError, UsageError
from regard.models.image_classifier import ImageClassifier, ImageLabeller, VisionTransformer
from regard.nn.augment import Augmentation, augment
from regard.nn.embed_patches import PatchEmbedding, Patches
from regard.nn.stages_image import ImageStages

LABELS = tuple("0123456789")


def idx(pixels: np.ndarray) -> bytes:
    return struct.pack(f">4B{pixels.ndim}I", 0, 0, 8, pixels.ndim, *pixels.shape) + pixels.astype(np.uint8).tobytes()


@pytest.fixture
def pixels() -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, (5, 7, 11), dtype=np.uint8)


def patches(size: tuple[int, int] = (12, 20), *, patch: int = 4, channels: int = 3, uneven: str = "reject") -> Patches:
    torch.manual_seed(2)
    config = PatchEmbedding(patch=patch, uneven=uneven, dropout=0.0)  # type: ignore[arg-type]
    return Patches(config, 13, channels=channels, size=size, token="class", name="patches").eval()


def test_idx_files_plain_and_packed(tmp_path: Path, pixels: np.ndarray):
    (tmp_path / "x").write_bytes(idx(pixels))
    (tmp_path / "y.gz").write_bytes(gzip.compress(idx(np.array([3, 1, 2, 0, 3]))))
    pictures = read_pictures(Idx("x", "y.gz"), root=tmp_path)
    assert pictures.pixels.shape == (5, 1, 7, 11)
    assert (pictures.pixels[:, 0].numpy() == pixels).all()
    assert (pictures.labels.tolist(), pictures.names) == ([3, 1, 2, 0, 3], ("0", "1", "2", "3"))


def test_idx_files_that_are_wrong(tmp_path: Path, pixels: np.ndarray):
    whole = idx(pixels)
    for content, said in (
        (whole[:-9], "5 x 7 x 11 bytes, but holds 376"),
        (whole[:6], "holds 0"),
        (b"PK\3\4" + whole, "no idx file"),
        (b"", "no idx"),
    ):
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(DataError, match=said):
            read_idx(tmp_path / "x", axes=3)
    (tmp_path / "y.gz").write_bytes(gzip.compress(whole)[:-20])
    with pytest.raises(DataError, match=r"y\.gz: the archive is damaged"):
        read_idx(tmp_path / "y.gz", axes=3)
    (tmp_path / "x").write_bytes(whole)
    (tmp_path / "y").write_bytes(idx(np.array([1, 2])))
    with pytest.raises(DataError, match="2 labels for 5 pictures"):
        read_pictures(Idx("x", "y"), root=tmp_path)


def test_a_table_of_pixels(tmp_path: Path):
    (tmp_path / "t.csv").write_text("0,8,16,4,3\n16,0,0,2,1\n")
    pictures = read_pictures(Table("t.csv", height=2, width=2), root=tmp_path)
    assert pictures.pixels[:, 0].tolist() == [[[0, 128], [255, 64]], [[255, 0], [0, 32]]]
    assert pictures.labels.tolist() == [3, 1]
    assert read_pictures(Table("t.csv", height=2, width=2, first=1), root=tmp_path).labels.tolist() == [1]
    (tmp_path / "t.csv").write_text("0,8,16,4,3\n16,0,0,2\n")
    with pytest.raises(DataError, match=r"t\.csv:2: a row is 5 numbers"):
        read_pictures(Table("t.csv", height=2, width=2), root=tmp_path)


def test_arrays(tmp_path: Path, pixels: np.ndarray):
    np.savez(tmp_path / "a.npz", images=pixels[..., None].repeat(3, -1), labels=[0, 1, 0, 1, 2])
    assert read_pictures(Arrays("a.npz"), root=tmp_path).pixels.shape == (5, 3, 7, 11)
    np.savez(tmp_path / "a.npz", images=pixels / 255, labels=[0, 1, 0, 1, 2])
    with pytest.raises(DataError, match="give bytes"):
        read_pictures(Arrays("a.npz"), root=tmp_path)


def picture_file(path: Path, pixels: np.ndarray) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is an extra")
    path.parent.mkdir(exist_ok=True)
    image.fromarray(pixels).save(path)


def test_folders_and_lists_of_files(tmp_path: Path, pixels: np.ndarray):
    for number, name in enumerate(["10/a", "9/b", "10/c"]):
        picture_file(tmp_path / f"{name}.png", pixels[number])
    pictures = read_pictures(Folder("."), root=tmp_path)
    assert pictures.names == ("9", "10")
    assert pictures.labels.tolist() == [1, 1, 0]
    assert (pictures.pixels[2, 0].numpy() == pixels[1]).all()
    (tmp_path / "list.tsv").write_text("9/b.png\tcat\n10/a.png\tdog\n")
    assert read_pictures(Folder(".", manifest="list.tsv"), root=tmp_path).names == ("cat", "dog")
    picture_file(tmp_path / "9" / "large.png", pixels[0][:4])
    with pytest.raises(DataError, match=r"large\.png: it is 11 x 4, and a\.png is 11 x 7"):
        read_pictures(Folder("."), root=tmp_path)


def test_a_picture_cut_short_or_none_at_all(tmp_path: Path):
    noise = np.random.default_rng(1).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    for name in ("x.png", "x.jpg"):
        picture_file(tmp_path / name, noise)
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[: len(content) // 2])
        with pytest.raises(DataError, match=rf"{name}: the picture is damaged or cut short"):
            read_picture(tmp_path / name)
    (tmp_path / "x.png").write_bytes(b"this is text")
    with pytest.raises(DataError, match="no picture that can be read"):
        read_picture(tmp_path / "x.png")
    with pytest.raises(DataError, match="no such file"):
        read_picture(tmp_path / "absent.png")


def test_grey_and_scaled(tmp_path: Path, pixels: np.ndarray):
    picture_file(tmp_path / "x.png", pixels[0])
    assert read_picture(tmp_path / "x.png", channels=1, size=(14, 22)).shape == (1, 14, 22)
    assert (read_picture((tmp_path / "x.png").read_bytes(), channels=1)[0].numpy() == pixels[0]).all()


def test_corpora_are_joined_by_the_names_of_their_labels(tmp_path: Path, pixels: np.ndarray):
    (tmp_path / "a").write_bytes(idx(pixels[:2]))
    (tmp_path / "la").write_bytes(idx(np.array([2, 0])))
    (tmp_path / "b").write_bytes(idx(pixels[2:, :, :4]))
    (tmp_path / "lb").write_bytes(idx(np.array([1, 1, 0])))
    first, second = (read_pictures(Idx(name, f"l{name}"), root=tmp_path) for name in "ab")
    assert join_pictures([first, first]).labels.tolist() == [2, 0, 2, 0]
    with pytest.raises(DataError, match="different shapes"):
        join_pictures([first, second])


def test_the_convolution_is_a_linear_map_of_flattened_patches():
    layer = patches()
    image = torch.randn(2, 3, 12, 20)
    flat = image.unfold(2, 4, 4).unfold(3, 4, 4).permute(0, 2, 3, 1, 4, 5).reshape(2, 15, 48)  # channel, row, column
    expected = flat @ layer.project.weight.flatten(1).mT + layer.project.bias + layer.places[1:]
    torch.testing.assert_close(layer(image)[:, 1:], expected, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(layer(image)[:, 0], (layer.first + layer.places[0]).expand(2, -1))


def test_sizes_that_do_not_divide_are_refused_or_padded_on_request():
    with pytest.raises(UsageError, match="patches of 4 x 4 do not cover a picture of 19 x 12 pixels evenly"):
        patches((12, 19))
    layer = patches((12, 20), uneven="pad")
    image = torch.randn(1, 3, 9, 18)
    padded = torch.zeros(1, 3, 12, 20)
    padded[:, :, :9, :18] = image
    torch.testing.assert_close(layer(image), layer(padded))


def test_places_on_another_grid_keep_the_class_and_the_corners_order():
    layer = patches()
    for grid in ((6, 10), (2, 3)):
        places = layer.at(grid)
        assert len(places) == 1 + grid[0] * grid[1]
        assert torch.equal(places[0], layer.places[0])
    with torch.no_grad():  # a ramp from left to right stays one, and stays level from top to bottom
        layer.places[1:] = torch.arange(5.0).repeat(3)[:, None]
    ramp = layer.at((6, 10))[1:, 0].view(6, 10)
    assert (ramp.diff(dim=1) > 0).all()
    torch.testing.assert_close(ramp, ramp[:1].expand(6, -1))


@pytest.mark.parametrize(("hidden", "parameters"), [(0, 205_962), (64, 210_122)])
def test_the_size_of_the_small_vision_transformer(hidden: int, parameters: int):
    model = ImageLabeller(ImageClassifier(hidden=hidden, channels=1, size=(28, 28), labels=LABELS))
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


@pytest.mark.parametrize("body", [VisionTransformer(pool="mean"), VisionTransformer(), ImageStages(stages=2)])
def test_the_batch_changes_nothing_and_a_picture_is_told_from_another(body):
    torch.manual_seed(4)
    model = ImageLabeller(ImageClassifier(d_model=32, body=body, channels=3, size=(8, 12), labels=LABELS)).eval()
    batch = PictureBatch(torch.randint(0, 256, (5, 3, 8, 12), dtype=torch.uint8), torch.arange(5), tuple(range(5)))
    whole = model(batch)
    torch.testing.assert_close(torch.cat([model(batch.part(range(2))), model(batch.part(range(2, 5)))]), whole, atol=1e-5, rtol=1e-4)
    assert torch.pdist(whole).min() > 1e-3


def test_augmentation_by_its_parts():
    torch.manual_seed(1)
    image = torch.arange(2 * 1 * 5 * 7).float().view(2, 1, 5, 7) / 100
    assert torch.equal(augment(image, Augmentation()), image)
    shifted = augment(image.repeat(64, 1, 1, 1), Augmentation(shift=2))
    assert shifted.shape == (128, 1, 5, 7)
    first = {tuple(one.flatten().tolist()) for one in shifted[::2]}
    assert len(first) > 10  # of 25
    padded = torch.nn.functional.pad(image[0], (2, 2, 2, 2), value=-1)
    allowed = {tuple(padded[:, y : y + 5, x : x + 7].flatten().tolist()) for y in range(5) for x in range(5)}
    assert first <= allowed
    mirrored = augment(image.repeat(64, 1, 1, 1), Augmentation(mirror=True))
    kept = (mirrored == image.repeat(64, 1, 1, 1)).flatten(1).all(1).float().mean()
    assert 0.3 < kept < 0.7
    covered = augment(torch.full((400, 1, 20, 20), 3.0), Augmentation(cover=0.5))
    assert 0.4 < (covered != 3).flatten(1).any(1).float().mean() < 0.6
    assert 0.01 < (covered != 3).float().mean() < 0.125
    assert covered[covered != 3].abs().max() <= 1


def test_pillow_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    with pytest.raises(UsageError, match=r'Pillow is needed; install it with pip install "regard\[vision\]"'):
        read_picture(io.BytesIO(b"").getvalue())
