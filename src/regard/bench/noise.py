"""How much injected noise the doctor finds in a corpus, and how much that was good it would throw away."""

from __future__ import annotations

import argparse
import random
import time
from bisect import bisect
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from regard.data.examine import REASONS, examine
from regard.data.parallel import Lines
from regard.data.text import read_lines
from regard.errors import UsageError

KINDS = (
    "misaligned",
    "copied source",
    "copied target",
    "wrong language",
    "other side",
    "duplicate",
    "truncated source",
    "truncated target",
)

LANGUAGES = ("cs", "de", "en", "fr")  # of Multi30k

Pair = tuple[str, str]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", required=True, metavar="DIR", help="folder of Multi30k: train.de.gz, train.en.gz, train.fr.gz, train.cs.gz"
    )
    parser.add_argument("--pair", default="de-en", metavar="S-T", help="which two of its four languages are the corpus (de-en)")
    parser.add_argument("--share", type=float, default=0.2, help="how much of the corpus is spoilt (0.2)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--train", metavar="DIR", help="also train on the spoilt corpus and on what the doctor leaves of it, into this folder"
    )
    parser.add_argument("--steps", type=int, default=2500, help="of those two trainings (2500)")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    source, dash, target = arguments.pair.partition("-")
    if not dash or not {source, target} <= set(LANGUAGES):
        raise UsageError(f"{arguments.pair!r} is no pair of {', '.join(LANGUAGES)}", where="--pair", do="write it like de-en")
    found = noise(arguments.data, pair=(source, target), share=arguments.share, seed=arguments.seed)
    if arguments.train:
        found["trained"] = trained(
            arguments.data, Path(arguments.train), pair=(source, target), share=arguments.share, seed=arguments.seed, steps=arguments.steps
        )
    return found


def inject(pairs: Sequence[Pair], foreign: Sequence[Sequence[str]], *, share: float = 0.2, seed: int = 1) -> tuple[list[Pair], list[str]]:
    """Spoil this share of the pairs, as many of each kind; `foreign` holds aligned lines of other languages. Pairs and kinds ("" = good).

    misaligned: the target of another spoilt pair; copied: one side is the other; wrong language: one side from `foreign`; other
    side: source and target change places; duplicate: an earlier pair, left whole, once more; truncated: the first 30 to 70 % of the
    words of one side, at least two words fewer.
    """
    rng, spoilt, kinds = random.Random(seed), list(pairs), [""] * len(pairs)
    chosen = rng.sample(range(1, len(pairs)), int(share * len(pairs)))
    each, whole = len(chosen) // len(KINDS), sorted({*range(len(pairs))} - {*chosen})
    for number, kind in enumerate(KINDS):
        places = chosen[number * each : (number + 1) * each]
        for place, other in zip(places, places[1:] + places[:1]):
            if kind == "duplicate":
                other = whole[rng.randrange(max(1, bisect(whole, place)))]
            spoilt[place] = _spoil(kind, pairs, place, other, foreign, rng)
            kinds[place] = kind
    return spoilt, kinds


def _spoil(kind: str, pairs: Sequence[Pair], place: int, other: int, foreign: Sequence[Sequence[str]], rng: random.Random) -> Pair:
    source, target = pairs[place]
    match kind:
        case "misaligned":
            return source, pairs[other][1]
        case "copied source":
            return source, source
        case "copied target":
            return target, target
        case "wrong language":
            line = rng.choice(foreign)[place]
            return (source, line) if rng.random() < 0.5 else (line, target)
        case "other side":
            return target, source
        case "duplicate":
            return pairs[other]
        case "truncated source":
            return _cut(source, rng), target
        case _:
            return source, _cut(target, rng)


def _cut(text: str, rng: random.Random) -> str:
    words = text.split()
    return " ".join(words[: max(1, min(len(words) - 2, round(len(words) * rng.uniform(0.3, 0.7))))])


def measure(pairs: Sequence[Pair], foreign: Sequence[Sequence[str]], *, share: float = 0.2, seed: int = 1) -> dict[str, Any]:
    """The share found of each kind, the share of good pairs wrongly left out (in all and by reason), and the seconds it took."""
    spoilt, kinds = inject(pairs, foreign, share=share, seed=seed)
    with TemporaryDirectory() as folder:
        corpus = _written(spoilt, Path(folder, "train"))
        started = time.process_time()
        reasons = examine([corpus], seed=seed)[0].reasons
        seconds = time.process_time() - started
    kind = np.array(kinds)
    good, bad = kind == "", kind != ""
    return {
        "pairs": len(pairs),
        "spoilt": int(bad.sum()),
        "found": round(float((reasons[bad] > 0).mean()), 4) if bad.any() else None,
        "wrongly_left_out": round(float((reasons[good] > 0).mean()), 4),
        "found_by_kind": {name: round(float((reasons[kind == name] > 0).mean()), 4) for name in KINDS if (kind == name).any()},
        "wrongly_by_reason": {name: int((reasons[good] == code).sum()) for code, name in enumerate(REASONS) if code},
        "seconds_of_cpu": round(seconds, 1),
    }


def noise(folder: str | Path, *, pair: tuple[str, str] = ("de", "en"), share: float = 0.2, seed: int = 1) -> dict[str, Any]:
    """The measurement on Multi30k in `folder`."""
    return measure(*_read(folder, pair), share=share, seed=seed)


def trained(folder: str | Path, out: Path, *, pair: tuple[str, str], share: float, seed: int, steps: int) -> dict[str, Any]:
    """Test scores of one recipe on the spoilt corpus as it is, on what the doctor leaves of it, and on the corpus before it was spoilt."""
    from dataclasses import replace

    from regard.assemble import train_run
    from regard.recipes import find
    from regard.run import read_run

    pairs, foreign = _read(folder, pair)
    spoilt, _ = inject(pairs, foreign, share=share, seed=seed)
    out.mkdir(parents=True, exist_ok=True)
    whole = _written(spoilt, out / "spoilt")
    reasons = examine([whole], seed=seed)[0].reasons
    corpora = {
        "spoilt": whole,
        "cleaned": _written([one for one, reason in zip(spoilt, reasons) if not reason], out / "cleaned"),
        "unspoilt": _written(pairs, out / "unspoilt"),
    }
    scores = {}
    for name, corpus in corpora.items():
        recipe = find("multi30k-ladder-de-en" if pair == ("de", "en") else f"multi30k-{pair[0]}-{pair[1]}")
        run = read_run(recipe, flags={"train.steps": str(steps), "train.seed": str(seed)}, data_root=str(folder))
        run = replace(run, data=replace(run.data, train=(corpus,)))
        report = train_run(run, out / f"run-{name}", show="none")
        scores[name] = {metric: round(found["score"], 2) for metric, found in report["scores"].items()} | {"pairs": report["data"]["kept"]}
    return scores


def _written(pairs: Sequence[Pair], stem: Path) -> Lines:
    files = [stem.with_suffix(ending).resolve() for ending in (".source", ".target")]
    for side, file in enumerate(files):
        file.write_bytes("".join(f"{pair[side]}\n" for pair in pairs).encode("utf-8"))
    return Lines(str(files[0]), str(files[1]))


def _read(folder: str | Path, pair: tuple[str, str]) -> tuple[list[Pair], list[list[str]]]:
    """The pairs, and the lines of the other two languages of Multi30k in `folder` (train.de.gz, ...), which are the wrong ones."""

    def lines(language: str) -> list[str]:
        return [line.text for line in read_lines(Path(folder, f"train.{language}.gz"))]

    others = [language for language in LANGUAGES if language not in pair]
    return list(zip(lines(pair[0]), lines(pair[1]), strict=True)), [lines(language) for language in others]
