"""Model folders that time, a bad copy or somebody's hand has changed: each is refused with the file's name, and nothing in one is ever run.

REGARD_TORTURE=1 tries thousands of changes instead of a few.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path

import pytest

from regard.errors import ModelError, RegardError
from regard.models import folder
from regard.models.folder import MANIFEST
from regard.models.saved import load_model

TORTURE = bool(os.environ.get("REGARD_TORTURE"))
FILES = ("model.toml", "model.safetensors", "tokenizer.source.json", "tokenizer.source.model", "README.md", MANIFEST)


def changed(good: bytes, chance: random.Random) -> bytes:
    """Some bytes flipped, cut off, zeroed, doubled or put in."""
    place = chance.randrange(len(good))
    end = min(len(good), place + 1 + chance.randrange(40))
    some = bytes(chance.randrange(256) for _ in range(1 + chance.randrange(20)))
    kinds = (
        good[:place] + bytes([good[place] ^ (1 << chance.randrange(8))]) + good[place + 1 :],
        good[:place],
        good[:place] + bytes(end - place) + good[end:],
        good[:end] + good[place:],
        good[:place] + some + good[place:],
        good + some,
    )
    found = kinds[chance.randrange(len(kinds))]
    return found if found != good else good + b"\0"


@pytest.fixture
def model(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained / "best", tmp_path / "model"))


@pytest.mark.parametrize("name", FILES)
def test_rot_in_any_file_is_found_and_named(model: Path, name: str):
    good, chance = (model / name).read_bytes(), random.Random(name)
    for _ in range(2500 if TORTURE else 40):
        (model / name).write_bytes(changed(good, chance))
        with pytest.raises(ModelError) as info:
            load_model(model)
        assert info.value.where == str(model / name) and info.value.do


def signed(model: Path) -> None:
    """A manifest that vouches for the files as they are, as one who forges a folder would write it."""
    facts = json.loads((model / MANIFEST).read_bytes())
    for name in facts["files"]:
        facts["files"][name] = {"bytes": (model / name).stat().st_size, "sha256": folder._digest(model / name)}
    del facts["sha256"]
    (model / MANIFEST).write_bytes(folder._signed(facts))


@pytest.mark.parametrize("name", [name for name in FILES if name not in ("README.md", MANIFEST)])
def test_a_forged_folder_is_refused_or_loaded_and_nothing_else(model: Path, name: str):
    good, chance = (model / name).read_bytes(), random.Random(name)
    refused = 0
    for _ in range(2000 if TORTURE else 40):
        early = good[:3000] if name.endswith("s") else good  # of the weights mostly the header, where more can go wrong
        (model / name).write_bytes(changed(early, chance) + good[len(early) :])
        signed(model)
        try:
            load_model(model)
        except RegardError as error:
            refused += 1
            assert str(error)
        except RuntimeError as error:  # a size that no memory holds
            assert "alloc" in str(error)
    assert refused > 5


def test_the_folder_that_was_not_changed_is_loaded_still(model: Path):
    signed(model)
    assert load_model(model).config
