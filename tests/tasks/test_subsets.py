"""Folds and nested subsets are alike in their labels and in their size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivelenses.tasks.subsets import folds


def test_rows_of_each_label_are_dealt_in_turn():
    assert folds(["b", "a", "a", "b", "a", "a", "b"], 3).tolist() == [1, 0, 1, 2, 2, 0, 0]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=80), st.integers(1, 12))
def test_two_folds_differ_by_one_row_at_most_in_all_and_of_each_label(labels, count):
    labels, fold_of = np.array(labels), folds(labels, count)
    for rows in (labels >= 0, *(labels == label for label in np.unique(labels))):
        sizes = np.bincount(fold_of[rows], minlength=count)
        assert len(sizes) == count and np.ptp(sizes) <= 1


def test_rows_that_have_one_label_are_dealt_by_their_place():
    assert folds(np.zeros(23)).tolist() == [row % 10 for row in range(23)]


@pytest.mark.parametrize("labels", [np.arange(100) % 2, np.arange(100) % 10 // 5, np.repeat([0, 1], 50)])
def test_a_table_whose_labels_recur_with_the_period_of_the_folds_gives_no_fold_of_one_label(labels):
    assert {labels[folds(labels) == fold].mean() for fold in range(10)} == {0.5}
