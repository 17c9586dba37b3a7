r"""Classifier probes: perceptrons of two hidden layers, a whole grid of them trained as one batched computation.

For a row :math:`x` (d,), weights :math:`W_1` (d, h₁), :math:`W_2` (h₁, h₂), :math:`W_3` (h₂, classes) and biases
:math:`b`, a probe says

.. math::

    p = \operatorname{softmax}\big(\operatorname{relu}(\operatorname{relu}(x W_1 + b_1) W_2 + b_2) W_3 + b_3\big),
    \qquad
    \mathrm{loss} = \frac1m \Big[ \sum_{i=1}^m -\ln p_{i, y_i} + \frac{\alpha}{2} \sum_l \Vert W_l \Vert_F^2 \Big]

on a batch of m rows, in nats. Source: scikit-learn 1.9's ``MLPClassifier(hidden, alpha=alpha, random_state=seed,
batch_size=min(200, n), max_iter=1000)``, and a probe is that classifier: Glorot-uniform weights and biases from
``RandomState(seed)``, a new order of the rows each epoch from the same generator, a smaller last batch, Adam (1e-3,
0.9, 0.999, 1e-8 beside the *uncorrected* second moment), one logistic output for two classes, and the end when in more
than 10 epochs in a row the epoch's mean loss was not 1e-4 below the best, or after 1000 epochs. So each probe starts
from scikit-learn's weights, meets its batches, and follows it up to rounding, which training magnifies.

Shapes: x (n, d), y (n,). Range: accuracies in [0, 1], losses at least 0. Everything is computed in single precision.
The input is not standardised, as in the paper: what a probe reaches depends on its scale.

Probes of different widths share a batch by padding. A padded unit has weights, bias, and so activation, gradient and
Adam's moments 0, and stays there, so that it changes nothing but the time. Probes that stopped leave the batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import train_test_split
from torch.nn.functional import pad
from torch.optim.adam import adam

from fivelenses.lenses import Array, as_tensor

LEARNING_RATE, BETAS, EPSILON = 1e-3, (0.9, 0.999), 1e-8
TOLERANCE, PATIENCE = 1e-4, 10

# Rows that finished probes classify at once.
ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class Configuration:
    """A probe: units of its two hidden layers, the regulariser's α, and the seed of its weights and order of rows."""

    hidden: tuple[int, int]
    alpha: float
    seed: int = 0

    def __post_init__(self) -> None:
        if len(self.hidden) != 2 or min(self.hidden) < 1 or any(int(units) != units for units in self.hidden):
            raise ValueError(f"hidden = {self.hidden}: give the units of two hidden layers, at least 1 each.")
        if not 0 <= self.alpha < np.inf:
            raise ValueError(f"alpha = {self.alpha} is no weight of a regulariser: give a finite number from 0 up.")
        if not 0 <= self.seed < 2**32 or int(self.seed) != self.seed:
            raise ValueError(f"seed = {self.seed}: give a whole number from 0 to 2**32 - 1.")


@dataclass(frozen=True, eq=False)
class ProbeResult:
    """The configuration chosen from a grid, and how well it does from several initialisations.

    Attributes:
        hidden: units of the two hidden layers of the chosen configuration.
        alpha: its α.
        accuracies: (seeds,) on the test set, trained on all training rows.
        select_on: what chose it, "held-out" or "test".
        grid: a row per configuration as :func:`fit` gives it; its ``test_accuracy`` is that on ``select_on``.
        runs: a row per initialisation as :func:`fit` gives it, with the epochs that it took.
    """

    hidden: tuple[int, int]
    alpha: float
    accuracies: np.ndarray
    select_on: str
    grid: pd.DataFrame
    runs: pd.DataFrame

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
    return [Configuration((first, second), alpha) for first in sizes for second in sizes for alpha in alphas]


@torch.no_grad()
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
        y_test: (n_test,). A label that training never showed is counted as wrong.
        configurations: the probes; equal ones come out equal.
        max_epochs: where training ends at the latest.
        batch_size: rows of a batch, cut to n.
        device: where to compute; by default where ``x`` is.
        padded: whether probes of different sizes share a batch. By default on a GPU, where few large steps win, and not
            on a processor, where multiplying zeros costs as much as multiplying anything else.
        memory_mb: megabytes that the probes of a batch may take beside the rows; more probes are trained in turns.

    Returns:
        A row per configuration, in their order, with the columns hidden_1, hidden_2, alpha, seed, loss (of the last
        epoch, regulariser included), epochs, converged (False where ``max_epochs`` ended training),
        training_accuracy, test_accuracy.

    Raises:
        ValueError: rows and labels that do not fit each other, NaN or infinity, fewer than 2 rows, a single class, no
            configuration, or training that diverged.

    Example:
        >>> x = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]).repeat(10, 0)
        >>> y = np.array(["same", "differ"]).repeat(20)
        >>> probes = fit(x, y, x, y, [Configuration((16, 16), 1e-4, seed) for seed in range(2)])
        >>> probes.test_accuracy.tolist()
        [1.0, 1.0]
    """
    x, y, x_test, y_test = _checked(x, y, x_test, y_test)
    if not configurations:
        raise ValueError("No configurations: give at least one, such as grid().")
    if max_epochs < 1 or batch_size < 1:
        raise ValueError(f"max_epochs = {max_epochs}, batch_size = {batch_size}: give at least 1 of each.")
    device = x.device if device is None else torch.device(device)
    classes, targets = np.unique(y, return_inverse=True)
    # The place of each test label among the classes, -1 where it is none of them and so never predicted.
    known = {label: place for place, label in enumerate(classes.tolist())}
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
        results = _train(*splits, together, outputs, max_epochs, min(batch_size, len(x)))
        finished |= dict(zip(places, results, strict=True))
    columns = ["loss", "epochs", "converged", "training_accuracy", "test_accuracy"]
    return pd.DataFrame(
        [(*one.hidden, one.alpha, one.seed, *finished[place]) for place, one in enumerate(configurations)],
        columns=["hidden_1", "hidden_2", "alpha", "seed", *columns],
    )


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
    """Choose a configuration by its accuracy on rows it was not trained on, then train it anew from several seeds.

    The grid is trained with the first seed. Of equally accurate configurations the first in the grid is chosen.

    Args:
        x, y, x_test, y_test: as in :func:`fit`.
        configurations: the grid; their own seeds are not used.
        seeds: of the initialisations, and the first of the choice too.
        select_on: "held-out" takes a share of the training rows away from the grid, and the chosen configuration is
            trained on all of them again. "test" is the paper's way: the grid is trained on all training rows and
            chosen by the very test accuracy that is then reported, which flatters it.
        held_out: that share, in (0, 1), stratified by label where every label has two rows and both parts have room.
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
    if len(seeds) == 0:
        raise ValueError("No seeds: give at least one initialisation.")
    chosen_by = (x, y, x_test, y_test)
    if select_on == "held-out":
        kept, away = _held_out(y, held_out, seeds[0])
        chosen_by = (x[kept], y[kept], x[away], y[away])
    elif select_on != "test":
        raise ValueError(f"select_on = {select_on!r}: choose by 'held-out' or by 'test'.")
    table = fit(*chosen_by, [Configuration(one.hidden, one.alpha, seeds[0]) for one in configurations], **how)
    best = configurations[int(table.test_accuracy.argmax())]
    runs = fit(x, y, x_test, y_test, [Configuration(best.hidden, best.alpha, seed) for seed in seeds], **how)
    return ProbeResult(best.hidden, best.alpha, runs.test_accuracy.to_numpy(), select_on, table, runs)


def _batches(
    configurations: Sequence[Configuration], d: int, outputs: int, rows: int, padded: bool, memory_mb: float
) -> list[list[int]]:
    """Places of the configurations that are trained together: of one size, or padded to the widest, and in memory."""
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


def _initial(one: Configuration, d: int, outputs: int, random: np.random.RandomState) -> list[np.ndarray]:
    """scikit-learn's initial W₁, b₁, W₂, b₂, W₃, b₃, drawn in its order."""
    drawn = []
    units = (d, *one.hidden, outputs)
    for fan_in, fan_out in zip(units[:-1], units[1:], strict=True):
        bound = np.sqrt(6 / (fan_in + fan_out))
        drawn += [random.uniform(-bound, bound, shape) for shape in ((fan_in, fan_out), (fan_out,))]
    return drawn


def _stacked(drawn: list[list[np.ndarray]], device: torch.device) -> list[torch.Tensor]:
    """The parameters of k probes as W (k, fan_in, fan_out) and b (k, 1, fan_out), padded with 0 to the widest."""
    stacked = []
    for ones in zip(*drawn, strict=True):
        ones = [torch.from_numpy(np.atleast_2d(values)).to(device, torch.float32) for values in ones]
        rows, columns = (max(values.shape[axis] for values in ones) for axis in (0, 1))
        stacked.append(
            torch.stack([pad(values, (0, columns - values.shape[1], 0, rows - values.shape[0])) for values in ones])
        )
    return stacked


def _train(
    training: tuple[torch.Tensor, torch.Tensor],
    test: tuple[torch.Tensor, torch.Tensor],
    configurations: Sequence[Configuration],
    outputs: int,
    max_epochs: int,
    batch_size: int,
) -> list[tuple[float, int, bool, float, float]]:
    """Loss, epochs, converged and the two accuracies of probes that are trained together."""
    x, y = training
    n, d = x.shape
    # Probes of the same sizes and seed draw the same numbers, so they share a generator and the order of rows.
    generators: dict[tuple[tuple[int, int], int], np.random.RandomState] = {}
    initial = {}
    for one in configurations:
        if (key := (one.hidden, one.seed)) not in generators:
            generators[key] = np.random.RandomState(one.seed)
            initial[key] = _initial(one, d, outputs, generators[key])
    orders = {key: np.arange(n) for key in generators}
    parameters = _stacked([initial[one.hidden, one.seed] for one in configurations], x.device)
    moments = [[torch.zeros_like(values) for values in parameters] for _ in range(2)]
    gradients = [torch.empty_like(values) for values in parameters]
    alphas = torch.tensor([one.alpha for one in configurations], dtype=torch.float32, device=x.device).reshape(-1, 1, 1)
    taken = [torch.zeros((), device=x.device) for _ in parameters]
    steps = 0
    running = np.arange(len(configurations))
    best, waited = np.full(len(running), np.inf), np.zeros(len(running), dtype=int)
    results = {}
    for epoch in range(1, max_epochs + 1):
        keys = [(configurations[place].hidden, configurations[place].seed) for place in running]
        for key in set(keys):
            orders[key] = orders[key][generators[key].permutation(n)]
        # (1, n) where all probes meet the same rows, else (k, n).
        order = np.stack([orders[key] for key in (keys if len(set(keys)) > 1 else keys[:1])])
        total = torch.zeros(len(running), dtype=torch.float64, device=x.device)
        for rows in torch.from_numpy(order).to(x.device).split(batch_size, dim=1):
            total += _gradients(parameters, x[rows], y[rows], alphas, gradients)
            steps += 1
            _adam_step(parameters, gradients, moments, taken, steps)
        loss = total.cpu().numpy() / n
        sound = (
            np.isfinite(loss) & torch.stack([v.isfinite().flatten(1).all(1) for v in parameters]).all(0).cpu().numpy()
        )
        if not sound.all():
            one = configurations[running[sound.argmin()]]
            raise ValueError(f"Training of {one} diverged in epoch {epoch}: scale x or alpha down.")
        best, waited = _epochs_without_improvement(loss, best, waited)
        converged = waited > PATIENCE
        ended = converged | (epoch == max_epochs)
        if ended.any():
            leaving = [values[torch.from_numpy(ended).to(x.device)] for values in parameters]
            accuracies = [_accuracies(leaving, *split).tolist() for split in (training, test)]
            leavers = zip(running[ended], loss[ended], converged[ended], *accuracies, strict=True)
            results |= {place: (last, epoch, whether, *both) for place, last, whether, *both in leavers}
            if ended.all():
                break
            kept = torch.from_numpy(~ended).to(x.device)
            parameters, moments = [v[kept] for v in parameters], [[v[kept] for v in values] for values in moments]
            gradients = [torch.empty_like(values) for values in parameters]
            alphas, running, best, waited = alphas[kept], running[~ended], best[~ended], waited[~ended]
    return [results[place] for place in range(len(configurations))]


def _epochs_without_improvement(
    loss: np.ndarray, best: np.ndarray, waited: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The best losses so far, and how many epochs in a row were not ``TOLERANCE`` below the best before them."""
    return np.minimum(best, loss), np.where(loss > best - TOLERANCE, waited + 1, 0)


def _forward(parameters: list[torch.Tensor], x: torch.Tensor) -> list[torch.Tensor]:
    """Activations of both hidden layers and the logits, (k, m, units), of rows (1 or k, m, d)."""
    w1, b1, w2, b2, w3, b3 = parameters
    first = torch.baddbmm(b1, x.expand(len(w1), -1, -1), w1).relu_()
    second = torch.baddbmm(b2, first, w2).relu_()
    return [first, second, torch.baddbmm(b3, second, w3)]


def _gradients(
    parameters: list[torch.Tensor],
    x: torch.Tensor,
    y: torch.Tensor,
    alphas: torch.Tensor,
    gradients: list[torch.Tensor],
) -> torch.Tensor:
    """Write the gradients of the loss on a batch, x (1 or k, m, d), y (1 or k, m); m times the loss of each, (k,)."""
    first, second, logits = _forward(parameters, x)
    k, m, outputs = logits.shape
    # Classes before rows: over the last axis torch's softmax is twenty times slower.
    error, y = logits.transpose(1, 2).contiguous(), y.expand(k, m)[:, None]
    if outputs == 1:
        error.sigmoid_().sub_(y)
        likelihoods = 1 - error.abs()
    else:
        error = error.softmax(1)
        likelihoods = error.gather(1, y)
        error.scatter_(1, y, likelihoods - 1)
    # scikit-learn cuts probabilities where single precision ends, so that one row's loss is at most 15.9.
    rounding = torch.finfo(likelihoods.dtype).eps
    total = -likelihoods.clamp_(rounding, 1 - rounding).log_().sum((1, 2), dtype=torch.float64)
    error = error.div_(m).transpose(1, 2)
    inputs = (x.expand(k, -1, -1), first, second)
    for layer in (2, 1, 0):
        weights, shrinking = parameters[2 * layer], alphas / m
        torch.bmm(inputs[layer].transpose(1, 2), error, out=gradients[2 * layer]).addcmul_(weights, shrinking)
        torch.sum(error, 1, keepdim=True, out=gradients[2 * layer + 1])
        total += alphas.flatten() / 2 * torch.linalg.vector_norm(weights, dim=(1, 2)).square()
        if layer:
            error = torch.bmm(error, weights.transpose(1, 2))
            # The derivative of relu: the error passes where the activation is above 0.
            torch.ops.aten.threshold_backward.grad_input(error, inputs[layer], 0, grad_input=error)
    return total


def _adam_step(
    parameters: list[torch.Tensor],
    gradients: list[torch.Tensor],
    moments: list[list[torch.Tensor]],
    taken: list[torch.Tensor],
    step: int,
) -> None:
    """One step of Adam in place, the ``step``-th; torch counts in ``taken`` too.

    scikit-learn takes m √(1 − β₂ᵗ) / (1 − β₁ᵗ) / (√v + ε), torch m / (1 − β₁ᵗ) / (√v / √(1 − β₂ᵗ) + ε): the first is
    the second with ε / √(1 − β₂ᵗ).
    """
    adam(
        parameters,
        gradients,
        *moments,
        [],
        taken,
        fused=True,
        amsgrad=False,
        beta1=BETAS[0],
        beta2=BETAS[1],
        lr=LEARNING_RATE,
        weight_decay=0,
        eps=EPSILON / (1 - BETAS[1] ** step) ** 0.5,
        maximize=False,
    )


def _accuracies(parameters: list[torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The share of rows that each probe classifies rightly, (k,)."""
    right = 0
    for rows, wanted in zip(x.split(ROWS_AT_ONCE), y.split(ROWS_AT_ONCE), strict=True):
        logits = _forward(parameters, rows[None])[-1]
        said = logits[..., 0] > 0 if logits.shape[-1] == 1 else logits.argmax(-1)
        right = right + (said == wanted).sum(1)
    return right.double() / len(y)


def _held_out(y: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Places of the rows that train the grid and of those that choose from it."""
    if not 0 < share < 1:
        raise ValueError(f"held_out = {share} is not a share of the training rows in (0, 1).")
    counts = np.unique(y, return_counts=True)[1]
    away = int(np.ceil(share * len(y)))
    possible = counts.min() >= 2 and len(counts) <= min(away, len(y) - away)
    if len(y) - away >= 2:
        parts = train_test_split(np.arange(len(y)), test_size=away, stratify=y if possible else None, random_state=seed)
        if len(np.unique(y[parts[0]])) > 1:
            return parts[0], parts[1]
    raise ValueError(
        f"Holding out {away} of {len(y)} training rows leaves no two classes to train on: "
        "give more rows, a smaller held_out, or select_on='test'."
    )


def _checked(
    x: Array, y: Array, x_test: Array, y_test: Array
) -> tuple[torch.Tensor, np.ndarray, torch.Tensor, np.ndarray]:
    """Rows as tensors and labels as arrays, refused where they do not fit."""
    checked = []
    for name, rows, labels in (("x", x, y), ("x_test", x_test, y_test)):
        rows = as_tensor(rows)
        labels = labels.detach().cpu().numpy() if isinstance(labels, torch.Tensor) else np.asarray(labels)
        named = name.replace("x", "y")
        if rows.ndim != 2 or 0 in rows.shape:
            raise ValueError(f"{name} has shape {tuple(rows.shape)}, not (rows, features): give at least one of each.")
        if not rows.is_floating_point():
            raise ValueError(f"{name} holds {rows.dtype}, not floating-point numbers: convert it.")
        if labels.shape != (len(rows),):
            raise ValueError(
                f"{named} has shape {labels.shape} and {name} has {len(rows)} rows: give one label for each row."
            )
        # Single precision is what the probes see, in which a large double is infinite.
        finite = rows.float().isfinite().all(1)
        if not finite.all():
            raise ValueError(
                f"{name} holds NaN or infinity in single precision, first in row {int(finite.int().argmin())}: "
                "check the model that computed it."
            )
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise ValueError(f"{named} holds NaN or infinity, first in row {int(np.isfinite(labels).argmin())}.")
        checked += [rows, labels]
    if checked[2].shape[1] != checked[0].shape[1]:
        raise ValueError(
            f"x_test has {checked[2].shape[1]} features and x has {checked[0].shape[1]}: give the same layer of both."
        )
    if len(checked[0]) < 2 or len(np.unique(checked[1])) < 2:
        raise ValueError(
            f"y holds {len(np.unique(checked[1]))} class in {len(checked[0])} rows: "
            "a probe needs at least 2 rows of 2 classes to tell apart."
        )
    return tuple(checked)
