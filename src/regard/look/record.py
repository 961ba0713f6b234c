"""One translation under watch: search for it, then let the model read it once more with its taps open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import assert_never

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.batch import PairBatch
from regard.data.layouts import Rows, padded
from regard.data.marks import EOS, FIRST
from regard.data.subwords import SPACE, SubwordVocabulary
from regard.data.tokenise import Tokenizer
from regard.decode.beam import Beam
from regard.decode.draft import Hypothesis, Job
from regard.decode.engine import decode
from regard.decode.step_translator import opener
from regard.decode.translate import Decoding
from regard.decode.translator import longest
from regard.errors import UsageError
from regard.look.trace import KINDS, Answer, Choice, Kind, Map, NextWord, Token, Trace, pack
from regard.models.saved import SavedTranslator
from regard.models.translator import Translator
from regard.nn.tap import record
from regard.train.device import Machine

DIGITS = 6  # of log-probabilities


def record_translation(
    saved: SavedTranslator,
    text: str,
    *,
    decoding: Decoding,
    machine: Machine,
    kinds: Sequence[Kind] = KINDS,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    top: int = 8,
) -> Trace:
    """Translate the text and see how. `layers` and `heads` name those to record (None: all); `top` is the length of the next-word tables.

    The maps come from one pass over the finished translation: by the law that cached steps equal the whole, they are those of the steps.
    """
    model = saved.model
    with torch.inference_mode(), machine.autocast():
        ids, found = _search(saved, text, decoding)
        batch = padded(_one(ids), _one(found[0].tokens), np.arange(1)).to(model.device)
        wanted: list[tuple[Kind, int]] = [(kind, layer) for kind in kinds for layer in _chosen(layers, _layers(model, kind), what="layer")]
        with record(model, *(_tap(model, kind, layer) for kind, layer in wanted)) as seen:
            log_probs_TV = model.output(model(batch))[0].float().log_softmax(-1)
    return Trace(
        text=text,
        source=_tokens(batch.source.ids[0].tolist(), saved.source),
        target=_tokens(batch.target.ids[0].tolist(), saved.target),
        steps=_steps(log_probs_TV, batch, tokenizer=saved.target, top=top),
        answers=tuple(_answer(one, saved.target) for one in found),
        maps=tuple(_map(kind, layer, heads, weights=_first(seen[_tap(model, kind, layer)])) for kind, layer in wanted),
        about={"model": saved.folder.name, "made by": f"regard {_version()}"},
    )


def _first(passes: Sequence[Tensor]) -> Float[Tensor, "H T S"]:
    """The only row; a decoder that goes word by word shows its weights so."""
    return torch.cat(list(passes), dim=2)[0]


def _search(saved: SavedTranslator, text: str, decoding: Decoding) -> tuple[list[int], list[Hypothesis]]:
    """The ids of the source and the hypotheses, best first; a beam shows all that it ended with."""
    ids = saved.source.encode(text) if text.strip() else []
    if not ids:
        raise UsageError("there is no text to look at", do='write one: regard look MODEL "Guten Morgen!"')
    most = longest(saved.model)
    ids = ids[: most - 1] if most else ids
    search = replace(decoding.search, n_best=decoding.search.size) if isinstance(decoding.search, Beam) else decoding.search
    job = Job((*ids, EOS), decoding.limit(len(ids), model=max(most - 1, 1) if most else 0), decoding.min_length)
    return ids, decode(opener(saved.model), [job], search=search, constraints=decoding.constraints())[0]


def _tap(model: Translator, kind: Kind, layer: int) -> str:
    """The name under which the model shows these weights."""
    match kind:
        case "enc-self":
            return f"encoder.{layer}.own.weights"
        case "dec-self":
            return f"decoder.{layer}.own.weights"
        case "cross":
            return f"decoder.{layer}.{'cross0' if model.more_encoders else 'cross'}.weights"
        case _:
            assert_never(kind)


def _layers(model: Translator, kind: Kind) -> tuple[int, ...]:
    """The layers that have such weights at all: a recurrent encoder has none."""
    match kind:
        case "enc-self":
            return model.encoder.own_maps
        case "dec-self":
            return model.decoder.own_maps
        case "cross":
            return model.decoder.cross_maps
        case _:
            assert_never(kind)


def _chosen(asked: Sequence[int] | None, there: Sequence[int], *, what: str) -> list[int]:
    wrong = [number for number in asked or () if there and number not in there]
    if wrong:
        raise UsageError(f"there is no {what} {wrong[0]}", do=f"they are numbered from {there[0]} to {there[-1]}")
    return list(there) if asked is None or not there else sorted(set(asked))


def _map(kind: Kind, layer: int, heads: Sequence[int] | None, *, weights: Float[Tensor, "H T S"]) -> Map:
    chosen = _chosen(heads, range(len(weights)), what="head")
    return pack(kind, layer, tuple(chosen), weights=weights[chosen].float().cpu().numpy())


def _steps(log_probs_TV: Float[Tensor, "T V"], batch: PairBatch, *, tokenizer: Tokenizer, top: int) -> tuple[NextWord, ...]:
    written = batch.labels[0].tolist()
    values_TK, words_TK = (found.tolist() for found in log_probs_TV.topk(min(top, log_probs_TV.shape[1])))
    own = log_probs_TV.gather(1, batch.labels[0][:, None])[:, 0].tolist()
    return tuple(
        NextWord(_choice(word, value, tokenizer), tuple(_choice(*pair, tokenizer) for pair in zip(words, values, strict=True)))
        for word, value, words, values in zip(written, own, words_TK, values_TK, strict=True)
    )


def _choice(place: int, log_prob: float, tokenizer: Tokenizer) -> Choice:
    return Choice(_token(place, tokenizer), round(log_prob, DIGITS))


def _answer(one: Hypothesis, tokenizer: Tokenizer) -> Answer:
    return Answer(tokenizer.detokenise(tokenizer.decode(one.tokens)), round(one.score, DIGITS), round(one.log_prob, DIGITS))


def _tokens(ids: Sequence[int], tokenizer: Tokenizer) -> tuple[Token, ...]:
    return tuple(_token(place, tokenizer) for place in ids)


def _token(place: int, tokenizer: Tokenizer) -> Token:
    """How an id is shown. A subword without a space before it joins the one to its left."""
    piece, special = tokenizer.piece(place), place < FIRST
    if special or not isinstance(tokenizer.vocabulary, SubwordVocabulary) or place >= tokenizer.vocabulary.size:
        return Token(piece, place, special)
    return Token(piece.removeprefix(SPACE) or SPACE, place, joins=not piece.startswith(SPACE))


def _one(ids: Sequence[int]) -> Rows:
    return Rows(np.array(ids, np.int64), np.array([len(ids)]))


def _version() -> str:
    try:
        return version("regard")
    except PackageNotFoundError:
        return "(not installed)"
