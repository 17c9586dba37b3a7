"""Mutual nearest neighbours: by hand, against a plain loop, its invariances, its chance level, and refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivelenses.lenses import neighbours
from fivelenses.lenses.neighbours import mutual_neighbours

seeds = st.integers(0, 2**31)


def related(seed, n=40):
    random = np.random.default_rng(seed)
    x = random.standard_normal((n, 4)) + 50
    return x, x @ random.standard_normal((4, 6)) + random.standard_normal((n, 6))


def plain(x, y, k):
    """Row by row, with sets."""
    shared = 0
    for i in range(len(x)):
        near = []
        for side in (x, y):
            distances = [np.inf if j == i else np.linalg.norm(side[i] - side[j]) for j in range(len(side))]
            near.append(set(np.argsort(distances, kind="stable")[:k]))
        shared += len(near[0] & near[1])
    return shared / (len(x) * k)


@given(seeds, st.integers(1, 39))
def test_it_agrees_with_a_plain_loop(seed, k):
    x, y = related(seed)
    assert mutual_neighbours(x, y, k) == pytest.approx(plain(x, y, k))


@given(seeds, st.integers(1, 20))
def test_of_many_equal_distances_the_first_rows_count(seed, k):
    x, y = (np.round(side) for side in related(seed))
    assert mutual_neighbours(x, y, k) == pytest.approx(plain(x, y, k))


def test_blocks_of_rows_change_nothing(monkeypatch):
    x, y = related(0)
    whole = mutual_neighbours(x, y, 5)
    monkeypatch.setattr(neighbours, "ROWS_AT_ONCE", 7)
    assert mutual_neighbours(x, y, 5) == whole < 1


def test_worked_by_hand():
    x = np.array([[0.0], [1.0], [3.0], [7.0]])
    # Nearest of x: 1, 0, 1, 2. Nearest of y: 2, 2, 1, 1.
    y = np.array([[0.0], [1.5], [1.0], [3.5]])
    assert mutual_neighbours(x, y, 1) == 1 / 4
    assert mutual_neighbours(x, y, 3) == 1


@given(seeds, st.floats(1e-2, 1e2), st.floats(-100, 100), st.permutations(range(6)))
def test_rotating_scaling_moving_and_reordering_change_nothing(seed, scale, moved, order):
    x, y = related(seed)
    turned = np.linalg.qr(np.random.default_rng(seed).standard_normal((6, 6)))[0]
    assert mutual_neighbours(x, scale * y @ turned + moved, 5) == mutual_neighbours(x, y, 5)
    assert mutual_neighbours(x, y[:, list(order)], 5) == mutual_neighbours(x, y, 5) == mutual_neighbours(y, x, 5)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_the_scale_of_either_side_changes_nothing_where_squares_are_no_numbers(scale):
    x, y = related(0)
    usual = mutual_neighbours(x, y, 5)
    assert mutual_neighbours(scale * x, y, 5) == mutual_neighbours(x, scale * y, 5) == usual < 1


def test_independent_data_share_what_chance_gives():
    random = np.random.default_rng(0)
    values = [
        mutual_neighbours(random.standard_normal((60, 3)), random.standard_normal((60, 3)), 6) for _ in range(100)
    ]
    assert np.mean(values) == pytest.approx(6 / 59, abs=0.01)


def test_equal_rows_count_in_their_order():
    x = np.zeros((5, 2))
    assert mutual_neighbours(x, x, 2) == 1


@pytest.mark.parametrize("step", [1e-5, 1e-9, 1e-15])
def test_distances_that_a_coarser_precision_cannot_tell_apart_are_told(step):
    # Of the first row the nearest is the second or the third, which are almost equally far.
    nearer, further = np.array([[0.0], [1.0], [-1 - step], [9.0]]), np.array([[0.0], [1 + step], [-1.0], [9.0]])
    assert mutual_neighbours(nearer, nearer, 1) == mutual_neighbours(further, further, 1) == 1
    assert mutual_neighbours(nearer, further, 1) == 3 / 4


@pytest.mark.parametrize(
    ("x", "y", "k", "message"),
    [
        (np.eye(4), np.eye(4), 4, "k = 4 neighbours of 4 rows: give a k from 1 to 3"),
        (np.eye(4), np.eye(4), 0, "k = 0 neighbours"),
        (np.eye(4), np.eye(5), 1, "give the same tokens"),
        (np.eye(4), np.full((4, 1), np.nan), 1, "NaN or infinity, first in row 0"),
        (np.eye(4, dtype=int), np.eye(4), 1, "not floating-point"),
    ],
    ids=["too many", "none", "other rows", "NaN", "integers"],
)
def test_hostile_inputs_are_refused(x, y, k, message):
    with pytest.raises(ValueError, match=message):
        mutual_neighbours(x, y, k)
