import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fivelenses.lenses.cca import pwcca_distance, svcca_distance
from fivelenses.lenses.cka import linear_cka
from fivelenses.lenses.moments import Moments
from fivelenses.lenses.similarities import permuted_null

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((300, 4)) * [1, 0.5, 2, 0.1] + 50
Y = X @ RANDOM.standard_normal((4, 6)) + RANDOM.standard_normal((300, 6))
Z = Y[:, :3] + RANDOM.standard_normal((300, 3))


def gathered(cuts=(), rows=slice(None), **options):
    moments = Moments(**({"block": 32} | options))
    x, y = X[rows], Y[rows]
    for first, last in zip((0, *cuts), (*cuts, len(x)), strict=True):
        moments.update(x[first:last], y[first:last])
    return moments


def matrices(scatter):
    return [part.numpy() for part in (scatter.xx, scatter.yy, scatter.xy)]


cuts = st.lists(st.integers(0, 300), max_size=6).map(sorted)


@given(cuts)
@settings(deadline=None, max_examples=30)
def test_any_split_of_the_stream_gives_the_same_to_the_last_bit(cuts):
    streamed, whole = gathered(cuts, null_seed=0), gathered(null_seed=0)
    for one, other in ((streamed.pair(), whole.pair()), (streamed.null(), whole.null())):
        for part, expected in zip(matrices(one), matrices(other), strict=True):
            np.testing.assert_array_equal(part, expected)


@given(cuts, st.integers(2, 400))
@settings(deadline=None, max_examples=20)
def test_scatter_is_that_of_the_whole_whatever_the_block(cuts, block):
    scatter = gathered(cuts, block=block).pair()
    x, y = X - X.mean(0), Y - Y.mean(0)
    assert scatter.n == 300
    for part, expected in zip(matrices(scatter), (x.T @ x, y.T @ y, x.T @ y), strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-10, atol=1e-9)


@given(st.integers(0, 300), st.integers(0, 300))
@settings(deadline=None, max_examples=20)
def test_merging_gives_the_whole(one, other):
    first, second = sorted((one, other))
    merged = gathered(rows=slice(0, first))
    for rows in (slice(first, second), slice(second, 300)):
        merged.merge(gathered(rows=rows))
    for part, expected in zip(matrices(merged.pair()), matrices(gathered().pair()), strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-10, atol=1e-9)


@given(st.integers(0, 250), st.integers(10, 290))
@settings(deadline=None, max_examples=20)
def test_rows_left_out_leave_the_moments_of_the_others(first, rows):
    last = min(first + rows, 300)
    part, whole = gathered(rows=slice(first, last)), gathered(rows=slice(last, None))
    whole.merge(gathered(rows=slice(0, first)))
    whole.merge(part)
    x, y = (np.delete(values, slice(first, last), axis=0) for values in (X, Y))
    if len(x) < 2:
        return
    kept, centred = whole.without(part).pair(), (x - x.mean(0), y - y.mean(0))
    assert kept.n == len(x)
    for found, (one, other) in zip(matrices(kept), ((0, 0), (1, 1), (0, 1)), strict=True):
        np.testing.assert_allclose(found, centred[one].T @ centred[other], rtol=1e-9, atol=1e-8)
    assert whole.n == 300 and part.n == last - first


def test_measures_of_moments_are_those_of_the_arrays():
    moments = gathered((17, 230))
    for measure in (svcca_distance, pwcca_distance, linear_cka):
        assert measure(moments) == pytest.approx(measure(X, Y), abs=1e-10)


def test_several_pairs_share_a_side():
    moments = Moments(pairs=((0, 1), (0, 2), (2, 1)), null_seed=0, block=64)
    moments.update(X, Y, Z)
    for i, j in moments.pairs:
        expected = svcca_distance((X, Y, Z)[i], (X, Y, Z)[j])
        assert svcca_distance(moments.pair(i, j)) == pytest.approx(expected, abs=1e-10)
        assert svcca_distance(moments.null(i, j)) > expected


def test_streamed_null_is_that_of_permuted_rows():
    random = np.random.default_rng(1)
    x = random.standard_normal((6000, 30))
    y = x + 0.5 * random.standard_normal((6000, 30))
    moments = Moments(null_seed=0)
    for rows in np.array_split(np.arange(6000), 70):
        moments.update(x[rows], y[rows])
    assert svcca_distance(moments.null()) == pytest.approx(permuted_null(svcca_distance, x, y), abs=0.005)
    assert linear_cka(moments.null()) == pytest.approx(30 / 6030, rel=0.2)
    np.testing.assert_array_equal(moments.null().yy, moments.pair().yy)


def test_a_null_is_there_before_a_block_is_full():
    moments = Moments(null_seed=0)
    moments.update(X, Y)
    assert svcca_distance(moments.null()) > svcca_distance(moments.pair())


def test_single_precision_rows_far_from_0_lose_nothing():
    x, y = (values.astype(np.float32) for values in (1000 * (X - 50) + 1e4, Y))
    moments = Moments(block=32)
    moments.update(x, y)
    exact = x.astype(np.float64) - x.astype(np.float64).mean(0)
    np.testing.assert_allclose(moments.pair().xx, exact.T @ exact, rtol=1e-9, atol=1e-4)


def test_rows_given_in_inference_mode_can_be_read_and_merged_outside():
    with torch.inference_mode():
        moments = Moments(block=32)
        moments.update(torch.from_numpy(X[:200]).clone(), torch.from_numpy(Y[:200]).clone())
    moments.merge(gathered(rows=slice(200, 300)))
    np.testing.assert_allclose(moments.pair().xy, gathered().pair().xy, rtol=1e-10, atol=1e-9)


def test_the_caller_may_write_over_its_rows():
    moments, buffer = Moments(block=64), np.empty((50, 4))
    for first in range(0, 300, 50):
        buffer[:] = X[first : first + 50]
        moments.update(buffer, Y[first : first + 50])
        buffer[:] = 0
    np.testing.assert_array_equal(moments.pair().xx, gathered(block=64).pair().xx)


@pytest.mark.parametrize(
    "act, message",
    [
        (lambda: gathered().update(X), "1 representations were given and the pairs name 2"),
        (lambda: gathered().update(X[:, :3], Y), "Representation 0 has 3 features, and had 4 before"),
        (lambda: Moments().pair(), "No rows were given"),
        (lambda: svcca_distance(gathered(), X), "hold both sides: give one pair alone"),
        (lambda: svcca_distance(Moments(pairs=((0, 1), (0, 2)))), "Moments of 2 pairs hold both sides"),
    ],
)
def test_misuse_is_refused(act, message):
    with pytest.raises(ValueError, match=message):
        act()
