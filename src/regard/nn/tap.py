"""Named places inside a model: `tap` is the identity until somebody records or replaces what passes there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase

from torch import Tensor, nn

Watcher = Callable[[str, Tensor], Tensor]

_watchers: list[tuple[tuple[str, ...], Watcher]] = []


def tap(x: Tensor, name: str) -> Tensor:
    """x itself, unless somebody watches this name."""
    if not _watchers:
        return x
    for patterns, watcher in _watchers:
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            x = watcher(name, x)
    return x


def watched(name: str) -> bool:
    """Whether it is worth computing what would be tapped under this name (attention weights, say)."""
    return bool(_watchers) and any(fnmatchcase(name, pattern) for patterns, _ in _watchers for pattern in patterns)


class Stages:
    """The taps of one call of attention, on the way from scores to weights: PREFIXscores, PREFIXbias, PREFIXmask, PREFIXmasked and
    PREFIXweights. Without a prefix nothing is tapped."""

    def __init__(self, prefix: str):
        self.prefix = prefix

    def __call__(self, stage: str, x: Tensor) -> Tensor:
        return tap(x, self.prefix + stage) if self.prefix else x

    def watched(self, *stages: str) -> bool:
        """Whether any of these is; of all of them, if none is named."""
        return bool(self.prefix) and any(watched(self.prefix + stage) for stage in stages or STAGES)


STAGES = ("scores", "bias", "mask", "masked", "weights")


@contextmanager
def record(model: nn.Module, *patterns: str) -> Iterator[dict[str, list[Tensor]]]:
    """Everything that passes the named places while the block runs, in order, detached: `{"decoder.3.cross.weights": [...]}`."""
    seen: dict[str, list[Tensor]] = defaultdict(list)

    def keep(name: str, x: Tensor) -> Tensor:
        seen[name].append(x.detach().clone())
        return x

    with _watching(model, patterns, keep):
        yield seen


@contextmanager
def replace(model: nn.Module, pattern: str, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """While the block runs, what passes the named places is changed: heads switched off, a direction removed, ..."""
    with _watching(model, (pattern,), lambda _, x: change(x)):
        yield


@contextmanager
def _watching(model: nn.Module, patterns: tuple[str, ...], watcher: Watcher) -> Iterator[None]:
    if not isinstance(model, nn.Module):
        raise TypeError(f"record and replace take the model that is watched, not a {type(model).__name__}")
    entry = (patterns, watcher)
    _watchers.append(entry)
    try:
        yield
    finally:
        _watchers.remove(entry)
