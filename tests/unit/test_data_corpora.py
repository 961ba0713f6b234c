"""The embedded corpora as they lie in the package: sizes, columns, and that no held-out sentence is in train."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from regard.data.corpora import PAIRS, files
from regard.data.corpora.cut import cleaned, cut, latin
from regard.data.holdout import normalise


def rows(path: Path) -> list[list[str]]:
    content = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
    return [line.split("\t") for line in content.decode("utf-8").removesuffix("\n").split("\n")]


@pytest.mark.parametrize(("pair", "size"), [("de-en", 167_616), ("fr-en", 164_524)])
def test_sizes_and_that_nothing_held_out_was_seen(pair: str, size: int):
    parts = {name: rows(path) for name, path in files(pair).items()}
    assert [len(part) for part in parts.values()] == [size, 600, 1000]
    assert all(len(row) == 2 and all(row) for part in parts.values() for row in part)
    assert len({tuple(row) for row in parts["train"]}) == size
    keys = {name: [{normalise(row[side]) for row in part} for side in (0, 1)] for name, part in parts.items()}
    for one, other in (("train", "dev"), ("train", "test"), ("dev", "test")):
        for side in (0, 1):
            assert not keys[one][side] & keys[other][side]
    words = [len(row[1].split()) for row in parts["test"]]
    assert 6.0 < sum(words) / len(words) < 7.0 and sum(count <= 3 for count in words) < 100


def test_the_sentences_of_the_demo_are_not_in_the_test():
    held = {normalise(row[0]) for name in ("dev", "test") for row in rows(files("fr-en")[name])}
    assert not held & {normalise("bonjour le monde ."), normalise("Je suis étudiant"), normalise("Je suis étudiant.")}


def test_every_corpus_carries_its_attribution():
    for pair in PAIRS:
        folder = files(pair)["train"].parent
        assert "creativecommons.org/licenses/by/2.0" in (folder / "_about.txt").read_text(encoding="utf-8")
        assert f"`{pair}`" in (folder.parent / "ATTRIBUTION.md").read_text(encoding="utf-8")


def test_cleaning_is_light():
    assert cleaned("C’est\u202fvrai\u00a0?\u200b ") == "C'est vrai ?"
    assert cleaned("e\u0301") == "é"
    assert latin("H₂O, naïve – ß") and not latin("Сa va")


def test_the_cut_makes_parts_from_english_first_lines():
    lines = [f"english {number}\tdeutsch {number}" for number in range(1700)] + ["english 0\tdeutsch 0", "c\tС"]
    parts = cut(lines)
    assert [len(part) for part in parts.values()] == [100, 600, 1000]
    assert all(source.startswith("deutsch") and target.startswith("english") for part in parts.values() for source, target in part)
