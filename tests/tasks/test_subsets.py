"""Folds and nested subsets are alike in their labels and in their size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivelenses.tasks import folds, subset


@given(
    counts=st.lists(st.integers(1, 30), min_size=1, max_size=4),
    seed=st.integers(0, 5),
    sizes=st.tuples(st.integers(1, 60), st.integers(1, 60)),
)
def test_subsets_of_a_seed_are_nested_and_stratified(counts, seed, sizes):
    labels = np.repeat(np.arange(len(counts)), counts)
    small, large = sorted(sizes)
    fewer, more = subset(labels, small, seed), subset(labels, large, seed)
    assert set(fewer) <= set(more)
    assert len(more) == min(large, labels.size)
    expected = len(more) * np.array(counts) / labels.size
    assert (np.abs(np.bincount(labels[more], minlength=len(counts)) - expected) < len(counts)).all()


@given(st.lists(st.integers(0, 3), min_size=1, max_size=80), st.integers(1, 12))
def test_two_folds_differ_by_one_row_at_most_in_all_and_of_each_label(labels, count):
    labels, fold_of = np.array(labels), folds(labels, count)
    for rows in (labels >= 0, *(labels == label for label in np.unique(labels))):
        sizes = np.bincount(fold_of[rows], minlength=count)
        assert len(sizes) == count and np.ptp(sizes) <= 1


@pytest.mark.parametrize("labels", [np.arange(100) % 2, np.arange(100) % 10 // 5, np.repeat([0, 1], 50)])
def test_a_table_whose_labels_recur_with_the_period_of_the_folds_gives_no_fold_of_one_label(labels):
    assert {labels[folds(labels) == fold].mean() for fold in range(10)} == {0.5}
