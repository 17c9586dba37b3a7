"""Labels come from meaning: single words, or length, do not give them away."""

import pytest
import scipy.sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from toyworld.tables import LABELS, table

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


def accuracy(task: str) -> float:
    """Validation accuracy of logistic regression on each field's words and length."""
    training, validation = table(task)["train"], table(task)["validation"]
    parts = []
    for field in FIELDS[task]:
        counts = CountVectorizer(token_pattern=r"[A-Za-z]+")
        parts.append((counts.fit_transform(training[field]), counts.transform(validation[field])))
        lengths = (rows[field].str.split().str.len().to_numpy()[:, None] / 10 for rows in (training, validation))
        parts.append(tuple(scipy.sparse.csr_matrix(length) for length in lengths))
    x, x_validation = (scipy.sparse.hstack([part[side] for part in parts]).tocsr() for side in (0, 1))
    fitted = LogisticRegression(C=0.3, max_iter=500).fit(x, training["label"])
    return fitted.score(x_validation, validation["label"])


@pytest.mark.parametrize("task", FIELDS)
def test_words_and_length_alone_do_not_give_the_label(task: str) -> None:
    for rows in table(task).values():
        shares = rows["label"].value_counts(normalize=True)
        assert shares.max() == pytest.approx(MAJORITY[task], abs=0.01) and len(shares) == len(LABELS[task])
    assert MAJORITY[task] - 0.1 < accuracy(task) < BAG_OF_WORDS_BOUND[task]
