"""A trained model in the hand: `regard.load(folder)`, and what it can do depends on what it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from regard.errors import UsageError
from regard.loaded.classifier import LoadedClassifier
from regard.loaded.language_model import LoadedLanguageModel
from regard.loaded.reader import LoadedReader
from regard.loaded.translator import LoadedTranslator
from regard.models.captioner import Captioner
from regard.models.configs import MaskedLanguageModel, Tagger
from regard.models.graph_classifier import NodeLabeller
from regard.models.image_classifier import ImageLabeller
from regard.models.language_model import Writer
from regard.models.pointer_network import Pointer
from regard.models.reader import Reader
from regard.models.saved import USES, Saved, as_translator, as_writer, load_model
from regard.models.speech import Listener
from regard.models.text_classifier import TextLabeller
from regard.train.device import Machine, Precision, machine

Loaded = LoadedTranslator | LoadedLanguageModel | LoadedReader | LoadedClassifier
Device = Literal["auto", "cpu", "cuda"]
LABELLERS = (Captioner, ImageLabeller, Listener, NodeLabeller, Pointer, TextLabeller)


def load(*folders: str | Path, device: Device = "auto", precision: Precision = "fp32") -> Loaded:
    """A model folder, a run folder (its best model), or several translators as an ensemble."""
    saved, chosen = _opened(folders, device, precision)
    if len(saved) == 1 and isinstance(saved[0].model, LABELLERS):
        return LoadedClassifier(saved[0], chosen)
    if len(saved) == 1 and isinstance(saved[0].model, Reader):
        return LoadedReader(saved[0], chosen)
    if len(saved) == 1 and isinstance(saved[0].model, Writer):
        return LoadedLanguageModel(as_writer(saved[0]), chosen)
    return LoadedTranslator([as_translator(one) for one in saved], chosen)


def load_translator(*folders: str | Path, device: Device = "auto", precision: Precision = "fp32") -> LoadedTranslator:
    """The same where nothing but a translator will do."""
    saved, chosen = _opened(folders, device, precision)
    return LoadedTranslator([as_translator(one) for one in saved], chosen)


def load_language_model(
    folder: str | Path, *, device: Device = "auto", precision: Precision = "fp32"
) -> LoadedLanguageModel | LoadedReader:
    """The same where texts are to be gone on with, or filled in."""
    (saved,), chosen = _opened([folder], device, precision)
    if isinstance(saved.config, MaskedLanguageModel):
        return LoadedReader(saved, chosen)
    return LoadedLanguageModel(as_writer(saved), chosen)


def load_classifier(folder: str | Path, *, device: Device = "auto", precision: Precision = "fp32") -> LoadedClassifier | LoadedReader:
    """The same where labels are wanted, of things or of words."""
    (saved,), chosen = _opened([folder], device, precision)
    if isinstance(saved.config, Tagger):
        return LoadedReader(saved, chosen)
    if isinstance(saved.model, LABELLERS):
        return LoadedClassifier(saved, chosen)
    kind = saved.config.kind
    raise UsageError(f"it is of kind {kind}, which knows no labels", where=str(folder), do=f"use regard {USES[kind]}")


def _opened(folders: Sequence[str | Path], device: Device, precision: Precision) -> tuple[list[Saved], Machine]:
    if not folders:
        raise UsageError("there is no model to load", do="name a model folder, such as runs/demo/best")
    chosen = machine(device, precision)
    return [load_model(folder, device=chosen.device) for folder in folders], chosen
