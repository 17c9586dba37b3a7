"""Tasks: from a name and a source to examples, labels, a metric and the kind of head; and parts of a table that hold
every label in proportion: nested subsets, and folds.
"""

from importlib import import_module

import numpy as np

from fivelenses.catalogue import find as find

FOLDS = 10  # into which examples are dealt


def __getattr__(name: str):
    # They take seconds to load, for which the refusal of a name does not wait.
    if name in ("TaskData", "load"):
        return getattr(import_module("fivelenses.tasks.examples"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def subset(labels: np.ndarray, examples: int | None, seed: int) -> np.ndarray:
    """(min(examples, n),) row numbers of a random subset that is stratified by labels (n,), which are any values that
    NumPy can sort, in increasing order; the subsets of one seed are nested.

    Each label's rows are shuffled once by the seed and spread evenly over [0, 1). A subset takes the rows of lowest
    position, so it holds every label in proportion (to within one example per label) and contains every smaller subset.

    Example:
        >>> subset(np.array([0, 0, 0, 1, 1, 1]), 2, seed=0).size
        2
    """
    labels = np.asarray(labels)
    generator = np.random.default_rng(seed)
    position = np.empty(labels.size)
    for label in np.unique(labels):
        rows = generator.permutation(np.flatnonzero(labels == label))
        position[rows] = (np.arange(rows.size) + generator.random()) / rows.size
    return np.sort(np.argsort(position, kind="stable")[:examples])


def folds(labels: np.ndarray, count: int = FOLDS) -> np.ndarray:
    """(n,) the fold of each row, from 0: rows of each label (n,) are dealt in turn, so that two folds differ by one row
    at most, in all and of each label. Rows without labels have one in common.

    Dealt by their place alone, the rows of a table that is sorted, or alternates, would give folds of one label.

    Example:
        >>> folds(np.array([0, 1, 0, 1, 0, 1]), 2)
        array([0, 1, 1, 0, 0, 1])
    """
    fold_of = np.empty(len(labels), dtype=np.int64)
    fold_of[np.argsort(labels, kind="stable")] = np.arange(len(labels)) % count
    return fold_of
