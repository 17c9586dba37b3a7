"""What can be had without reading: the majority label, the length, and the words without their order."""

import numpy as np
from scipy.sparse import hstack
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from fivelenses.tasks import TaskData, score
from fivelenses.tasks.scores import majority_rate

REGULARISATION = 1.0


def bag_of_words(data: TaskData, metric: str = "accuracy") -> float:
    """Score of logistic regression on word counts, each input counted on its own.

    Args:
        data: a task with splits `train` and `validation`.
        metric: `accuracy` or `matthews`.
    """
    counters = {column: CountVectorizer(token_pattern=r"\S+") for column in data.task.inputs}
    training = hstack([counter.fit_transform(data.splits["train"][column]) for column, counter in counters.items()])
    evaluation = hstack([counter.transform(data.splits["validation"][column]) for column, counter in counters.items()])
    return _fitted(training.tocsr(), evaluation.tocsr(), data, metric)


def length(data: TaskData, metric: str = "accuracy") -> float:
    """Score of logistic regression on the number of words of each input."""

    def lengths(split: str) -> np.ndarray:
        rows = data.splits[split]
        return np.array([[len(text.split()) for text in rows[column]] for column in data.task.inputs], dtype=float).T

    scaler = StandardScaler().fit(lengths("train"))
    return _fitted(scaler.transform(lengths("train")), scaler.transform(lengths("validation")), data, metric)


def majority(data: TaskData) -> float:
    """Accuracy of the most frequent label on the development examples."""
    return majority_rate(np.array(data.splits["validation"][data.task.label]))


def _fitted(training, evaluation, data: TaskData, metric: str) -> float:
    model = LogisticRegression(C=REGULARISATION, max_iter=2_000)
    model.fit(training, np.array(data.splits["train"][data.task.label]))
    gold = np.array(data.splits["validation"][data.task.label])
    return score(metric, model.predict(evaluation), gold)
