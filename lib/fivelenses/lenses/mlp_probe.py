r"""Classifier probes: perceptrons with two hidden layers, the best of a grid, fitted from several initialisations.

For a row :math:`x` (d,), weights :math:`W_1` (d, h₁), :math:`W_2` (h₁, h₂), :math:`W_3` (h₂, classes) and biases
:math:`b`, a probe predicts

.. math::

    p = \operatorname{softmax}\big(\operatorname{relu}(\operatorname{relu}(x W_1 + b_1) W_2 + b_2) W_3 + b_3\big),
    \qquad
    \mathrm{loss} = \frac1m \Big[ \sum_{i=1}^m -\ln p_{i, y_i} + \frac{\alpha}{2} \sum_l \Vert W_l \Vert_F^2 \Big]

on a batch of m = min(200, n) rows, in nats. Source: scikit-learn's ``MLPClassifier`` as Zhou & Srikumar 2022 use it:
Adam at 1e-3, ended when the mean loss of more than 10 epochs in a row was not 1e-4 below the best.

Shapes: x (n, d), y (n,). Range: accuracies in [0, 1], losses at least 0. Everything is computed in single precision, by
as many processes as torch has threads. As in the paper, the input is not standardised: accuracies depend on its scale.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from fivelenses.lenses.arrays import Array, as_array, as_tensor, check_rows


class Configuration(NamedTuple):
    """A probe: units of its two hidden layers, and the regulariser's α."""

    hidden: tuple[int, int]
    alpha: float


@dataclass(frozen=True, eq=False)
class ProbeResult:
    """The configuration selected from a grid, and which test rows, (seeds, n_test), it has right from each seed."""

    selected: Configuration
    right: np.ndarray

    @property
    def mean(self) -> float:
        """Mean accuracy over the initialisations, in [0, 1]."""
        return float(self.right.mean(1).mean())

    @property
    def deviation(self) -> float:
        """Sample standard deviation (n − 1) of the accuracy over the initialisations; NaN for a single one."""
        return float(self.right.mean(1).std(ddof=1)) if len(self.right) > 1 else float("nan")


def grid(
    sizes: Sequence[int] = (32, 64, 128, 256), alphas: Sequence[float] = tuple(10.0**power for power in range(-7, 1))
) -> list[Configuration]:
    """Every pair of hidden sizes with every α, narrow and weakly regularised first; by default the paper's 16 × 8."""
    return [Configuration((first, second), alpha) for first in sizes for second in sizes for alpha in alphas]


def fit_grid(
    x: Array,
    y: Array,
    x_test: Array,
    y_test: Array,
    configurations: Sequence[Configuration],
    seeds: Sequence[int] = range(5),
    max_epochs: int = 1000,
) -> ProbeResult:
    """Select a configuration by its accuracy on withheld rows, then train it on all of them from several seeds.

    The grid is trained with the first seed without a tenth of the rows, stratified by label where that is possible. The
    first of several equally accurate configurations is selected; a single one is not trained for it.

    Args:
        x, y: (n, d) training rows, floating point and finite, and (n,) their labels, numbers or strings of at least two
            classes.
        x_test, y_test: the same of test rows; a label that does not occur in training counts as an error.
        seeds: of the weights and the order of rows in each initialisation.
        max_epochs: a training ends after this number of epochs at the latest.

    Example:
        >>> x = np.random.default_rng(0).standard_normal((200, 2))
        >>> y = x[:, 0] > 0
        >>> result = fit_grid(x[:150], y[:150], x[150:], y[150:], grid([16], [1e-4, 1e2]), range(3), max_epochs=200)
        >>> result.selected.alpha, result.right.shape, result.mean > 0.9
        (0.0001, (3, 50), True)
    """
    rows, best = _checked(x, y, x_test, y_test), configurations[0]
    if len(configurations) > 1:
        right = _fitted(_held_out(*rows[:2], seeds[0]), [(one, seeds[0]) for one in configurations], max_epochs)
        best = configurations[int(right.mean(1).argmax())]
    return ProbeResult(best, _fitted(rows, [(best, seed) for seed in seeds], max_epochs))


def _fitted(rows: Sequence[np.ndarray], probes: Sequence[tuple[Configuration, int]], max_epochs: int) -> np.ndarray:
    """(probes, n_test) which test rows each probe has right."""
    return np.stack(Parallel(torch.get_num_threads())([delayed(_right)(*rows, *one, max_epochs) for one in probes]))


def _right(x, y, x_test, y_test, configuration: Configuration, seed: int, max_epochs: int) -> np.ndarray:
    """Which test rows a probe has right, (n_test,)."""
    hidden, alpha = configuration
    probe = MLPClassifier(hidden, alpha=alpha, batch_size=min(200, len(x)), max_iter=max_epochs, random_state=seed)
    # Adam's means of units that have died fade into denormal numbers, of which an epoch took seven times as long.
    torch.set_flush_denormal(True)
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            right = probe.fit(x, y).predict(x_test) == y_test
        except ValueError:  # Rows are checked, so only parameters that are not finite are refused.
            probe.loss_ = np.inf
        finally:
            torch.set_flush_denormal(False)
    if not np.isfinite(probe.loss_):
        raise ValueError(f"Training of {configuration} diverged: scale x or alpha down.")
    return right


def _held_out(x: np.ndarray, y: np.ndarray, seed: int) -> list[np.ndarray]:
    """The rows that train the grid and those that select from it, a tenth with every label if there is room."""
    counts, tenth = np.bincount(y), int(np.ceil(0.1 * len(y)))
    strata = y if counts.min() >= 2 and len(counts) <= min(tenth, len(y) - tenth) else None
    training, withheld = train_test_split(np.arange(len(y)), test_size=tenth, stratify=strata, random_state=seed)
    if len(np.unique(y[training])) < 2:
        raise ValueError(f"Holding out {tenth} of {len(y)} training rows leaves no two classes: give more.")
    return [x[training], y[training], x[withheld], y[withheld]]


def _checked(x: Array, y: Array, x_test: Array, y_test: Array) -> list[np.ndarray]:
    """x, y, x_test, y_test in single precision and with numbered classes, -1 for one that is never predicted."""
    x, x_test = as_tensor(x), as_tensor(x_test)
    check_rows("x", x)
    check_rows("x_test", x_test)
    classes, y = np.unique(as_array(y), return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y holds {len(classes)} class in {len(x)} rows: a probe needs at least 2 rows of 2 classes.")
    number = {label: place for place, label in enumerate(classes.tolist())}
    y_test = np.array([number.get(label, -1) for label in as_array(y_test).tolist()])
    return [as_array(x.float()), y, as_array(x_test.float()), y_test]
