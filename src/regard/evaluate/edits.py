"""How far a text is from the right one: the fewest letters or words to put in, take out or change (Levenshtein), and its share."""

from __future__ import annotations

from collections.abc import Sequence


def edits(found: Sequence[object], right: Sequence[object]) -> int:
    """The fewest insertions, deletions and substitutions that make one sequence the other."""
    above = list(range(len(right) + 1))
    for row, ours in enumerate(found, 1):
        here = [row]
        for column, theirs in enumerate(right, 1):
            here.append(min(above[column] + 1, here[-1] + 1, above[column - 1] + (ours != theirs)))
        above = here
    return above[-1]


def error_rate(found: Sequence[Sequence[object]], right: Sequence[Sequence[object]]) -> float:
    """Edits of all sequences for each item of the right ones, in percent, perhaps over 100; strings count letters, lists words."""
    return 100 * sum(map(edits, found, right)) / max(1, sum(map(len, right)))
