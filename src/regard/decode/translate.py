"""Lines of text in, as many translations out: text to ids, search, ids to text."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from regard.data.marks import UNK
from regard.data.tokenise import Tokenizer, lending
from regard.decode.beam import Beam
from regard.decode.constrain import Banned, Constraint, Never, NoRepeat
from regard.decode.draft import Hypothesis, Job
from regard.decode.engine import Room, Search, decode
from regard.decode.pharaoh import Pairs, between_words, hard, word_of
from regard.decode.state import Marks, OpenStepper
from regard.errors import UsageError


@dataclass(frozen=True)
class Decoding:
    """How targets are searched for. Lengths are in tokens, the end mark not counted; of several limits the lowest holds."""

    search: Search = field(default_factory=Beam)
    """Greedy, beam or sampling."""
    max_length: int = 0
    """No target is longer; 0 for no such limit."""
    max_ratio: float = 0.0
    """No target is longer than this many times its source; 0 for no such limit."""
    max_extra: int = 50
    """No target is longer than its source and this many tokens."""
    min_length: int = 0
    """No target is shorter."""
    no_repeat: int = 0
    """No n-gram of this many tokens occurs twice in a target; 0 for off."""
    unknown: bool = False
    """May the mark for unknown words be written?"""

    def __post_init__(self):
        for name in ("max_length", "max_ratio", "max_extra", "min_length", "no_repeat"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} = {getattr(self, name)} is negative", where="decoding", do="take 0 or more")

    def limit(self, source: int, *, model: int = 0) -> int:
        """The longest target of a source of so many tokens; `model` is what the model itself can write, 0 for anything."""
        limits = [source + self.max_extra]
        limits += [self.max_length] if self.max_length else []
        limits += [max(1, int(source * self.max_ratio))] if self.max_ratio else []
        limits += [model] if model else []
        return min(limits)

    def constraints(self, banned: Sequence[Sequence[int]] = ()) -> list[Constraint]:
        rules: list[Constraint] = [] if self.unknown else [Never((UNK,))]
        rules += [Banned(tuple(tuple(phrase) for phrase in banned))] if banned else []
        rules += [NoRepeat(self.no_repeat)] if self.no_repeat else []
        return rules


@dataclass(frozen=True)
class Candidate:
    """One translation. `log_probs` has one more number than there are pieces: the end mark's."""

    text: str
    tokenised: str  # in the form that the vocabulary was trained on; the same as the text unless that is lowercased or tokenised
    pieces: tuple[str, ...] = ()
    log_probs: tuple[float, ...] = ()
    score: float = 0.0
    full: bool = False  # as long as was allowed, so probably cut short
    alignment: Pairs = ()  # between the words of the tokenised source and target

    @property
    def log_prob(self) -> float:
        return sum(self.log_probs)


@dataclass(frozen=True)
class Translation:
    """What became of one line: candidates, best first, at least one. An empty line has one that is empty."""

    source: str
    candidates: tuple[Candidate, ...]
    dropped: int = 0  # source tokens at the end that the model was not shown, being more than it takes

    @property
    def best(self) -> Candidate:
        return self.candidates[0]

    @property
    def text(self) -> str:
        return self.best.text


def translate(
    open_stepper: OpenStepper,
    texts: Sequence[str],
    *,
    source: Tokenizer,
    target: Tokenizer,
    decoding: Decoding = Decoding(),
    prefixes: Sequence[str] = (),
    banned: Sequence[str] = (),
    alignment: bool = False,
    longest_source: int = 0,
    longest_target: int = 0,
    first: int = 0,
    marks: Marks = Marks(),  # noqa: B008 (frozen)
    room: Room = Room(),  # noqa: B008
    warn: Callable[[str], None] = lambda message: None,
    copies: bool = False,
) -> list[Translation]:
    """One translation for each text, in order.

    `copies`: the model can write words of the source that stand in no vocabulary.
    `prefixes`: how each target must begin ("" for anyhow). `banned`: phrases that no target contains. `longest_source` and
    `longest_target`: most tokens that the model takes, marks included, 0 for any number. A longer source is cut, which is told to `warn`
    and in `dropped`. `first` is the line number of the first text, on which the randomness of samples hangs.
    """
    if prefixes and len(prefixes) != len(texts):
        raise UsageError(f"{len(texts)} texts and {len(prefixes)} prefixes", do="give one for each text, empty where there is none")
    answers: dict[int, Translation] = {}
    jobs: list[Job] = []
    places: list[int] = []
    lost: list[int] = []
    spoken: list[tuple[Tokenizer, Tokenizer]] = []
    for place, text in enumerate(texts):
        reader, writer = lending(source, target, text) if copies else (source, target)
        ids = reader.encode(text) if text.strip() else []
        if not ids:
            answers[place] = Translation(text, (Candidate("", ""),))
            continue
        over = max(0, len(ids) + 1 - longest_source) if longest_source else 0
        if over:
            ids = ids[:-over]
            warn(f"line {first + place + 1}: {len(ids) + over} tokens are more than the model takes; the last {over} were left out")
        prefix = tuple(writer.encode(prefixes[place])) if prefixes and prefixes[place] else ()
        limit = decoding.limit(len(ids), model=max(longest_target - 1, 1) if longest_target else 0)
        jobs.append(Job((*ids, marks.end), limit, decoding.min_length, prefix, number=first + place))
        places.append(place)
        lost.append(over)
        spoken.append((reader, writer))
    phrases = [ids for ids in map(target.encode, banned) if ids]
    found = decode(
        open_stepper,
        jobs,
        search=decoding.search,
        constraints=decoding.constraints(phrases),
        marks=marks,
        room=room,
        attention=alignment,
    )
    for place, job, over, (reader, writer), hypotheses in zip(places, jobs, lost, spoken, found, strict=True):
        candidates = tuple(_candidate(one, job, reader, writer) for one in hypotheses)
        answers[place] = Translation(texts[place], candidates, dropped=over)
    return [answers[place] for place in range(len(texts))]


def translate_stream(lines: Iterable[str], translate_some: Callable[..., list[Translation]], *, chunk: int = 4096) -> Iterator[Translation]:
    """Any number of lines in flat memory, answered in order; `translate_some(texts, first=...)` is `translate` with the rest filled in.

    Batches are sorted within a chunk. A chunk of 1 answers each line before the next one is read.
    """
    iterator, first = iter(lines), 0
    while texts := list(itertools.islice(iterator, chunk)):
        yield from translate_some(texts, first=first)
        first += len(texts)


def _candidate(one: Hypothesis, job: Job, source: Tokenizer, target: Tokenizer) -> Candidate:
    tokenised = target.decode(one.tokens)
    aligned: Pairs = ()
    if one.attention is not None and one.tokens:
        ids = job.source[:-1]
        pairs = hard(one.attention[: len(one.tokens), : len(ids)])  # what the end marks do tells nothing of words
        aligned = between_words(pairs, word_of(ids, source.decode), word_of(one.tokens, target.decode))
    return Candidate(
        text=target.detokenise(tokenised),
        tokenised=tokenised,
        pieces=tuple(map(target.piece, one.tokens)),
        log_probs=one.log_probs,
        score=one.score,
        full=one.full,
        alignment=aligned,
    )
