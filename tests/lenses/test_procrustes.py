"""Orthogonal Procrustes: by hand, against SciPy's rotation, its invariances, that it is a metric, and refusals."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import orthogonal_procrustes

from fivelenses.lenses.moments import Moments
from fivelenses.lenses.procrustes import procrustes_distance

seeds = st.integers(0, 2**31)


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


def test_worked_by_hand():
    x = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    # Scatter 2 I and 2: one singular value 2 over √(4 · 2), which is 1/√2.
    assert procrustes_distance(x, x[:, :1]) == pytest.approx(math.sqrt(2 - math.sqrt(2)))
    assert procrustes_distance(x[:, :1], x[:, 1:]) == pytest.approx(math.sqrt(2))


@given(seeds, st.floats(1e-3, 1e3), st.floats(-100, 100), st.permutations(range(5)))
def test_rotating_scaling_moving_and_reordering_change_nothing(seed, scale, moved, order):
    x, y = drawn(seed), drawn(seed + 1)
    turned = np.linalg.qr(np.random.default_rng(seed).standard_normal((5, 5)))[0]
    assert procrustes_distance(x, scale * y @ turned + moved) == pytest.approx(procrustes_distance(x, y), abs=1e-6)
    assert procrustes_distance(x, y[:, list(order)]) == pytest.approx(procrustes_distance(x, y), abs=1e-9)
    assert procrustes_distance(y, scale * y @ turned + moved) == pytest.approx(0, abs=1e-5)


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


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.ones((5, 2)), drawn(0, 5), "constant: all 5 rows are equal"),
        (drawn(0, 5), drawn(0, 6), "give the same tokens"),
        (drawn(0, 5), np.full((5, 2), np.inf), "NaN or infinity"),
        (drawn(0, 5), None, "second representation is missing"),
        (drawn(0, 5) * 1e200, drawn(0, 5), "overflow"),
    ],
    ids=["constant", "other rows", "infinity", "alone", "huge"],
)
def test_hostile_inputs_are_refused(x, y, message):
    with pytest.raises(ValueError, match=message):
        procrustes_distance(x, y)
