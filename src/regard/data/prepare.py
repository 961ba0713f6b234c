"""From raw files to the mapped cache: read once, tokenised by worker processes, put in place by one rename, found again by its hash."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.data.parallel import Corpus, Filters, paths, read_pairs
from regard.data.ragged import Ragged, RaggedWriter
from regard.data.stream import PairCache
from regard.data.subwords import LONGEST_WORD, SPACE, SubwordVocabulary
from regard.data.text import unreadable
from regard.data.tokenise import Tokenizer, lending, sample_pairs
from regard.data.words import most_frequent
from regard.errors import DataError, OutOfMemory

FORMAT = 1
CHUNK = 2_000  # pairs handed to a worker at a time
SMALL = 32 << 20  # bytes of text below which starting processes costs more than it saves
DRAWS = 16  # spellings drawn for each word
SAMPLED_PAIRS = 50_000  # to find the frequent words in
SAMPLED_WORDS = 50_000  # words with spellings of their own; rarer ones are drawn piece by piece
COMPRESSED = {".gz": 3.0, ".xz": 3.5, ".zst": 3.0}  # text bytes for a file byte, roughly: for the progress display alone

Progress = Callable[[int, float], None]
T = TypeVar("T")
R = TypeVar("R")


def prepare_pairs(
    corpora: Sequence[Corpus],
    tokenizers: tuple[Tokenizer, Tokenizer],
    folder: str | Path,
    *,
    root: str | Path = ".",
    filters: Filters | None = None,
    seed: int = 1,
    workers: int = 0,
    progress: Progress | None = None,
    lends: bool = False,
) -> PairCache:
    """The cache of these corpora under `folder`: the one that is there if nothing changed, else a new one.

    `workers` 0 = by the size of the corpus. `progress` is told the pairs done and the part done; it may raise to stop the work.
    `lends`: words of a source that the vocabulary lacks get ids beyond it, for their own pair, so that they can be copied.
    Where a tokenizer has sampling set, spellings are drawn for each word here, so that batches only choose among them.
    """
    filters = filters or Filters()
    key = _key(corpora, tokenizers, root=root, filters=filters, seed=seed, lends=lends)
    place = Path(folder, key)
    if complete(place):
        return PairCache.load(place)
    size = sum(path.stat().st_size * COMPRESSED.get(path.suffix, 1.0) for corpus in corpora for path in paths(corpus, root=root))
    workers = workers or (1 if size < SMALL else min(os.cpu_count() or 1, 16))
    with unfinished(place) as work:
        sides = [_Side(work, name, tokenizer, lends=lends) for name, tokenizer in zip(("source", "target"), tokenizers, strict=True)]
        if any(tokenizer.sampling for tokenizer in tokenizers):
            sample = sample_pairs(corpora, SAMPLED_PAIRS, root=root, filters=filters, seed=seed)
            for number, side in enumerate(sides):
                if side.tokenizer.sampling:
                    side.draw_spellings([pair[number] for pair in sample], seed=seed, workers=workers)
            del sample
        counts: Counter[str] = Counter()
        parts, done, seen = [], 0, 0
        for corpus in corpora:
            start = done
            pairs = read_pairs(corpus, counts, root=root, filters=filters)
            encoders = sides[0].encoder, sides[1].encoder, lends
            for source, target, text_bytes in ordered_map(_encode, chunks(pairs, CHUNK), setup=_set_up, given=encoders, workers=workers):
                sides[0].append(*source)
                sides[1].append(*target)
                done, seen = done + len(source[1]), seen + text_bytes
                if progress:
                    progress(done, min(1.0, seen / max(size, 1)))
            parts.append({"start": start, "stop": done, "share": corpus.share})
        for side in sides:
            side.close()
        facts = {"format": FORMAT, "fingerprint": key, "parts": parts, "counts": counts}
        facts |= {side.name: {"dtype": side.dtype, "draws": side.draws} for side in sides}
        facts["files"] = {path.name: path.stat().st_size for path in sorted(work.iterdir())}
        (work / "cache.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return PairCache.load(place)


class _Side:
    """One side while it is written."""

    def __init__(self, folder: Path, name: str, tokenizer: Tokenizer, *, lends: bool):
        self.folder, self.name, self.tokenizer, self.encoder, self.draws = folder, name, tokenizer, tokenizer, 0
        self._best_lengths: NDArray[np.int64] | None = None
        self._open(1 << 31 if lends else tokenizer.size)
        self._lengths = open(folder / f"{name}.lengths", "wb")  # noqa: SIM115

    def _open(self, size: int) -> None:
        self.dtype = "uint16" if size <= 1 << 16 else "int32"
        self._units = RaggedWriter(self.folder, self.name, self.dtype)

    def draw_spellings(self, texts: Sequence[str], *, seed: int, workers: int) -> None:
        """The table of spellings: for each piece and each frequent word the best one, then the draws."""
        counts = Counter(word for text in texts for word in self.tokenizer.words(text))
        words = [word for word in most_frequent(counts, 2 * SAMPLED_WORDS) if len(word) <= LONGEST_WORD and SPACE not in word]
        words = words[:SAMPLED_WORDS]
        units = [*range(self.tokenizer.size), *words]
        few = workers if len(units) > 20_000 else 1
        table = RaggedWriter(self.folder, f"{self.name}.spellings", "int32")
        for rows in ordered_map(_spell, chunks(units, 500), setup=_set_up, given=(self.tokenizer, seed), workers=few):
            table.append(*rows)
        table.close()
        self._units.close()
        self._open(len(units))
        self.encoder, self.draws = self.tokenizer.knowing(words), DRAWS
        self._best_lengths = np.diff(Ragged.mapped(self.folder, f"{self.name}.spellings", "int32").offsets)[:: DRAWS + 1].copy()

    def append(self, units: NDArray, counts: NDArray) -> None:
        self._units.append(units, counts)
        lengths = counts
        if self._best_lengths is not None:
            lengths = np.bincount(np.repeat(np.arange(len(counts)), counts), self._best_lengths[units], minlength=len(counts))
        self._lengths.write(lengths.astype(np.int32).tobytes())

    def close(self) -> None:
        self._units.close()
        self._lengths.close()


_given: Any = None  # what this worker process was given to work with


def _set_up(given: Any) -> None:
    global _given
    _given = given


def _encode(pairs: list[tuple[str, str]]) -> tuple[tuple[NDArray, NDArray], tuple[NDArray, NDArray], int]:
    one, other, lends = _given
    found = [lending(one, other, source) if lends else (one, other) for source, _ in pairs]
    one, other = ([each[side].encode(pair[side]) for each, pair in zip(found, pairs, strict=True)] for side in (0, 1))
    return flat(one), flat(other), sum(len(source) + len(target) + 2 for source, target in pairs)


def _spell(units: list[int | str]) -> tuple[NDArray, NDArray]:
    tokenizer, seed = _given
    vocabulary: SubwordVocabulary = tokenizer.vocabulary
    rows: list[list[int]] = []
    for unit in units:
        if isinstance(unit, str):
            best, spelled = vocabulary.encode(unit), SPACE + unit
        else:
            best, spelled = [unit], vocabulary.spelling(unit) if unit < vocabulary.size else ""
        draws = vocabulary.draws(spelled, DRAWS, amount=tokenizer.sampling, seed=seed) if spelled else [best] * DRAWS
        rows += [best, *draws]
    return flat(rows)


def flat(rows: list[list[int]]) -> tuple[NDArray, NDArray]:
    return np.array([place for row in rows for place in row], np.int32), np.array([len(row) for row in rows], np.int64)


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in lists of this size."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def ordered_map(function: Callable[[T], R], items: Iterable[T], *, setup: Callable[[Any], None], given: Any, workers: int) -> Iterator[R]:
    """function(item) in order, by this many processes; only a few items are ever under way, so memory stays flat."""
    if workers == 1:
        setup(given)
        yield from map(function, items)
        return
    context = multiprocessing.get_context("spawn")  # a forked child of a threaded process may hang
    with ProcessPoolExecutor(workers, mp_context=context, initializer=setup, initargs=(given,)) as pool:
        under_way = deque()
        try:
            for item in items:
                under_way.append(pool.submit(function, item))
                if len(under_way) > 3 * workers:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        except BrokenProcessPool:
            raise OutOfMemory("a worker process was killed, probably for want of memory", do="give fewer workers") from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def fingerprint(corpora: Sequence[Corpus], *, root: str | Path = ".") -> str:
    """A hash of the corpora's configs and of every byte of their files."""
    return digest((repr(corpus), paths(corpus, root=root)) for corpus in corpora)


def digest(described: Iterable[tuple[str, Iterable[Path]]]) -> str:
    """A hash of these words and of every byte of the files that go with them."""
    found = hashlib.blake2b(digest_size=16)
    for words, files in described:
        found.update(words.encode())
        for path in files:
            try:
                with open(path, "rb") as stream:
                    found.update(hashlib.file_digest(stream, "blake2b").digest())
            except OSError as error:
                raise unreadable(path, error) from None
    return found.hexdigest()


def _key(corpora: Sequence[Corpus], tokenizers: Iterable[Tokenizer], *, root: str | Path, filters: Filters, seed: int, lends: bool) -> str:
    marks = [tokenizer.fingerprint for tokenizer in tokenizers]
    drawn = (seed, DRAWS, SAMPLED_PAIRS, SAMPLED_WORDS) if any(tokenizer.sampling for tokenizer in tokenizers) else ()
    facts = (FORMAT, fingerprint(corpora, root=root), marks, repr(filters), drawn, *(("lends",) if lends else ()))
    return hashlib.blake2b(repr(facts).encode(), digest_size=12).hexdigest()


def complete(place: Path) -> bool:
    """Whether the cache is there with every file at its full size."""
    try:
        files = json.loads((place / "cache.json").read_text(encoding="utf-8"))["files"]
        return all((place / name).stat().st_size == size for name, size in files.items())
    except (OSError, ValueError, KeyError, TypeError):
        return False


@contextmanager
def unfinished(place: Path) -> Iterator[Path]:
    """A folder to work in that becomes `place` when all went well, and is gone when not."""
    work = place.with_name(f"{place.name}.tmp-{os.getpid()}")
    try:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        yield work
        if place.exists() and not complete(place):
            shutil.rmtree(place)
        try:
            work.rename(place)
        except OSError:
            if not complete(place):  # otherwise another rank was first, with the same contents
                raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(f"the cache cannot be written ({reason})", where=str(place), do="free space or name another folder") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
