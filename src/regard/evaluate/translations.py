"""Scores of a model's translations, in the forms in which they may be compared: plain text, and tokens where papers counted those."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from regard.data.tokenise import Tokenizer
from regard.decode.translate import Translation
from regard.evaluate.bleu import score


def score_translations(
    metrics: Sequence[str], answers: Sequence[Translation], references: Sequence[str], *, target: Tokenizer
) -> dict[str, dict[str, Any]]:
    """By name. A model of lowercased text is scored without case; multi-bleu counts the tokens that the model itself writes."""
    texts = [answer.text for answer in answers]
    found = {}
    for name in metrics:
        if name == "multi-bleu":
            wanted = [target.prepare(reference) for reference in references]
            found[name] = score(name, [answer.best.tokenised for answer in answers], [wanted]).json()
        else:
            found[name] = score(name, texts, [list(references)], lowercase=target.surface.lowercase).json()
    return found
