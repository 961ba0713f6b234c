"""Translating texts with a model in hand: what search must be told about this model and this device is filled in here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from regard.data.tokenise import Tokenizer
from regard.decode.engine import Room
from regard.decode.state import OpenStepper
from regard.decode.step_translator import opener
from regard.decode.translate import Decoding, Translation, translate
from regard.models.copying import CopyingTranslator
from regard.models.translator import Translator
from regard.nn.positions import Learned

CHUNK = 2048  # texts sorted and searched together; between two of them one may be asked to stop


def translate_texts(
    model: Translator,
    texts: Sequence[str],
    *,
    tokenizers: tuple[Tokenizer, Tokenizer],
    decoding: Decoding,
    prefixes: Sequence[str] = (),
    banned: Sequence[str] = (),
    alignment: bool = False,
    heads: Sequence[tuple[int, int]] = (),
    first: int = 0,
    open_stepper: OpenStepper | None = None,
    warn: Callable[[str], None] = lambda message: None,
    check: Callable[[], None] = lambda: None,
) -> list[Translation]:
    """One translation for each text, in order. `open_stepper` may bring an ensemble; `check` is called now and then and may raise."""
    found: list[Translation] = []
    most = longest(model)
    for start in range(0, len(texts), CHUNK):
        check()
        found += translate(
            open_stepper or opener(model, heads=heads),
            texts[start : start + CHUNK],
            source=tokenizers[0],
            target=tokenizers[1],
            decoding=decoding,
            prefixes=prefixes[start : start + CHUNK],
            banned=banned,
            alignment=alignment,
            longest_source=most,
            longest_target=most,
            first=first + start,
            room=room(model.device),
            warn=warn,
            copies=isinstance(model, CopyingTranslator),
        )
    return found


def longest(model: Translator) -> int:
    """Most tokens of one side that the model takes; 0 for any number."""
    positions = model.config.embedding.positions
    return positions.length if isinstance(positions, Learned) else 0


def room(device: torch.device) -> Room:
    """How much is decoded at once: a CPU's caches want little, a GPU much."""
    return Room() if device.type == "cpu" else Room(rows=1024, tokens=1 << 18)
