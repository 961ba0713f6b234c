"""A model as a directory: configuration, weights, tokenizers, a word to its users, and a manifest that vouches for all of them."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w
import torch
from torch import nn

from regard.config.extend import active, check_passed
from regard.config.toml import read_toml, structure, unstructure
from regard.data.tokenise import Tokenizer, load_tokenizer
from regard.errors import ModelError, RegardError, UsageError
from regard.models.build import build
from regard.models.configs import Model
from regard.models.folder import publish, verify
from regard.models.language_model import Writer
from regard.models.tensors import read_tensors, restore, size_of, state_of, written
from regard.models.translator import Translator

TOKENIZERS = ("source", "target", "text")
"""What a tokenizer of a model may be for."""
USES = {
    "translator": "translate",
    "language-model": "generate",
    "masked-language-model": "generate",
    "tagger": "classify",
    "text-classifier": "classify",
    "image-classifier": "classify",
    "image-captioner": "classify",
    "speech": "classify",
    "graph-classifier": "classify",
    "pointer-network": "classify",
}
"""The verb that a kind of model is for."""
WEIGHTS = "model.safetensors"


@dataclass(frozen=True, eq=False)
class Saved:
    """A loaded model and what belongs to it."""

    folder: Path
    config: Model
    model: nn.Module
    tokenizers: Mapping[str, Tokenizer]
    tables: Mapping[str, Any]  # what else model.toml holds: [decoding], what the trainer proposes


@dataclass(frozen=True, eq=False)
class SavedTranslator(Saved):
    """One that translates."""

    model: Translator  # pyright: ignore[reportIncompatibleVariableOverride]  # frozen

    @property
    def source(self) -> Tokenizer:
        return self.tokenizers["source"]

    @property
    def target(self) -> Tokenizer:
        return self.tokenizers["target"]


@dataclass(frozen=True, eq=False)
class SavedWriter(Saved):
    """One that goes on with texts."""

    model: Writer  # pyright: ignore[reportIncompatibleVariableOverride]  # frozen

    @property
    def text(self) -> Tokenizer:
        return self.tokenizers["text"]


def as_writer(saved: Saved) -> SavedWriter:
    """The same, known to be a language model; else an error that says what it is."""
    if not isinstance(saved.model, Writer):
        what = f"it is of kind {saved.config.kind}, and no language model"
        raise UsageError(what, where=str(saved.folder), do=f"use regard {USES[saved.config.kind]}")
    return SavedWriter(saved.folder, saved.config, saved.model, saved.tokenizers, saved.tables)


def as_translator(saved: Saved) -> SavedTranslator:
    """The same, known to translate; else an error that says what it is."""
    if not isinstance(saved.model, Translator):
        what = f"it is of kind {saved.config.kind}, and no translator"
        raise UsageError(what, where=str(saved.folder), do=f"use regard {USES[saved.config.kind]}")
    return SavedTranslator(saved.folder, saved.config, saved.model, saved.tokenizers, saved.tables)


def save_model(
    folder: Path, model: nn.Module, config: Model, *, tokenizers: Mapping[str, Tokenizer], tables: Mapping[str, Any], readme: str
) -> None:
    """Write the directory; it appears whole, or stays what it was."""
    tensors = state_of(model)
    made_with = {"extensions": active()} if active() else {}
    text = tomli_w.dumps({"model": unstructure(config), **tables, **made_with})
    publish(
        folder,
        {"model.toml": [text.encode()], WEIGHTS: written(tensors), "README.md": [readme.encode()], **tokenizer_files(tokenizers)},
        facts={"kind": config.kind, "parameters": sum(parameter.numel() for parameter in model.parameters())},
        expected=size_of(tensors),
    )


def tokenizer_files(tokenizers: Mapping[str, Tokenizer]) -> dict[str, list[bytes]]:
    """The files of these tokenizers, by file name."""
    with tempfile.TemporaryDirectory() as draft:
        for name, tokenizer in tokenizers.items():
            tokenizer.save(draft, name)
        return {path.name: [path.read_bytes()] for path in sorted(Path(draft).iterdir())}


def find_model(path: str | Path) -> Path:
    """The model folder that is meant: itself, or the best (else the last) model of a run folder."""
    folder = Path(path)
    for candidate in (folder, folder / "best", folder / "last"):
        if (candidate / "model.toml").is_file():
            return candidate
    if not folder.exists():
        raise ModelError("there is no such folder", where=str(path), do="check the path: a model is a folder such as runs/demo/best")
    raise ModelError("is not a model folder (it has no model.toml)", where=str(path), do="give a folder such as runs/demo/best")


def load_model(path: str | Path, *, device: torch.device | str = "cpu") -> Saved:
    """Everything in the folder, checked against its manifest; nothing in it is ever executed."""
    folder = find_model(path)
    try:
        verify(folder)
    except ModelError as error:
        raise ModelError(error.what, where=error.where, do=error.do or "copy the folder again, or export it again from its run") from None
    tables = read_toml(folder / "model.toml")
    if changed := check_passed(tables.pop("extensions", {}), where=str(folder)):
        warnings.warn(f"{changed[0]} is not as it was when {folder} was made with it", stacklevel=2)
    try:
        config = structure(Model, tables.pop("model", {}), where=str(folder / "model.toml"))
        model = build(config)
    except RegardError as error:
        raise ModelError(error.what, where=error.where, do=error.do or "it may be of a newer version") from None
    restore(model, read_tensors(folder / WEIGHTS), where=str(folder / WEIGHTS))
    names = [name for name in TOKENIZERS if (folder / f"tokenizer.{name}.json").is_file()]
    return Saved(folder, config, model.to(device).eval(), {name: load_tokenizer(folder, name) for name in names}, tables)
