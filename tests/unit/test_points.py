"""Hulls and tours that can be seen with the bare eye, and sets of points that are the same every time."""

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.data.batch import IGNORED
from regard.data.plane import doubled_area, hull, hulls, length, simple, tours
from regard.data.points import PointExamples, Points, read_back, read_points, spelled
from regard.errors import DataError, UsageError
from regard.run import files_of

SQUARE = np.array([[0.5, 0.4], [1, 1], [0, 0], [1, 0], [0, 1]])  # 0 lies inside


def test_the_hull_of_a_square_with_a_point_inside():
    # 4 1      from 1, the first named, counter-clockwise: 1 4 2 3
    #  0
    # 2 3
    assert hull(SQUARE).tolist() == [1, 4, 2, 3]
    assert doubled_area(SQUARE[hull(SQUARE)]) == 2


def test_what_lies_on_an_edge_is_no_corner():
    assert hull(np.array([[0.5, 0], [0, 0], [1, 0], [1, 1]])).tolist() == [1, 2, 3]


def test_hulls_turn_left_and_leave_nothing_outside():
    random = np.random.default_rng(1)
    for count in (3, 5, 17, 50):
        points = random.random((count, 2))
        corners = hull(points)
        assert corners[0] == corners.min() and len(set(corners.tolist())) == len(corners)
        for one, other in zip(corners, np.roll(corners, -1)):
            along, to = points[other] - points[one], np.delete(points, [one, other], 0) - points[one]
            assert (along[0] * to[:, 1] - along[1] * to[:, 0] > 0).all()


@pytest.mark.parametrize("grid", [0, 4])
def test_all_sets_together_as_each_alone(grid):
    """On a grid there are points twice, and many in a line."""
    random = np.random.default_rng(2)
    sets = random.integers(grid, size=(300, 12, 2)).astype(float) if grid else random.random((300, 30, 2))
    together = hulls(sets)
    assert [corners.tolist() for corners in together] == [hull(points).tolist() for points in sets]


def test_the_tour_of_a_square_goes_around_it():
    corners = SQUARE[1:]  # 1 1, 0 0, 1 0, 0 1
    assert tours(corners[None]).tolist() == [[0, 3, 1, 2]]
    assert length(corners[[0, 3, 1, 2]]) == 4 and length(corners) == pytest.approx(2 + 2 * 2**0.5)


def test_a_detour_is_made_where_it_is_shortest():
    # 3   2     4 hangs into the square from below: between 0 and 1
    #   4
    # 0   1
    assert tours(np.array([[[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.2]]], float)).tolist() == [[0, 4, 1, 2, 3]]


@pytest.mark.parametrize("count", [3, 4, 7])
def test_no_other_order_is_shorter(count):
    points = np.random.default_rng(count).random((11, count, 2))
    for one, tour in zip(points, tours(points), strict=True):
        best = min(length(one[[0, *rest]]) for rest in permutations(range(1, count)))
        assert tour[0] == 0 and sorted(tour) == list(range(count))
        assert length(one[tour]) == pytest.approx(best) and doubled_area(one[tour]) > 0


@pytest.mark.parametrize("count", [9, 10, 12])
def test_large_tours_visit_all_and_cannot_be_mended(count):
    """Too many orders to try them all: turning round any stretch of it makes no tour shorter."""
    points = np.random.default_rng(count).random((40, count, 2))
    for one, tour in zip(points, tours(points), strict=True):
        assert sorted(tour) == list(range(count))
        for first in range(1, count - 1):
            for last in range(first + 1, count):
                turned = [*tour[:first], *tour[first : last + 1][::-1], *tour[last + 1 :]]
                assert length(one[turned]) > length(one[tour]) - 1e-9


def test_the_shortest_tours_of_ten_points_are_as_long_as_is_known():
    points = np.random.default_rng(0).random((400, 10, 2))
    found = np.mean([length(one[tour]) for one, tour in zip(points, tours(points), strict=True)])
    assert found == pytest.approx(2.87, abs=0.04)  # Vinyals 2015, table 2: 2.87


def test_tours_do_not_depend_on_how_many_are_sought_at_once(monkeypatch):
    points = np.random.default_rng(5).random((9, 6, 2))
    whole = tours(points)
    monkeypatch.setattr("regard.data.plane.AT_ONCE", 1)
    assert (tours(points) == whole).all()


@pytest.mark.parametrize(
    ("order", "is_simple"),
    [([1, 4, 2, 3], True), ([1, 4, 0, 2, 3], True), ([1, 2, 3, 4], False), ([1, 4], False), ([1, 4, 2, 4], False), ([3, 4, 1], True)],
)
def test_edges_that_cross_are_seen(order, is_simple):
    assert simple(SQUARE[order]) == is_simple


def test_a_set_follows_from_seed_number_and_size():
    one = PointExamples.of([Points(count=7, sizes=(4, 6), seed=3)])
    assert one.costs.tolist() == [4, 5, 6, 4, 5, 6, 4]
    more = PointExamples.of([Points(count=2, seed=8), Points(count=20, sizes=(4, 6), seed=3)])
    for place in range(7):
        assert (one.points(place) == more.points(place + 2)).all()
    some = one.some(np.array([5, 1]))
    assert (some.points(0) == one.points(5)).all() and some.answers == (one.answers[5], one.answers[1])
    assert not (PointExamples.of([Points(seed=2, count=1)]).points(0) == PointExamples.of([Points(count=1)]).points(0)).any()


@pytest.mark.parametrize("problem", ["hull", "tour"])
def test_a_batch_holds_points_and_answers_of_sets_of_any_size(problem):
    examples = PointExamples.of([Points(problem, count=6, sizes=(3, 5))])
    batch = examples.batch(np.array([2, 0, 4]))
    assert batch.lengths.tolist() == [5, 3, 4] and batch.points.shape == (3, 5, 2) and batch.source_tokens == 12
    assert (batch.points[1, 3:] == 0).all() and torch.equal(batch.points[1, :3], torch.from_numpy(examples.points(0)))
    assert batch.real.sum(1).tolist() == [5, 3, 4] and batch.target_tokens == int((batch.labels != IGNORED).sum())
    for labels, place in zip(batch.labels.tolist(), batch.pairs):
        row = [label for label in labels if label != IGNORED]
        assert spelled([label - 1 for label in row[:-1]]) == examples.answers[place] and row[-1] == 0
    part = batch.part(range(1, 3))
    assert part.points.shape == (2, 4, 2) and part.pairs == (0, 4) and part.source_tokens == 7
    assert part.labels.shape[1] == int((part.labels != IGNORED).sum(1).max())


def test_an_answer_can_be_read_back():
    assert read_back("3 0 12").tolist() == [3, 0, 12] and read_back("").tolist() == []


def test_points_need_no_files():
    assert files_of(Points(), root=Path("nowhere")) == []


@pytest.mark.parametrize(
    "wrong",
    [lambda: Points(count=0), lambda: Points(sizes=(2, 5)), lambda: Points(sizes=(6, 5)), lambda: Points("tour", sizes=(5, 13))],
)
def test_corpora_that_cannot_be_are_refused(wrong):
    with pytest.raises(UsageError):
        wrong()


def test_points_are_read_two_numbers_a_line(tmp_path):
    (tmp_path / "set.txt").write_bytes(b"0 1\n.5,\t-2e-1\r\n3 4\n")
    assert (
        read_points(tmp_path / "set.txt").tolist()
        == read_points(b"0 1\n0.5 -0.2\n3 4").tolist()
        == [[0, 1], [0.5, np.float32(-0.2)], [3, 4]]
    )


@pytest.mark.parametrize(
    ("wrong", "says"), [(b"0 1\n2\n", ":2: this is no point"), (b"nan 1", ":1"), (b"", "no point in it"), (b"a b", ":1")]
)
def test_what_is_no_point_is_named(wrong, says):
    with pytest.raises(DataError, match=says):
        read_points(wrong)
