"""Measures of two representations, against slow code and by hand; `test_checks` tries what all of them promise."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import orthogonal_procrustes
from scipy.stats import pearsonr

from fivelenses.lenses import similarities
from fivelenses.lenses.cca import pwcca_distance, svcca_distance, whitening
from fivelenses.lenses.moments import Moments
from fivelenses.lenses.similarities import debiased_linear_cka, linear_cka, mutual_neighbours, procrustes_distance, rsa

seeds = st.integers(0, 2**31)


def related(seed, n=100, d1=5, d2=7, away=10.0):
    """Two representations that share a part, with unequal variances and means away from 0."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((n, d1)) * np.geomspace(1, 0.1, d1) + away
    return x, x @ random.standard_normal((d1, d2)) + random.standard_normal((n, d2)) - away


def centred(*sides):
    return [side - side.mean(0) for side in sides]


def cosine(x, y):
    return np.sum(x * y) / (np.linalg.norm(x) * np.linalg.norm(y))


def plain_cca(x, y, variance_kept):
    """SVCCA and PWCCA from the token-by-direction factors."""
    x, y = centred(x, y)
    factors = []
    for side in (x, y):
        tokens, values, _ = np.linalg.svd(side, full_matrices=False)
        held = np.cumsum(values**2) / np.sum(values**2)
        factors.append(tokens[:, : np.flatnonzero(held >= variance_kept - 1e-12)[0] + 1])
    left, rho, right = np.linalg.svd(factors[0].T @ factors[1], full_matrices=False)
    of_x = factors[0].shape[1] <= factors[1].shape[1]
    variates, features = (factors[0] @ left, x) if of_x else (factors[1] @ right.T, y)
    weights = np.abs(variates.T @ features).sum(1)
    return 1 - rho.mean(), 1 - weights @ rho / weights.sum()


def plain_cka(x, y):
    return cosine(*(side @ side.T for side in centred(x, y)))


def plain_debiased_cka(x, y):
    kernels = []
    for rows in centred(x, y):
        kernel, n = rows @ rows.T, len(rows)
        np.fill_diagonal(kernel, 0)
        columns = kernel.sum(0)
        kernel += columns.sum() / ((n - 1) * (n - 2)) - (columns[:, None] + columns) / (n - 2)
        np.fill_diagonal(kernel, 0)
        kernels.append(kernel)
    return cosine(*kernels)


def plain_rsa(x, y):
    """SciPy's correlation of the upper triangles of both kernels."""
    above, triangles = np.triu_indices(len(x), 1), []
    for rows in (x, y):
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        triangles.append((unit @ unit.T)[above])
    return pearsonr(*triangles)[0]


def plain_procrustes(x, y):
    x, y = (side / np.linalg.norm(side) for side in centred(np.pad(x, ((0, 0), (0, 2))), y))
    rotation, _ = orthogonal_procrustes(y, x)
    return np.linalg.norm(x - y @ rotation)


def plain_neighbours(x, y, k=10):
    """Row by row, with sets."""
    shared = 0
    for i in range(len(x)):
        near = []
        for side in (x, y):
            distances = [np.inf if j == i else np.linalg.norm(side[i] - side[j]) for j in range(len(side))]
            near.append(set(np.argsort(distances, kind="stable")[:k]))
        shared += len(near[0] & near[1])
    return shared / (len(x) * k)


@pytest.mark.parametrize(
    ("measure", "plain"),
    [
        (linear_cka, plain_cka),
        (debiased_linear_cka, plain_debiased_cka),
        (rsa, plain_rsa),
        (procrustes_distance, plain_procrustes),
        (mutual_neighbours, plain_neighbours),
    ],
)
@given(seed=seeds, n=st.integers(70, 100), away=st.floats(0, 30))
@settings(deadline=None, max_examples=15)
def test_a_measure_is_what_its_definition_gives(measure, plain, seed, n, away):
    x, y = related(seed, n, away=away)
    assert measure(x, y) == pytest.approx(plain(x, y), abs=1e-7)


@given(seeds, st.sampled_from([0.5, 0.9, 0.99, 1.0]))
@settings(deadline=None, max_examples=25)
def test_the_cca_family_is_what_its_definition_gives(seed, variance_kept):
    x, y = related(seed)
    for pair in ((x, y), (y, x)):
        measured = svcca_distance(*pair, variance_kept), pwcca_distance(*pair, variance_kept)
        assert measured == pytest.approx(plain_cca(*pair, variance_kept), abs=1e-9)


def kept(x, share=1.0):
    """Principal directions that hold a share of the variance."""
    moments = Moments()
    moments.update(x, x)
    return whitening(moments.pair().xx, share)[0].shape[1]


@pytest.mark.filterwarnings("ignore:n = 8 rows")
def test_cca_and_cka_by_hand():
    one, two, three = (np.array(signs, dtype=float) for signs in ([1, -1] * 4, [1, 1, -1, -1] * 2, [1] * 4 + [-1] * 4))
    x = np.stack([2 * one, two], axis=1)
    y = np.stack([one + three, two], axis=1)
    # The canonical correlations are cos 45° = 1/√2 and 1; the first variate is 2·one, the second two.
    assert svcca_distance(x, y, variance_kept=1.0) == pytest.approx(1 - (1 + math.sqrt(0.5)) / 2)
    assert pwcca_distance(x, y) == pytest.approx(1 - (1 + 2 * math.sqrt(0.5)) / 3)
    # Scatter over 8: xx = diag(4, 1), yy = diag(2, 1), xy = diag(2, 1).
    assert linear_cka(x, y) == pytest.approx(5 / math.sqrt(17 * 5))
    # The first direction of x holds 4 of 5 parts of the variance.
    assert [kept(x, share) for share in (0.8, 0.81)] == [1, 2]


def test_debiased_cka_by_hand():
    x, other = np.array([[1.0], [1.0], [-1.0], [-1.0]]), np.array([[1.0], [-1.0], [1.0], [-1.0]])
    assert debiased_linear_cka(x, 2 * x) == 1
    # Off the diagonal, each has 1 in its own pairing of the rows and -1 in two others: the cosine is -1/2.
    assert debiased_linear_cka(x, other) == pytest.approx(-0.5)


def test_rsa_by_hand():
    # Cosines of x: 0, 1/√2, 1/√2; of y: 1, 0, 0; their correlation is -1.
    x, y = np.array([[1.0, 0], [0, 2], [3, 3]]), np.array([[1.0, 0], [4, 0], [0, 1]])
    assert rsa(x, y) == pytest.approx(-1, abs=1e-12)


@given(seeds)
def test_procrustes_obeys_the_triangle(seed):
    x, y, z = (np.random.default_rng([seed, side]).standard_normal((40, 5)) for side in range(3))
    assert procrustes_distance(x, z) <= procrustes_distance(x, y) + procrustes_distance(y, z) + 1e-9


def test_neighbours_by_hand():
    # Nearest of x: 1, 0, 1, 2. Nearest of y: 2, 2, 1, 1.
    x, y = np.array([[0.0], [1.0], [3.0], [7.0]]), np.array([[0.0], [1.5], [1.0], [3.5]])
    assert mutual_neighbours(x, y, 1) == 1 / 4
    assert mutual_neighbours(x, y, 3) == 1


def test_principal_directions_are_those_that_are_more_than_rounding():
    x, y = related(0, n=400)
    redundant = np.column_stack([x, x[:, 0], 3 * x[:, 1] - x[:, 2], np.full(len(x), 7.0)])
    assert (kept(redundant), kept(y)) == (5, 7)
    assert svcca_distance(redundant, y, 1.0) == pytest.approx(svcca_distance(x, y, 1.0), abs=1e-9)
    normalised = torch.nn.functional.layer_norm(torch.from_numpy(related(0, 2000, 16)[0]).float(), (16,))
    assert kept(normalised) == 15
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1).T.repeat(5, 0)
    assert kept(corners, 0.5) == 2


def test_single_precision_keeps_four_digits_with_a_wide_spectrum():
    random = np.random.default_rng(0)
    scales, rotation = np.geomspace(1, 1e-3, 40), np.linalg.qr(random.standard_normal((40, 40)))[0]
    x = random.standard_normal((3000, 40)) * scales @ rotation + 20
    y = (x - 20) @ rotation + 0.3 * random.standard_normal((3000, 40)) * scales - 5
    single = x.astype(np.float32), y.astype(np.float32)
    for variance_kept in (0.99, 1.0):
        assert svcca_distance(*single, variance_kept) == pytest.approx(svcca_distance(x, y, variance_kept), abs=2e-5)
    assert linear_cka(*single) == pytest.approx(linear_cka(x, y), abs=1e-6)


def test_rsa_keeps_nine_digits_where_all_cosines_are_nearly_one():
    x, y = related(0, n=300, away=1000.0)
    assert rsa(x, y) == pytest.approx(plain_rsa(x, y), abs=1e-9)


def test_a_representation_wider_than_a_block_has_the_debiased_cka_of_its_kernels():
    # The upper triangle of a side's own products is gathered some columns at a time.
    x, y = related(0, n=60, d1=300, d2=300, away=0)
    assert debiased_linear_cka(x, y) == pytest.approx(plain_debiased_cka(x, y), abs=1e-9)


@given(seeds, st.integers(1, 20))
def test_of_many_equal_distances_the_first_rows_count(seed, k):
    x, y = (np.round(side) for side in related(seed, n=40))
    assert mutual_neighbours(x, y, k) == pytest.approx(plain_neighbours(x, y, k))


@pytest.mark.parametrize("step", [1e-5, 1e-9, 1e-15])
def test_neighbours_that_single_precision_cannot_tell_apart_are_told_apart(step):
    # Of the first row the nearest is the second or the third, which are almost equally far.
    nearer, further = np.array([[0.0], [1.0], [-1 - step], [9.0]]), np.array([[0.0], [1 + step], [-1.0], [9.0]])
    assert mutual_neighbours(nearer, nearer, 1) == mutual_neighbours(further, further, 1) == 1
    assert mutual_neighbours(nearer, further, 1) == 3 / 4


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_neighbours_are_the_same_where_squares_are_no_numbers(scale):
    x, y = related(0, n=40)
    usual = mutual_neighbours(x, y, 5)
    assert mutual_neighbours(scale * x, y, 5) == mutual_neighbours(x, scale * y, 5) == usual < 1


def test_a_stream_gives_what_the_whole_gives(monkeypatch):
    x, y = (torch.from_numpy(side) for side in related(1, n=300, d2=5))
    moments, of_units, debiased = Moments(), Moments(((1, 0), (0, 1))), similarities.DebiasedCKA(((0, 1), (1, 1)))
    for pair in zip(x.split(17), y.split(17), strict=True):
        moments.update(*pair)
        of_units.update(*(similarities.unit_rows(side) for side in pair))
        debiased.update(*pair)
    for measure in (svcca_distance, pwcca_distance, linear_cka, procrustes_distance):
        assert measure(moments.pair()) == pytest.approx(measure(x, y), abs=1e-10)
    assert rsa(of_units.pair(0, 1)) == pytest.approx(rsa(x, y), abs=1e-10)
    assert debiased.similarity() == pytest.approx(debiased_linear_cka(x, y), abs=1e-10)
    assert debiased.similarity(1, 1) == 1
    usual = mutual_neighbours(x, y)
    monkeypatch.setattr(similarities, "NEIGHBOURS_AT_ONCE", 7)
    assert mutual_neighbours(x, y) == usual


def test_a_sample_is_of_the_same_rows_of_both_sides():
    x, y = related(1, n=300)
    positions = similarities.sample_positions(300, 200, seed=3)
    assert len(set(positions)) == 200 and (np.diff(positions) > 0).all()
    assert rsa(x, y, 200, 3) == rsa(x[positions], y[positions])


def test_the_null_of_equal_representations_is_that_of_independent_ones():
    x = np.random.default_rng(0).standard_normal((8000, 100))
    independent = 1 - 8 / (3 * math.pi) * math.sqrt(1 / 80)
    assert similarities.permuted_null(svcca_distance, x, x) == pytest.approx(independent, abs=0.01)
    assert similarities.permuted_null(linear_cka, x, x) == pytest.approx(100 / 8100, rel=0.05)
    assert similarities.permuted_null(rsa, x, x) == pytest.approx(0, abs=0.02)
    again = [similarities.permuted_null(linear_cka, x[:1000], x[:1000], seed) for seed in (1, 1, 2)]
    assert again[0] == again[1] != again[2]


X, Y = related(0)


@pytest.mark.parametrize(
    ("measure", "x", "y", "sentence"),
    [
        (svcca_distance, X[:12], Y[:12], r"n = 12 is not above d1 \+ d2 = 5 \+ 7 = 12"),
        (linear_cka, X[:3], Y[:3], "n = 3 rows are too few for CKA"),
        (debiased_linear_cka, np.eye(60), Y[:60], "kernel of representation 0 is constant"),
        (lambda x, y: mutual_neighbours(x, y, 100), X, Y, "k = 100 neighbours of 100 rows"),
        (rsa, X[:2], Y[:2], "n = 2 tokens are too few"),
        (rsa, X, np.where(np.arange(100)[:, None] == 7, 0, Y), "Row 7 is the zero vector"),
        (rsa, np.arange(1.0, 101)[:, None] * X[:1], Y, "All cosines of the first representation are equal"),
    ],
)
def test_what_has_no_value_is_refused(measure, x, y, sentence):
    with pytest.raises(ValueError, match=sentence):
        measure(x, y)


@pytest.mark.parametrize("measure", [svcca_distance, pwcca_distance, linear_cka])
def test_few_rows_are_warned_of(measure):
    with pytest.warns(UserWarning, match="n = 69 rows are fewer than 10 × d = 70"):
        measure(X[:69], Y[:69])
