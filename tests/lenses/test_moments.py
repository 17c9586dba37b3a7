import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fivelenses.lenses import moments
from fivelenses.lenses.cca import svcca_distance
from fivelenses.lenses.moments import Moments
from fivelenses.lenses.similarities import linear_cka, permuted_null

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((300, 4)) * [1, 0.5, 2, 0.1] + 50
Y = X @ RANDOM.standard_normal((4, 6)) + RANDOM.standard_normal((300, 6))
Z = Y[:, :3] + RANDOM.standard_normal((300, 3))
FOLD_OF = RANDOM.integers(0, 3, 300)


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moments, "ROWS_AT_ONCE", 32)
        yield


def gathered(cuts=(), fold_of=None, sides=(X, Y), **options):
    gathering = Moments(**options)
    for first, last in zip((0, *cuts), (*cuts, 300), strict=True):
        folds = None if fold_of is None else torch.from_numpy(fold_of[first:last])
        gathering.update(*(side[first:last] for side in sides), fold_of=folds)
    return gathering


def matrices(scatter):
    return [part.numpy() for part in (scatter.xx, scatter.yy, scatter.xy, scatter.x_mean, scatter.y_mean)]


cuts = st.lists(st.integers(0, 300), max_size=6).map(sorted)


@given(cuts)
@settings(deadline=None, max_examples=30)
def test_any_split_of_the_stream_gives_the_same_to_the_last_bit(cuts):
    streamed, whole = gathered(cuts, null_seed=0), gathered(null_seed=0)
    for one, other in ((streamed.pair(), whole.pair()), (streamed.null(), whole.null())):
        for part, expected in zip(matrices(one), matrices(other), strict=True):
            np.testing.assert_array_equal(part, expected)


@given(cuts, st.sampled_from([(0, 1), (0, 2), (2, 1)]), st.sampled_from([None, 0, 1, 2, 3]))
@settings(deadline=None, max_examples=40)
def test_moments_are_those_of_all_rows_or_of_those_outside_a_fold(cuts, pair, left_out):
    # The last fold is empty.
    gathering = gathered(cuts, FOLD_OF, (X, Y, Z), pairs=((0, 1), (0, 2), (2, 1)), folds=4)
    scatter, rest = gathering.pair(*pair, left_out), left_out != FOLD_OF
    x, y = ((X, Y, Z)[side][rest] for side in pair)
    means = x.mean(0), y.mean(0)
    x, y = x - means[0], y - means[1]
    assert scatter.n == rest.sum()
    for part, expected in zip(matrices(scatter), (x.T @ x, y.T @ y, x.T @ y, *means), strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-10, atol=1e-9)


def test_the_null_of_a_stream_is_that_of_permuted_rows():
    random = np.random.default_rng(1)
    x = random.standard_normal((6000, 30))
    y = x + 0.5 * random.standard_normal((6000, 30))
    gathering = Moments(null_seed=0)
    for rows in np.array_split(np.arange(6000), 70):
        gathering.update(x[rows], y[rows])
    assert svcca_distance(gathering.null()) == pytest.approx(permuted_null(svcca_distance, x, y), abs=0.01)
    assert linear_cka(gathering.null()) == pytest.approx(30 / 6030, rel=0.3)
    np.testing.assert_array_equal(gathering.null().yy, gathering.pair().yy)


def test_single_precision_rows_far_from_0_lose_nothing():
    x, y = (values.astype(np.float32) for values in (1000 * (X - 50) + 1e4, Y))
    exact = x.astype(np.float64) - x.astype(np.float64).mean(0)
    np.testing.assert_allclose(gathered(sides=(x, y)).pair().xx, exact.T @ exact, rtol=1e-9, atol=1e-4)


def test_the_caller_may_write_over_its_rows():
    gathering, buffer = Moments(), np.empty((50, 4))
    for first in range(0, 300, 50):
        buffer[:] = X[first : first + 50]
        gathering.update(buffer, Y[first : first + 50])
        buffer[:] = 0
    np.testing.assert_array_equal(gathering.pair().xx, gathered().pair().xx)


def test_moments_of_no_rows_are_refused():
    for gathering, left_out in ((Moments(), None), (gathered(fold_of=np.zeros(300, dtype=int), folds=2), 0)):
        with pytest.raises(ValueError, match="There are no rows"):
            gathering.pair(left_out=left_out)
