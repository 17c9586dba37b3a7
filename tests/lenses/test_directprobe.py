from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, nnls
from scipy.spatial.distance import cdist

from fivelenses.lenses import hulls
from fivelenses.lenses.checks import DECLARED, INVARIANCES, SCALING, WIDTH, changed
from fivelenses.lenses.directprobe import linearly_separable, probe, random_label_control, spatial_similarity
from fivelenses.lenses.hulls import hull_distance

seeds = st.integers(0, 2**31)


def gaussian_classes(seed, n=60, d=4, labels=3, spread=1.0):
    random = np.random.default_rng(seed)
    codes = np.arange(n) % labels
    return (random.standard_normal((labels, d)) * spread)[codes] + random.standard_normal((n, d)), codes


def two_clouds(seed):
    """Clouds of any shape, near to each other or far apart, or in one another."""
    random = np.random.default_rng(seed)
    d, n_a, n_b = random.integers(1, 12), *random.integers(1, 40, 2)
    moved = random.uniform(0, 6) * np.eye(d)[0]
    return random.standard_normal((n_a, d)), random.standard_normal((n_b, d)) + moved


def rotation(seed, d):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]


def hulls_meet(a, b):
    """By linear programming: is there a point that is a convex combination of both?"""
    left = np.vstack([np.hstack([a.T, -b.T]), np.repeat([[1.0, 0.0], [0.0, 1.0]], [len(a), len(b)], axis=1)])
    right = np.append(np.zeros(a.shape[1]), [1.0, 1.0])
    return linprog(np.zeros(len(a) + len(b)), A_eq=left, b_eq=right, method="highs").status == 0


def slow_clusters(points, codes):
    """The authors' rule word by word, one merge at a time."""
    clusters, refused = [[row] for row in range(len(points))], set()
    while True:
        pairs = [
            (cdist(points[p].mean(0)[None], points[q].mean(0)[None])[0, 0], p[0], q[0], p, q)
            for p, q in combinations(sorted(clusters), 2)
            if codes[p[0]] == codes[q[0]] and (tuple(p), tuple(q)) not in refused
        ]
        if not pairs:
            return sorted(clusters, key=lambda rows: (codes[rows[0]], rows[0]))
        *_, p, q = min(pairs)
        union = sorted(p + q)
        others = [rows for rows in clusters if codes[rows[0]] != codes[p[0]]]
        if any(hulls_meet(points[union], points[rows]) for rows in others):
            refused.add((tuple(p), tuple(q)))
        else:
            clusters = [rows for rows in clusters if rows not in (p, q)] + [union]


def assert_proven(a, b, result):
    radius = np.linalg.norm(np.concatenate([a, b]) - np.concatenate([a, b]).mean(0), axis=1).max()
    nearest = result.weights_a @ a - result.weights_b @ b
    for weights in (result.weights_a, result.weights_b):
        assert weights.min() >= 0 and weights.sum() == pytest.approx(1, abs=1e-12)
    if result.separable:
        assert np.linalg.norm(result.normal) == pytest.approx(1)
        lower = (a @ result.normal).min() - (b @ result.normal).max()
        assert result.lower == pytest.approx(lower, abs=1e-12 * radius)
        assert np.linalg.norm(nearest) == pytest.approx(result.distance, abs=1e-12 * radius)
        assert result.lower <= result.distance
    else:
        assert (result.distance, result.lower, result.normal) == (0, 0, None)
        assert np.linalg.norm(nearest) <= hulls.TOLERANCE * radius * 1.01


TRIANGLE = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])


@pytest.mark.parametrize(
    "b, distance",
    [
        ([[3, 3]], np.sqrt(2)),  # to the middle of an edge
        ([[-3, -4]], 5),  # to a corner
        ([[5, -1], [5, 2]], 1),  # an edge to a corner
        ([[1, 1]], 0),  # inside
        ([[2, 2]], 0),  # on the edge
        ([[-1, 1], [5, 1]], 0),  # through it, with no corner inside
        ([[4, 0]], 0),  # the same corner
    ],
)
def test_distances_to_a_triangle_are_those_worked_by_hand(b, distance):
    b = np.array(b, dtype=float)
    result = hull_distance(TRIANGLE, b)
    assert result.distance == pytest.approx(distance, abs=1e-9) and result.separable == (distance > 0)
    assert_proven(TRIANGLE, b, result)


@given(seeds)
@settings(deadline=None, max_examples=60)
def test_every_answer_is_proven_and_agrees_with_linear_programming(seed):
    a, b = two_clouds(seed)
    exact, quick = hull_distance(a, b), hulls.nearest_points(a, b, exact=False)
    assert exact.separable == quick.separable != hulls_meet(a, b)
    assert exact.distance - exact.lower <= 1e-6 * exact.distance
    assert quick.lower <= exact.distance + 1e-12 and exact.distance <= quick.distance + 1e-12
    assert_proven(a, b, exact)
    assert_proven(a, b, quick)


@given(seeds, st.floats(1e-6, 1e6), st.floats(-100, 100))
@settings(deadline=None, max_examples=30)
def test_moving_rotating_and_reordering_change_nothing_and_scaling_scales(seed, scale, moved):
    a, b = two_clouds(seed)
    turned = rotation(seed, a.shape[1])
    order = np.random.default_rng(seed).permutation(len(a))
    result = hull_distance(a, b)
    image = hull_distance(scale * (a[order] @ turned + moved), scale * (b @ turned + moved))
    assert image.separable == result.separable
    assert image.distance == pytest.approx(scale * result.distance, rel=1e-6)
    assert hull_distance(b, a).distance == pytest.approx(result.distance, rel=1e-8)


@pytest.mark.parametrize("seed", range(8))
def test_rounding_to_single_precision_opens_no_gap(seed):
    # The diagonals of a quadrangle meet; in a turned plane of more dimensions, rounding lifts one off the other.
    quadrangle = np.zeros((4, 6))
    quadrangle[:, :2] = [[0, 0], [1, 1], [0.31, 0.92], [0.83, 0.17]]
    turned = (quadrangle @ rotation(seed, 6) + 3).astype(np.float32).astype(float)
    assert np.linalg.matrix_rank(turned - turned.mean(0), tol=1e-12) == 3
    assert not hull_distance(turned[:2], turned[2:]).separable


@pytest.mark.parametrize("gap, separable", [(1e-3, True), (1e-5, True), (1e-7, False), (1e-10, False), (-1e-5, False)])
def test_what_meets_is_decided_at_the_stated_tolerance(gap, separable):
    random = np.random.default_rng(3)
    turned = rotation(0, 9)
    a, b = random.uniform(-1, 1, (2, 80, 9))
    a[:, 0], b[:, 0] = np.abs(a[:, 0]), -np.abs(b[:, 0])
    # One common wall of each, so that the gap is known.
    a[:40, 0] = b[:40, 0] = 0
    a[:40, 1:] = b[:40, 1:]
    a[:, 0] += gap
    result = hull_distance(a @ turned, b @ turned)
    assert result.separable == separable
    if separable:
        assert result.distance == pytest.approx(gap, abs=1e-9)
    assert_proven(a @ turned, b @ turned, result)


def test_every_point_has_a_cluster_and_no_clusters_of_different_labels_meet():
    for seed, spread in ((0, 0.0), (1, 0.5), (2, 2.0), (3, 8.0)):
        points, codes = gaussian_classes(seed, spread=spread)
        result = probe(points, codes)
        assert result.assignments.shape == (60,) and set(result.assignments) == set(range(result.n_clusters))
        np.testing.assert_array_equal(result.cluster_labels[result.assignments], codes)
        for i, j in combinations(range(result.n_clusters), 2):
            a, b = (points[result.assignments == cluster] for cluster in (i, j))
            if result.cluster_labels[i] == result.cluster_labels[j]:
                assert np.isnan(result.distances[i, j])
            else:
                assert not hulls_meet(a, b)
                assert_proven(a, b, result.certificates[i, j])
                assert result.distances[j, i] == result.distances[i, j] == result.certificates[i, j].distance
        np.testing.assert_array_equal(np.diag(result.distances), 0)
        for label, smallest in zip(result.labels, result.min_distances, strict=True):
            own = result.cluster_labels == label
            assert smallest == result.distances[own][:, ~own].min()


@given(seeds, st.integers(1, 4), st.sampled_from([0.0, 0.5, 2.0]))
@settings(deadline=None, max_examples=6)
def test_clusters_are_those_of_one_merge_at_a_time(seed, d, spread):
    points, codes = gaussian_classes(seed, n=21, d=d, spread=spread)
    result = probe(points, codes)
    clusters = [np.flatnonzero(result.assignments == cluster).tolist() for cluster in range(result.n_clusters)]
    assert clusters == slow_clusters(points, codes)


def test_shapes_that_no_plane_separates_need_the_clusters_they_should():
    xor = probe(np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), [0, 0, 1, 1])
    # Of two crossing diagonals one may stay whole.
    assert (xor.n_clusters, xor.linearly_separable) == (3, False)
    angles = np.linspace(0, np.pi, 30)
    ring = np.column_stack([np.cos(2 * angles), np.sin(2 * angles)])[:-1]
    shells = probe(np.concatenate([3 * ring, ring]), np.repeat(["ring", "ball"], 29))
    assert (shells.cluster_labels == "ring").sum() >= 3 and (shells.cluster_labels == "ball").sum() == 1


def test_few_points_of_many_dimensions_are_separable_whatever_their_labels():
    points = np.random.default_rng(0).standard_normal((60, 100))
    codes = np.arange(60) % 5
    assert all(random_label_control(points, codes, seed) for seed in range(3))
    separable, codes = gaussian_classes(0, n=100, d=2, labels=2, spread=9.0)
    assert linearly_separable(separable, codes)
    assert not random_label_control(separable, codes, 0)


@given(st.integers(0, 10**6), st.floats(0.2, 3.0))
@settings(max_examples=15)
def test_the_first_question_has_the_answer_of_the_whole_probe(seed, spread):
    points, codes = gaussian_classes(seed, n=40, d=3, labels=3, spread=spread)
    assert linearly_separable(points, codes) == probe(points, codes).linearly_separable


def test_equal_points_of_two_labels_are_not_separable():
    points = np.array([[0.0, 1.0], [2.0, 3.0], [0.0, 1.0]])
    assert not linearly_separable(points, ["a", "a", "b"])


def test_similarity_is_one_for_a_scaled_copy_and_uses_common_labels_only():
    points, codes = gaussian_classes(0, n=50, d=6, labels=5, spread=8.0)
    p, q = probe(points, codes), probe(-3 * points @ rotation(0, 6) + 7, codes)
    assert spatial_similarity(p, q) == pytest.approx(1)
    other = probe(*gaussian_classes(1, n=50, d=6, labels=5, spread=8.0))
    pairs = np.triu_indices(5, 1)
    expected = np.corrcoef(p.distances[pairs], other.distances[pairs])[0, 1]
    assert [spatial_similarity(p, other), spatial_similarity(other, p)] == pytest.approx([expected, expected])
    four = codes < 4
    assert spatial_similarity(p, probe(points[four], codes[four])) == pytest.approx(1)


def test_similarity_refuses_what_has_none():
    points, codes = gaussian_classes(0, n=30, d=6, spread=8.0)
    p = probe(points, codes)
    with pytest.raises(ValueError, match="2 labels in common"):
        spatial_similarity(p, probe(points[codes < 2], codes[codes < 2]))
    with pytest.raises(ValueError, match="second result are equal"):
        spatial_similarity(p, probe(np.eye(3), [0, 1, 2]))
    tangled = probe(*gaussian_classes(0, d=1, spread=0.0))
    with pytest.raises(ValueError, match="not linearly separable"):
        spatial_similarity(p, tangled)


def test_a_single_point_a_constant_feature_and_repeated_points_are_fine():
    points = np.array([[0.0, 5.0], [0.0, 5.0], [1.0, 5.0], [3.0, 5.0], [3.0, 5.0], [-0.0, 5.0]])
    result = probe(points, ["x", "x", "x", "y", "y", "x"])
    assert result.distances == pytest.approx(np.array([[0, 2], [2, 0]]))
    assert probe(points[[0, 3]], [4, -4]).distances[0, 1] == pytest.approx(3)
    same = hull_distance(np.ones((3, 2)), np.ones((2, 2)))
    assert_proven(np.ones((3, 2)), np.ones((2, 2)), same)


NAN = np.ones((4, 2))
NAN[2, 1] = np.nan


@pytest.mark.parametrize(
    "points, labels, message",
    [
        (NAN, [0, 1, 0, 1], "points, row 2: .*NaN"),
        (np.ones(4), [0, 1, 0, 1], r"points has shape \(4,\)"),
        (np.eye(4), [0, 1, 0], r"labels has shape \(3,\), not \(4,\)"),
        (np.eye(4), ["x"] * 4, "All points have the label .*'x'.*: a geometry"),
        (np.eye(4), [0, 1, np.nan, 1], "missing value"),
        (np.eye(4), np.array(["a", "a", None, "b"], dtype=object), "missing value"),
        (np.eye(4)[[0, 1, 2, 1]], [0, 0, 1, 1], "Rows 1 and 3 are the same point with the labels 0 and 1:"),
        (np.array([[0.0], [-0.0]]), [0, 1], "Rows 0 and 1 are the same point"),
    ],
)
def test_bad_points_and_labels_are_refused_by_name(points, labels, message):
    with pytest.raises(ValueError, match=message):
        probe(points, labels)


def test_bad_hulls_are_refused_by_name():
    with pytest.raises(ValueError, match="b, row 2"):
        hull_distance(np.ones((2, 2)), NAN)


@pytest.mark.parametrize("change", INVARIANCES)
def test_the_distance_of_labels_ignores_what_is_declared(change):
    for seed in range(5):
        random = np.random.default_rng(seed)
        points, codes = random.standard_normal((40, WIDTH)), np.arange(40) % 2
        points[:, 0] += 20 * codes
        before, after = (probe(side, codes).min_distances.mean() for side in (points, changed(change, points, seed)))
        if change in DECLARED["labels"][1]:
            assert np.log(after / before) == pytest.approx(0, abs=1e-3)
        elif change == SCALING:
            assert abs(np.log(after / before)) > 0.9


def test_least_squares_may_take_more_steps_than_scipy_allows(monkeypatch):
    # A pair of hulls of all-mpnet's 768 dimensions, with 1,397 active points, took 3.7 per point where SciPy allows 3.
    allowed = []

    def counted(rows, sums, maxiter):
        allowed.append(maxiter / rows.shape[1])
        return nnls(rows, sums, maxiter=maxiter)

    monkeypatch.setattr(hulls, "nnls", counted)
    assert hull_distance([[0.0, 0.0], [0.0, 2.0]], [[3.0, 1.0]]).distance == pytest.approx(3)
    assert allowed and min(allowed) >= 30
