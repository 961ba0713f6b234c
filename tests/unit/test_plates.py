"""Drawings that need no model: their numbers are those of attention, and they are what is drawn."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from regard.data.plane import hull
from regard.look.drawing import Box, Line
from regard.look.plates import CELL, PLATES, POSITIONS, VALUES, WIDTH, draw_sinusoid, outputs, regression, shade
from regard.look.plot import LEFT, RIGHT, plot
from regard.look.plot import WIDTH as PAPER
from regard.look.printing import svg
from regard.nn.positions import Sinusoid, sinusoid
from small_run import regard

SVG = "{http://www.w3.org/2000/svg}"


def test_outputs_lie_in_the_hull_that_is_drawn():
    corners = np.array(VALUES)[hull(np.array(VALUES))]
    for output in outputs():
        edges = np.roll(corners, -1, 0) - corners
        apart = output - corners
        assert (edges[:, 0] * apart[:, 1] - edges[:, 1] * apart[:, 0] >= -1e-5).all()  # left of every edge
    assert np.ptp(outputs(), axis=0).min() > 2  # they are not all in one place


def test_the_regression_gives_the_numbers_of_the_deck():
    assert regression("negative distance", [4.21])[0] == pytest.approx(-1.5547, abs=1e-4)
    assert regression("Gaussian, width 0.5", [4.21])[0] == pytest.approx(-1.7717, abs=1e-4)
    assert regression("Gaussian, width 2", [4.21])[0] == pytest.approx(-1.2398, abs=1e-4)
    assert regression("Epanechnikov, width 2", [4.21])[0] == pytest.approx(-1.8321, abs=1e-4)


def test_each_square_of_the_sinusoid_has_its_number():
    squares = [mark for mark in draw_sinusoid().marks if isinstance(mark, Box)]
    numbers = sinusoid(torch.arange(POSITIONS), WIDTH, Sinusoid()).flatten().tolist()
    assert [square.fill for square in squares] == [shade(number) for number in numbers] and squares[1].x - squares[0].x == CELL
    assert (shade(0), shade(1), shade(-1)) == ("#ffffff", "#d4601a", "#2f66d0")


def test_a_plot_puts_points_where_they_belong():
    line, left = [(0.0, 1.0), (5.0, 100.0), (10.0, 10.0)], float(LEFT)
    for logarithmic in (False, True):
        drawing = plot("a", {"one": line}, logarithmic=logarithmic)
        (drawn,) = [mark for mark in drawing.marks if isinstance(mark, Line) and len(mark.points) == 3]
        assert [x for x, _ in drawn.points] == pytest.approx([left, (left + PAPER - RIGHT) / 2, PAPER - RIGHT])
        heights = [y for _, y in drawn.points]
        assert heights[0] > heights[2] > heights[1]
        share = (heights[0] - heights[2]) / (heights[0] - heights[1])
        assert share == pytest.approx(0.5 if logarithmic else 9 / 99)
    assert not [mark for mark in plot("a", {"one": [(0.0, 0.0), (1.0, 2.0)]}, logarithmic=True).marks if "nan" in str(mark)]


@pytest.mark.parametrize("name", PLATES)
def test_drawn_by_the_command(name: str, tmp_path: Path):
    done = regard("look", "--draw", name, "--figure", tmp_path / "a.svg")
    assert done.code == 0, done.error
    text = (tmp_path / "a.svg").read_text()
    assert text == svg(PLATES[name]()) and ElementTree.fromstring(text).tag == f"{SVG}svg"
    assert "--draw needs a file" in regard("look", "--draw", name).error
