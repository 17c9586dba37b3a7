import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fivelenses.lenses.cca import correlations, linear_cka, permuted_null, pwcca_distance, svcca_distance


def related(seed, n=400, d1=5, d2=7, dtype=np.float64):
    """Two representations that share a part, with unequal variances and means far from 0."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((n, d1)) * np.geomspace(1, 0.1, d1) + 10
    y = x @ random.standard_normal((d1, d2)) + random.standard_normal((n, d2)) - 100
    return x.astype(dtype), y.astype(dtype)


def rotation(seed, d):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]


def plain_measures(x, y, variance_kept):
    """SVCCA and PWCCA from the token-by-direction factors, linear CKA from the token-by-token kernels."""
    x, y = x - x.mean(0), y - y.mean(0)
    factors = []
    for side in (x, y):
        tokens, values, _ = np.linalg.svd(side, full_matrices=False)
        held = np.cumsum(values**2) / np.sum(values**2)
        factors.append(tokens[:, : np.flatnonzero(held >= variance_kept - 1e-12)[0] + 1])
    left, rho, right = np.linalg.svd(factors[0].T @ factors[1], full_matrices=False)
    of_x = factors[0].shape[1] <= factors[1].shape[1]
    variates, features = (factors[0] @ left, x) if of_x else (factors[1] @ right.T, y)
    weights = np.abs(variates.T @ features).sum(1)
    kernel_x, kernel_y = x @ x.T, y @ y.T
    alike = np.sum(kernel_x * kernel_y) / (np.linalg.norm(kernel_x) * np.linalg.norm(kernel_y))
    return 1 - rho.mean(), 1 - weights @ rho / weights.sum(), alike


seeds = st.integers(0, 2**31)
keeps = st.sampled_from([0.5, 0.9, 0.99, 1.0])


@given(seeds, keeps)
@settings(deadline=None, max_examples=25)
def test_measures_agree_with_plain_numpy(seed, variance_kept):
    x, y = related(seed)
    expected = plain_measures(x, y, variance_kept)
    measured = svcca_distance(x, y, variance_kept), pwcca_distance(x, y, variance_kept), linear_cka(x, y)
    assert measured == pytest.approx(expected, abs=1e-9)
    swapped = plain_measures(y, x, variance_kept)
    assert (svcca_distance(y, x, variance_kept), pwcca_distance(y, x, variance_kept)) == pytest.approx(
        swapped[:2], abs=1e-9
    )


@given(seeds, keeps, st.floats(1e-3, 1e3), st.floats(-100, 100))
@settings(deadline=None, max_examples=25)
def test_rotating_scaling_and_moving_change_nothing(seed, variance_kept, scale, moved):
    x, y = related(seed)
    image = scale * y @ rotation(seed, 7) + moved
    assert svcca_distance(x, image, variance_kept) == pytest.approx(svcca_distance(x, y, variance_kept), abs=1e-8)
    assert linear_cka(x, image) == pytest.approx(linear_cka(x, y), abs=1e-8)
    assert svcca_distance(y, image, variance_kept) == pytest.approx(0, abs=1e-8)
    assert pwcca_distance(y, image, variance_kept) == pytest.approx(0, abs=1e-8)
    assert linear_cka(y, image) == pytest.approx(1, abs=1e-8)


@given(seeds)
@settings(deadline=None, max_examples=15)
def test_an_invertible_map_changes_no_correlation_of_all_directions(seed):
    x, y = related(seed)
    image = y @ (rotation(seed, 7) * np.geomspace(1, 20, 7)) @ rotation(seed + 1, 7)
    assert svcca_distance(x, image, 1.0) == pytest.approx(svcca_distance(x, y, 1.0), abs=1e-8)
    assert pwcca_distance(x, image) == pytest.approx(pwcca_distance(x, y), abs=1e-8)


@given(seeds, keeps)
@settings(deadline=None, max_examples=15)
def test_measures_are_bounded_and_symmetric(seed, variance_kept):
    x, y = related(seed)
    assert svcca_distance(x, y, variance_kept) == pytest.approx(svcca_distance(y, x, variance_kept), abs=1e-10)
    assert linear_cka(x, y) == pytest.approx(linear_cka(y, x), abs=1e-12)
    for value in (svcca_distance(x, y, variance_kept), pwcca_distance(x, y, variance_kept), linear_cka(x, y)):
        assert 0 <= value <= 1
    of_both = correlations(x, y, variance_kept)
    assert len(of_both.correlations) == min(of_both.kept_x, of_both.kept_y)
    assert (np.diff(of_both.correlations) <= 0).all()


@pytest.mark.filterwarnings("ignore:n = 8 rows")
def test_measures_of_a_case_done_by_hand():
    one, two, three = (np.array(signs, dtype=float) for signs in ([1, -1] * 4, [1, 1, -1, -1] * 2, [1] * 4 + [-1] * 4))
    x = np.stack([2 * one, two], axis=1)
    y = np.stack([one + three, two], axis=1)
    # The canonical correlations are cos 45° = 1/√2 and 1; the first variate is 2·one, the second two.
    rho = correlations(x, y, variance_kept=1.0).correlations
    np.testing.assert_allclose(rho, [1, math.sqrt(0.5)], rtol=1e-12)
    assert svcca_distance(x, y, variance_kept=1.0) == pytest.approx(1 - (1 + math.sqrt(0.5)) / 2)
    assert pwcca_distance(x, y) == pytest.approx(1 - (1 + 2 * math.sqrt(0.5)) / 3)
    # Scatter over 8: xx = diag(4, 1), yy = diag(2, 1), xy = diag(2, 1).
    assert linear_cka(x, y) == pytest.approx(5 / math.sqrt(17 * 5))
    # The first direction of x holds 4 of 5 parts of the variance.
    assert correlations(x, y, variance_kept=0.8).kept_x == 1
    assert correlations(x, y, variance_kept=0.81).kept_x == 2


def test_independent_data_have_the_known_mean_correlation_and_so_has_the_null():
    random = np.random.default_rng(0)
    x, y = random.standard_normal((2, 8000, 100))
    expected = 1 - 8 / (3 * math.pi) * math.sqrt(100 / 8000)
    assert svcca_distance(x, y, variance_kept=1.0) == pytest.approx(expected, abs=0.005)
    assert permuted_null(x, x, variance_kept=1.0) == pytest.approx(expected, abs=0.005)
    assert linear_cka(x, y) == pytest.approx(100 / 8100, rel=0.05)
    assert permuted_null(x, x, seed=1) == permuted_null(x, x, seed=1) != permuted_null(x, x, seed=2)


def test_single_precision_input_keeps_four_digits_with_a_wide_spectrum():
    random = np.random.default_rng(0)
    scales = np.geomspace(1, 1e-3, 40)
    x = random.standard_normal((3000, 40)) * scales @ rotation(0, 40) + 20
    y = (x - 20) @ rotation(1, 40) + 0.3 * random.standard_normal((3000, 40)) * scales @ rotation(2, 40) - 5
    for variance_kept in (0.99, 1.0):
        single = svcca_distance(x.astype(np.float32), y.astype(np.float32), variance_kept)
        assert single == pytest.approx(svcca_distance(x, y, variance_kept), abs=2e-5)
    assert linear_cka(x.astype(np.float32), y.astype(np.float32)) == pytest.approx(linear_cka(x, y), abs=1e-6)


def test_torch_and_numpy_of_any_layout_give_the_same():
    x, y = related(0)
    expected = svcca_distance(x, y)
    frozen = x.copy()
    frozen.flags.writeable = False
    assert svcca_distance(torch.from_numpy(x).requires_grad_(), torch.from_numpy(y)) == expected
    assert svcca_distance(frozen, np.asfortranarray(y)) == expected


def test_columns_that_repeat_or_stand_still_are_no_directions():
    x, y = related(0)
    redundant = np.column_stack([x, x[:, 0], 3 * x[:, 1] - x[:, 2], np.full(len(x), 7.0)])
    kept = correlations(redundant, y, variance_kept=1.0)
    assert (kept.kept_x, kept.kept_y) == (5, 7)
    assert 1 - kept.correlations.mean() == pytest.approx(svcca_distance(x, y, 1.0), abs=1e-9)


def test_rounding_left_by_layer_normalisation_is_no_direction():
    x = np.random.default_rng(0).standard_normal((2000, 16)).astype(np.float32)
    normalised = torch.nn.functional.layer_norm(torch.from_numpy(x), (16,))
    assert correlations(normalised, x, variance_kept=1.0).kept_x == 15


def test_equal_variances_are_counted_to_the_share():
    x = np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1).T.repeat(5, 0)
    assert correlations(x, x, variance_kept=0.5).kept_x == 2


X, Y = related(0)


@pytest.mark.parametrize("measure", [correlations, svcca_distance, pwcca_distance, linear_cka, permuted_null])
@pytest.mark.parametrize(
    "x, y, message",
    [
        (
            np.where(np.arange(400)[:, None] == 3, np.nan, X),
            Y,
            "Representation 0 holds NaN or infinity, first in row 3",
        ),
        (
            X,
            np.where(np.arange(400)[:, None] == 9, np.inf, Y),
            "Representation 1 holds NaN or infinity, first in row 9",
        ),
        (X, np.full((400, 3), 0.1), "Representation 1 is constant: all 400 rows are equal"),
        (X[:1], Y[:1], "Representation 0 is constant: all 1 rows are equal"),
        (X[:0], Y[:0], "No rows"),
        (X, Y[:-1], "Representation 1 has 399 rows and representation 0 has 400"),
        (X[:, 0], Y, r"shape \(400,\), not \(rows, features\)"),
        (X[:, :0], Y, r"shape \(400, 0\)"),
        (X.astype(int), Y, "not floating-point"),
    ],
)
def test_what_is_no_pair_of_representations_is_refused(measure, x, y, message):
    with pytest.raises(ValueError, match=message):
        measure(x, y)


@pytest.mark.parametrize("scale", [1e-70, 1e70])
def test_the_unit_of_a_representation_changes_no_measure(scale):
    assert linear_cka(X * scale, Y) == pytest.approx(linear_cka(X, Y), abs=1e-9)
    assert svcca_distance(X * scale, Y) == pytest.approx(svcca_distance(X, Y), abs=1e-6)


@pytest.mark.parametrize("measure", [correlations, svcca_distance, pwcca_distance, linear_cka, permuted_null])
def test_representations_whose_squares_overflow_are_refused(measure):
    with pytest.raises(ValueError, match="overflow double precision"):
        measure(X * 1e160, Y)


@pytest.mark.parametrize("measure", [correlations, svcca_distance, pwcca_distance, permuted_null])
def test_too_few_rows_are_refused_by_number(measure):
    with pytest.raises(ValueError, match=r"n = 12 is not above d1 \+ d2 = 5 \+ 7 = 12"):
        measure(X[:12], Y[:12])


@pytest.mark.parametrize("rows", [2, 3])
def test_cka_of_rows_too_few_to_differ_is_refused(rows):
    with pytest.raises(ValueError, match=f"n = {rows} rows are too few for CKA"):
        linear_cka(X[:rows], Y[:rows])


@pytest.mark.parametrize("measure", [correlations, svcca_distance, pwcca_distance, linear_cka, permuted_null])
def test_few_rows_are_warned_of(measure):
    with pytest.warns(UserWarning, match="n = 69 rows are fewer than 10 × d = 70"):
        measure(X[:69], Y[:69])


@pytest.mark.parametrize("variance_kept", [0, -0.5, 1.01, math.nan])
def test_a_share_outside_0_to_1_is_refused(variance_kept):
    with pytest.raises(ValueError, match="not a share of variance"):
        svcca_distance(X, Y, variance_kept)


def test_a_second_side_is_asked_for():
    with pytest.raises(ValueError, match="second representation is missing"):
        svcca_distance(X)
