"""`regard train --source F --target F`: from two raw files to a run, without a recipe. What it decides, it writes down as TOML."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regard.config.flags import apply
from regard.config.toml import structure
from regard.data.holdout import hold_out
from regard.data.parallel import Filters, Lines, paths, read_pairs
from regard.errors import DataError, UsageError
from regard.run import Run, laid_over
from regard.tasks.telling import say

FILTERS = Filters(max_words=200, ratio=6.0)
PARTS = ("train", "valid", "test")


@dataclass(frozen=True)
class Size:
    """What suits a corpus of up to so many pairs."""

    pairs: int
    vocabulary: int
    layers: int
    d_model: int
    d_ff: int
    heads: int
    dropout: float
    epochs: float


# Measured at 10,000, 50,000 and 200,000 pairs by `regard bench sizes`: docs/results.md, "Sizes by corpus". Beyond half a million pairs:
# the paper's base model.
SIZES = (
    Size(pairs=25_000, vocabulary=4000, layers=3, d_model=192, d_ff=768, heads=4, dropout=0.3, epochs=40),
    Size(pairs=40_000, vocabulary=6000, layers=3, d_model=256, d_ff=1024, heads=4, dropout=0.2, epochs=20),
    Size(pairs=500_000, vocabulary=8000, layers=4, d_model=320, d_ff=1280, heads=5, dropout=0.1, epochs=10),
    Size(pairs=2**62, vocabulary=32_000, layers=6, d_model=512, d_ff=2048, heads=8, dropout=0.1, epochs=8),
)


def folder_of(source: str | None, target: str | None, *, out: str | None) -> Path:
    """Where the run of these two files will be."""
    if not source or not target:
        raise UsageError("two files are needed", do="give --source FILE and --target FILE, aligned line by line")
    return Path(out or f"runs/{Path(source).name.split('.')[0]}")


def run_from_files(source: str, target: str, *, out: Path, settings: Mapping[str, str]) -> Run:
    """The run's configuration; the pairs are checked, freed of duplicates and split into files inside its folder."""
    if (out / "run.toml").exists():
        raise UsageError("there is a run in this folder already", where=str(out), do=f"go on with --resume {out}, or choose another --out")
    corpus = Lines(str(Path(source).resolve()), str(Path(target).resolve()))
    for path in paths(corpus):
        if not path.is_file():
            raise UsageError("there is no such file", where=str(path), do="check the path")
    counts: Counter[str] = Counter()
    kept = list(unique(corpus, counts))
    held = min(1000, max(10, counts["unique"] // 40))
    split = hold_out(pairs_at(corpus, kept), dev=held, test=held, seed=1)
    written = {}
    for part, places in zip(PARTS, (split.train, split.dev, split.test)):
        written[part] = write(corpus, [kept[place] for place in places], out / "data" / part)
    told = ", ".join(f"{count:,} {reason}" for reason, count in counts.items() if reason not in ("read", "kept", "unique"))
    dropped = f" ({told} left out)" if told else ""
    say(f"{counts['read']:,} pairs read{dropped}: {len(split.train):,} to learn from, {held:,} to watch, {held:,} to test")
    tables = tables_for(len(split.train))
    tables["data"] = {
        "root": "data",
        **{part: [{"kind": "lines", "source": f"{part}.source", "target": f"{part}.target"}] for part in PARTS},
    }
    run = apply(
        structure(Run, laid_over(tables, settings.get("preset", ""))), {key: value for key, value in settings.items() if key != "preset"}
    )
    return replace(run, data=replace(run.data, root=str((out / "data").resolve())))


def tables_for(pairs: int) -> dict[str, Any]:
    """The recipe for a corpus of this size."""
    return tables_of(next(size for size in SIZES if pairs <= size.pairs), pairs=pairs)


def tables_of(size: Size, *, pairs: int) -> dict[str, Any]:
    """The recipe of one row of the table."""
    trunk = {
        "layers": size.layers,
        "heads": size.heads,
        "placement": "pre",
        "dropout": size.dropout,
        "feed_forward": {"d_ff": size.d_ff},
    }
    return {
        "tokenizer": {"kind": "unigram", "size": size.vocabulary},
        "model": {
            "kind": "translator",
            "d_model": size.d_model,
            "encoder": trunk,
            "decoder": trunk,
            "embedding": {"dropout": size.dropout},
        },
        "train": {
            "epochs": size.epochs,
            "score": "bleu",
            "patience": 5,
            "ema": 0.998,
            "evaluate_every": max(100, min(2000, pairs // 200)),
            "optimiser": {"kind": "muon", "rate": 1e-2, "others": {"rate": 4e-3}},
            "schedule": {"kind": "linear", "warmup": 0.05},
        },
    }


def unique(corpus: Lines, counts: Counter[str]) -> Iterator[int]:
    """The places, among the usable pairs, of those that were not there before."""
    seen: set[bytes] = set()
    for place, (source, target) in enumerate(read_pairs(corpus, counts, filters=FILTERS)):
        digest = hashlib.blake2b(f"{source}\n{target}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        if digest in seen:
            counts["duplicates"] += 1
            continue
        seen.add(digest)
        counts["unique"] += 1
        yield place
    if not counts["unique"]:
        raise DataError("no usable pair was found", where=corpus.source, do="run `regard check` on the two files")


def pairs_at(corpus: Lines, places: list[int]) -> Iterator[tuple[str, str]]:
    """The pairs at these rising places."""
    wanted = iter(places)
    next_place = next(wanted, -1)
    for place, pair in enumerate(read_pairs(corpus, filters=FILTERS)):
        if place == next_place:
            yield pair
            next_place = next(wanted, -1)


@contextmanager
def named(path: Path) -> Iterator[None]:
    """A failed write tells its place."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def write(corpus: Lines, places: list[int], stem: Path) -> int:
    """Write these pairs into STEM.source and STEM.target."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    with named(stem), ExitStack() as stack:
        files = [
            stack.enter_context(stem.with_suffix(ending).open("w", encoding="utf-8", newline="\n")) for ending in (".source", ".target")
        ]
        for pair in pairs_at(corpus, places):
            for file, text in zip(files, pair):
                file.write(text + "\n")
    return len(places)
