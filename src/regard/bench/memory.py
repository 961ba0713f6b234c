"""Is memory flat in the size of the corpus? Generated pairs go from raw files to batches while a thread watches what is allocated."""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--small", type=int, default=100_000, metavar="PAIRS", help="the smaller corpus (100,000)")
    parser.add_argument("--large", type=int, default=5_000_000, metavar="PAIRS", help="the larger one (5,000,000)")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    return growth(arguments.small, arguments.large)


def one_size(
    pairs: int, *, dropout: float = 0.0, workers: int = 1, training_pairs: int = 50_000, batches: int = 200, window: int = 65_536
) -> dict:
    """From `pairs` generated pairs to `batches` batches, with the peak of memory; file-backed pages (the mapped cache) stand apart."""
    from regard.data.batching import Batches, Batching
    from regard.data.parallel import Lines
    from regard.data.prepare import prepare_pairs
    from regard.data.tokenise import Bpe, train_tokenizers

    corpora = [Lines("source.txt", "target.txt")]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        generate(folder, pairs)
        with watched() as peak:
            begun = time.perf_counter()
            config = Bpe(size=4000, dropout=dropout, training_pairs=training_pairs)
            tokenizers = train_tokenizers(config, corpora, root=folder)
            cache = prepare_pairs(corpora, tokenizers, folder / "cache", root=folder, workers=workers)
            prepared = time.perf_counter()
            stream = Batches(cache, Batching(tokens=16_384, window=window)).after()
            made = [batch.target_tokens for batch, _ in islice(stream, batches)]
            stream.close()
            ended = time.perf_counter()
        size = sum(path.stat().st_size for path in (folder / "cache").rglob("*") if path.is_file())
    return {
        "pairs": pairs,
        "anonymous_peak_mb": round(peak["RssAnon"], 1),
        "file_backed_peak_mb": round(peak["RssFile"], 1),
        "cache_mb": round(size / 2**20, 1),
        "prepare_seconds": round(prepared - begun, 2),
        "pairs_per_second": round(pairs / (prepared - begun)),
        "target_tokens_per_second": round(sum(made) / (ended - prepared)),
    }


def growth(small: int = 100_000, large: int = 5_000_000, *, training_pairs: int = 50_000, batches: int = 200, window: int = 65_536) -> dict:
    """Two sizes, each in a fresh process, and what the larger one needed more."""
    settings = {"training_pairs": training_pairs, "batches": batches, "window": window}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        one, other = (pool.submit(one_size, pairs, **settings).result() for pairs in (small, large))
    return {"small": one, "large": other, "growth_mb": round(other["anonymous_peak_mb"] - one["anonymous_peak_mb"], 1)}


def generate(folder: Path, pairs: int) -> None:
    """Two line-aligned files whose words are as unevenly frequent as a language's: the n-th one 1 / n."""
    noise = np.random.default_rng(17)
    syllables = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in "aeiou"]
    words = np.array(["".join(noise.choice(syllables, noise.integers(1, 5))) for _ in range(30_000)], object)
    chance = 1 / np.arange(1, len(words) + 1)
    chance /= chance.sum()
    for name in ("source.txt", "target.txt"):
        with open(folder / name, "w", encoding="utf-8") as file:
            for start in range(0, pairs, 10_000):
                lengths = noise.integers(3, 25, min(10_000, pairs - start))
                drawn = words[noise.choice(len(words), int(lengths.sum()), p=chance)]
                edges = np.cumsum(lengths)
                file.writelines(" ".join(drawn[end - length : end]) + "\n" for end, length in zip(edges, lengths))


@contextmanager
def watched(every: float = 0.02) -> Iterator[dict[str, float]]:
    """The peaks of anonymous and file-backed memory, in MB, of this process and its children (Linux)."""
    peak = {"RssAnon": 0.0, "RssFile": 0.0}
    done = threading.Event()

    def watch() -> None:
        while not done.wait(every):
            for name, megabytes in resident().items():
                peak[name] = max(peak[name], megabytes)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def resident() -> dict[str, float]:
    """Resident memory of this process and its children, now."""
    total = {"RssAnon": 0.0, "RssFile": 0.0}
    waiting = [Path("/proc/self")]
    while waiting:
        process = waiting.pop()
        try:
            for line in (process / "status").read_text().splitlines():
                name, _, value = line.partition(":")
                if name in total:
                    total[name] += int(value.split()[0]) / 1024
            children = " ".join(path.read_text() for path in (process / "task").glob("*/children"))
        except OSError:  # it ended meanwhile
            continue
        waiting += [Path("/proc", number) for number in children.split()]
    return total
