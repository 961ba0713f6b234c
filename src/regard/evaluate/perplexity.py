"""Perplexity: how many words a model hesitates between, on average; meaningless without the unit that was counted."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from regard.errors import DataError
from regard.evaluate.measure import Score


@dataclass(frozen=True)
class Perplexity:
    """`nats_per_token` is the "log-perplexity" that some papers print under the name of perplexity."""

    nats_per_token: float
    tokens: int  # end marks included
    unit: str  # word, subword, character or byte: figures of different units or vocabularies are not to be compared

    @property
    def perplexity(self) -> float:
        return _exp(self.nats_per_token)

    @property
    def bits_per_token(self) -> float:
        return self.nats_per_token / math.log(2)

    def json(self) -> dict[str, Any]:
        return {**asdict(self), "perplexity": self.perplexity, "bits_per_token": self.bits_per_token}

    def __str__(self) -> str:
        return f"perplexity {self.perplexity:.2f} ({self.nats_per_token:.4f} nats per {self.unit}, {self.tokens} of them)"


def running_text(loss: float, *, tokens: int, words: int, characters: int, row: int) -> list[Score]:
    """What a language model's summed loss comes to for each token, word and character; the last two may be compared over tokenizers."""
    signature = f"rows:{row}|tokens:{tokens}|words:{words}|characters:{characters}"
    found = [Score("loss", loss / tokens, signature), Score("perplexity", _exp(loss / tokens), signature)]
    if words:
        found.append(Score("word-perplexity", _exp(loss / words), signature))
    if characters:
        found.append(Score("bits-per-character", loss / math.log(2) / characters, signature))
    return found


def log_perplexity(loss: float, *, tokens: int, tokenizer: str) -> Score:
    """Nats for each target token, end marks included; the papers that print it under the name of perplexity mean this. The signature has
    the tokenizer's fingerprint, without which the figure says nothing."""
    return Score("log-perplexity", loss / max(1, tokens), f"log-perplexity|tokens:{tokens}|tokenizer:{tokenizer[:8]}")


def perplexity(scored: Iterable[tuple[float, int]], *, unit: str) -> Perplexity:
    """From the log-probability and the number of target tokens of each sentence; long sentences weigh as much as they are long."""
    pairs = list(scored)
    tokens = sum(count for _, count in pairs)
    if not tokens:
        raise DataError("there are no target tokens", where="perplexity", do="give at least one sentence")
    return Perplexity(-math.fsum(log_prob for log_prob, _ in pairs) / tokens, tokens, unit)


def _exp(nats: float) -> float:
    return math.exp(nats) if nats < 700 else math.inf
