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

The probe is a perceptron with one hidden layer of 256 units with relu, trained by Adam on cross-entropy, in single
precision, on batches of 64 rows. A random tenth of the examples is held out. An epoch passes over the others, as often
as it takes to make 20 batches; then the held-out loss is measured. Training ends after 100 epochs, or when for 4 epochs
the loss was not 0.001 nats below the best; the best state is kept. The hidden layer starts uniform in ± 1/√d, the last
at 0, which is the uniform code; a probe of a single example, of which none can be held out, stays there.

Shapes: x (n, d), y (n,) classes or (n, K) of 0 and 1. Range: bits from 0, compression from 0; the uniform code has
compression 1. Labels that are noise cost about n times their entropy.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, linear, logsigmoid

from fivelenses.lenses.arrays import Array, as_array, as_tensor, check_rows
from fivelenses.lenses.training import Plan, Stack, by_autograd, train

FRACTIONS = tuple(percent / 100 for percent in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.25, 12.5, 25, 50, 100))
HIDDEN, BATCH_SIZE, HELD_OUT = 256, 64, 0.1
MIN_BATCHES_PER_EPOCH, MAX_EPOCHS, PATIENCE, TOLERANCE = 20, 100, 4, 1e-3


@dataclass(frozen=True, eq=False)
class OnlineCode:
    """The bits (n,) that it takes to send each label, in the order given, and those of the ``uniform`` code for all."""

    bits: np.ndarray
    uniform: float

    @property
    def codelength(self) -> float:
        """Bits of all examples."""
        return float(self.bits.sum())

    @property
    def compression(self) -> float:
        """The ratio of the uniform code to this one."""
        return self.uniform / self.codelength


def online_code(x: Array, y: Array, seed: int = 0, learning_rate: float = 1e-3) -> OnlineCode:
    """The online codelength of labels given vectors.

    Args:
        x: (n, d), floating point and finite.
        y: (n,) whole numbers from 0 to K − 1, or (n, K) of 0 and 1 for several labels per example.
        seed: of the order in which the examples are sent, and of the probe.
        learning_rate: of Adam.

    Example:
        >>> y = np.arange(1000) % 4
        >>> code = online_code(np.eye(4, dtype=np.float32)[y], y, learning_rate=0.01)
        >>> code.uniform, code.codelength < 200
        (2000.0, True)
    """
    x, y = as_tensor(x), as_array(y)
    check_rows("x", x)
    classes = y.shape[1] if y.ndim == 2 else int(y.max()) + 1
    if len(x) != len(y) or (y.ndim == 1 and classes < 2):
        raise ValueError(f"{len(x)} rows have {len(y)} labels of {classes} classes: give each one, of two or more.")
    x, y = x.float().cpu(), y.astype(np.int64)
    # The slack is for rounding: 0.07 of 100 is 7.000000000000001.
    ends = sorted({math.ceil(fraction * len(y) * (1 - 1e-12)) for fraction in FRACTIONS})
    order = np.random.default_rng(seed).permutation(len(y))
    bits_each = math.log2(classes) if y.ndim == 1 else float(classes)
    bits = np.full(len(y), bits_each)
    for sent, end in zip(ends[:-1], ends[1:], strict=True):
        before, block = order[:sent], order[sent:end]
        log_probabilities = _log_probabilities(x[before], y[before], x[block], classes, seed, learning_rate)
        bits[block] = _bits(log_probabilities.astype(np.float64), y[block], sent)
    return OnlineCode(bits, len(y) * bits_each)


def _bits(log_probabilities: np.ndarray, y: np.ndarray, sent: int) -> np.ndarray:
    """Bits of each example of a block when the probe is mixed with the uniform code, which counts as one example."""
    weight, rest = math.log(sent / (sent + 1)), -math.log(sent + 1)
    if y.ndim == 1:
        of_truth = np.take_along_axis(log_probabilities, y[:, None], 1)
        uniform = -math.log(log_probabilities.shape[1])
    else:
        with np.errstate(divide="ignore"):
            other = np.log1p(-np.exp(log_probabilities))
        of_truth = np.where(y == 1, log_probabilities, other)
        uniform = -math.log(2)
    return -np.logaddexp(weight + of_truth, rest + uniform).reshape(len(y), -1).sum(1) / math.log(2)


def _log_probabilities(
    x: torch.Tensor, y: np.ndarray, x_block: torch.Tensor, classes: int, seed: int, learning_rate: float
) -> np.ndarray:
    """Natural logarithms of the probabilities, (m, classes), that a probe trained on x and y gives a block's rows."""
    random = torch.Generator().manual_seed(seed)
    several, d = y.ndim == 2, x.shape[1]
    labels = torch.from_numpy(y).to(torch.float32 if several else torch.int64)
    loss_of = binary_cross_entropy_with_logits if several else cross_entropy
    shapes = {"hidden": (1, HIDDEN, d), "hidden_bias": (1, HIDDEN)}
    stack = {name: torch.empty(one).uniform_(-(d**-0.5), d**-0.5, generator=random) for name, one in shapes.items()}
    stack |= {"last": torch.zeros(1, classes, HIDDEN), "last_bias": torch.zeros(1, classes)}
    held_out, training = torch.randperm(len(x), generator=random).tensor_split([math.ceil(HELD_OUT * len(x))])
    passes = math.ceil(MIN_BATCHES_PER_EPOCH / max(1, math.ceil(len(training) / BATCH_SIZE)))

    def batches(running: np.ndarray) -> Iterator[torch.Tensor]:
        for _ in range(passes):
            yield from training[torch.randperm(len(training), generator=random)].split(BATCH_SIZE)

    def loss(stack: Stack, running: np.ndarray, places: torch.Tensor) -> torch.Tensor:
        return loss_of(_logits(stack, x[places]), labels[places])[None]

    def score(stack: Stack, running: np.ndarray) -> np.ndarray:
        return loss(stack, running, held_out).double().numpy()

    if len(training):
        plan = Plan(learning_rate, MAX_EPOCHS, PATIENCE, TOLERANCE)
        stack, _ = train(stack, batches, by_autograd(loss), score, plan, score(stack, np.arange(1)))
    outputs = _logits(stack, x_block)
    return (logsigmoid(outputs) if several else outputs.log_softmax(1)).numpy()


def _logits(stack: Stack, rows: torch.Tensor) -> torch.Tensor:
    units = linear(rows, stack["hidden"][0], stack["hidden_bias"][0]).relu()
    return linear(units, stack["last"][0], stack["last_bias"][0])
