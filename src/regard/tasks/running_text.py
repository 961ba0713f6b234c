"""What every task of running text holds: a tokenizer made of the texts, and their tokens in files that are mapped into memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from numpy.typing import NDArray

from regard.data.documents import Text
from regard.data.text_cache import TextCache, prepare_text
from regard.data.tokenise import Tokenizer
from regard.errors import DataError
from regard.run import Run, root_of
from regard.train.auto import worth_trying
from regard.train.parallel import Ranks
from regard.train.signals import Signals

GIVEN = 24  # tokens of the text in a sample
C = TypeVar("C")


@dataclass(frozen=True, eq=False)
class RunningText(Generic[C]):
    """A run's texts, ready to be read."""

    run: Run
    config: C
    tokenizer: Tokenizer
    train: TextCache
    valid: TextCache | None
    test: TextCache | None

    on_cpu = 2048

    @property
    def fingerprint(self) -> str:
        return self.train.fingerprint

    @property
    def counts(self) -> Mapping[str, int]:
        return self.train.counts

    @property
    def most(self) -> int:
        return worth_trying(len(self.train))


def text_caches(
    run: Run, parts: Sequence[Sequence[Text]], tokenizer: Tokenizer, out: Path, *, begin: int, ranks: Ranks, signals: Signals
) -> tuple[TextCache, TextCache | None, TextCache | None]:
    """What is learned from, watched and tested; made by the first rank, read by all."""
    root, strict = root_of(run.data), run.data.filters.on_bad_line == "fail"
    folder = Path(run.data.cache) if run.data.cache else out / "cache"

    def cached(corpora: Sequence[Text]) -> TextCache | None:
        if not corpora:
            return None
        axes = {"begin": begin, "root": root, "strict": strict, "workers": run.data.workers}
        found = prepare_text(corpora, tokenizer, folder, check=signals.check, **axes)
        if len(found) < 2:
            raise DataError("there is no text in it", where=corpora[0].path, do="look at the file, and at start and stop")
        return found

    if not ranks.first:
        ranks.wait()
    learned, watched, tested = map(cached, parts)
    if ranks.first:
        ranks.wait()
    assert learned is not None
    if run.data.hold_out and watched is None:
        learned, watched = learned.held_out(run.data.hold_out)
    return learned, watched, tested


def beginning(cache: TextCache, number: int) -> NDArray:
    """Some tokens to go on with: at most half of a document or, where there is but one, from anywhere in it."""
    if len(cache.starts) == 1:
        start = number * 7919 % len(cache)
        return cache.ids[start : start + GIVEN]
    place = number % len(cache.starts)
    start, stop = int(cache.starts[place]), int(cache.starts[place + 1]) if place + 1 < len(cache.starts) else len(cache)
    return cache.ids[start : start + min(GIVEN, (stop - start + 1) // 2)]


def on_one_line(text: str) -> str:
    return text.replace("\n", "↵")
