"""CKA: the debiased one by hand and against U-centred kernels, its lack of bias, and refusals."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fivelenses.lenses.cka import DebiasedCKA, debiased_linear_cka, linear_cka

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


def test_wrong_pairs_are_refused():
    for rows in (2, 3):
        with pytest.raises(ValueError, match="rows are too few for CKA"):
            linear_cka(np.eye(rows), np.eye(rows))
        with pytest.raises(ValueError, match="at least 4 rows"):
            debiased_linear_cka(np.eye(rows), np.eye(rows))
    cka = DebiasedCKA()
    with pytest.raises(ValueError, match="1 representations were given and the pairs name 2"):
        cka.update(np.eye(3))
