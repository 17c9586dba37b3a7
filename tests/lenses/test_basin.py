import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fivelenses.lenses.basin import Surface, area, half_widths, path, share_below
from fivelenses.lenses.landscape import sharpness

AXIS = np.linspace(-2, 2, 41)


def plane(losses, alphas=AXIS, betas=AXIS):
    return Surface(alphas, betas, losses)


def bowl(first=2.0, second=2.0, alphas=AXIS, betas=AXIS):
    """½ (first · α² + second · β²)."""
    return plane(first / 2 * alphas**2 + second / 2 * betas[:, None] ** 2, alphas, betas)


@given(st.floats(1, 8), st.floats(1, 8), st.floats(0.2, 1.5))
@settings(max_examples=10)
def test_widths_and_area_follow_the_curvatures(first, second, rise):
    axis = np.linspace(-3, 3, 121)
    surface = bowl(first, second, axis, axis)
    assert half_widths(axis, surface.losses[60], 0, rise) == pytest.approx((math.sqrt(2 * rise / first),) * 2, rel=0.02)
    assert area(surface, (0, 0), rise)[0] == pytest.approx(2 * math.pi * rise / math.sqrt(first * second), rel=0.02)


@pytest.mark.parametrize("radius", [0.5, 1.0, 2.0])
def test_the_share_of_a_disc_is_that_of_the_areas(radius):
    assert share_below(bowl(), (0, 0), 0.26, radius) == pytest.approx(min(1, 0.26 / radius**2), abs=0.03)


def test_a_disc_that_leaves_the_grid_has_no_share():
    assert math.isnan(share_below(bowl(), (0, 0), 1, 2.1)) and math.isnan(share_below(bowl(), (1, 0), 1, 1.5))
    assert 0 < share_below(bowl(), (1, 0), 1, 1) <= 1


def test_what_has_no_finite_loss_lies_above():
    losses = np.zeros((41, 41))
    losses[:, 21:] = np.nan
    assert share_below(plane(losses), (0, 0), 0.1, 1) == pytest.approx(0.5, abs=0.04)


def test_half_widths_are_interpolated_between_grid_points():
    assert half_widths([0, 1, 3, 4], [5.0, 2.0, 3.0, 9.0], at=1, rise=2) == pytest.approx((2 / 3, 13 / 6))
    # The first crossing counts, and a plain beyond it does not.
    assert half_widths([0, 1, 2, 3], [0.0, 2.0, 0.0, 0.0], at=0, rise=1) == (math.inf, 0.5)


def test_a_basin_ends_at_the_last_finite_point():
    assert half_widths([0, 1, 2, 3], [0.0, 0.1, math.nan, 0.0], at=0, rise=1) == (math.inf, 1.0)
    losses = bowl().losses.copy()
    losses[:, AXIS > 1] = np.nan
    assert area(plane(losses), (0, 0), rise=10) == (pytest.approx(3 * 4, rel=0.01), False)


def test_area_that_a_ridge_cuts_off_does_not_count():
    losses = np.zeros((41, 41))
    losses[:, 10] = 5
    # The ridge stands at -1 and is crossed a fifth of a cell of 0.1 before.
    assert area(plane(losses), (0, 0), rise=1) == (pytest.approx((2 + 1 - 0.08) * 4, rel=0.01), False)


def test_a_path_that_falls_is_monotone_and_one_with_a_barrier_is_not():
    positions = np.linspace(-1, 2, 13)
    assert path(positions, (positions - 1) ** 2) == (1, 0)
    assert path([0, 0.5, 0.7, 1], [1.0, 3.0, 2.0, 0.5]) == (pytest.approx(2 / 3), 2)
    # Where the loss is not finite, it climbs to infinity.
    assert path([0, 0.25, 0.5, 1], [3.0, math.inf, 2.0, 1.0]) == (pytest.approx(1 / 3), math.inf)


def test_sharpness_does_not_see_a_scale_that_the_loss_does_not_see():
    point = {"weight": torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))}
    start = point["weight"].clone()

    def angle_to_start(at):
        return 1 - float((at["weight"] * start).sum() / at["weight"].norm() / start.norm())

    scaled = {"weight": 5 * point["weight"]}
    assert sharpness(angle_to_start, scaled) == pytest.approx(sharpness(angle_to_start, point), rel=1e-9)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: half_widths([0, 1], [1.0], 0, 1), "give one for each"),
        (lambda: half_widths([1, 0], [1.0, 2.0], 0, 1), "increasing order"),
        (lambda: half_widths([0, 1], [1.0, 2.0], 0.5, 1), "0.5 is not one of the positions"),
        (lambda: half_widths([0, 1], [math.nan, 2.0], 0, 1), "not finite"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
