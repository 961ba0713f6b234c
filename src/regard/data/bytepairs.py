"""How byte-pair encoding is learned, to be read: count neighbours, merge the most frequent pair, repeat. Training uses SentencePiece."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

END = "</w>"  # closes each word, so that est at the end of a word is another symbol than est within


def learn_merges(words: Mapping[str, int], count: int) -> list[tuple[tuple[str, str], int]]:
    """The first `count` merges of words with these frequencies, each with the frequency of its pair; ties go to the pair seen first."""
    spelled = {word: (*word, END) for word in words}
    merges = []
    for _ in range(count):
        pairs: Counter[tuple[str, str]] = Counter()
        for word, frequency in words.items():
            for pair in pairwise(spelled[word]):
                pairs[pair] += frequency
        if not pairs:
            break
        best = max(pairs, key=pairs.__getitem__)  # the first of equals: a Counter keeps the order in which it met its keys
        merges.append((best, pairs[best]))
        spelled = {word: merge(symbols, best) for word, symbols in spelled.items()}
    return merges


def merge(symbols: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    """The symbols with every occurrence of the pair made one, from left to right."""
    merged: list[str] = []
    for symbol in symbols:
        if merged and (merged[-1], symbol) == pair:
            merged[-1] += symbol
        else:
            merged.append(symbol)
    return tuple(merged)
