"""Mutual neighbours and Procrustes distances: by hand, and against slow code."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import orthogonal_procrustes

from fivelenses.lenses import similarities
from fivelenses.lenses.moments import Moments
from fivelenses.lenses.similarities import mutual_neighbours, procrustes_distance

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
def test_neighbours_agree_with_a_plain_loop(seed, k):
    x, y = related(seed)
    assert mutual_neighbours(x, y, k) == pytest.approx(plain(x, y, k))


@given(seeds, st.integers(1, 20))
def test_of_many_equal_distances_the_first_rows_count(seed, k):
    x, y = (np.round(side) for side in related(seed))
    assert mutual_neighbours(x, y, k) == pytest.approx(plain(x, y, k))


def test_blocks_of_rows_change_nothing(monkeypatch):
    x, y = related(0)
    whole = mutual_neighbours(x, y, 5)
    monkeypatch.setattr(similarities, "ROWS_AT_ONCE", 7)
    assert mutual_neighbours(x, y, 5) == whole < 1


def test_neighbours_worked_by_hand():
    x = np.array([[0.0], [1.0], [3.0], [7.0]])
    # Nearest of x: 1, 0, 1, 2. Nearest of y: 2, 2, 1, 1.
    y = np.array([[0.0], [1.5], [1.0], [3.5]])
    assert mutual_neighbours(x, y, 1) == 1 / 4
    assert mutual_neighbours(x, y, 3) == 1


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_the_scale_of_either_side_changes_nothing_where_squares_are_no_numbers(scale):
    x, y = related(0)
    usual = mutual_neighbours(x, y, 5)
    assert mutual_neighbours(scale * x, y, 5) == mutual_neighbours(x, scale * y, 5) == usual < 1


@pytest.mark.parametrize("step", [1e-5, 1e-9, 1e-15])
def test_distances_that_a_coarser_precision_cannot_tell_apart_are_told(step):
    # Of the first row the nearest is the second or the third, which are almost equally far.
    nearer, further = np.array([[0.0], [1.0], [-1 - step], [9.0]]), np.array([[0.0], [1 + step], [-1.0], [9.0]])
    assert mutual_neighbours(nearer, nearer, 1) == mutual_neighbours(further, further, 1) == 1
    assert mutual_neighbours(nearer, further, 1) == 3 / 4


@pytest.mark.parametrize("k", [0, 4])
def test_as_many_neighbours_as_rows_are_refused(k):
    with pytest.raises(ValueError, match=f"k = {k} neighbours of 4 rows: give a k from 1 to 3"):
        mutual_neighbours(np.eye(4), np.eye(4), k)


def drawn(seed, n=40, d=5):
    return np.random.default_rng(seed).standard_normal((n, d)) * np.geomspace(1, 0.1, d) + 10


def unit(x):
    x = x - x.mean(0)
    return x / np.linalg.norm(x)


@given(seeds)
def test_it_is_what_the_best_rotation_leaves(seed):
    x, y = drawn(seed), drawn(seed + 1)
    first, second = unit(x), unit(y)
    rotation, _ = orthogonal_procrustes(second, first)
    assert procrustes_distance(x, y) == pytest.approx(np.linalg.norm(first - second @ rotation), abs=1e-7)


def test_the_distance_worked_by_hand():
    x = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    # Scatter 2 I and 2: one singular value 2 over √(4 · 2), which is 1/√2.
    assert procrustes_distance(x, x[:, :1]) == pytest.approx(math.sqrt(2 - math.sqrt(2)))
    assert procrustes_distance(x[:, :1], x[:, 1:]) == pytest.approx(math.sqrt(2))


@given(seeds)
def test_it_is_a_metric(seed):
    x, y, z = (drawn(seed + place) for place in range(3))
    assert procrustes_distance(x, y) == pytest.approx(procrustes_distance(y, x), abs=1e-9)
    assert procrustes_distance(x, z) <= procrustes_distance(x, y) + procrustes_distance(y, z) + 1e-9
    assert 0 <= procrustes_distance(x, y) <= math.sqrt(2)


def test_a_stream_gives_the_same():
    x, y = drawn(0), drawn(1, d=3)
    moments = Moments()
    for first, second in zip(np.array_split(x, 7), np.array_split(y, 7), strict=True):
        moments.update(first, second)
    assert procrustes_distance(moments.pair()) == pytest.approx(procrustes_distance(x, y), abs=1e-10)
