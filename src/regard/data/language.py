"""Which lines are in another script or another language than their side of the corpus.

Scripts go by Unicode ranges. For languages a short list of small words finds the clear cases; profiles of character n-grams
learned from these, from the rest of the corpus and from its other side decide on every line. A line never votes for itself.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from regard.data.bitext import Bools, Floats, Ints

RANGES = [  # first letter of a stretch and its script; a stretch ends where the next begins
    (0x0041, "Latin"), (0x0250, "Latin"), (0x02B0, ""), (0x0370, "Greek"), (0x0400, "Cyrillic"), (0x0530, "Armenian"),
    (0x0590, "Hebrew"), (0x0600, "Arabic"), (0x0700, ""), (0x0750, "Arabic"), (0x0780, ""), (0x0900, "Devanagari"), (0x0980, "Bengali"),
    (0x0A00, "Gurmukhi"), (0x0A80, "Gujarati"), (0x0B00, ""), (0x0B80, "Tamil"), (0x0C00, "Telugu"), (0x0C80, "Kannada"),
    (0x0D00, "Malayalam"), (0x0D80, "Sinhala"), (0x0E00, "Thai"), (0x0E80, "Lao"), (0x0F00, "Tibetan"), (0x1000, "Burmese"),
    (0x10A0, "Georgian"), (0x1100, "Hangul"), (0x1200, "Ethiopic"), (0x13A0, ""), (0x1780, "Khmer"), (0x1800, ""), (0x1E00, "Latin"),
    (0x1F00, "Greek"), (0x2000, ""), (0x3040, "Japanese"), (0x3100, ""), (0x3400, "Han"), (0xA000, ""), (0xAC00, "Hangul"), (0xD7B0, ""),
    (0xF900, "Han"), (0xFB00, ""), (0x20000, "Han"), (0x30000, ""),
]  # fmt: skip
SCRIPTS = tuple(dict.fromkeys(name for _, name in RANGES))
STARTS = np.array([0, *(start for start, _ in RANGES)])
SCRIPT_OF = np.array([SCRIPTS.index(""), *(SCRIPTS.index(name) for _, name in RANGES)])
TOGETHER = [{"Japanese", "Han"}]  # scripts of one language

SMALL_WORDS: dict[str, str] = tomllib.loads(Path(__file__).with_name("small_words.toml").read_text(encoding="utf-8"))
LANGUAGES = tuple(SMALL_WORDS)
SPEAKERS: dict[str, list[int]] = {}
for number, listed in enumerate(SMALL_WORDS.values()):
    for word in listed.split():
        SPEAKERS.setdefault(word, []).append(number)

NO_LETTERS = re.compile(r"[\W\d_]+")
BUCKETS = 1 << 16  # n-grams share these by a hash
PROFILE = 15  # clear lines needed before a language gets a profile
BLEND = 0.3  # the part of every profile that is the average of both: what neither has seen speaks for neither
OTHER_SIDE = "the other side's"
MARGIN = 4.0  # how much likelier (in nats, n-grams taken as a third independent) the other language must be


def foreign(texts: Sequence[str], other_side: Sequence[str]) -> list[str]:
    """For each line what it is instead: a script ("Cyrillic"), a language ("fr", or "the other side's"), or "" where it belongs."""
    found = wrong_script(texts)
    clean = [index for index, said in enumerate(found) if not said]
    for index, said in zip(clean, _wrong_language([texts[index] for index in clean], other_side)):
        found[index] = said
    return found


def wrong_script(texts: Sequence[str]) -> list[str]:
    """The script of each line that is mostly not in the script of most lines; "" for the others."""
    code, line = _characters(texts)
    script = SCRIPT_OF[np.searchsorted(STARTS, code, side="right") - 1]
    counts = np.bincount(line * len(SCRIPTS) + script, minlength=len(texts) * len(SCRIPTS)).reshape(len(texts), len(SCRIPTS))
    counts[:, SCRIPTS.index("")] = 0
    totals = dict(zip(SCRIPTS, counts.sum(0).tolist()))
    homes = [{name} for name in SCRIPTS if not any(name in group for group in TOGETHER)] + TOGETHER
    home = max(homes, key=lambda group: sum(totals[name] for name in group))
    at_home = counts[:, [SCRIPTS.index(name) for name in home]].sum(1)
    away = counts.sum(1) > 2 * at_home
    return [SCRIPTS[best] if gone else "" for best, gone in zip(counts.argmax(1).tolist(), away.tolist())]


def _wrong_language(texts: Sequence[str], other_side: Sequence[str]) -> list[str]:
    votes, other_votes = _votes(texts), _votes(other_side)
    home, away = _main(votes), _main(other_votes)
    found = [""] * len(texts)
    seeds: dict[str, Ints] = {}
    ours = np.arange(len(texts))
    if home is not None:
        best = votes.argmax(1)
        clear = (votes.max(1) - votes[:, home] >= 1.5) & (votes.max(1) >= 2.0)
        ours = np.flatnonzero((votes[:, home] >= 1.0) & (best == home))
        for language in np.unique(best[clear]).tolist():
            lines = np.flatnonzero(clear & (best == language))
            if len(lines) >= PROFILE:
                seeds[LANGUAGES[language]] = lines
            else:  # too few for a profile: only those beyond doubt
                for index in lines[(votes[lines, home] < 0.5) & (votes[lines, language] >= 2.5)].tolist():
                    found[index] = LANGUAGES[language]
    theirs = "" if home is not None and away == home else LANGUAGES[away] if away is not None else OTHER_SIDE
    for index, name in _by_profiles(texts, ours, seeds, other_side if theirs else (), theirs):
        found[index] = found[index] or name
    return found


def _by_profiles(
    texts: Sequence[str], ours: Ints, seeds: dict[str, Ints], other_side: Sequence[str], theirs: str
) -> Iterator[tuple[int, str]]:
    """The lines that a profile of another language explains better than the profile of `ours`; these make the profile anew, once."""
    grams, line = _grams(texts)
    here = np.bincount(grams[np.isin(line, ours)], minlength=BUCKETS).astype(float)
    beside = np.bincount(_grams(other_side)[0], minlength=BUCKETS).astype(float)
    _, cell, times = np.unique(line * BUCKETS + grams, return_inverse=True, return_counts=True)
    names = [*seeds, *([theirs] if theirs and theirs not in seeds else [])]
    if not names:
        return
    for _ in range(2):
        scores = np.zeros((len(names), len(texts)))
        for row, name in enumerate(names):
            own = np.isin(line, seeds.get(name, ()))
            there = np.bincount(grams[own], minlength=BUCKETS).astype(float) + (beside if name == theirs else 0.0)
            scores[row] = _scores(there, here, (grams, line, own), times[cell], len(texts))
        wrong = scores.max(0) > MARGIN
        seeds = {name: np.flatnonzero(wrong & (scores.argmax(0) == row)) for row, name in enumerate(names)}
    for name, lines in seeds.items():
        yield from ((index, name) for index in lines.tolist())


def _scores(there: Floats, here: Floats, grams: tuple[Ints, Ints, Bools], times: Ints, lines: int) -> Floats:
    """How much likelier each line is in the profile `there` than `here`; a line in `there` is taken out of it first."""
    gram, line, own = grams
    background = BLEND * (there + here + 0.01) / (there.sum() + here.sum() + 0.01 * BUCKETS)
    length = np.bincount(line, own, lines)[line]
    away = (1 - BLEND) * (there[gram] - own * times) / np.maximum(there.sum() - length, 1.0)
    home = (1 - BLEND) * here[gram] / max(here.sum(), 1.0)
    return np.bincount(line, np.log((away + background[gram]) / (home + background[gram])), lines) / 3


def _votes(texts: Sequence[str]) -> Floats:
    """How many small words of each language a line has; a word of several languages counts for a part."""
    votes = np.zeros((len(texts), len(LANGUAGES)))
    for index, text in enumerate(texts):
        for word in set(re.findall(r"[^\W\d_]+", text.lower())):
            for language in SPEAKERS.get(word, ()):
                votes[index, language] += 1.0 / len(SPEAKERS[word]) ** 0.5
    return votes


def _main(votes: Floats) -> int | None:
    """The language of a side, if its small words are on the list: on average at least one in two lines."""
    totals = votes.sum(0)
    return int(totals.argmax()) if len(votes) and totals.max() >= 0.5 * len(votes) else None


def _characters(texts: Sequence[str]) -> tuple[Ints, Ints]:
    """All characters as numbers, and the line in which each stands."""
    joined = "\n".join(text.replace("\n", " ") for text in texts)
    code = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.int64)
    return code, np.cumsum(code == 10) - (code == 10)


def _grams(texts: Sequence[str]) -> tuple[Ints, Ints]:
    """Character pairs to fours within words, hashed, and the line of each."""
    code, line = _characters([f" {NO_LETTERS.sub(' ', text.lower()).strip()} " for text in texts])
    grams, lines = [], []
    rolling = code.copy()
    for length in (2, 3, 4):
        if len(code) < length:
            break
        rolling = rolling[:-1] * 31_337 + code[length - 1 :]
        inside = (line[: len(rolling)] == line[length - 1 :]) & (code[: len(rolling)] != 10) & (code[length - 1 :] != 10)
        if length > 2:  # no space in the middle
            for middle in range(1, length - 1):
                inside &= code[middle : middle + len(rolling)] != 32
        mixed = (rolling ^ (rolling >> 17)) * 0x9E3779B1
        grams.append(((mixed >> 11) % BUCKETS)[inside])
        lines.append(line[: len(rolling)][inside])
    return (np.concatenate(grams), np.concatenate(lines)) if grams else (np.zeros(0, np.int64), np.zeros(0, np.int64))
