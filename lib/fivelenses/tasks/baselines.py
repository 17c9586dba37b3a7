"""What can be had without reading: the majority label, and the length."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from fivelenses.tasks import TaskData, score
from fivelenses.tasks.scores import majority_rate

REGULARISATION = 1.0


def length(data: TaskData, metric: str = "accuracy") -> float:
    """Score of logistic regression on the number of words of each input."""

    def lengths(split: str) -> np.ndarray:
        rows = data.splits[split]
        return np.array([[len(text.split()) for text in rows[column]] for column in data.task.inputs], dtype=float).T

    scaler = StandardScaler().fit(lengths("train"))
    model = LogisticRegression(C=REGULARISATION, max_iter=2_000)
    model.fit(scaler.transform(lengths("train")), np.array(data.splits["train"][data.task.label]))
    gold = np.array(data.splits["validation"][data.task.label])
    return score(metric, model.predict(scaler.transform(lengths("validation"))), gold)


def majority(data: TaskData) -> float:
    """Accuracy of the most frequent label on the development examples."""
    return majority_rate(np.array(data.splits["validation"][data.task.label]))
