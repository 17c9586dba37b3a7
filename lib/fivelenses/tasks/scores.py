"""Scores of predictions, as the papers print them."""

import numpy as np
from sklearn.metrics import accuracy_score, matthews_corrcoef


def score(metric: str, predicted: np.ndarray, gold: np.ndarray) -> float:
    """Accuracy in [0, 1] or Matthews correlation in [-1, 1] of predicted labels.

    A constant prediction has Matthews correlation 0: its formula is 0/0, and 0 is the value of a predictor without
    information.

    Args:
        metric: `accuracy` or `matthews`.
        predicted, gold: (n,) labels, at least one, of whole numbers.

    Example:
        >>> score("matthews", np.array([1, 1, 1]), np.array([0, 1, 1]))
        0.0
    """
    predicted, gold = np.asarray(predicted), np.asarray(gold)
    if predicted.shape != gold.shape or predicted.ndim != 1 or predicted.size == 0:
        raise ValueError(f"A score needs two equally long lists of labels, not {predicted.shape} and {gold.shape}.")
    if metric == "accuracy":
        return float(accuracy_score(gold, predicted))
    if metric == "matthews":
        if len(np.unique(predicted)) == 1 or len(np.unique(gold)) == 1:
            return 0.0
        return float(matthews_corrcoef(gold, predicted))
    raise ValueError(f"There is no metric {metric!r} for labels: choose accuracy or matthews.")


def majority_rate(gold: np.ndarray) -> float:
    """The accuracy of always answering the most frequent label: the null rate.

    Example:
        >>> majority_rate(np.array([0, 1, 1, 1]))
        0.75
    """
    return float(np.unique(gold, return_counts=True)[1].max() / np.size(gold))
