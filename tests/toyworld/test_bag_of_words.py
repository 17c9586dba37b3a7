"""Labels come from meaning: single words, or length, do not give them away."""

import numpy
import pytest
import scipy.sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from toyworld.tables import table

FIELDS = {
    "mnli": ("premise", "hypothesis"),
    "rte": ("sentence1", "sentence2"),
    "mrpc": ("sentence1", "sentence2"),
    "sst2": ("sentence",),
    "cola": ("sentence",),
    "qnli": ("question", "sentence"),
}
BAG_OF_WORDS_BOUND = {"mnli": 0.48, "rte": 0.60, "mrpc": 0.70, "sst2": 0.72, "cola": 0.73, "qnli": 0.58}
MAJORITY = {"mnli": 1 / 3, "rte": 0.5, "mrpc": 0.67, "sst2": 0.5, "cola": 0.7, "qnli": 0.5}


def lengths(rows, fields) -> numpy.ndarray:  # noqa: ANN001
    return numpy.stack([rows[field].str.split().str.len().to_numpy() / 10 for field in fields], axis=1)


def accuracy(task: str, words: bool) -> float:
    """Validation accuracy of logistic regression on each field's words and length, or on the lengths alone."""
    training, validation, fields = table(task)["train"], table(task)["validation"], FIELDS[task]
    parts = [tuple(scipy.sparse.csr_matrix(lengths(rows, fields)) for rows in (training, validation))]
    for field in fields if words else ():
        counts = CountVectorizer(token_pattern=r"[A-Za-z]+")
        parts.append((counts.fit_transform(training[field]), counts.transform(validation[field])))
    x, x_validation = (scipy.sparse.hstack([part[side] for part in parts]).tocsr() for side in (0, 1))
    fitted = LogisticRegression(C=0.3, max_iter=500).fit(x, training["label"])
    return fitted.score(x_validation, validation["label"])


@pytest.mark.parametrize("task", FIELDS)
def test_words_alone_do_not_give_the_label(task: str) -> None:
    assert MAJORITY[task] - 0.1 < accuracy(task, words=True) < BAG_OF_WORDS_BOUND[task]


@pytest.mark.parametrize("task", FIELDS)
def test_length_alone_is_near_chance(task: str) -> None:
    assert abs(accuracy(task, words=False) - MAJORITY[task]) < 0.08
