"""Debiased CKA: by hand, against U-centred kernels, its invariances, its lack of bias, and refusals."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fivelenses.lenses.cca import linear_cka
from fivelenses.lenses.debiased_cka import DebiasedCKA, debiased_linear_cka

seeds = st.integers(0, 2**31)


def related(seed, n=30, d1=5, d2=7):
    random = np.random.default_rng(seed)
    x = random.standard_normal((n, d1)) * np.geomspace(1, 0.1, d1) + 10
    return x, x @ random.standard_normal((d1, d2)) + random.standard_normal((n, d2)) - 100


def u_centred(x):
    """The kernel, with the means over other rows taken away as Székely and Rizzo do; slow and plain."""
    kernel, n = (x - x.mean(0)) @ (x - x.mean(0)).T, len(x)
    np.fill_diagonal(kernel, 0)
    rows = kernel.sum(1) / (n - 2)
    kernel = kernel - rows[:, None] - rows[None] + kernel.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(kernel, 0)
    return kernel


def plain(x, y):
    first, second = u_centred(x), u_centred(y)
    return (first * second).sum() / np.sqrt((first**2).sum() * (second**2).sum())


@given(seeds, st.integers(4, 40))
def test_it_is_the_cosine_of_the_u_centred_kernels(seed, n):
    x, y = related(seed, n)
    assert debiased_linear_cka(x, y) == pytest.approx(plain(x, y), abs=1e-8)


def test_four_rows_by_hand():
    # U-centred kernels of four rows are those of three pairings of the rows; the products below pair them as
    # (01)(23), and the two representations agree in that alone.
    x, y = np.array([[1.0], [1.0], [-1.0], [-1.0]]), np.array([[2.0], [2.0], [-2.0], [-2.0]])
    assert debiased_linear_cka(x, y) == 1
    other = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    # Off the diagonal x has 1 in its own pairing and -1 in the two others; the cosine of two of three is -1/2.
    assert debiased_linear_cka(x, other) == pytest.approx(-0.5)


@given(seeds, st.integers(1, 12))
def test_the_size_of_batches_changes_nothing(seed, size):
    x, y = (torch.from_numpy(side) for side in related(seed))
    cka = DebiasedCKA()
    for first, second in zip(x.split(size), y.split(size), strict=True):
        cka.update(first, second)
    assert cka.similarity() == pytest.approx(debiased_linear_cka(x, y), abs=1e-9)


@given(seeds, st.floats(1e-3, 1e3), st.floats(-100, 100), st.permutations(range(7)))
def test_rotating_scaling_moving_and_reordering_change_nothing(seed, scale, moved, order):
    x, y = related(seed)
    turned = np.linalg.qr(np.random.default_rng(seed).standard_normal((7, 7)))[0]
    assert debiased_linear_cka(x, scale * y @ turned + moved) == pytest.approx(debiased_linear_cka(x, y), abs=1e-6)
    assert debiased_linear_cka(x, y[:, list(order)]) == pytest.approx(debiased_linear_cka(x, y), abs=1e-9)


@given(seeds, st.integers(4, 12))
def test_a_representation_agrees_with_itself_exactly_and_no_small_batch_is_nan(seed, n):
    x = np.random.default_rng(seed).standard_normal((n, 20)).astype(np.float32)
    assert debiased_linear_cka(x, x) == 1
    other = np.random.default_rng(seed + 1).standard_normal((n, 20)).astype(np.float32)
    assert -1 <= debiased_linear_cka(x, other) <= 1
    assert debiased_linear_cka(x, other) == pytest.approx(debiased_linear_cka(other, x), abs=1e-9)


def test_independent_data_are_at_zero_where_plain_cka_is_not():
    random = np.random.default_rng(0)
    draws = [[random.standard_normal((40, 30)) for _ in range(2)] for _ in range(200)]
    debiased = np.array([debiased_linear_cka(*pair) for pair in draws])
    assert abs(debiased.mean()) < 3 * debiased.std() / np.sqrt(200)
    with pytest.warns(UserWarning, match="fewer than 10"):
        assert min(linear_cka(*pair) for pair in draws) > 0.3


def test_pairs_share_one_pass():
    (x, y), z = related(0), np.random.default_rng(5).standard_normal((30, 2))
    cka = DebiasedCKA([(0, 1), (0, 2), (1, 1)])
    cka.update(x, y, z)
    assert cka.similarity(0, 1) == pytest.approx(debiased_linear_cka(x, y), abs=1e-12)
    assert cka.similarity(0, 2) == pytest.approx(debiased_linear_cka(x, z), abs=1e-12)
    assert cka.similarity(1, 1) == 1


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.ones((3, 2)) * np.arange(3)[:, None], np.eye(3), "at least 4 rows, not 3"),
        (np.ones((9, 2)), np.random.default_rng(0).standard_normal((9, 2)), "Representation 0 does not vary"),
        (np.eye(5), np.eye(6), "1 has 6 rows and representation 0 has 5"),
        (np.eye(5), np.full((5, 2), np.nan), "NaN or infinity, first in row 0"),
        (np.eye(5), np.arange(5), "not \\(rows, features\\)"),
        (np.eye(5, dtype=int), np.eye(5), "not floating-point"),
        (np.eye(5) * 1e200, np.eye(5), "does not vary|overflow"),
    ],
    ids=["three rows", "constant", "other rows", "NaN", "one dimension", "integers", "huge"],
)
def test_hostile_inputs_are_refused(x, y, message):
    with pytest.raises(ValueError, match=message):
        debiased_linear_cka(x, y)


def test_wrong_pairs_are_refused():
    with pytest.raises(ValueError, match="by their positions"):
        DebiasedCKA([])
    cka = DebiasedCKA()
    with pytest.raises(ValueError, match="1 representations were given and the pairs name 2"):
        cka.update(np.eye(3))
    cka.update(np.eye(5), np.eye(5))
    with pytest.raises(ValueError, match="was not gathered"):
        cka.similarity(1, 0)
