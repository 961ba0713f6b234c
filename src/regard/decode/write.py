"""Texts gone on with: a beginning to ids, search, ids to text; and what a model thinks of a text that is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from regard.data.batch import IGNORED, Side
from regard.data.layouts import rectangle, rectangle_side
from regard.data.marks import UNK
from regard.data.text_batch import TextBatch
from regard.data.tokenise import Tokenizer
from regard.decode.beam import Beam
from regard.decode.constrain import Never
from regard.decode.draft import Hypothesis, Job
from regard.decode.engine import Search, decode
from regard.decode.sample import Sample
from regard.decode.score import PairScore
from regard.decode.state import Marks
from regard.decode.step_writer import writer_opener
from regard.decode.translator import room
from regard.errors import UsageError
from regard.models.language_model import Writer
from regard.nn.positions import Learned


@dataclass(frozen=True)
class Written:
    """One text: the beginning that was given, and how the model goes on. `log_probs` has one number for each piece, and one more if the
    model says that the text is over."""

    prompt: str
    text: str  # without the prompt
    pieces: tuple[str, ...]
    log_probs: tuple[float, ...]
    ended: bool

    @property
    def log_prob(self) -> float:
        return sum(self.log_probs)


def write_texts(
    model: Writer,
    prompts: Sequence[str],
    *,
    tokenizer: Tokenizer,
    search: Search,
    length: int,
    count: int = 1,
    first: int = 0,
    warn: Callable[[str], None] = lambda message: None,
) -> list[list[Written]]:
    """`count` texts for each prompt, of at most `length` tokens each; `first` is the place of the first prompt in the input.

    Where the model's positions end, sampling and greedy search go on from the last half of what can be seen; a beam ends there.
    """
    if length < 1:
        raise UsageError(f"a text of {length} tokens", where="--max-length", do="take 1 or more")
    reach = longest(model)
    if reach == 1:
        raise UsageError("the model has a single position: it sees no text", where="model.embedding", do="train with more positions")
    begun = [(model.config.begin, *tokenizer.encode(prompt)) for prompt in prompts]
    if isinstance(search, Beam):
        found = _beams(model, begun, search=replace(search, n_best=count), length=length, reach=reach, first=first, warn=warn)
        return [[_told(model, prompt, one, tokenizer) for one in each] for prompt, each in zip(prompts, found, strict=True)]
    texts = [_Text(ids, first + place, draw) for place, ids in enumerate(begun) for draw in range(count)]
    for ids in begun:
        if reach and len(ids) >= reach:
            warn(f"a prompt of {len(ids) - 1} tokens: the model, which has {reach} positions, goes on from its last {reach // 2}")
    turn = 0
    while open_ := [text for text in texts if not text.ended and len(text.written) < length]:
        jobs = [text.job(turn, length=length, reach=reach) for text in open_]
        single = replace(search, draws=1) if isinstance(search, Sample) else search
        for text, (one, *_) in zip(open_, _search(model, jobs, single), strict=True):
            text.take(one)
        turn += 1
    found = [Hypothesis(tuple(text.written), tuple(text.log_probs), sum(text.log_probs), not text.ended) for text in texts]
    return [
        [_told(model, prompt, one, tokenizer) for one in found[place * count : (place + 1) * count]] for place, prompt in enumerate(prompts)
    ]


def go_on(model: Writer, begun: Sequence[tuple[int, ...]], *, search: Search, limits: Sequence[int]) -> list[tuple[int, ...]]:
    """The best way to go on with each of these texts, by as many tokens as it may have."""
    jobs = [Job(ids, limit, number=place) for place, (ids, limit) in enumerate(zip(begun, limits, strict=True))]
    return [ranked[0].tokens for ranked in _search(model, jobs, search)]


def score_texts(model: Writer, texts: Sequence[str], *, tokenizer: Tokenizer, tokens: int = 4096) -> list[PairScore]:
    """What the model thinks of each token of these texts and, if it knows of ends, of their ending there."""
    reach, begun = longest(model), [[model.config.begin, *tokenizer.encode(text)] for text in texts]
    for ids in begun:
        if reach and len(ids) > reach:
            what = f"a text of {len(ids) - 1} tokens, and the model has {reach} positions"
            raise UsageError(what, do="score it in pieces")
    found: list[PairScore] = [PairScore(())] * len(texts)
    order = sorted(range(len(texts)), key=lambda place: len(begun[place]))
    while order:
        count = 1
        while count < len(order) and (count + 1) * len(begun[order[count]]) <= tokens:
            count += 1
        some, order = order[:count], order[count:]
        batch = text_batch([begun[place] for place in some], end=model.config.end).to(model.device)
        with torch.inference_mode():
            log_probs_BTV = model.output(model(batch)).float().log_softmax(-1)
        told_BT = log_probs_BTV.gather(2, batch.labels.clamp_min(0)[..., None])[..., 0].cpu()
        for row, place in enumerate(some):
            found[place] = PairScore(tuple(told_BT[row, : int((batch.labels[row] != IGNORED).sum())].tolist()))
    return found


def text_batch(begun: Sequence[Sequence[int]], *, end: int) -> TextBatch:
    """Texts side by side, each with its mark before it, and the end mark (if there is one) to be said after it."""
    lengths = np.array([len(ids) for ids in begun], np.int64)
    flat = np.array([place for ids in begun for place in ids], np.int64)
    labels = np.array([place for ids in begun for place in (*ids[1:], end or IGNORED)], np.int64)
    text: Side = rectangle_side(flat, lengths)
    return TextBatch(text, rectangle(labels, lengths, IGNORED), tuple(range(len(begun))), int((labels != IGNORED).sum()))


def longest(model: Writer) -> int:
    """Most tokens that the model sees at once, its mark included; 0 for any number."""
    positions = model.config.embedding.positions
    return positions.length if isinstance(positions, Learned) else 0


class _Text:
    """One text on its way, over as many searches as it takes."""

    def __init__(self, ids: tuple[int, ...], place: int, draw: int):
        self.ids, self.place, self.draw = ids, place, draw
        self.written: list[int] = []
        self.log_probs: list[float] = []
        self.ended = False

    def job(self, turn: int, *, length: int, reach: int) -> Job:
        seen = (*self.ids, *self.written)
        if reach and (turn or len(seen) >= reach):
            seen = seen[-max(1, reach // 2) :]
        rest = length - len(self.written)
        limit = min(rest, reach - len(seen)) if reach else rest
        return Job(seen, limit, number=self.place + (self.draw << 24) + (turn << 40))

    def take(self, one: Hypothesis) -> None:
        """What is cut off at the limit has an end mark that the model was made to say."""
        self.ended = not one.full
        self.written += one.tokens
        self.log_probs += one.log_probs if self.ended else one.log_probs[:-1]


def _beams(
    model: Writer, begun: Sequence[tuple[int, ...]], *, search: Beam, length: int, reach: int, first: int, warn: Callable[[str], None]
) -> list[list[Hypothesis]]:
    jobs = []
    for place, ids in enumerate(begun):
        limit = min(length, reach - len(ids)) if reach else length
        if limit < 1:
            raise UsageError(f"a prompt of {len(ids) - 1} tokens fills all {reach} positions of the model", do="shorten it, or sample")
        if limit < length:
            warn(f"the model has {reach} positions: no more than {limit} tokens are written")
        jobs.append(Job(ids, limit, number=first + place))
    return [[one if not one.full else replace(one, log_probs=one.log_probs[:-1]) for one in each] for each in _search(model, jobs, search)]


def _search(model: Writer, jobs: Sequence[Job], search: Search) -> list[list[Hypothesis]]:
    return decode(
        writer_opener(model, longest=max(len(job.source) for job in jobs), reach=longest(model)),
        jobs,
        search=search,
        constraints=[Never((UNK,))],
        marks=Marks(end=model.config.end),
        room=room(model.device),
    )


def _told(model: Writer, prompt: str, one: Hypothesis, tokenizer: Tokenizer) -> Written:
    """The text from the prompt on: what the whole decodes to, less the prompt, so that spaces stay where they belong."""
    whole, begun = (tokenizer.decode((*tokenizer.encode(prompt), *ids)) for ids in (one.tokens, ()))
    text = whole.removeprefix(begun) if prompt else whole
    return Written(prompt, tokenizer.detokenise(text), tuple(map(tokenizer.piece, one.tokens)), one.log_probs, ended=not one.full)
