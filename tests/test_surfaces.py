"""Surfaces: contours that hold all values, and the surface that a reader turns."""

import json

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup

from fivelenses.exhibits import FLOOR, contour_levels, turnable


@pytest.mark.parametrize("values", [[0.6, 0.9], [0.001, 30.0], [0.5, 0.5], [0.0, 0.001]])
def test_contours_hold_all_values_in_equal_ratios(values):
    levels = contour_levels(np.array([*values, np.nan]), np.zeros(3))
    assert levels[0] == pytest.approx(max(values[0], FLOOR)) and levels[-1] >= values[1] * (1 - 1e-9)
    ratios = levels[1:] / levels[:-1]
    assert ratios.min() > 1 and np.allclose(ratios, ratios[0]) and len(levels) >= 12


def test_a_surface_to_turn_has_the_losses_of_its_grid_and_a_hole_where_one_is_not_finite():
    grid = pd.DataFrame([[0.1, 1.0, 10.0], [np.nan, 0.001, 10.0]], [0.0, 1.0], [0.0, 1.0, 2.0])
    marks = {"start": (0.0, 0.0), "end": (1.0, 0.0)}
    piece = BeautifulSoup(turnable({"a < b": grid, "other": grid}, marks, "Two bowls."), "html.parser")
    assert [option.text for option in piece.select("option")] == ["a < b", "other"]
    shown = json.loads(piece.script.string)["surfaces"][0]
    assert shown["marks"] == {"start": [0, 0], "end": [0, 1]} and shown["alphas"] == [0, 1, 2]
    reach = np.log10(10 / FLOOR)  # what is lower than the least that is told apart lies on the ground
    expected = [[np.log10(value / FLOOR) / reach for value in row] for row in ([0.1, 1, 10], [FLOOR, 10])]
    assert shown["heights"][0] == pytest.approx(expected[0], abs=1e-3)
    assert shown["heights"][1][0] is None and shown["heights"][1][1:] == pytest.approx(expected[1], abs=1e-3)
