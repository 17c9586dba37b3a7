r"""Minimum description length by the online code: the bits it takes to send labels to a receiver who has the vectors.

The n examples are sent in blocks that end at growing fractions of n. The first block costs :math:`\log_2 K` bits per
example for K classes; each later one is coded by a probe trained on all earlier examples, which both sides can train:

.. math::

    L = t_1 \log_2 K - \sum_{b \ge 1} \sum_{i = t_b + 1}^{t_{b + 1}} \log_2 \tilde p_b(y_i \mid x_i), \qquad
    \tilde p_b = \frac{t_b\, p_b + 1 / K}{t_b + 1}, \qquad
    \mathrm{compression} = \frac{n \log_2 K}{L}.

Source: Voita and Titov 2020 (after Rissanen 1984 and Blier and Ollivier 2018), who send the probe's own p. We mix it
with the uniform code, which counts as one of the t examples seen: a class that is missing from training then costs at
most :math:`\log_2 K (t + 1)` bits and never infinitely many, and a perfect probe pays about 1.4 bits per block for it.

With several labels per example, each of the K labels is a binary choice of its own: the uniform code takes 1 bit per
label, :math:`n K` in all, and the :math:`\tilde p` of a label is mixed with 1/2.

Shapes: x (n, …) of anything that a probe takes, y (n,) classes or (n, K) of 0 and 1. Range: bits from 0, compression
from 0; the uniform code has compression 1. Labels that are noise cost about n times their entropy.
"""

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, logsigmoid

from fivelenses.lenses.arrays import (
    Array,
    as_array,
    checked_function,
    checked_list,
    checked_positive,
    checked_real,
    checked_rows,
    checked_whole,
)

FRACTIONS = tuple(percent / 100 for percent in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.25, 12.5, 25, 50, 100))

# How far probabilities may sum from 1 by rounding in single precision.
SUM_TOLERANCE = 1e-3
MAX_CLASSES = 1_000_000  # far more than labels have

# The least number of batches per epoch, and the gain in nats for which training goes on.
MIN_BATCHES_PER_EPOCH, TOLERANCE = 20, 1e-3

# Natural logarithms of probabilities, (m, K), for rows x (m, …).
LogProbabilities = Callable[[np.ndarray], Array]

# A probe: rows x (t, …), labels y, (t,) from 0 to K - 1 or (t, K) of 0 and 1, and K, to its predictions.
Fit = Callable[[np.ndarray, np.ndarray, int], LogProbabilities]


@dataclass(frozen=True, eq=False)
class OnlineCode:
    """The bits that it takes to send labels.

    Attributes:
        codelength: bits of all blocks.
        uniform: bits of the uniform code, n log₂ K, or n K with several labels per example.
        blocks: a row per block with the columns first, end (its examples are first, …, end - 1, in the order sent),
            seen (examples that its probe was trained on), bits, uniform.
        bits: (n,) of each example, in the order given; they sum to the codelength.
    """

    codelength: float
    uniform: float
    blocks: pd.DataFrame
    bits: np.ndarray

    @property
    def compression(self) -> float:
        """The ratio of the uniform code to this one; infinite for a code of no bits."""
        return self.uniform / self.codelength if self.codelength else math.inf


def online_code(
    x: Array,
    y: Array,
    fractions: Sequence[float] = FRACTIONS,
    fit: Fit | None = None,
    *,
    classes: int | None = None,
    seed: int | None = 0,
) -> OnlineCode:
    """The online codelength of labels given vectors.

    Args:
        x: (n, …) one entry per example; floating-point (n, d) for the default probe.
        y: (n,) whole numbers from 0, or (n, K) of 0 and 1 for several labels per example.
        fractions: of n at which blocks end, increasing to 1. Ends are rounded up, and equal ends make one block.
        fit: the probe, trained anew for each block; by default :class:`Perceptron` with its defaults. It also takes the
            number of classes, since some may be missing from the examples seen.
        classes: K, known to both sides; by default one more than the largest label, or the columns of y.
        seed: of the order in which the examples are sent; None keeps their order.

    Raises:
        ValueError: no example, labels that do not fit x or K, fractions that do not increase to 1, or a probe whose
            answer is no log-probability of every class for every row.

    Example:
        >>> y = np.arange(1000) % 4
        >>> code = online_code(np.eye(4, dtype=np.float32)[y], y, fit=Perceptron(learning_rate=0.01))
        >>> code.uniform, code.codelength < 200
        (2000.0, True)
    """
    x, y = as_array(x), as_array(y)
    classes = _checked_classes(x, y, classes)
    y = y.astype(np.int64)
    ends = _block_ends(fractions, len(y))
    shuffled = None if seed is None else np.random.default_rng(checked_whole("seed", seed))
    order = np.arange(len(y)) if shuffled is None else shuffled.permutation(len(y))
    fit = Perceptron() if fit is None else checked_function("fit", fit)
    bits_each = math.log2(classes) if y.ndim == 1 else float(classes)
    each = np.empty(len(y))
    each[order[: ends[0]]] = bits_each
    rows = [(0, ends[0], 0, ends[0] * bits_each, ends[0] * bits_each)]
    for seen, end in zip(ends[:-1], ends[1:], strict=True):
        before, block = order[:seen], order[seen:end]
        predicted = as_array(fit(x[before], y[before], classes)(x[block]))
        bits = _bits(_checked_predictions(predicted, (len(block), classes), y.ndim == 1), y[block], seen)
        each[block] = bits
        rows.append((seen, end, seen, bits.sum(), len(block) * bits_each))
    blocks = pd.DataFrame(rows, columns=["first", "end", "seen", "bits", "uniform"])
    return OnlineCode(float(blocks.bits.sum()), float(blocks.uniform.sum()), blocks, each)


@dataclass(frozen=True)
class Perceptron:
    """A probe for :func:`online_code`: one hidden layer with relu, or none, trained by Adam on cross-entropy.

    A random share of the examples is held out. An epoch passes over the others, as often as it takes to make 20
    batches; then the held-out loss is measured. Training ends when for ``patience`` epochs the loss was not 0.001 nats
    below the best; the best state is kept. The initial state, whose last layer is 0, is the uniform code; a probe of a
    single example, of which none can be held out, stays there. Everything is computed in single precision.

    Args:
        hidden: units of the hidden layer; 0 is softmax or logistic regression.
        learning_rate: of Adam.
        batch_size: rows per batch.
        held_out: the share, in (0, 1), rounded up.
        patience: epochs without such a gain after which training ends.
        max_epochs: training ends after this number of epochs at the latest.
        seed: of the initial weights, of the rows held out, and of the order of rows.
        device: where to train.

    Raises:
        ValueError: a share outside (0, 1), or a number below 1 where at least 1 is needed.

    Example:
        >>> x = np.eye(2, dtype=np.float32)
        >>> probe = Perceptron(hidden=0, learning_rate=0.1)(x.repeat(50, 0), np.arange(2).repeat(50), 3)
        >>> probe(x).argmax(1)
        tensor([0, 1])
    """

    hidden: int = 256
    learning_rate: float = 1e-3
    batch_size: int = 64
    held_out: float = 0.1
    patience: int = 4
    max_epochs: int = 100
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in ("hidden", "batch_size", "patience", "max_epochs", "seed"):
            checked_whole(name, getattr(self, name))
        checked_positive("learning_rate", self.learning_rate)
        if not 0 < checked_real("held_out", self.held_out) < 1:
            raise ValueError(f"held_out = {self.held_out} is not a share of the examples in (0, 1).")
        if min(self.batch_size, self.patience, self.max_epochs) < 1:
            raise ValueError(
                f"hidden = {self.hidden}, batch_size = {self.batch_size}, patience = {self.patience}, "
                f"max_epochs = {self.max_epochs}: give at least 1 of each, or 0 hidden units."
            )

    def __call__(self, x: np.ndarray, y: np.ndarray, classes: int) -> LogProbabilities:
        """Train on rows x (t, d) and labels (t,) or (t, classes).

        Raises:
            ValueError: rows that are not (rows, features) of finite floating-point numbers, or a training that
                diverged.
        """
        random = torch.Generator().manual_seed(self.seed)
        several = y.ndim == 2
        rows = checked_rows("x", x).to(self.device, torch.float32)
        labels = torch.from_numpy(y).to(self.device, torch.float32 if several else torch.int64)
        network = self._network(rows.shape[1], classes, random).to(self.device)
        order = torch.randperm(len(rows), generator=random)
        held_out, training = order.tensor_split([math.ceil(self.held_out * len(rows))])
        loss_of = binary_cross_entropy_with_logits if several else cross_entropy

        def loss(places: torch.Tensor) -> torch.Tensor:
            return loss_of(network(rows[places]), labels[places])

        if len(training):
            self._train(network, loss, training, held_out, random)

        @torch.no_grad()
        def log_probabilities(x: np.ndarray) -> torch.Tensor:
            logits = network(checked_rows("x", x).to(self.device, torch.float32))
            return logsigmoid(logits) if several else logits.log_softmax(1)

        return log_probabilities

    def _network(self, d: int, classes: int, random: torch.Generator) -> nn.Module:
        layers = [nn.Linear(d, self.hidden), nn.ReLU()] if self.hidden else []
        last = nn.Linear(self.hidden or d, classes)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        if layers:
            # torch's own initial weights, but from our generator.
            bound = d**-0.5
            for values in layers[0].parameters():
                nn.init.uniform_(values, -bound, bound, generator=random)
        return nn.Sequential(*layers, last)

    def _train(
        self,
        network: nn.Module,
        loss: Callable[[torch.Tensor], torch.Tensor],
        training: torch.Tensor,
        held_out: torch.Tensor,
        random: torch.Generator,
    ) -> None:
        """Train on some rows until the loss of the rows held out no longer falls."""

        @torch.no_grad()
        def held_out_loss() -> float:
            return float(loss(held_out))

        optimizer = torch.optim.Adam(network.parameters(), lr=self.learning_rate, fused=True)
        passes = math.ceil(MIN_BATCHES_PER_EPOCH / math.ceil(len(training) / self.batch_size))
        best, best_state, waited = held_out_loss(), deepcopy(network.state_dict()), 0
        for epoch in range(1, self.max_epochs + 1):
            for _ in range(passes):
                for places in training[torch.randperm(len(training), generator=random)].split(self.batch_size):
                    optimizer.zero_grad()
                    loss(places).backward()
                    optimizer.step()
            current = held_out_loss()
            if not math.isfinite(current):
                raise ValueError(f"The probe diverged in epoch {epoch}: scale x or the learning rate down.")
            if current < best - TOLERANCE:
                best, best_state, waited = current, deepcopy(network.state_dict()), 0
            elif (waited := waited + 1) == self.patience:
                break
        network.load_state_dict(best_state)


def _bits(log_probabilities: np.ndarray, y: np.ndarray, seen: int) -> np.ndarray:
    """Bits of each example of a block when the probe is mixed with the uniform code, which counts as one example."""
    weight, rest = math.log(seen / (seen + 1)), -math.log(seen + 1)
    if y.ndim == 1:
        of_truth = np.take_along_axis(log_probabilities, y[:, None], 1)
        uniform = -math.log(log_probabilities.shape[1])
    else:
        with np.errstate(divide="ignore"):
            other = np.log1p(-np.exp(log_probabilities))
        of_truth = np.where(y == 1, log_probabilities, other)
        uniform = -math.log(2)
    return -np.logaddexp(weight + of_truth, rest + uniform).reshape(len(y), -1).sum(1) / math.log(2)


def _block_ends(fractions: Sequence[float], n: int) -> list[int]:
    fractions = [checked_real("A fraction", one) for one in checked_list("fractions", fractions)]
    growing = all(before < after for before, after in zip(fractions[:-1], fractions[1:], strict=True))
    if not fractions or not growing or not fractions[0] > 0 or fractions[-1] != 1:
        raise ValueError(f"fractions = {fractions} must increase from above 0 to 1, where everything is sent.")
    # The slack is for rounding: 0.07 of 100 is 7.000000000000001.
    return sorted({math.ceil(fraction * n * (1 - 1e-12)) for fraction in fractions})


def _checked_classes(x: np.ndarray, y: np.ndarray, classes: int | None) -> int:
    if y.ndim not in (1, 2) or not y.size:
        raise ValueError(f"y has shape {y.shape}, not (examples,) or (examples, labels) with at least one of each.")
    if x.ndim < 1 or len(x) != len(y):
        raise ValueError(f"x has shape {x.shape} and y {y.shape}: give one entry of x for each example.")
    if y.dtype.kind not in "iub":
        raise ValueError(f"y holds {y.dtype}, not whole numbers: number the classes from 0 up.")
    if y.ndim == 2:
        if classes not in (None, y.shape[1]):
            raise ValueError(f"classes = {classes} and y has {y.shape[1]} columns of labels: leave classes out.")
        if y.min() < 0 or y.max() > 1:
            raise ValueError(f"y with several labels per example must be 0 or 1, and row {_first_beyond(y, 1)} is not.")
        return y.shape[1]
    classes = int(y.max()) + 1 if classes is None else checked_whole("classes", classes, 1, MAX_CLASSES)
    if y.min() < 0 or y.max() >= classes:
        raise ValueError(f"Row {_first_beyond(y, classes - 1)} of y is no class from 0 to {classes - 1}.")
    if classes < 2:
        raise ValueError("y holds a single class, which takes no bits to send: give classes, or labels that differ.")
    return classes


def _first_beyond(y: np.ndarray, most: int) -> int:
    return int(((y < 0) | (y > most)).reshape(len(y), -1).any(1).argmax())


def _checked_predictions(predicted: np.ndarray, shape: tuple[int, int], one_class: bool) -> np.ndarray:
    if predicted.shape != shape:
        raise ValueError(f"The probe answers with shape {predicted.shape}, not {shape}: one logarithm per class.")
    predicted = predicted.astype(np.float64)
    # Minus infinity is the logarithm of 0, which the mixture allows.
    if np.isnan(predicted).any() or (predicted > SUM_TOLERANCE).any():
        raise ValueError("The probe answers with NaN or with a probability above 1: give natural logarithms.")
    if one_class and (np.abs(np.exp(predicted).sum(1) - 1) > SUM_TOLERANCE).any():
        raise ValueError("The probe's probabilities of all classes do not sum to 1: no code has these lengths.")
    return np.minimum(predicted, 0)
