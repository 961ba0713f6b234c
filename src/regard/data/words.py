"""Vocabularies that need no training beyond counting: words, characters, bytes, pitches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from regard.data.marks import FIRST, UNK


class WordVocabulary:
    """Words parted by whitespace; what was too rare is UNK. Decoding joins by one space, so runs of spaces are lost."""

    separator = " "

    def __init__(self, words: Sequence[str]):
        self.words = tuple(words)
        self.size = FIRST + len(self.words)
        self._ids = {word: place for place, word in enumerate(self.words, FIRST)}

    @staticmethod
    def train(lines: Iterable[str], *, size: int, min_count: int) -> WordVocabulary:
        counts = Counter(word for line in lines for word in line.split())
        return WordVocabulary(most_frequent(counts, size - FIRST if size else 0, min_count=min_count))

    def encode(self, text: str, *, opens: bool = True) -> list[int]:
        ids = self._ids
        return [ids.get(word, UNK) for word in text.split()]

    def decode(self, ids: Sequence[int], *, opens: bool = True) -> str:
        return " ".join(self.piece(place) for place in ids)

    def piece(self, place: int) -> str:
        return self.words[place - FIRST] if place >= FIRST else "<unk>"


class LentVocabulary(WordVocabulary):
    """The same, for a single example: words of its source that the vocabulary lacks have ids beyond all others."""

    def __init__(self, known: WordVocabulary, lent: Sequence[str], *, first: int):
        self.words, self.size = known.words, known.size
        self.lent, self._first, self._known = tuple(lent), first, known
        self._lent_ids = {word: place for place, word in enumerate(self.lent, first)}

    def encode(self, text: str, *, opens: bool = True) -> list[int]:
        words = text.split()
        return [
            self._lent_ids.get(word, UNK) if place == UNK else place for word, place in zip(words, self._known.encode(text), strict=True)
        ]

    def piece(self, place: int) -> str:
        return self.lent[place - self._first] if place >= self._first else super().piece(place)


class CharacterVocabulary:
    """Unicode code points; those beyond the coverage are UNK, or their UTF-8 bytes where there is byte fallback."""

    separator = ""

    def __init__(self, characters: Sequence[str], *, bytes_too: bool = True):
        self.characters, self.bytes_too = tuple(characters), bytes_too
        self._first = FIRST + 256 * bytes_too
        self.size = self._first + len(self.characters)
        self._ids = {character: place for place, character in enumerate(self.characters, self._first)}

    @staticmethod
    def train(lines: Iterable[str], *, coverage: float, bytes_too: bool) -> CharacterVocabulary:
        counts = Counter(character for line in lines for character in line)
        wanted, seen, kept = coverage * counts.total(), 0, []
        for character in most_frequent(counts, 0):
            if seen >= wanted:
                break
            kept.append(character)
            seen += counts[character]
        return CharacterVocabulary(kept, bytes_too=bytes_too)

    def encode(self, text: str, *, opens: bool = True) -> list[int]:
        ids: list[int] = []
        for character in text:
            place = self._ids.get(character)
            if place is not None:
                ids.append(place)
            elif self.bytes_too:
                ids.extend(FIRST + byte for byte in character.encode("utf-8", "replace"))
            else:
                ids.append(UNK)
        return ids

    def decode(self, ids: Sequence[int], *, opens: bool = True) -> str:
        return b"".join(self._bytes(place) for place in ids).decode("utf-8", "replace")

    def piece(self, place: int) -> str:
        if place < FIRST:
            return "<unk>"
        return self.characters[place - self._first] if place >= self._first else byte_piece(place - FIRST)

    def _bytes(self, place: int) -> bytes:
        if self.bytes_too and FIRST <= place < self._first:
            return bytes([place - FIRST])
        return self.piece(place).encode()


class ByteVocabulary:
    """The 256 bytes of UTF-8: no training, nothing unknown."""

    separator = ""
    size = FIRST + 256

    def encode(self, text: str, *, opens: bool = True) -> list[int]:
        return [FIRST + byte for byte in text.encode("utf-8", "replace")]

    def decode(self, ids: Sequence[int], *, opens: bool = True) -> str:
        return bytes(place - FIRST for place in ids if place >= FIRST).decode("utf-8", "replace")

    def piece(self, place: int) -> str:
        return byte_piece(place - FIRST) if place >= FIRST else "<unk>"


class PitchVocabulary(WordVocabulary):
    """A rest and the 128 pitches of MIDI, as words; and on which grid they stand."""

    def __init__(self, *, voices: int, steps: int):
        super().__init__(["-", *map(str, range(128))])
        self.voices, self.steps = voices, steps


def byte_piece(byte: int) -> str:
    """The name of a byte, as SentencePiece writes it."""
    return f"<0x{byte:02X}>"


def most_frequent(counts: Counter[str], limit: int, *, min_count: int = 1) -> list[str]:
    """Types by falling count, ties by code point so that the order of reading does not matter; `limit` 0 = all."""
    ranked = sorted((item for item in counts.items() if item[1] >= min_count), key=lambda item: (-item[1], item[0]))
    return [word for word, _ in (ranked[:limit] if limit else ranked)]
