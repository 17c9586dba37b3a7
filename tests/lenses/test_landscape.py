import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fivelenses.lenses.landscape import Measurement, curve, grid, surface

# f(x, y) = ½ (4 x² + y²) around the minimum (1, 2), in two tensors.
CURVATURES, MINIMUM = (4.0, 1.0), (1.0, 2.0)
START = {"x": torch.tensor([-1.0], dtype=torch.float64), "y": torch.tensor([2.0], dtype=torch.float64)}
ALONG_X = {"x": torch.tensor([2.0], dtype=torch.float64), "y": torch.tensor([0.0], dtype=torch.float64)}
ALONG_Y = {"x": torch.tensor([0.0], dtype=torch.float64), "y": torch.tensor([2.0], dtype=torch.float64)}


def quadratic(point):
    return sum(
        curvature / 2 * float(point[name] - lowest) ** 2
        for name, curvature, lowest in zip("xy", CURVATURES, MINIMUM, strict=True)
    )


@given(st.floats(-5, 0), st.floats(0.5, 5), st.integers(2, 60))
@settings(deadline=None, max_examples=50)
def test_a_grid_increases_and_holds_the_marks_in_range_once(low, high, count):
    found = grid(low, high, count)
    assert (np.diff(found) > 1e-10).all()
    for mark in (-1.0, 0.0, 1.0):
        assert (found == mark).sum() == (low <= mark <= high)


def test_the_surface_of_a_quadratic_is_that_worked_by_hand():
    alphas, betas = grid(-1, 2, 4), grid(-0.5, 1, 4)
    found = surface(quadratic, START, (ALONG_X, ALONG_Y), alphas, betas)
    assert found.loss.shape == (len(betas), len(alphas))
    np.testing.assert_allclose(found.loss, 8 * (alphas - 1) ** 2 + 2 * betas[:, None] ** 2, atol=1e-12)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_marks_its_cell_alone(value):
    found = curve(lambda point: Measurement(value if float(point["x"]) > 0 else 1.0, 0.5), START, ALONG_X, [0, 1])
    np.testing.assert_array_equal(found.loss, [1, np.nan])
    np.testing.assert_array_equal(found.error, [0.5, np.nan])


class Counted:
    """A quadratic that counts its calls and fails at one of them."""

    def __init__(self, fails_at=None):
        self.calls, self.fails_at = 0, fails_at

    def __call__(self, point):
        self.calls += 1
        if self.calls == self.fails_at:
            raise KeyboardInterrupt
        return Measurement(quadratic(point), 0.5, 0.1, 0.2)


def kept_surface(evaluate, folder, betas=(0, 1, 2), origin=START, directions=(ALONG_X, ALONG_Y), **options):
    return surface(evaluate, origin, directions, (0, 1), betas, folder=folder, **options)


def test_a_surface_that_was_interrupted_goes_on_where_it_was(tmp_path):
    whole, folder = kept_surface(Counted(), None), tmp_path / "folder"
    with pytest.raises(KeyboardInterrupt):
        kept_surface(Counted(fails_at=4), folder)
    rest, rows = Counted(), []
    resumed = kept_surface(rest, folder, progress=lambda *at: rows.append(at))
    assert rest.calls == 4 and rows == [(2, 3), (3, 3)]
    for name in ("loss", "error", "loss_standard_error", "error_standard_error"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name))
    again = Counted()
    np.testing.assert_array_equal(kept_surface(again, folder).loss, whole.loss)
    assert again.calls == 0 and len(list(folder.iterdir())) == 1


@pytest.mark.parametrize(
    "change",
    [{"betas": (0, 1, 3)}, {"identity": "other examples"}, {"directions": (ALONG_Y, ALONG_X)}, {"origin": ALONG_Y}],
)
def test_another_surface_is_not_taken_for_one_that_is_stored(tmp_path, change):
    kept_surface(Counted(), tmp_path)
    other = Counted()
    measured = kept_surface(other, tmp_path, **change)
    assert other.calls == 6 and len(list(tmp_path.iterdir())) == 2
    np.testing.assert_array_equal(measured.loss, kept_surface(Counted(), None, **change).loss)
