"""A trained model in the hand: `regard.load(folder)`, and what it can do depends on what it is."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from regard.errors import UsageError
from regard.loaded.classifier import LoadedClassifier
from regard.loaded.language_model import LoadedLanguageModel
from regard.loaded.translator import LoadedTranslator
from regard.models.graph_classifier import NodeLabeller
from regard.models.image_classifier import ImageLabeller
from regard.models.language_model import Writer
from regard.models.pointer_network import Pointer
from regard.models.saved import USES, as_translator, as_writer, load_model
from regard.models.speech import Listener
from regard.models.text_classifier import TextLabeller
from regard.train.device import Precision, machine

Loaded = LoadedTranslator | LoadedLanguageModel | LoadedClassifier
Device = Literal["auto", "cpu", "cuda"]


def load(*folders: str | Path, device: Device = "auto", precision: Precision = "fp32") -> Loaded:
    """A model folder, a run folder (its best model), or several translators as an ensemble."""
    if not folders:
        raise UsageError("there is no model to load", do="name a model folder, such as runs/demo/best")
    chosen = machine(device, precision)
    saved = [load_model(folder, device=chosen.device) for folder in folders]
    if len(saved) == 1 and isinstance(saved[0].model, ImageLabeller | Listener | NodeLabeller | Pointer | TextLabeller):
        return LoadedClassifier(saved[0], chosen)
    if len(saved) == 1 and isinstance(saved[0].model, Writer):
        return LoadedLanguageModel(as_writer(saved[0]), chosen)
    return LoadedTranslator([as_translator(one) for one in saved], chosen)


def load_translator(*folders: str | Path, device: Device = "auto", precision: Precision = "fp32") -> LoadedTranslator:
    """The same where nothing but a translator will do."""
    loaded = load(*folders, device=device, precision=precision)
    return loaded if isinstance(loaded, LoadedTranslator) else LoadedTranslator([as_translator(loaded.saved)], loaded.machine)


def load_language_model(folder: str | Path, *, device: Device = "auto", precision: Precision = "fp32") -> LoadedLanguageModel:
    """The same where texts are to be gone on with."""
    loaded = load(folder, device=device, precision=precision)
    if isinstance(loaded, LoadedLanguageModel):
        return loaded
    return LoadedLanguageModel(as_writer(loaded.saved if isinstance(loaded, LoadedClassifier) else loaded.saved[0]), loaded.machine)


def load_classifier(folder: str | Path, *, device: Device = "auto", precision: Precision = "fp32") -> LoadedClassifier:
    """The same where labels are wanted."""
    loaded = load(folder, device=device, precision=precision)
    if isinstance(loaded, LoadedClassifier):
        return loaded
    raise UsageError(
        f"it is of kind {loaded.config.kind}, which knows no labels", where=str(folder), do=f"use regard {USES[loaded.config.kind]}"
    )
