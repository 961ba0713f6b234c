"""Text to ids and back: one tokenizer for every kind of vocabulary, with tags, and marks that plain text can never produce."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Protocol, assert_never

from regard.data.marks import BOS, EOS, FIRST, MARKS, PAD, UNK
from regard.data.parallel import Corpus, Filters, paths, read_pairs
from regard.data.spelling import Bpe, Byte, Character, Pitches, TokenizerConfig, Unigram, Word
from regard.data.subwords import SubwordVocabulary
from regard.data.surface import Surface, prepare, restore
from regard.data.words import ByteVocabulary, CharacterVocabulary, LentVocabulary, PitchVocabulary, WordVocabulary
from regard.errors import DataError, ModelError, UsageError

__all__ = ["BOS", "EOS", "FIRST", "PAD", "UNK", "Bpe", "Byte", "Character", "Pitches", "Tokenizer", "TokenizerConfig", "Unigram", "Word"]


class Vocabulary(Protocol):
    """Ids for stretches of text without tags."""

    separator: str
    size: int

    def encode(self, text: str, *, opens: bool = True) -> list[int]: ...
    def decode(self, ids: Sequence[int], *, opens: bool = True) -> str: ...
    def piece(self, place: int) -> str: ...


class Tokenizer:
    """A vocabulary with the tags and the form of text that belong to it. Ids: marks 0 to 3, the vocabulary's own, then the tags."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        surface: Surface | None = None,
        language: str = "en",
        tags: Sequence[str] = (),
        sampling: float = 0.0,
    ):
        self.vocabulary, self.surface, self.language = vocabulary, surface or Surface(), language
        self.tags, self.sampling = tuple(tags), sampling
        self.size = vocabulary.size + len(self.tags)
        self._tag_ids = {tag: place for place, tag in enumerate(self.tags, vocabulary.size)}
        longest_first = sorted(self.tags, key=len, reverse=True)
        self._tag = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")") if self.tags else None
        self._plain = self.surface.lossless

    def encode(self, text: str, *, opens: bool = True) -> list[int]:
        """The ids of a text, without begin and end marks. One that does not open goes on with the text before it."""
        if self._tag is None or not self._tag.search(text):
            return self.vocabulary.encode(text if self._plain else self.prepare(text), opens=opens)
        ids: list[int] = []
        for place, part in enumerate(self._tag.split(text)):
            if place % 2:
                ids.append(self._tag_ids[part])
            elif part:
                ids += self.vocabulary.encode(self._prepared(part), opens=opens and place == 0)
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text, in the form that the vocabulary was trained on (see `detokenise`). Padding, begin and end marks are passed over."""
        parts: list[str] = []
        run: list[int] = []
        opens = True
        for place in ids:
            if self.vocabulary.size <= place < self.size:
                if run:
                    parts.append(self.vocabulary.decode(run, opens=opens))
                parts.append(self.tags[place - self.vocabulary.size])
                run, opens = [], False
            elif place >= UNK:
                run.append(place)
        if run:
            parts.append(self.vocabulary.decode(run, opens=opens))
        return self.vocabulary.separator.join(parts)

    def prepare(self, text: str) -> str:
        """The text in the form that the vocabulary sees: as it is, or lowercased and tokenised; tags stay."""
        if self._plain or self._tag is None:
            return self._prepared(text)
        return "".join(part if place % 2 else self._prepared(part) for place, part in enumerate(self._tag.split(text)))

    def detokenise(self, text: str) -> str:
        """Plain text from decoded text."""
        return restore(text, self.surface, language=self.language)

    def piece(self, place: int) -> str:
        """How one id is written."""
        if place < FIRST:
            return MARKS[place]
        return self.tags[place - self.vocabulary.size] if self.vocabulary.size <= place < self.size else self.vocabulary.piece(place)

    def save(self, folder: str | Path, name: str) -> None:
        """Writes tokenizer.NAME.json, and tokenizer.NAME.model where SentencePiece has one."""
        facts, model = self._contents()
        if model:
            Path(folder, f"tokenizer.{name}.model").write_bytes(model)
        Path(folder, f"tokenizer.{name}.json").write_text(facts, encoding="utf-8")

    @property
    def fingerprint(self) -> str:
        """A hash of everything that decides which ids a text gets."""
        facts, model = self._contents()
        return hashlib.blake2b(facts.encode() + model, digest_size=16).hexdigest()

    def words(self, text: str) -> list[str]:
        """The words of a text that `knowing` can give ids of their own."""
        return [word for part in _untagged(self, self.prepare(text)) for word in part.split(" ") if word]

    def strange(self, text: str) -> list[str]:
        """The words of a text that a vocabulary of words lacks, each once; of other vocabularies none, since they spell."""
        if type(self.vocabulary) is not WordVocabulary:
            return []
        words = [word for part in _untagged(self, self.prepare(text)) for word in part.split()]
        return list(dict.fromkeys(word for word in words if self.vocabulary.encode(word) == [UNK]))

    def lent(self, words: Sequence[str]) -> Tokenizer:
        """The tokenizer for a single example, in whose source these strange words stand: they have the ids `size`, `size` + 1, ..."""
        if not words:
            return self
        assert isinstance(self.vocabulary, WordVocabulary)
        vocabulary = LentVocabulary(self.vocabulary, words, first=self.size)
        return Tokenizer(vocabulary, surface=self.surface, language=self.language, tags=self.tags)

    def knowing(self, words: Sequence[str]) -> Tokenizer:
        """A tokenizer that gives these words one id each, after its last own id; every other text is spelled as before."""
        if not isinstance(self.vocabulary, SubwordVocabulary):
            raise UsageError("only unigram and bpe tokenizers can draw spellings", do="set sampling and dropout to 0")
        vocabulary = self.vocabulary.knowing({word: place for place, word in enumerate(words, self.size)})
        return Tokenizer(vocabulary, surface=self.surface, language=self.language, tags=self.tags)

    def _contents(self) -> tuple[str, bytes]:
        facts: dict = {"format": 1, "language": self.language, "surface": asdict(self.surface)}
        facts |= {"tags": self.tags, "sampling": self.sampling}
        model = b""
        match self.vocabulary:
            case SubwordVocabulary(algorithm=algorithm, model=model):
                facts |= {"kind": algorithm}
            case PitchVocabulary(voices=voices, steps=steps):
                facts |= {"kind": "pitches", "voices": voices, "steps": steps}
            case WordVocabulary(words=words):
                facts |= {"kind": "word", "words": words}
            case CharacterVocabulary(characters=characters, bytes_too=bytes_too):
                facts |= {"kind": "character", "characters": characters, "byte_fallback": bytes_too}
            case ByteVocabulary():
                facts |= {"kind": "byte"}
            case _:
                raise UsageError(f"a vocabulary of the type {type(self.vocabulary).__name__} cannot be saved")
        return json.dumps(facts, ensure_ascii=False, indent=1) + "\n", model

    def _prepared(self, part: str) -> str:
        if self._plain:
            return part
        spaced = " " if self._tag is not None and part.startswith(" ") else ""  # what parts a word from the tag before it
        return spaced + prepare(part, self.surface, language=self.language)


def lending(source: Tokenizer, target: Tokenizer, text: str) -> tuple[Tokenizer, Tokenizer]:
    """Both tokenizers for the pair whose source this text is: what it has of strange words can be said on either side."""
    words = source.strange(text)
    return source.lent(words), target.lent(words)


def load_tokenizer(folder: str | Path, name: str) -> Tokenizer:
    """The tokenizer that `save` wrote."""
    path = Path(folder, f"tokenizer.{name}.json")
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        match facts["kind"]:
            case "unigram" | "bpe" as algorithm:
                vocabulary = SubwordVocabulary(path.with_suffix(".model").read_bytes(), algorithm=algorithm)
            case "word":
                vocabulary = WordVocabulary(facts["words"])
            case "character":
                vocabulary = CharacterVocabulary(facts["characters"], bytes_too=facts["byte_fallback"])
            case "byte":
                vocabulary = ByteVocabulary()
            case "pitches":
                vocabulary = PitchVocabulary(voices=facts["voices"], steps=facts["steps"])
            case other:
                raise ModelError(f"unknown kind of tokenizer {other!r}", where=str(path), do="it may be of a newer version")
        surface = Surface(**facts["surface"])
        return Tokenizer(vocabulary, surface=surface, language=facts["language"], tags=facts["tags"], sampling=facts["sampling"])
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise ModelError(f"the tokenizer cannot be read ({type(error).__name__}: {error})", where=str(path)) from None


def train_tokenizer(config: TokenizerConfig, lines: Iterable[str], *, language: str = "en") -> Tokenizer:
    """A tokenizer from lines of plain text in one language."""
    empty = Tokenizer(ByteVocabulary(), surface=config.surface, language=language, tags=_checked(config.tags))
    vocabulary = _vocabulary(config, _stretches(empty, lines), tags=config.tags)
    return Tokenizer(vocabulary, surface=config.surface, language=language, tags=config.tags, sampling=_sampling(config))


def train_tokenizers(
    config: TokenizerConfig, corpora: Sequence[Corpus], *, root: str | Path = ".", filters: Filters | None = None, seed: int = 1
) -> tuple[Tokenizer, Tokenizer]:
    """Tokenizers of source and target from raw corpora; with `joint` they share one vocabulary."""
    tags = tuple(dict.fromkeys((*config.tags, *(corpus.tag for corpus in corpora if corpus.tag))))
    languages = config.surface.source_language, config.surface.target_language
    sides = [Tokenizer(ByteVocabulary(), surface=config.surface, language=code, tags=_checked(tags)) for code in languages]
    pairs = sample_pairs(corpora, config.training_pairs, root=root, filters=filters, seed=seed)
    if not pairs:
        where = str(paths(corpora[0], root=root)[0]) if corpora else ""
        raise DataError("no usable pair was found", where=where, do="look at the filters, or run `regard check` on the files")
    texts = [_stretches(side, (pair[place] for pair in pairs)) for place, side in enumerate(sides)]
    if config.joint:
        shared = _vocabulary(config, [*texts[0], *texts[1]], tags=tags)
        vocabularies: tuple[Vocabulary, Vocabulary] = (shared, shared)
    else:
        vocabularies = _vocabulary(config, texts[0], tags=tags), _vocabulary(config, texts[1], tags=tags)
    source, target = (
        Tokenizer(vocabulary, surface=config.surface, language=code, tags=tags, sampling=_sampling(config))
        for vocabulary, code in zip(vocabularies, languages, strict=True)
    )
    return source, target


def sample_pairs(
    corpora: Sequence[Corpus], limit: int, *, root: str | Path = ".", filters: Filters | None = None, seed: int = 1
) -> list[tuple[str, str]]:
    """At most `limit` pairs, each with the same chance, in one pass and flat memory (reservoir sampling)."""
    random, kept, seen = Random(seed), [], 0
    for corpus in corpora:
        for pair in read_pairs(corpus, Counter(), root=root, filters=filters):
            seen += 1
            if len(kept) < limit:
                kept.append(pair)
            elif (place := random.randrange(seen)) < limit:
                kept[place] = pair
    return kept


def _vocabulary(config: TokenizerConfig, stretches: Sequence[str], *, tags: Sequence[str]) -> Vocabulary:
    if not stretches and not isinstance(config, Byte | Pitches):
        raise DataError("there is no text to train a tokenizer on", do="look at the filters, or run `regard check` on the files")
    match config:
        case Unigram(size=size, coverage=coverage, byte_fallback=fallback) | Bpe(size=size, coverage=coverage, byte_fallback=fallback):
            return SubwordVocabulary.train(
                stretches, algorithm=config.kind, size=size - len(tags), coverage=coverage, byte_fallback=fallback
            )
        case Word(size=size, min_count=min_count):
            return WordVocabulary.train(stretches, size=size - len(tags) if size else 0, min_count=min_count)
        case Character(coverage=coverage, byte_fallback=fallback):
            return CharacterVocabulary.train(stretches, coverage=coverage, bytes_too=fallback)
        case Byte():
            return ByteVocabulary()
        case Pitches(voices=voices, steps=steps):
            return PitchVocabulary(voices=voices, steps=steps)
        case _:
            assert_never(config)


def _stretches(tokenizer: Tokenizer, lines: Iterable[str]) -> list[str]:
    """The prepared texts between the tags."""
    texts = (part.strip(" ") for line in lines for part in _untagged(tokenizer, tokenizer.prepare(line)))
    return [text for text in texts if text]


def _untagged(tokenizer: Tokenizer, text: str) -> Iterable[str]:
    return re.split("|".join(map(re.escape, tokenizer.tags)), text) if tokenizer.tags else [text]


def _sampling(config: TokenizerConfig) -> float:
    match config:
        case Unigram(sampling=alpha):
            return alpha
        case Bpe(dropout=dropout):
            return dropout
        case _:
            return 0.0


def _checked(tags: Sequence[str]) -> Sequence[str]:
    for tag in tags:
        if not tag or tag != tag.strip() or any(character.isspace() for character in tag):
            raise UsageError(f"the tag {tag!r} must be a word without spaces")
    return tags
