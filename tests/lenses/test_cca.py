import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fivelenses.lenses.cca import correlations, pwcca_distance, svcca_distance, whitening
from fivelenses.lenses.cka import linear_cka
from fivelenses.lenses.moments import Moments
from fivelenses.lenses.similarities import permuted_null


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


def kept(x, share=1.0):
    """Principal directions that hold a share of the variance."""
    moments = Moments()
    moments.update(x, x)
    return whitening(moments.pair().xx, share)[0].shape[1]


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


@pytest.mark.filterwarnings("ignore:n = 8 rows")
def test_measures_of_a_case_done_by_hand():
    one, two, three = (np.array(signs, dtype=float) for signs in ([1, -1] * 4, [1, 1, -1, -1] * 2, [1] * 4 + [-1] * 4))
    x = np.stack([2 * one, two], axis=1)
    y = np.stack([one + three, two], axis=1)
    # The canonical correlations are cos 45° = 1/√2 and 1; the first variate is 2·one, the second two.
    rho = correlations(x, y, variance_kept=1.0)
    np.testing.assert_allclose(rho, [1, math.sqrt(0.5)], rtol=1e-12)
    assert svcca_distance(x, y, variance_kept=1.0) == pytest.approx(1 - (1 + math.sqrt(0.5)) / 2)
    assert pwcca_distance(x, y) == pytest.approx(1 - (1 + 2 * math.sqrt(0.5)) / 3)
    # Scatter over 8: xx = diag(4, 1), yy = diag(2, 1), xy = diag(2, 1).
    assert linear_cka(x, y) == pytest.approx(5 / math.sqrt(17 * 5))
    # The first direction of x holds 4 of 5 parts of the variance.
    assert [kept(x, share) for share in (0.8, 0.81)] == [1, 2]


def test_independent_data_have_the_known_mean_correlation_and_so_has_the_null():
    random = np.random.default_rng(0)
    x, y = random.standard_normal((2, 8000, 100))
    expected = 1 - 8 / (3 * math.pi) * math.sqrt(100 / 8000)
    assert svcca_distance(x, y, variance_kept=1.0) == pytest.approx(expected, abs=0.005)
    assert linear_cka(x, y) == pytest.approx(100 / 8100, rel=0.05)
    assert permuted_null(svcca_distance, x, x) == pytest.approx(expected, abs=0.01)
    nulls = [permuted_null(linear_cka, x[:1000], x[:1000], seed) for seed in (1, 1, 2)]
    assert nulls[0] == nulls[1] != nulls[2]


def test_single_precision_input_keeps_four_digits_with_a_wide_spectrum():
    random = np.random.default_rng(0)
    scales = np.geomspace(1, 1e-3, 40)
    x = random.standard_normal((3000, 40)) * scales @ rotation(0, 40) + 20
    y = (x - 20) @ rotation(1, 40) + 0.3 * random.standard_normal((3000, 40)) * scales @ rotation(2, 40) - 5
    for variance_kept in (0.99, 1.0):
        single = svcca_distance(x.astype(np.float32), y.astype(np.float32), variance_kept)
        assert single == pytest.approx(svcca_distance(x, y, variance_kept), abs=2e-5)
    assert linear_cka(x.astype(np.float32), y.astype(np.float32)) == pytest.approx(linear_cka(x, y), abs=1e-6)


def test_columns_that_repeat_or_stand_still_are_no_directions():
    x, y = related(0)
    redundant = np.column_stack([x, x[:, 0], 3 * x[:, 1] - x[:, 2], np.full(len(x), 7.0)])
    assert (kept(redundant), kept(y)) == (5, 7)
    assert svcca_distance(redundant, y, 1.0) == pytest.approx(svcca_distance(x, y, 1.0), abs=1e-9)


def test_rounding_left_by_layer_normalisation_is_no_direction():
    x = np.random.default_rng(0).standard_normal((2000, 16)).astype(np.float32)
    normalised = torch.nn.functional.layer_norm(torch.from_numpy(x), (16,))
    assert kept(normalised) == 15


def test_equal_variances_are_counted_to_the_share():
    x = np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1).T.repeat(5, 0)
    assert kept(x, 0.5) == 2


X, Y = related(0)


@pytest.mark.parametrize("measure", [svcca_distance, pwcca_distance])
def test_too_few_rows_are_refused_by_number(measure):
    with pytest.raises(ValueError, match=r"n = 12 is not above d1 \+ d2 = 5 \+ 7 = 12"):
        measure(X[:12], Y[:12])


@pytest.mark.parametrize("measure", [svcca_distance, pwcca_distance, linear_cka])
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
