"""A small language with its translations, a tiny run over it, and the real command line as a function: what many tests begin with."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

NOUNS = {  # German article and noun, English noun
    "der Hund": "dog",
    "die Katze": "cat",
    "das Kind": "child",
    "der Vogel": "bird",
    "die Frau": "woman",
    "das Pferd": "horse",
    "der Mann": "man",
}
VERBS = {"sieht": "sees", "hört": "hears", "sucht": "seeks", "findet": "finds", "mag": "likes"}
OBJECTS = {
    "das Haus": "the house",
    "ein Buch": "a book",
    "Brot": "bread",
    "den Fluss": "the river",
    "die Stadt": "the city",
    "Musik": "music",
}
PAIRS = [
    (f"{noun[0].upper()}{noun[1:]} {verb} {thing}.", f"The {NOUNS[noun]} {VERBS[verb]} {OBJECTS[thing]}.")
    for noun, verb, thing in product(NOUNS, VERBS, OBJECTS)
]
TRAIN, VALID, TEST = PAIRS[0::10] + PAIRS[3::5] + PAIRS[1::2], PAIRS[2::20], PAIRS[6::20]

RECIPE = """
metrics = ["bleu", "chrf"]

[data]
train = [{ kind = "lines", source = "train.de", target = "train.en" }]
valid = [{ kind = "lines", source = "valid.de", target = "valid.en" }]
test = [{ kind = "lines", source = "test.de", target = "test.en" }]
workers = 1

[tokenizer]
kind = "unigram"
size = 330

[model]
kind = "translator"
d_model = 32
encoder = { layers = 1, heads = 2, placement = "pre", dropout = 0.1, feed_forward = { d_ff = 64 } }
decoder = { layers = 1, heads = 2, placement = "pre", dropout = 0.1, feed_forward = { d_ff = 64 } }

[batching]
tokens = 300

[train]
steps = 120
device = "cpu"
precision = "fp32"
optimiser = { kind = "adamw", rate = 1e-2 }
schedule = { kind = "constant" }
log_every = 5
evaluate_every = 30
sample_every = 30
save_every = 20
score = "loss"

[decoding]
search = { kind = "beam", size = 2 }
max_extra = 3
"""


class Ended(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    error: str


def write(folder: Path, name: str, lines: Sequence[str]) -> Path:
    path = folder / name
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def corpus(folder: Path, *, recipe: str = RECIPE) -> Path:
    """The six files of the corpus and the recipe beside them; the recipe's path."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, pairs in {"train": TRAIN, "valid": VALID, "test": TEST}.items():
        write(folder, f"{name}.de", [source for source, _ in pairs])
        write(folder, f"{name}.en", [target for _, target in pairs])
    return write(folder, "small.toml", recipe.strip().split("\n"))


def regard(*words: object, stdin: bytes | str = b"") -> Ended:
    """`regard WORDS...`, in this process."""
    from regard.cli import main

    given = stdin.encode() if isinstance(stdin, str) else stdin
    out, error = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n") for _ in range(2))
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(given), encoding="utf-8", newline="\n")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            try:
                code = main([str(word) for word in words])
            except SystemExit as stop:  # argparse leaves in this way
                code = stop.code if isinstance(stop.code, int) else 1
    finally:
        sys.stdin = before
    texts = []
    for stream in (out, error):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode("utf-8"))  # type: ignore[attr-defined]
    return Ended(code, *texts)


def environment() -> dict[str, str]:
    """For a process of its own: this source tree, one thread, no terminal's colours."""
    source = str(Path(__file__).parents[1] / "src")
    return os.environ | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}


def command(*words: object) -> list[str]:
    """The words of a process of its own."""
    return [sys.executable, "-m", "regard.cli", *map(str, words)]


def log_of(folder: Path) -> list[dict]:
    """The lines of a run's log without what depends on the clock."""
    clocks = {"elapsed", "tokens_per_second", "seconds_left"}
    lines = (json.loads(line) for line in (folder / "log.jsonl").read_text("utf-8").splitlines())
    return [{key: value for key, value in line.items() if key not in clocks} for line in lines]
