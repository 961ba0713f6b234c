"""Texts with masks filled in: at each mask the words that a masked language model holds most probable there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from regard.data.batch import IGNORED
from regard.data.marks import FIRST
from regard.data.masking import MASK
from regard.data.text_batch import labelled_texts
from regard.data.tokenise import Tokenizer
from regard.errors import UsageError
from regard.models.reader import Reader
from regard.nn.positions import Learned


@dataclass(frozen=True)
class Filled:
    """A text, and what belongs in place of each of its masks, likeliest first; each mask is asked about while the others stay masks."""

    prompt: str
    text: str
    "With the likeliest words in it."
    choices: tuple[tuple[tuple[str, float], ...], ...]
    "For each mask, pieces and their log-probabilities."


def fill_texts(model: Reader, texts: Sequence[str], *, tokenizer: Tokenizer, top: int = 5) -> list[Filled]:
    """Every mask of every text."""
    return [_filled(model, text, tokenizer, top=top) for text in texts]


def _filled(model: Reader, text: str, tokenizer: Tokenizer, *, top: int) -> Filled:
    mask, ids = mask_of(tokenizer), tokenizer.encode(text)
    if mask not in ids:
        raise UsageError("nothing is hidden in the text", do=f"write {MASK} where a word is asked for: --prompt 'The {MASK} sleeps.'")
    if (most := longest(model)) and len(ids) + 1 > most:
        raise UsageError(f"a text of {len(ids)} tokens, and the model has {most} positions", do="fill it in pieces")
    batch = labelled_texts([ids], torch.full((1,), IGNORED), [0]).to(model.device)
    places = [place for place, one in enumerate(ids) if one == mask]
    with torch.inference_mode():
        hidden = model(batch)[0, [place + 1 for place in places]]
        log_probs_MV = model.output(hidden).float().log_softmax(-1)[:, FIRST : tokenizer.vocabulary.size]
    values, words = (found.tolist() for found in log_probs_MV.topk(min(top, log_probs_MV.shape[1])))
    whole = list(ids)
    for place, found in zip(places, words, strict=True):
        whole[place] = found[0] + FIRST
    choices = tuple(
        tuple((tokenizer.piece(word + FIRST), value) for word, value in zip(some, told, strict=True))
        for some, told in zip(words, values, strict=True)
    )
    return Filled(text, tokenizer.detokenise(tokenizer.decode(whole)), choices)


def mask_of(tokenizer: Tokenizer) -> int:
    """The id that stands for a hidden word."""
    if MASK not in tokenizer.tags:
        raise UsageError(f"the tokenizer has no {MASK}", where="tokenizer.tags", do=f'add "{MASK}"')
    return tokenizer.vocabulary.size + tokenizer.tags.index(MASK)


def longest(model: Reader) -> int:
    """Most tokens that the model sees at once, the mark before them included; 0 for any number."""
    positions = model.config.embedding.positions
    return positions.length if isinstance(positions, Learned) else 0
