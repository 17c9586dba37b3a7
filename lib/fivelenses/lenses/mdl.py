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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, linear, logsigmoid

from fivelenses.lenses.arrays import Array, as_array, as_tensor, check_counts, check_positive, check_rows
from fivelenses.lenses.training import Plan, Stack, by_autograd, train

FRACTIONS = tuple(percent / 100 for percent in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.25, 12.5, 25, 50, 100))

# How far probabilities may sum from 1 by rounding in single precision.
SUM_TOLERANCE = 1e-3

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
            number of classes, since some may be missing from the examples seen. Answers that are no log-probability
            of every class for every row are refused.
        classes: K, known to both sides; by default one more than the largest label, or the columns of y.
        seed: of the order in which the examples are sent; None keeps their order.

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
    order = np.arange(len(y)) if seed is None else np.random.default_rng(seed).permutation(len(y))
    fit = Perceptron() if fit is None else fit
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
        check_positive(learning_rate=self.learning_rate)
        check_counts(batch_size=self.batch_size, patience=self.patience, max_epochs=self.max_epochs)
        check_counts(hidden=self.hidden or 1)
        if not 0 < self.held_out < 1:
            raise ValueError(f"held_out = {self.held_out} is not a share of the examples in (0, 1).")

    def __call__(self, x: np.ndarray, y: np.ndarray, classes: int) -> LogProbabilities:
        """Train on rows x (t, d) and labels (t,) or (t, classes)."""
        random = torch.Generator().manual_seed(self.seed)
        several, rows = y.ndim == 2, self._rows(x)
        labels = torch.from_numpy(y).to(self.device, torch.float32 if several else torch.int64)
        initial = self._initial(rows.shape[1], classes, random)
        order = torch.randperm(len(rows), generator=random)
        held_out, training = order.tensor_split([math.ceil(self.held_out * len(rows))])
        loss_of = binary_cross_entropy_with_logits if several else cross_entropy
        passes = math.ceil(MIN_BATCHES_PER_EPOCH / max(1, math.ceil(len(training) / self.batch_size)))

        def batches(running: np.ndarray) -> Iterator[torch.Tensor]:
            for _ in range(passes):
                yield from training[torch.randperm(len(training), generator=random)].split(self.batch_size)

        def loss(stack: Stack, running: np.ndarray, places: torch.Tensor) -> torch.Tensor:
            return loss_of(_logits(stack, rows[places]), labels[places])[None]

        def score(stack: Stack, running: np.ndarray) -> np.ndarray:
            return loss(stack, running, held_out).double().cpu().numpy()

        stack = initial
        if len(training):
            plan = Plan(self.learning_rate, self.max_epochs, self.patience, TOLERANCE)
            stack, _ = train(initial, batches, by_autograd(loss), score, plan, score(initial, np.arange(1)))

        def log_probabilities(x: np.ndarray) -> torch.Tensor:
            logits = _logits(stack, self._rows(x))
            return logsigmoid(logits) if several else logits.log_softmax(1)

        return log_probabilities

    def _rows(self, x: np.ndarray) -> torch.Tensor:
        rows = as_tensor(x)
        check_rows("x", rows)
        return rows.to(self.device, torch.float32)

    def _initial(self, d: int, classes: int, random: torch.Generator) -> Stack:
        """A stack of one probe: the hidden layer uniform in ± 1/√d, the last layer 0."""
        layers = {"last": torch.zeros(1, classes, self.hidden or d), "last_bias": torch.zeros(1, classes)}
        if self.hidden:
            bound = d**-0.5
            hidden = torch.empty(1, self.hidden, d).uniform_(-bound, bound, generator=random)
            bias = torch.empty(1, self.hidden).uniform_(-bound, bound, generator=random)
            layers = {"hidden": hidden, "hidden_bias": bias} | layers
        return {name: values.to(self.device) for name, values in layers.items()}


def _logits(stack: Stack, rows: torch.Tensor) -> torch.Tensor:
    if "hidden" in stack:
        rows = linear(rows, stack["hidden"][0], stack["hidden_bias"][0]).relu()
    return linear(rows, stack["last"][0], stack["last_bias"][0])


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
    fractions = list(fractions)
    if not fractions or not (np.diff([0.0, *fractions]) > 0).all() or fractions[-1] != 1:
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
    classes = int(y.max()) + 1 if classes is None else classes
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
