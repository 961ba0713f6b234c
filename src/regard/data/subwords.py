"""SentencePiece vocabularies: no piece crosses a space, so a word is spelled once and remembered, and every text comes back exactly."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from random import Random
from typing import Literal

import sentencepiece

from regard.data.marks import BOS, EOS, FIRST, PAD, UNK
from regard.data.sampling import Lattice, drop_merges
from regard.data.words import byte_piece
from regard.errors import DataError

SPACE = "▁"  # how SentencePiece writes the space before a word
REMEMBERED = 1 << 17  # words; the frequent ones come early
LONGEST_WORD = 40  # characters; longer ones (URLs, scripts without spaces) are spelled anew each time
THREADS = 4  # fixed, so that the same lines give the same model on any machine
MOST_BYTES = 16_384  # in a training line; longer ones are left out


class SubwordVocabulary:
    """Pieces of one SentencePiece model. A space in the text belongs to the word after it, and one is added before the first word."""

    separator = ""

    def __init__(self, model: bytes, *, algorithm: Literal["unigram", "bpe"], words: Mapping[str, int] | None = None):
        self.model = model
        self.algorithm: Literal["unigram", "bpe"] = algorithm
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)  # pyright: ignore[reportCallIssue]
        self.size: int = self._processor.get_piece_size()
        self.pieces = [self._processor.id_to_piece(place) for place in range(self.size)]
        self._is_byte = [self._processor.is_byte(place) for place in range(self.size)]
        self._bytes = [self._spelled(place) for place in range(self.size)]
        self._space_itself = [self.pieces.index(byte_piece(byte)) for byte in SPACE.encode()] if any(self._is_byte) else [UNK]
        self._words = dict(words or {})  # words that have an id of their own, beyond the model's
        self._known = {word: [place] for word, place in self._words.items()}

    def __reduce__(self):  # how it travels to worker processes
        return _restored, (self.model, self.algorithm, self._words)

    @staticmethod
    def train(
        lines: Iterable[str], *, algorithm: Literal["unigram", "bpe"], size: int, coverage: float, byte_fallback: bool
    ) -> SubwordVocabulary:
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(  # pyright: ignore[reportAttributeAccessIssue]
                sentence_iterator=(" " + line.replace("\n", " ") for line in lines),
                model_writer=model,
                model_type=algorithm,
                vocab_size=size,
                character_coverage=coverage,
                byte_fallback=byte_fallback,
                pad_id=PAD,
                bos_id=BOS,
                eos_id=EOS,
                unk_id=UNK,
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                add_dummy_prefix=False,  # we add the space ourselves, so that what follows a tag can go without
                hard_vocab_limit=False,
                max_sentence_length=MOST_BYTES,
                max_sentencepiece_length=16,
                num_threads=THREADS,
                minloglevel=2,
            )
        except RuntimeError as error:
            raise _explained(str(error), size) from None
        return SubwordVocabulary(model.getvalue(), algorithm=algorithm)

    def encode(self, text: str, *, opens: bool = True) -> list[int]:
        """`opens` says whether the text stands at the beginning, where a word has a space before it that decoding takes away again."""
        if not text:
            return []
        first, *words = text.split(" ")
        ids = list(self._word(first)) if opens else self._spell(first)
        known = self._known
        for word in words:
            spelled = known.get(word)
            ids += self._word(word) if spelled is None else spelled
        return ids

    def decode(self, ids: Sequence[int], *, opens: bool = True) -> str:
        spelled = self._bytes
        text = b"".join([spelled[place] for place in ids])
        return (text.removeprefix(b" ") if opens else text).decode("utf-8", "replace")

    def piece(self, place: int) -> str:
        return self.pieces[place]

    def spelling(self, place: int) -> str:
        """The text of a piece that may be spelled otherwise ("" for marks and bytes)."""
        return "" if place < FIRST or self._is_byte[place] else self.pieces[place]

    def knowing(self, words: Mapping[str, int]) -> SubwordVocabulary:
        """This vocabulary with ids for whole words, beyond its own, in place of their pieces."""
        return SubwordVocabulary(self.model, algorithm=self.algorithm, words=words)

    def draws(self, unit: str, count: int, *, amount: float, seed: int) -> list[list[int]]:
        """Ways to spell a unit (a word with its space sign, or one piece): `amount` is BPE's dropout or unigram's alpha."""
        draw = self._drawer(unit, amount, Random(f"{seed} {unit}"))
        return [[place for piece in draw() for place in self._ids(piece)] for _ in range(count)]

    def _drawer(self, unit: str, amount: float, random: Random) -> Callable[[], list[str]]:
        if self.algorithm == "bpe":
            symbols = list(unit)
            return lambda: drop_merges(symbols, self._ranks, dropout=amount, random=random)
        lattice = Lattice(unit, self._scores, alpha=amount, unknown=min(self._scores.values()) - 10)  # SentencePiece's penalty
        return lambda: lattice.draw(random)

    def _word(self, word: str) -> list[int]:
        spelled = self._known.get(word)
        if spelled is None:
            spelled = self._spell(" " + word)
            if len(word) <= LONGEST_WORD and len(self._known) < REMEMBERED:
                self._known[word] = spelled
        return spelled

    def _spell(self, text: str) -> list[int]:
        if SPACE in text:  # SentencePiece would take the sign itself for a space
            first, *rest = text.split(SPACE)
            return self._spell(first) + [place for part in rest for place in (*self._space_itself, *self._spell(part))]
        text = text.encode("utf-8", "replace").decode()  # a lone surrogate is no text
        return self._processor.encode(text) if text else []  # pyright: ignore[reportAttributeAccessIssue]

    def _spelled(self, place: int) -> bytes:
        piece = self.pieces[place]
        if self._is_byte[place]:
            return bytes([int(piece[3:-1], 16)])
        if place < FIRST:
            return b"<unk>" if place == UNK else b""
        return piece.replace(SPACE, " ").encode()

    def _ids(self, piece: str) -> list[int]:
        place = self._places.get(piece)
        if place is not None:
            return [place]
        if not any(self._is_byte):
            return [UNK]
        return [self._places_of_bytes[byte] for byte in piece.encode("utf-8", "replace")]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {piece: place for place, piece in enumerate(self.pieces) if place >= FIRST and not self._is_byte[place]}

    @cached_property
    def _places_of_bytes(self) -> dict[int, int]:
        return {int(piece[3:-1], 16): place for place, piece in enumerate(self.pieces) if self._is_byte[place]}

    @cached_property
    def _scores(self) -> dict[str, float]:
        return {piece: self._processor.get_score(place) for piece, place in self._places.items()}

    @cached_property
    def _ranks(self) -> dict[str, int]:
        return {piece: round(-score) for piece, score in self._scores.items() if len(piece) > 1}


def _restored(model: bytes, algorithm: Literal["unigram", "bpe"], words: Mapping[str, int]) -> SubwordVocabulary:
    return SubwordVocabulary(model, algorithm=algorithm, words=words)


def _explained(error: str, size: int) -> DataError:
    if "smaller than required_chars" in error:
        needed = error.rsplit("vs ", 1)[-1].split(".")[0]
        return DataError(
            f"a vocabulary of {size} cannot hold the {needed} entries that characters, bytes and marks need",
            do="raise size, or lower coverage",
        )
    if "_sentences" in error or "sentences_.empty" in error:
        return DataError("there is no text to train a tokenizer on", do="look at the filters, or run `regard check` on the files")
    return DataError(f"a vocabulary of {size} could not be trained ({error.splitlines()[0]})", do="try another size, or another kind")
