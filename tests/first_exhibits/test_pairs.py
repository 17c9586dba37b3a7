"""Measures of pairs of models: their interval counts models, not pairs."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from fivelenses.first_exhibits.intervals import of_measure, of_pairs, whole


def pairs(models: int, folds: int = 4, seed: int = 0, deviation: float = 1.0) -> pd.DataFrame:
    """Each model adds its own deviation to the pairs that it is in; examples add theirs."""
    random = np.random.default_rng(seed)
    own, of_fold = deviation * random.standard_normal(models), 0.1 * random.standard_normal(folds)
    rows = []
    for first, second in combinations(range(models), 2):
        values = own[first] + own[second] + of_fold
        left_out = [np.delete(values, fold).mean() for fold in range(folds)]
        for fold, value in zip((-1, *range(folds)), (values.mean(), *left_out), strict=True):
            rows.append({"first": first, "second": second, "fold": fold, "x": value})
    return pd.DataFrame(rows)


def value(rows: pd.DataFrame) -> float:
    return rows["x"].mean()


def test_the_interval_covers_as_it_says():
    found = [of_pairs(pairs(4, seed=seed), value) for seed in range(300)]
    covered = np.mean([one.low <= 0 <= one.high for one in found])
    assert 0.92 <= covered <= 0.98
    # Pairs as if they were independent do not.
    naive = [of_measure(pairs(4, seed=seed), value, ["first", "second"]) for seed in range(300)]
    assert np.mean([one.low <= 0 <= one.high for one in naive]) < 0.85


def test_the_estimate_is_the_mean_over_pairs():
    table = pairs(5)
    found = of_pairs(table, value, examples=100)
    assert found.estimate == pytest.approx(whole(table)["x"].mean())
    assert (found.models, found.examples, found.of_this_model) == (5, 100, False)


def test_two_models_are_one_pair():
    found = of_pairs(pairs(2), value)
    assert found.of_this_model and found == of_measure(pairs(2), value, ["first", "second"])


def test_without_folds_the_mean_is_all_there_is():
    assert not of_pairs(whole(pairs(3)), value).measured


def test_all_pairs_are_needed():
    with pytest.raises(ValueError, match="2 pairs are not all pairs of 3 models"):
        of_pairs(pairs(3).query("not (first == 1 and second == 2)"), value)
