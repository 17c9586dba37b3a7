import numpy as np
import pytest

from fivelenses.tasks.scores import majority_rate, score


def test_matthews_of_a_case_worked_by_hand():
    # TP 2, TN 1, FP 1, FN 0: (2·1 − 1·0) / sqrt(3·2·2·1) = 2 / sqrt(12)
    assert score("matthews", np.array([1, 1, 1, 0]), np.array([1, 1, 0, 0])) == pytest.approx(2 / 12**0.5)


def test_matthews_of_a_constant_is_zero_without_a_warning(recwarn):
    assert score("matthews", np.zeros(5, int), np.array([0, 1, 0, 1, 1])) == 0.0
    assert not recwarn.list


def test_accuracy_of_a_case_worked_by_hand():
    assert score("accuracy", np.array([0, 1, 1]), np.array([0, 1, 0])) == pytest.approx(2 / 3)


@pytest.mark.parametrize("predicted", [[], [0, 1]])
def test_unequal_or_empty_labels_are_refused(predicted):
    with pytest.raises(ValueError, match="equally long"):
        score("accuracy", np.array(predicted), np.array([]))


def test_an_unknown_metric_is_refused():
    with pytest.raises(ValueError, match="no metric 'f2'"):
        score("f2", np.array([0]), np.array([0]))


def test_majority_rate_of_a_tie_is_its_share():
    assert majority_rate(np.array([0, 1, 0, 1])) == 0.5
