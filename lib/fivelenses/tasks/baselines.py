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
    return _scored(words_predicted(data), data, metric)


def words_predicted(data: TaskData) -> np.ndarray:
    """(examples,) the labels that `bag_of_words` gives the development examples."""
    counters = {column: CountVectorizer(token_pattern=r"\S+") for column in data.task.inputs}
    training = hstack([counter.fit_transform(data.splits["train"][column]) for column, counter in counters.items()])
    evaluation = hstack([counter.transform(data.splits["validation"][column]) for column, counter in counters.items()])
    return _fitted(training.tocsr(), evaluation.tocsr(), data)


def length(data: TaskData, metric: str = "accuracy") -> float:
    """Score of logistic regression on the number of words of each input."""

    def lengths(split: str) -> np.ndarray:
        rows = data.splits[split]
        return np.array([[len(text.split()) for text in rows[column]] for column in data.task.inputs], dtype=float).T

    scaler = StandardScaler().fit(lengths("train"))
    return _scored(
        _fitted(scaler.transform(lengths("train")), scaler.transform(lengths("validation")), data), data, metric
    )


def majority(data: TaskData) -> float:
    """Accuracy of the most frequent label on the development examples."""
    return majority_rate(np.array(data.splits["validation"][data.task.label]))


def _fitted(training, evaluation, data: TaskData) -> np.ndarray:
    model = LogisticRegression(C=REGULARISATION, max_iter=2_000)
    return model.fit(training, np.array(data.splits["train"][data.task.label])).predict(evaluation)


def _scored(predicted: np.ndarray, data: TaskData, metric: str) -> float:
    return score(metric, predicted, np.array(data.splits["validation"][data.task.label]))
