"""Every measure of two representations has what it is declared to have, and the checks find what has not."""

import dataclasses

import numpy as np
import pytest

from fivelenses.lenses.checks import DECLARED, INVARIANCES, LINEAR, SCALING, check_measure, invariance_table, measures

MEASURES = {measure.key: measure for measure in measures()}


@pytest.mark.parametrize("key", MEASURES)
def test_a_measure_is_what_it_is_declared_to_be(key):
    check_measure(MEASURES[key])


def altered(**fields):
    return dataclasses.replace(MEASURES["cka"], **fields)


@pytest.mark.parametrize(
    ("measure", "sentence"),
    [
        (altered(invariances=MEASURES["cka"].invariances | {LINEAR}), "invertible linear map changes it"),
        (altered(invariances=MEASURES["cka"].invariances - {SCALING}), "scaling is ignored, but not declared"),
        (altered(itself=0), "representation with itself"),
        (altered(most=0.1), "outside its range"),
        (altered(symmetric=False), "the same from y to x"),
        (altered(independent=lambda n, d: 0.0), "at 100 rows"),
        (altered(function=lambda x, y: float(np.corrcoef(x[:, 0], y[:, 0])[0, 1])), "outside its range"),
        (altered(function=lambda x, y: 1.0, independent=lambda n, d: 1.0), "is ignored, but not declared"),
    ],
)
def test_a_wrong_declaration_is_found(measure, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_measure(measure)


def test_the_table_has_a_row_for_each_declaration():
    table = invariance_table().set_index("measure")
    assert list(table.columns) == list(INVARIANCES) and len(table) == len(DECLARED)
    assert (table.loc["RSA"] == ["yes", "yes", "yes", "no", "no"]).all()
