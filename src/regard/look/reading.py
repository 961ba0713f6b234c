"""One thing as a model reads it: its batch, its tokens as they are shown, where its attention lies, and what the model says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.data.batch import IGNORED, PairBatch
from regard.data.caption_batch import CaptionBatch
from regard.data.layouts import Rows, padded
from regard.data.marks import EOS, FIRST
from regard.data.picture_batch import PictureBatch
from regard.data.spelled_words import SpelledWords, unlabelled
from regard.data.subwords import SPACE, SubwordVocabulary
from regard.data.text_batch import labelled_texts
from regard.data.tokenise import Tokenizer, lending
from regard.decode.beam import Beam
from regard.decode.describe import describe
from regard.decode.draft import Hypothesis, Job
from regard.decode.engine import decode
from regard.decode.fill import longest as longest_filled
from regard.decode.fill import mask_of
from regard.decode.sample import Greedy
from regard.decode.step_translator import opener
from regard.decode.translate import Decoding
from regard.decode.translator import longest
from regard.decode.write import longest as most_of
from regard.decode.write import text_batch
from regard.errors import UsageError
from regard.look.trace import Answer, Choice, Kind, NextWord, Picture, Token
from regard.models.captioner import Captioner
from regard.models.configs import Tagger
from regard.models.copying import CopyingTranslator
from regard.models.image_classifier import ImageLabeller, PictureEncoder
from regard.models.reader import Reader
from regard.models.saved import Saved, as_translator, as_writer
from regard.models.text_classifier import TextLabeller
from regard.models.translator import Translator

DIGITS = 6  # of log-probabilities
Say = Callable[[Float[Tensor, "*T V"], int], tuple[tuple[NextWord, ...], tuple[Answer, ...]]]
Shown = Callable[[Tensor], Float[Tensor, "H T S"]]
"""What passed a tap of scores or weights, as rows and columns of tokens for each head."""


@dataclass(frozen=True, eq=False)
class Slot:
    """Where a model has one kind of attention: under the taps TRUNK.LAYER.NAME of these layers."""

    trunk: str
    name: str
    layers: tuple[int, ...]
    parts: nn.Module
    "The trunk itself."
    embedding: str
    "The name under which its tokens become vectors."
    shown: Shown = lambda passed: passed[0]
    listed: Callable[[Tensor], Float[Tensor, "T D"]] = lambda passed: passed[0] if passed.ndim == 3 else passed
    "What passed a tap of vectors, one for each token."

    def tap(self, layer: int, stage: str) -> str:
        return ".".join(part for part in (self.trunk, str(layer), self.name, stage) if part)


@dataclass(frozen=True, eq=False)
class Reading:
    """What was read; `say` makes steps and answers of the scores of the model's output."""

    text: str
    model: nn.Module
    batch: Any
    source: tuple[Token, ...]
    target: tuple[Token, ...]
    slots: Mapping[Kind, Slot]
    say: Say
    "Of the log-probabilities, and of how many words are told at each step."
    about: Mapping[str, str] = field(default_factory=dict)
    pictures: tuple[Picture, ...] = ()
    place: int = 0
    "Where the answer stands among the rows of the output."

    def log_probs(self) -> Float[Tensor, "*T V"]:
        """One pass of the model, and what it holds probable: at every step, or of the whole."""
        if isinstance(self.model, Translator):
            return self.model.scores(self.batch)[self.place].float().log_softmax(-1)
        return self.model.output(self.model(self.batch))[self.place].float().log_softmax(-1)  # type: ignore[operator]

    def slot(self, kind: Kind | None = None) -> tuple[Kind, Slot]:
        """This kind of attention, or the one that is nearest to the answer."""
        order: tuple[Kind, ...] = ("dec-self", "cross", "enc-self")
        for one in (kind,) if kind else order:
            if one in self.slots and self.slots[one].layers:
                return one, self.slots[one]
        raise UsageError("it has no such attention", where=self.about.get("model", "model"), do=self.told())

    def told(self) -> str:
        """What there is to look at."""
        there = [kind for kind, slot in self.slots.items() if slot.layers]
        return f"there is: {', '.join(there)}" if there else "only models with attention maps can be looked into"

    def tokens(self, kind: Kind) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
        """Who looks, and what is looked at."""
        return self.source if kind == "enc-self" else self.target, self.target if kind == "dec-self" else self.source


def translation(saved: Saved, text: str, *, decoding: Decoding) -> Reading:
    """A text and its translation, which is searched for first."""
    translator = as_translator(saved)
    model, source, target = translator.model, translator.source, translator.target
    if isinstance(model, CopyingTranslator):
        source, target = lending(source, target, text)
    ids, found = _search(model, source.encode(text) if text.strip() else [], decoding)
    batch = padded(_one(ids), _one(found[0].tokens), np.arange(1)).to(model.device)

    def say(log_probs_TV: Tensor, top: int) -> tuple[tuple[NextWord, ...], tuple[Answer, ...]]:
        return _steps(log_probs_TV, batch, tokenizer=target, top=top), tuple(_answer(one, target) for one in found)

    cross = "cross0" if model.more_encoders else "cross"
    return Reading(
        text=text,
        model=model,
        batch=batch,
        source=shown(batch.source.ids[0].tolist(), source),
        target=shown(batch.target.ids[0].tolist(), target),
        slots={
            "enc-self": Slot("encoder", "own", model.encoder.own_maps, model.encoder, "source"),
            "cross": Slot("decoder", cross, model.decoder.cross_maps, model.decoder, "target"),
            "dec-self": Slot("decoder", "own", model.decoder.own_maps, model.decoder, "target"),
        },
        say=say,
        about={"model": saved.folder.name},
    )


def running_text(saved: Saved, text: str) -> Reading:
    """A text as a language model reads it, and what it expects after each token."""
    writer = as_writer(saved)
    model, tokenizer, most = writer.model, writer.text, most_of(writer.model)
    ids = [model.config.begin, *tokenizer.encode(text)]
    batch = text_batch([ids[:most] if most else ids], end=0).to(model.device)

    def say(log_probs_TV: Tensor, top: int) -> tuple[tuple[NextWord, ...], tuple[Answer, ...]]:
        labels = batch.labels[0]
        written = torch.where(labels == IGNORED, log_probs_TV.argmax(-1), labels)  # behind the end comes what is likeliest
        steps = _choices(log_probs_TV, written, tokenizer=tokenizer, top=top)
        total = sum(step.chosen.log_prob for step in steps[:-1])
        return steps, (Answer(text, round(total, DIGITS), round(total, DIGITS)),)

    slots: dict[Kind, Slot] = {"dec-self": Slot("trunk", "own", model.trunk.own_maps, model.trunk, "text")}
    tokens = shown(batch.text.ids[0].tolist(), tokenizer)
    return Reading(text, model, batch, (), tokens, slots, say, {"model": saved.folder.name})


def labelled_text(saved: Saved, text: str) -> Reading:
    """A text as a classifier reads it."""
    model, tokenizer = saved.model, saved.tokenizers["text"]
    assert isinstance(model, TextLabeller)
    ids = tokenizer.encode(text)[: model.config.longest - 1]
    batch = labelled_texts([ids], torch.zeros(1, dtype=torch.long), [0]).to(model.device)
    slots: dict[Kind, Slot] = {"enc-self": Slot("encoder", "own", model.encoder.own_maps, model.encoder, "text")}
    tokens = shown(batch.text.ids[0].tolist(), tokenizer)
    return Reading(text, model, batch, tokens, (), slots, labels(model.config.labels), {"model": saved.folder.name})


def places(saved: Saved, text: str) -> Reading:
    """A text as a model reads it that says something of each place: at the first mask the words, or all labels as one answer."""
    model, tokenizer = saved.model, saved.tokenizers["text"]
    assert isinstance(model, Reader)
    config, masks = model.config, []
    if isinstance(config, Tagger):
        spelled = SpelledWords.of(text.split(), tokenizer, longest=config.longest)
        batch, asked = unlabelled([spelled]), [place + 1 for place in spelled.first]
    else:
        ids, most = tokenizer.encode(text), longest_filled(model)
        batch = labelled_texts([ids[: most - 1] if most else ids], torch.zeros(1, dtype=torch.long), [0])
        asked = masks = torch.nonzero(batch.text.ids[0] == mask_of(tokenizer)).flatten().tolist()

    def say(log_probs_TV: Tensor, top: int) -> tuple[tuple[NextWord, ...], tuple[Answer, ...]]:
        values, best = log_probs_TV[asked].max(-1)
        total = round(float(values.sum()), DIGITS)
        if isinstance(config, Tagger):
            return (), (Answer(" ".join(config.labels[one] for one in best.tolist()), total, total),)
        if not masks:
            return (), (Answer(text, 0.0, 0.0),)
        found, words = log_probs_TV[masks[0]].topk(min(top, log_probs_TV.shape[1]))
        ranked = zip(words.tolist(), found.tolist())
        return (), tuple(Answer(tokenizer.piece(word), round(value, DIGITS), round(value, DIGITS)) for word, value in ranked)

    slots: dict[Kind, Slot] = {"enc-self": Slot("encoder", "own", model.encoder.own_maps, model.encoder, "text")}
    tokens = shown(batch.text.ids[0].tolist(), tokenizer)
    return Reading(text, model, batch.to(model.device), tokens, (), slots, say, {"model": saved.folder.name})


def picture(saved: Saved, path: str | Path) -> Reading:
    """A picture as its patches; of a captioner with the sentence that it writes."""
    from regard.data.images import read_picture

    model = saved.model
    assert isinstance(model, ImageLabeller | Captioner)
    if not isinstance(model.body, PictureEncoder):
        raise UsageError("it is made of convolutions, which have no attention", where=str(saved.folder), do="look into one of patches")
    config, body = model.config, model.body
    pixels = read_picture(path, channels=config.channels, size=config.size)
    rows, columns = body.embedding.grid_of(config.size)
    first = body.embedding.first is not None
    patches = [Token(f"{row},{column}") for row in range(rows) for column in range(columns)]
    source = (*([Token("class", special=True)] if first else []), *patches)
    pictures = (Picture.of(pixels.numpy(), grid=(rows, columns), patch=body.embedding.config.patch),)
    slots: dict[Kind, Slot] = {"enc-self": Slot("encoder", "own", body.encoder.own_maps, body.encoder, "patches")}
    about = {"model": saved.folder.name}
    if isinstance(model, Captioner):
        return _described(saved, model, str(path), pixels, source=source, slots=slots, about=about, pictures=pictures)
    batch = PictureBatch(pixels[None], torch.zeros(1, dtype=torch.long), (0,)).to(model.device)
    return Reading(str(path), model, batch, source, (), slots, labels(config.labels), about, pictures)


def _described(
    saved: Saved, model: Captioner, path: str, pixels: Tensor, *, source: tuple[Token, ...], slots: dict[Kind, Slot], about, pictures
) -> Reading:
    """A picture and its sentence, which is searched for first."""
    tokenizer = saved.tokenizers["text"]
    ((found, *_),) = describe(model, pixels[None], search=Greedy(), limit=model.config.longest - 1)
    batch = CaptionBatch.of(pixels[None], [found.tokens], (0,)).to(model.device)
    decoder = model.decoder
    both: dict[Kind, Slot] = {
        "cross": Slot("decoder", "cross", decoder.cross_maps, decoder, "target"),
        "dec-self": Slot("decoder", "own", decoder.own_maps, decoder, "target"),
    }

    def say(log_probs_TV: Tensor, top: int) -> tuple[tuple[NextWord, ...], tuple[Answer, ...]]:
        return _choices(log_probs_TV, batch.labels[0], tokenizer=tokenizer, top=top), (_answer(found, tokenizer),)

    target = shown(batch.target.ids[0].tolist(), tokenizer)
    return Reading(path, model, batch, source, target, slots | both, say, about, pictures)


def labels(names: Sequence[str]) -> Say:
    """The labels as answers, likeliest first."""

    def say(log_probs_V: Tensor, top: int) -> tuple[tuple[NextWord, ...], tuple[Answer, ...]]:
        values, places = log_probs_V.sort(descending=True, stable=True)
        ranked = zip(places.tolist(), values.tolist())
        return (), tuple(Answer(str(names[place]), round(value, DIGITS), round(value, DIGITS)) for place, value in ranked)

    return say


def shown(ids: Sequence[int], tokenizer: Tokenizer) -> tuple[Token, ...]:
    return tuple(_token(place, tokenizer) for place in ids)


def _search(model: Translator, ids: list[int], decoding: Decoding) -> tuple[list[int], list[Hypothesis]]:
    """The ids of the source and the hypotheses, best first; a beam shows all that it ended with."""
    if not ids:
        raise UsageError("there is no text to look at", do='write one: regard look MODEL "Guten Morgen!"')
    most = longest(model)
    ids = ids[: most - 1] if most else ids
    search = replace(decoding.search, n_best=decoding.search.size) if isinstance(decoding.search, Beam) else decoding.search
    job = Job((*ids, EOS), decoding.limit(len(ids), model=max(most - 1, 1) if most else 0), decoding.min_length)
    return ids, decode(opener(model), [job], search=search, constraints=decoding.constraints())[0]


def _steps(log_probs_TV: Float[Tensor, "T V"], batch: PairBatch, *, tokenizer: Tokenizer, top: int) -> tuple[NextWord, ...]:
    return _choices(log_probs_TV, batch.labels[0], tokenizer=tokenizer, top=top)


def _choices(log_probs_TV: Tensor, written_T: Tensor, *, tokenizer: Tokenizer, top: int) -> tuple[NextWord, ...]:
    values_TK, words_TK = (found.tolist() for found in log_probs_TV.topk(min(top, log_probs_TV.shape[1])))
    own = log_probs_TV.gather(1, written_T[:, None])[:, 0].tolist()
    return tuple(
        NextWord(_choice(word, value, tokenizer), tuple(_choice(*pair, tokenizer) for pair in zip(words, values, strict=True)))
        for word, value, words, values in zip(written_T.tolist(), own, words_TK, values_TK, strict=True)
    )


def _choice(place: int, log_prob: float, tokenizer: Tokenizer) -> Choice:
    return Choice(_token(place, tokenizer), round(log_prob, DIGITS))


def _answer(one: Hypothesis, tokenizer: Tokenizer) -> Answer:
    return Answer(tokenizer.detokenise(tokenizer.decode(one.tokens)), round(one.score, DIGITS), round(one.log_prob, DIGITS))


def _token(place: int, tokenizer: Tokenizer) -> Token:
    """How an id is shown. A subword without a space before it joins the one to its left."""
    piece, special = tokenizer.piece(place), place < FIRST
    if special or not isinstance(tokenizer.vocabulary, SubwordVocabulary) or place >= tokenizer.vocabulary.size:
        return Token(piece, place, special)
    return Token(piece.removeprefix(SPACE) or SPACE, place, joins=not piece.startswith(SPACE))


def _one(ids: Sequence[int]) -> Rows:
    return Rows(np.array(ids, np.int64), np.array([len(ids)]))
