"""Stratified subsets of examples that hold one another: the first 200 of a seed are among its first 2,000."""

import numpy as np


def subset(labels: np.ndarray, examples: int, seed: int) -> np.ndarray:
    """Row numbers of a stratified random subset; the subsets of one seed are nested.

    Each label's rows are shuffled once by the seed and spread evenly over [0, 1). A subset takes the rows of lowest
    position, so it holds every label in proportion (to within one example per label) and contains every smaller subset.

    Args:
        labels: (n,) label of each row; any values that NumPy can sort.
        examples: how many rows; all when it exceeds n.
        seed: of the shuffle.

    Returns:
        (min(examples, n),) row numbers in increasing order.

    Raises:
        ValueError: fewer than one example is asked for, or there are no rows.

    Example:
        >>> subset(np.array([0, 0, 0, 1, 1, 1]), 2, seed=0).size
        2
    """
    labels = np.asarray(labels)
    if examples < 1 or labels.size == 0:
        raise ValueError(
            f"A subset needs at least one example (asked for {examples} of {labels.size}): raise the number."
        )
    generator = np.random.default_rng(seed)
    position = np.empty(labels.size)
    for label in np.unique(labels):
        rows = generator.permutation(np.flatnonzero(labels == label))
        position[rows] = (np.arange(rows.size) + generator.random()) / rows.size
    return np.sort(np.argsort(position, kind="stable")[:examples])
