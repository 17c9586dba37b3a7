"""What chapter 7 declares each measure to ignore, on random features, and that it ignores nothing else."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivelenses.lenses import directprobe
from fivelenses.lenses.cca import linear_cka, pwcca_distance, svcca_distance
from fivelenses.lenses.debiased_cka import debiased_linear_cka
from fivelenses.lenses.neighbours import mutual_neighbours
from fivelenses.lenses.procrustes import procrustes_distance
from fivelenses.lenses.rsa import similarity
from fivelenses.papers.known_truth.instruments import (
    BY_KEY,
    INVARIANCES,
    LINEAR,
    PERMUTATION,
    ROTATION,
    SCALING,
    TRANSLATION,
)

ROWS, WIDTH = 120, 5


MEASURES = {
    "svcca": svcca_distance,
    "pwcca": pwcca_distance,
    "cka": linear_cka,
    "rsa": similarity,
    "cka_debiased": debiased_linear_cka,
    "procrustes": procrustes_distance,
    "neighbours": lambda x, y: mutual_neighbours(x, y, 5),
}
GEOMETRY = "labels"


def features(seed):
    """Two representations that share a part, with unequal variances and a mean away from 0."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((ROWS, WIDTH)) * np.geomspace(2, 0.3, WIDTH) + 1
    return x, x @ random.standard_normal((WIDTH, WIDTH)) + random.standard_normal((ROWS, WIDTH)) + 1


def changed(kind, y, seed):
    """One side under a change of its features."""
    random = np.random.default_rng(seed + 1)
    turned = np.linalg.qr(random.standard_normal((WIDTH, WIDTH)))[0]
    return {
        PERMUTATION: lambda: y[:, random.permutation(WIDTH)],
        ROTATION: lambda: y @ turned,
        SCALING: lambda: y * np.exp(random.uniform(1, 4)),
        TRANSLATION: lambda: y + random.uniform(2, 6, WIDTH),
        LINEAR: lambda: y @ (turned * np.geomspace(0.05, 20, WIDTH)) @ np.linalg.qr(turned + np.eye(WIDTH))[0],
    }[kind]()


def value(key, x, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(MEASURES[key](x, y))


@pytest.mark.parametrize("kind", INVARIANCES)
@pytest.mark.parametrize("key", MEASURES)
@given(seed=st.integers(0, 2**31))
@settings(max_examples=20)
def test_what_is_declared_is_ignored(key, kind, seed):
    x, y = features(seed)
    if kind in BY_KEY[key].invariances:
        assert value(key, x, changed(kind, y, seed)) == pytest.approx(value(key, x, y), abs=1e-6)


@pytest.mark.parametrize(
    ("key", "kind"),
    [(key, kind) for key in MEASURES for kind in INVARIANCES if kind not in BY_KEY[key].invariances],
)
def test_what_is_not_declared_is_not_ignored(key, kind):
    moved = []
    for seed in range(10):
        x, y = features(seed)
        moved.append(abs(value(key, x, changed(kind, y, seed)) - value(key, x, y)))
    assert max(moved) > 1e-3


@given(seed=st.integers(0, 2**31))
@settings(max_examples=20)
@pytest.mark.parametrize("kind", INVARIANCES)
def test_the_distance_of_labels(kind, seed):
    random = np.random.default_rng(seed)
    points, labels = random.standard_normal((40, WIDTH)), np.arange(40) % 2
    points[:, 0] += 20 * labels
    before, after = (
        directprobe.probe(side, labels).min_distances.mean() for side in (points, changed(kind, points, seed))
    )
    if kind in BY_KEY[GEOMETRY].invariances:
        assert np.log(after / before) == pytest.approx(0, abs=1e-3)
    elif kind == SCALING:
        assert abs(np.log(after / before)) > 0.9


def test_every_measure_of_features_that_declares_something_is_tested():
    declared = {key for key, measure in BY_KEY.items() if measure.invariances}
    assert declared == {*MEASURES, GEOMETRY}
