"""What answers that are not the best ones are worth, on a square with a point inside."""

import numpy as np
import pytest

from regard.data.points import PointExamples, Points, spelled
from regard.evaluate.plane import area, tour_length
from regard.tasks.pointing import judged, outline

SQUARE = np.array([[0.5, 0.4], [1, 1], [0, 0], [1, 0], [0, 1]])  # 0 lies inside
HULL = np.array([1, 4, 2, 3])


def areas(*found):
    return area([SQUARE] * len(found), [np.array(one, int) for one in found], [HULL] * len(found))


def test_the_area_is_a_share_of_the_hulls():
    assert areas(HULL).score == 100 and areas(HULL[::-1]).score == 100
    assert areas([1, 4, 2]).score == 50
    assert areas([1, 4, 2, 0]).score == pytest.approx(100 * (0.5 + 0.05))  # 0 bulges out of 1 4 2 by a flat triangle
    assert areas(HULL, [1, 4, 2]).score == 75


def test_edges_that_cross_enclose_nothing_that_counts():
    crossed = areas(HULL, [1, 2, 3, 4], [1, 4], [])
    assert crossed.score == 100 and crossed.detail == {"simple": 25} and crossed.signature == "area|n:4|of:simple"
    assert areas([1, 2, 3, 4]).score == 0


def test_a_tour_is_as_long_as_its_edges():
    best, crossed = np.array([0, 3, 1, 2]), np.array([0, 1, 2, 3])
    mean, ratio = tour_length([SQUARE[1:]] * 2, [best, crossed], [best] * 2)
    assert mean.score == pytest.approx((4 + 2 + 2 * 2**0.5) / 2) and mean.detail == {"shortest": 4}
    assert ratio.score == pytest.approx(mean.score / 4)


def test_a_polygon_has_many_names_and_one_outline():
    names = [[1, 4, 2, 3], [4, 2, 3, 1], [3, 2, 4, 1], [1, 3, 2, 4]]
    assert {outline(np.array(name)) for name in names} == {"1 3 2 4"}
    assert outline(np.array([1, 2, 3, 4])) != outline(np.array([1, 3, 2, 4]))
    assert outline(np.array([], int)) == "" and outline(np.array([7])) == "7"


@pytest.mark.parametrize("problem", ["hull", "tour"])
def test_the_right_answers_are_right_however_they_are_named(problem):
    examples = PointExamples.of([Points(problem, count=9, sizes=(4, 7), seed=5)])
    turned = [spelled(answer.split()[2:] + answer.split()[:2]) for answer in examples.answers]
    perfect = {"hull": {"accuracy": 100, "area": 100}, "tour": {"accuracy": 100, "tour-ratio": 1}}[problem]
    for found in (examples.answers, turned):
        scores = {score.name: score.score for score in judged(found, examples)}
        assert {name: scores[name] for name in perfect} == pytest.approx(perfect)
    wrong = judged([*examples.answers[:-1], "0 1"], examples)[0]
    assert wrong.score == pytest.approx(100 * 8 / 9)
