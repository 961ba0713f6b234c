"""How good hulls and tours are that are not the best ones: what a hull encloses, and how long a tour is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

from regard.data.plane import doubled_area, length, simple
from regard.evaluate.measure import Score

Points = Sequence[Float[Array, "N 2"]]
Answers = Sequence[Int[Array, "C"]]


def area(points: Points, found: Answers, right: Answers) -> Score:
    """Percent of the hull's area that the answer encloses, of those answers whose edges do not cross (Vinyals 2015, 3.1)."""
    shares = [
        abs(doubled_area(one[corners])) / doubled_area(one[best])
        for one, corners, best in zip(points, found, right, strict=True)
        if simple(one[corners])
    ]
    share = 100 * float(np.mean(shares)) if shares else 0.0
    return Score("area", share, f"area|n:{len(points)}|of:simple", {"simple": 100 * len(shares) / max(1, len(points))})


def tour_length(points: Points, found: Answers, right: Answers) -> list[Score]:
    """The mean length of the tours, and how much longer they are, all together, than the shortest ones."""
    ours, best = (float(np.mean([length(one[tour]) for one, tour in zip(points, tours, strict=True)])) for tours in (found, right))
    return [
        Score("tour-length", ours, f"tour-length|n:{len(points)}", {"shortest": best}),
        Score("tour-ratio", ours / best, f"tour-ratio|n:{len(points)}"),
    ]
