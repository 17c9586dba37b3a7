"""Scores of predictions, as the papers print them."""

import numpy as np
from sklearn.metrics import accuracy_score, matthews_corrcoef


def score(metric: str, predicted: np.ndarray, gold: np.ndarray) -> float:
    """Accuracy in [0, 1] or Matthews correlation in [-1, 1] of predicted labels.

    A constant prediction has Matthews correlation 0: its formula is 0/0, and 0 is the value of a predictor without
    information.

    Args:
        metric: `accuracy` or `matthews`.
        predicted, gold: (n,) integer labels.

    Raises:
        ValueError: there is no such metric, there are no examples, labels that are no whole numbers, or lengths that
            differ.

    Example:
        >>> score("matthews", np.array([1, 1, 1]), np.array([0, 1, 1]))
        0.0
    """
    predicted, gold = _labels(predicted), _labels(gold)
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
    gold = _labels(gold)
    if gold.size == 0:
        raise ValueError("A majority rate needs at least one label.")
    return float(np.unique(gold, return_counts=True)[1].max() / gold.size)


def _labels(values: np.ndarray) -> np.ndarray:
    try:
        labels = np.asarray(values)
    except (TypeError, ValueError) as error:  # rows of several lengths, or a tensor whose numbers NumPy lacks
        raise ValueError(
            f"Labels cannot be read as an array ({str(error).rstrip('.')}): number them from 0."
        ) from error
    # Tables of records have whole numbers as floating-point ones.
    whole = labels.dtype.kind in "iub" or (labels.dtype.kind == "f" and bool((np.trunc(labels) == labels).all()))
    whole = whole and bool(np.isfinite(labels).all())
    if labels.size and not whole:
        raise ValueError(f"Labels of {labels.dtype} are not all whole numbers: number the classes from 0.")
    return labels
