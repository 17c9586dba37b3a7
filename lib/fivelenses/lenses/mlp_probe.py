r"""Classifier probes: perceptrons with two hidden layers, a whole grid of them trained as one batched computation.

For a row :math:`x` (d,), weights :math:`W_1` (d, h₁), :math:`W_2` (h₁, h₂), :math:`W_3` (h₂, classes) and biases
:math:`b`, a probe predicts

.. math::

    p = \operatorname{softmax}\big(\operatorname{relu}(\operatorname{relu}(x W_1 + b_1) W_2 + b_2) W_3 + b_3\big),
    \qquad
    \mathrm{loss} = \frac1m \Big[ \sum_{i=1}^m -\ln p_{i, y_i} + \frac{\alpha}{2} \sum_l \Vert W_l \Vert_F^2 \Big]

on a batch of m rows, in nats. Source: scikit-learn 1.9's ``MLPClassifier(hidden, alpha=alpha, random_state=seed,
batch_size=min(200, n), max_iter=1000)``, which a probe reproduces: Glorot-uniform weights and biases from
``RandomState(seed)``, a new order of the rows each epoch from the same generator, a smaller last batch, Adam (1e-3,
0.9, 0.999, and 1e-8 added to the *uncorrected* second moment), one logistic output for two classes. Training ends when
the mean loss of more than 10 epochs in a row was not 1e-4 below the best, or after 1000 epochs. So each probe has
scikit-learn's initial weights and batches, and follows it up to rounding, which training magnifies.

Shapes: x (n, d), y (n,). Range: accuracies in [0, 1], losses at least 0. Everything is computed in single precision.
As in the paper, the input is not standardised: accuracies depend on its scale.

The batched arithmetic is in :mod:`~fivelenses.lenses.perceptrons`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import train_test_split

from fivelenses.lenses.arrays import (
    Array,
    as_array,
    checked_list,
    checked_positive,
    checked_real,
    checked_rows,
    checked_whole,
)
from fivelenses.lenses.perceptrons import Configuration, train

__all__ = ["Configuration", "ProbeResult", "fit", "fit_grid", "grid"]


@dataclass(frozen=True, eq=False)
class ProbeResult:
    """The configuration selected from a grid, and its accuracy from several initialisations.

    Attributes:
        hidden: units of the two hidden layers of the selected configuration.
        alpha: its α.
        right: (seeds, n_test) which test rows are classified correctly, trained on all training rows.
        select_on: the rows that decided the selection, "held-out" or "test".
        grid: a row per configuration as :func:`fit` gives it; its ``test_accuracy`` is that on ``select_on``.
        runs: a row per initialisation as :func:`fit` gives it.
    """

    hidden: tuple[int, int]
    alpha: float
    right: np.ndarray
    select_on: str
    grid: pd.DataFrame
    runs: pd.DataFrame

    @property
    def accuracies(self) -> np.ndarray:
        """(seeds,) the share of the test rows that is right."""
        return self.right.mean(1)

    @property
    def mean(self) -> float:
        """Mean accuracy over the initialisations."""
        return float(self.accuracies.mean())

    @property
    def deviation(self) -> float:
        """Sample standard deviation (n − 1) over the initialisations; NaN for a single one."""
        return float(self.accuracies.std(ddof=1)) if len(self.accuracies) > 1 else float("nan")


def grid(
    sizes: Sequence[int] = (32, 64, 128, 256), alphas: Sequence[float] = tuple(10.0**power for power in range(-7, 1))
) -> list[Configuration]:
    """Every pair of hidden sizes with every α, narrow and weakly regularised first; by default the paper's 16 × 8.

    Example:
        >>> len(grid()), grid(sizes=[8], alphas=[0.1])
        (128, [Configuration(hidden=(8, 8), alpha=0.1, seed=0)])
    """
    sizes, alphas = checked_list("sizes", sizes), checked_list("alphas", alphas)
    return [Configuration((first, second), alpha) for first in sizes for second in sizes for alpha in alphas]


def fit(
    x: Array,
    y: Array,
    x_test: Array,
    y_test: Array,
    configurations: Sequence[Configuration],
    *,
    max_epochs: int = 1000,
    batch_size: int = 200,
    device: str | torch.device | None = None,
    padded: bool | None = None,
    memory_mb: float = 1000,
) -> pd.DataFrame:
    """Train one probe per configuration, all on the same rows, and measure them on the test rows.

    Args:
        x: (n, d) training rows, n ≥ 2, floating point.
        y: (n,) their labels, of at least two classes: numbers or strings.
        x_test: (n_test, d).
        y_test: (n_test,). A label that does not occur in training counts as an error.
        configurations: the probes; equal ones have equal results.
        max_epochs: training ends after this number of epochs at the latest.
        batch_size: rows per batch, at most n.
        device: where to compute; by default that of ``x``.
        padded: whether probes of different sizes share a batch. By default they do on a GPU, where few large steps are
            faster, and not on a processor, where multiplying zeros costs as much as multiplying other numbers.
        memory_mb: megabytes that the probes of a batch may take, rows excluded; more probes are trained in turns.

    Returns:
        A row per configuration, in their order, with the columns hidden_1, hidden_2, alpha, seed, loss (of the last
        epoch, regulariser included), epochs, converged (False where ``max_epochs`` ended training),
        training_accuracy, test_accuracy.

    Raises:
        ValueError: rows and labels that do not fit each other, NaN or infinity, fewer than 2 rows, a single class, no
            configuration, or a training that diverged.

    Example:
        >>> x = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]).repeat(10, 0)
        >>> y = np.array(["same", "differ"]).repeat(20)
        >>> probes = fit(x, y, x, y, [Configuration((16, 16), 1e-4, seed) for seed in range(2)])
        >>> probes.test_accuracy.tolist()
        [1.0, 1.0]
    """
    return _fitted(x, y, x_test, y_test, configurations, max_epochs, batch_size, device, padded, memory_mb)[0]


@torch.no_grad()
def _fitted(
    x: Array,
    y: Array,
    x_test: Array,
    y_test: Array,
    configurations: Sequence[Configuration],
    max_epochs: int = 1000,
    batch_size: int = 200,
    device: str | torch.device | None = None,
    padded: bool | None = None,
    memory_mb: float = 1000,
) -> tuple[pd.DataFrame, np.ndarray]:
    """What `fit` returns, and which test rows each probe has right, (configurations, n_test)."""
    x, y, x_test, y_test = _checked(x, y, x_test, y_test)
    configurations = _checked_configurations(configurations)
    max_epochs, batch_size = checked_whole("max_epochs", max_epochs, 1), checked_whole("batch_size", batch_size, 1)
    memory_mb = checked_positive("memory_mb", memory_mb)
    device = x.device if device is None else torch.device(device)
    classes, targets = np.unique(y, return_inverse=True)
    # The number of each test label's class, -1 for a label that is never predicted.
    known = {label: number for number, label in enumerate(classes.tolist())}
    wanted = np.array([known.get(label, -1) for label in y_test.tolist()])
    splits = [
        (rows.to(device, torch.float32), torch.from_numpy(labels).to(device))
        for rows, labels in ((x, targets), (x_test, wanted))
    ]
    outputs = 1 if len(classes) == 2 else len(classes)
    padded = device.type != "cpu" if padded is None else padded
    finished = {}
    for places in _batches(configurations, x.shape[1], outputs, min(batch_size, len(x)), padded, memory_mb):
        together = [configurations[place] for place in places]
        results = train(*splits, together, outputs, max_epochs, min(batch_size, len(x)))
        finished |= dict(zip(places, results, strict=True))
    rows, right = [], []
    for place, one in enumerate(configurations):
        *ended, of_training, of_test = finished[place]
        rows.append((*one.hidden, one.alpha, one.seed, *ended, of_training.mean(), of_test.mean()))
        right.append(of_test)
    columns = ["loss", "epochs", "converged", "training_accuracy", "test_accuracy"]
    return pd.DataFrame(rows, columns=["hidden_1", "hidden_2", "alpha", "seed", *columns]), np.stack(right)


def fit_grid(
    x: Array,
    y: Array,
    x_test: Array,
    y_test: Array,
    configurations: Sequence[Configuration],
    seeds: Sequence[int] = range(5),
    *,
    select_on: Literal["held-out", "test"] = "held-out",
    held_out: float = 0.1,
    **how: object,
) -> ProbeResult:
    """Select a configuration by its accuracy on rows that it was not trained on, then train it from several seeds.

    The grid is trained with the first seed. The first of several equally accurate configurations is selected.

    Args:
        x, y, x_test, y_test: as in :func:`fit`.
        configurations: the grid; their own seeds are not used.
        seeds: of the initialisations; the first is also that of the selection.
        select_on: "held-out" withholds a share of the training rows from the grid, and trains the selected
            configuration on all of them. "test" is the paper's way: the grid is trained on all training rows and
            selected by the very test accuracy that is then reported, which is optimistic.
        held_out: that share, in (0, 1), stratified by label if every label has two rows and both parts have room.
        how: ``max_epochs``, ``batch_size``, ``device``, ``padded``, ``memory_mb`` of :func:`fit`.

    Raises:
        ValueError: what :func:`fit` refuses, no seed, another ``select_on`` or ``held_out``, or too few rows to hold
            some out and keep two classes.

    Example:
        >>> x = np.random.default_rng(0).standard_normal((200, 2))
        >>> y = x[:, 0] > 0
        >>> result = fit_grid(x[:150], y[:150], x[150:], y[150:], grid(sizes=[16], alphas=[1e-4, 1e2]), range(3))
        >>> result.alpha, result.accuracies.shape, result.mean > 0.9
        (0.0001, (3,), True)
    """
    x, y, x_test, y_test = _checked(x, y, x_test, y_test)
    configurations = _checked_configurations(configurations)
    seeds = [checked_whole("A seed", seed, most=2**32 - 1) for seed in checked_list("seeds", seeds)]
    if not seeds:
        raise ValueError("No seeds: give at least one initialisation.")
    selecting = (x, y, x_test, y_test)
    if select_on == "held-out":
        training, withheld = _held_out(y, held_out, seeds[0])
        selecting = (x[training], y[training], x[withheld], y[withheld])
    elif select_on != "test":
        raise ValueError(f"select_on = {select_on!r}: select on 'held-out' or on 'test'.")
    table = fit(*selecting, [Configuration(one.hidden, one.alpha, seeds[0]) for one in configurations], **how)
    best = configurations[int(table.test_accuracy.argmax())]
    again = [Configuration(best.hidden, best.alpha, seed) for seed in seeds]
    runs, right = _fitted(x, y, x_test, y_test, again, **how)
    return ProbeResult(best.hidden, best.alpha, right, select_on, table, runs)


def _batches(
    configurations: Sequence[Configuration], d: int, outputs: int, rows: int, padded: bool, memory_mb: float
) -> list[list[int]]:
    """Indices of the configurations trained together: of one size, or padded to the widest, within the memory."""
    groups: dict[object, list[int]] = {}
    for place, one in enumerate(configurations):
        groups.setdefault(None if padded else one.hidden, []).append(place)
    batches = []
    for places in groups.values():
        first, second = (max(configurations[place].hidden[layer] for place in places) for layer in (0, 1))
        parameters = (d + 1) * first + (first + 1) * second + (second + 1) * outputs
        # Parameters, gradients and two moments; a batch of rows, and of every layer its activations and their gradient.
        megabytes = 4 * (4 * parameters + rows * (d + 2 * (first + second + outputs))) / 2**20
        at_once = max(1, int(memory_mb / megabytes))
        batches += [places[start : start + at_once] for start in range(0, len(places), at_once)]
    return batches


def _held_out(y: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the rows that train the grid and of those that select from it."""
    if not 0 < checked_real("held_out", share) < 1:
        raise ValueError(f"held_out = {share} is not a share of the training rows in (0, 1).")
    counts = np.unique(y, return_counts=True)[1]
    count = int(np.ceil(share * len(y)))
    possible = counts.min() >= 2 and len(counts) <= min(count, len(y) - count)
    if len(y) - count >= 2:
        strata = y if possible else None
        parts = train_test_split(np.arange(len(y)), test_size=count, stratify=strata, random_state=seed)
        if len(np.unique(y[parts[0]])) > 1:
            return parts[0], parts[1]
    raise ValueError(
        f"Holding out {count} of {len(y)} training rows leaves no two classes to train on: "
        "give more rows, a smaller held_out, or select_on='test'."
    )


def _checked_configurations(configurations: Sequence[Configuration]) -> list[Configuration]:
    configurations = checked_list("configurations", configurations)
    if not configurations:
        raise ValueError("No configurations: give at least one, such as grid().")
    odd = [one for one in configurations if not isinstance(one, Configuration)]
    if odd:
        raise ValueError(f"A configuration is of type {type(odd[0]).__name__}: give a Configuration for each probe.")
    return configurations


def _checked(
    x: Array, y: Array, x_test: Array, y_test: Array
) -> tuple[torch.Tensor, np.ndarray, torch.Tensor, np.ndarray]:
    """Rows as tensors and labels as arrays, refused where they do not fit."""
    checked = []
    for name, rows, labels in (("x", x, y), ("x_test", x_test, y_test)):
        rows, labels, named = checked_rows(name, rows), as_array(labels), name.replace("x", "y")
        if labels.shape != (len(rows),):
            raise ValueError(
                f"{named} has shape {labels.shape} and {name} has {len(rows)} rows: give one label per row."
            )
        if labels.dtype.kind == "c":
            raise ValueError(f"{named} holds complex numbers: give numbers or texts, one per class.")
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise ValueError(f"{named} holds NaN or infinity, first in row {int(np.isfinite(labels).argmin())}.")
        checked += [rows, labels]
    x, y, x_test, y_test = checked
    if x_test.shape[1] != x.shape[1]:
        raise ValueError(f"x_test has {x_test.shape[1]} features and x has {x.shape[1]}: give the same layer of both.")
    if len(x) < 2 or len(np.unique(y)) < 2:
        raise ValueError(
            f"y holds {len(np.unique(y))} class in {len(x)} rows: a probe needs at least 2 rows of 2 classes."
        )
    return x, y, x_test, y_test
