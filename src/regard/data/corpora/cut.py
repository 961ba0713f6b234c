"""Cuts an embedded corpus from Tatoeba's English-first TSV: cleans lightly, drops repeats, holds out dev and test by component.

python -m regard.data.corpora.cut RAW/eng-deu.tsv.xz src/regard/data/corpora/de-en
"""

from __future__ import annotations

import argparse
import lzma
import re
import statistics
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from regard.data.holdout import hold_out

DEV, TEST, SEED = 600, 1000, 1
SPACES = re.compile(r"\s+")
STRAIGHT = str.maketrans({"’": "'", "‘": "'", "‚": "'", "‟": "“", "－": "-", "\u200b": "", "\u00ad": ""})


def cleaned(text: str) -> str:
    """One way to write each apostrophe and space; nothing else is touched."""
    return SPACES.sub(" ", unicodedata.normalize("NFC", text).translate(STRAIGHT)).strip()


def latin(text: str) -> bool:
    """Whether all letters are Latin ones: a Cyrillic `С` in a French word is a slip of the keyboard."""
    return all(unicodedata.name(letter, "").startswith(("LATIN", "SUBSCRIPT", "SUPERSCRIPT")) for letter in text if letter.isalpha())


def cut(lines: Iterable[str]) -> dict[str, list[tuple[str, str]]]:
    """The three parts, as (foreign, English) pairs in the order of the file, which runs from short to long."""
    pairs: dict[tuple[str, str], None] = {}
    for line in lines:
        english, foreign = map(cleaned, line.split("\t"))
        if english and foreign and latin(english) and latin(foreign):
            pairs.setdefault((foreign, english))
    kept = list(pairs)
    split = hold_out(kept, dev=DEV, test=TEST, seed=SEED)
    return {name: [kept[index] for index in getattr(split, name)] for name in ("train", "dev", "test")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("raw", type=Path, help="English, tab, the other language; xz")
    parser.add_argument("folder", type=Path, help="where train.tsv.xz, dev.tsv and test.tsv go")
    arguments = parser.parse_args()
    raw = lzma.decompress(arguments.raw.read_bytes()).decode("utf-8")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name, pairs in cut(raw.removesuffix("\n").split("\n")).items():
        content = "".join(f"{source}\t{target}\n" for source, target in pairs).encode("utf-8")
        if name == "train":
            (arguments.folder / "train.tsv.xz").write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))
        else:
            (arguments.folder / f"{name}.tsv").write_bytes(content)
        words = [statistics.mean(len(pair[side].split()) for pair in pairs) for side in (0, 1)]
        print(f"{name}: {len(pairs)} pairs, mean words {words[0]:.2f} / {words[1]:.2f}")


if __name__ == "__main__":
    main()
