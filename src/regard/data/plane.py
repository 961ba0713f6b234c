"""Points in the plane: their convex hull, their shortest round tour, and what a row of corners encloses. A point is named by its place."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

AT_ONCE = 2**24  # numbers in one table of tours


def hull(points: Float[Array, "N 2"]) -> Int[Array, "C"]:
    """The corners of the convex hull, counter-clockwise from the one that is named first (Vinyals 2015); Andrew's monotone chain.

    What lies on an edge is no corner.
    """
    xy = points.tolist()
    order = sorted(range(len(xy)), key=xy.__getitem__)
    corners = [*_chain(xy, order)[:-1], *_chain(xy, order[::-1])[:-1]]
    return _from_the_first(np.array(corners))


def hulls(points: Float[Array, "B N 2"]) -> list[Int[Array, "C"]]:
    """The hull of each set: all of them turn from corner to corner together (Jarvis 1973); where three points lie on a line, one by one."""
    count, points = len(points), points.astype(float)
    rows, first = np.arange(count), points[..., 0].argmin(1)
    now, heading, round_ = first, np.full(count, -np.pi / 2), np.zeros(count, bool)
    places, corners, clear = [first], np.ones(count, np.int64), np.ones(count, bool)
    while not (round_ | ~clear).all():
        apart = points - points[rows, now][:, None]
        angles = np.arctan2(apart[..., 1], apart[..., 0])
        turns = (angles - heading[:, None]) % (2 * np.pi)
        turns[rows, now] = np.inf
        then = turns.argmin(1)
        edge = apart[rows, then]
        left = edge[:, :1] * apart[..., 1] - edge[:, 1:] * apart[..., 0]
        left[rows, now] = left[rows, then] = np.inf
        clear &= round_ | (left > 1e-12).all(1)
        now, heading, round_ = then, angles[rows, then], round_ | (then == first)
        corners += ~round_
        places.append(then)
    found = np.stack(places, 1)
    return [_from_the_first(found[row, : corners[row]]) if clear[row] else hull(points[row]) for row in range(count)]


def _from_the_first(corners: Int[Array, "C"]) -> Int[Array, "C"]:
    return np.roll(corners, -corners.argmin())


def _chain(xy: list[list[float]], order: list[int]) -> list[int]:
    """From one end to the other, turning left only."""
    chain: list[int] = []
    for place in order:
        while len(chain) > 1 and _turn(xy[chain[-2]], xy[chain[-1]], xy[place]) <= 0:
            chain.pop()
        chain.append(place)
    return chain


def _turn(a: list[float], b: list[float], c: list[float]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def tours(points: Float[Array, "B N 2"]) -> Int[Array, "B N"]:
    """The shortest round tour of each set, from its first point on and counter-clockwise."""
    count, others = points.shape[0], points.shape[1] - 1
    if others < 2:
        return np.tile(np.arange(others + 1), (count, 1))
    size = max(1, AT_ONCE // (others**2 << others))
    return np.concatenate([_tours(points[start : start + size].astype(float)) for start in range(0, count, size)])


def _tours(points: Float[Array, "B N 2"]) -> Int[Array, "B N"]:
    """Held and Karp 1962: the shortest way from 0 through a set of points to one of them, by the size of the set."""
    count, others = points.shape[0], points.shape[1] - 1
    rows = np.arange(count)
    ways = np.linalg.norm(points[:, :, None] - points[:, None], axis=-1)
    between = ways[:, 1:, 1:]
    sets = np.arange(1 << others)  # bit k: the point k + 1 was visited
    sizes = sum((sets >> k) & 1 for k in range(others))
    cost = np.full((count, 1 << others, others), np.inf)
    before = np.zeros(cost.shape, np.int8)
    for last in range(others):
        cost[:, 1 << last, last] = ways[:, 0, last + 1]
    for size in range(2, others + 1):
        for last in range(others):
            now = sets[(sizes == size) & (sets >> last & 1 == 1)]
            through = cost[:, now ^ (1 << last)] + between[:, None, :, last]
            cost[:, now, last], before[:, now, last] = through.min(-1), through.argmin(-1)
    tour, visited = np.zeros((count, others + 1), np.int64), np.full(count, (1 << others) - 1)
    last = (cost[:, -1] + ways[:, 1:, 0]).argmin(-1)
    for step in range(others, 0, -1):
        tour[:, step] = last + 1
        last, visited = before[rows, visited, last].astype(np.int64), visited ^ (1 << last)
    back = doubled_area(np.take_along_axis(points, tour[..., None], 1)) < 0
    tour[back, 1:] = tour[back, :0:-1]
    return tour


def doubled_area(corners: Float[Array, "*B N 2"]) -> Float[Array, "*B"]:
    """Twice the area that these corners enclose; below 0 where they go clockwise."""
    x, y = corners[..., 0], corners[..., 1]
    return (x * np.roll(y, -1, -1) - np.roll(x, -1, -1) * y).sum(-1)


def length(corners: Float[Array, "N 2"]) -> float:
    """The way around."""
    return float(np.linalg.norm(corners - np.roll(corners, -1, 0), axis=-1).sum())


def simple(corners: Float[Array, "N 2"]) -> bool:
    """Whether the edges enclose something and meet nowhere but at their own ends."""
    count = len(corners)
    if count < 3 or len({tuple(corner) for corner in corners.tolist()}) < count:
        return False
    ends = np.roll(corners, -1, 0)

    def side(of: Array) -> Array:
        """On which side of each edge each of these points lies."""
        along, to = ends - corners, of[None] - corners[:, None]
        return np.sign(along[:, None, 0] * to[..., 1] - along[:, None, 1] * to[..., 0])

    apart = side(corners) * side(ends) <= 0  # the ends of the other edge lie on both sides of this one, or on it
    place = np.arange(count)
    distance = (place[:, None] - place) % count
    return not (apart & apart.T & (distance > 1) & (distance < count - 1)).any()
