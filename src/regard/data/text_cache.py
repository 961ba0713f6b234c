"""Running text tokenised once into one long row of ids, mapped and not read: memory holds only the pages in use."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.documents import Piece, Text, read_pieces
from regard.data.marks import BOS, UNK
from regard.data.prepare import COMPRESSED, SMALL, complete, digest, flat, ordered_map, unfinished
from regard.data.ragged import Ragged, RaggedWriter
from regard.data.tokenise import Tokenizer, TokenizerConfig, train_tokenizer
from regard.errors import DataError

FORMAT = 1
CHUNK = 1 << 18  # characters handed to a worker at a time


@dataclass(frozen=True, eq=False)
class TextCache:
    """All documents end to end, each begun by the same mark."""

    ids: NDArray
    starts: NDArray[np.int64]
    """Where each document begins."""
    counts: Counter[str]
    """Documents read, kept, and left out by reason."""
    characters: int = 0
    """Of the text itself, marks not counted; 0 where it was cut out of a longer one."""
    words: int = 0
    """Parted by white space."""
    fingerprint: str = ""
    """A hash of the files and of what was done to them."""

    @staticmethod
    def of(documents: Sequence[Sequence[int]], *, begin: int = BOS) -> TextCache:
        """From lists of ids without marks, in memory."""
        rows = Ragged.of([[begin, *document] for document in documents])
        return TextCache(rows.values, rows.offsets[:-1], Counter(read=len(documents), kept=len(documents)))

    @staticmethod
    def load(folder: str | Path) -> TextCache:
        """From a folder that `prepare_text` wrote."""
        facts = json.loads(Path(folder, "cache.json").read_text(encoding="utf-8"))
        rows = Ragged.mapped(Path(folder), "text", facts["dtype"])
        counts = Counter(facts["counts"])
        return TextCache(rows.values, rows.offsets[:-1], counts, facts["characters"], facts["words"], facts["fingerprint"])

    @property
    def begin(self) -> int:
        """The mark before each document."""
        return int(self.ids[0])

    def __len__(self) -> int:
        return len(self.ids)

    def held_out(self, count: int) -> tuple[TextCache, TextCache]:
        """Without the last `count` documents, and these; of a single document its last tokens, which then begin as all do."""
        if len(self.starts) > 1:
            edge = int(self.starts[-count]) if count < len(self.starts) else 0
        else:
            edge = max(0, len(self.ids) - count)
        if not edge:
            what = f"{count} cannot be held out of {len(self.starts) if len(self.starts) > 1 else len(self.ids)}"
            raise DataError(what, where="data.hold_out", do="hold out fewer")
        rest, last = self.ids[:edge], self.ids[edge:]
        starts = self.starts[self.starts >= edge] - edge
        if not len(starts):
            last, starts = np.concatenate([self.ids[:1], last]), np.zeros(1, np.int64)
        plain = {"counts": Counter(), "characters": 0, "words": 0, "fingerprint": ""}
        return replace(self, ids=rest, starts=self.starts[self.starts < edge]), replace(self, ids=last, starts=starts, **plain)


def prepare_text(
    corpora: Sequence[Text],
    tokenizer: Tokenizer,
    folder: str | Path,
    *,
    begin: int = BOS,
    root: str | Path = ".",
    strict: bool = False,
    workers: int = 0,
    check: Callable[[], None] = lambda: None,
) -> TextCache:
    """The cache of these corpora under `folder`: the one that is there if nothing changed, else a new one. `check` may raise to stop it."""
    files = [(repr(corpus), [Path(root, corpus.path)]) for corpus in corpora]
    facts = (FORMAT, digest(files), tokenizer.fingerprint, begin, strict)
    key = hashlib.blake2b(repr(facts).encode(), digest_size=12).hexdigest()
    place = Path(folder, key)
    if complete(place):
        return TextCache.load(place)
    size = sum(path.stat().st_size * COMPRESSED.get(path.suffix, 1.0) for _, paths in files for path in paths)
    workers = workers or (1 if size < SMALL else min(os.cpu_count() or 1, 16))
    dtype = "uint16" if tokenizer.size <= 1 << 16 else "int32"
    counts: Counter[str] = Counter()
    characters = words = 0
    with unfinished(place) as work:
        writer, document = RaggedWriter(work, "text", dtype), _Document()
        pieces = (piece for corpus in corpora for piece in read_pieces(corpus, counts, root=root, strict=strict))
        for found in ordered_map(_encode, _groups(pieces), setup=_set_up, given=(tokenizer, begin), workers=workers):
            writer.append(found.ids, document.ended(found.lengths, found.opens))
            characters, words = characters + found.characters, words + found.words
            check()
        writer.append(np.zeros(0, np.int32), document.ended(np.zeros(0, np.int64), np.zeros(0, bool), last=True))
        writer.close()
        told: dict[str, Any] = {"format": FORMAT, "fingerprint": key, "dtype": dtype, "counts": counts}
        told |= {"characters": characters, "words": words}
        told["files"] = {path.name: path.stat().st_size for path in sorted(work.iterdir())}
        (work / "cache.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return TextCache.load(place)


def train_text_tokenizer(
    config: TokenizerConfig, corpora: Sequence[Text], *, root: str | Path = ".", strict: bool = False, seed: int = 1
) -> Tokenizer:
    """A tokenizer from lines of these corpora, each line with the same chance, in one pass and flat memory."""
    random, kept = Random(seed), []
    for seen, line in enumerate(_lines(corpora, root=root, strict=strict), 1):
        if len(kept) < config.training_pairs:
            kept.append(line)
        elif (place := random.randrange(seen)) < config.training_pairs:
            kept[place] = line
    return train_tokenizer(config, kept, language=config.surface.source_language)


def opening(tokenizer: Tokenizer, corpora: Sequence[Text]) -> int:
    """The mark before a document: where files are learned from as a whole, nearly no text begins, so an end of line stands for it."""
    line_end = tokenizer.encode("\n", opens=False)
    ends = len(line_end) == 1 and line_end[0] != UNK
    return line_end[0] if ends and all(corpus.documents == "whole" for corpus in corpora) else BOS


class _Document:
    """Lengths of documents from lengths of their pieces: the last one of a chunk may go on in the next."""

    def __init__(self):
        self._open = 0

    def ended(self, lengths: NDArray[np.int64], opens: NDArray[np.bool_], *, last: bool = False) -> NDArray[np.int64]:
        found = []
        for length, begins in zip(lengths.tolist(), opens.tolist(), strict=True):
            if begins and self._open:
                found.append(self._open)
                self._open = 0
            self._open += length
        if last and self._open:
            found.append(self._open)
        return np.array(found, np.int64)


@dataclass(frozen=True, eq=False)
class _Encoded:
    ids: NDArray
    lengths: NDArray[np.int64]
    opens: NDArray[np.bool_]
    characters: int
    words: int


_given: Any = None  # what this worker process was given to work with


def _set_up(given: Any) -> None:
    global _given
    _given = given


def _encode(pieces: list[Piece]) -> _Encoded:
    tokenizer, begin = _given
    ids, lengths = flat([[begin] * piece.opens + tokenizer.encode(piece.text, opens=piece.opens) for piece in pieces])
    characters, words = sum(len(piece.text) for piece in pieces), sum(len(piece.text.split()) for piece in pieces)
    return _Encoded(ids, lengths, np.array([piece.opens for piece in pieces]), characters, words)


def _groups(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    group, size = [], 0
    for piece in pieces:
        group.append(piece)
        size += len(piece.text)
        if size >= CHUNK:
            yield group
            group, size = [], 0
    if group:
        yield group


def _lines(corpora: Sequence[Text], *, root: str | Path, strict: bool) -> Iterator[str]:
    for corpus in corpora:
        for piece in read_pieces(corpus, root=root, strict=strict):
            yield from piece.text.splitlines(keepends=True)
