"""Perceptrons of two hidden layers trained side by side: the batched arithmetic of the classifier probes.

:mod:`~fivelenses.lenses.mlp_probe` defines the probe. Probes of different widths share a batch by padding: the
weights, bias, activation, gradient and Adam's moments of a padded unit are 0 and stay 0, so that padding costs time and
changes nothing else. Probes that stopped leave the batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import pad

from fivelenses.lenses.adam import BETAS, EPSILON, adam_step
from fivelenses.lenses.arrays import checked_list, checked_real, checked_whole

LEARNING_RATE = 1e-3
TOLERANCE, PATIENCE = 1e-4, 10

# Rows that finished probes classify at once: about a batch, whose memory they reuse.
ROWS_AT_ONCE = 256


@dataclass(frozen=True)
class Configuration:
    """A probe: units of its two hidden layers, the regulariser's α, and the seed of its weights and order of rows."""

    hidden: tuple[int, int]
    alpha: float
    seed: int = 0

    def __post_init__(self) -> None:
        hidden = checked_list("hidden", self.hidden)
        if len(hidden) != 2:
            raise ValueError(f"hidden = {self.hidden}: give the units of two hidden layers.")
        for units in hidden:
            checked_whole("A layer's units", units, 1)
        checked_whole("seed", self.seed, most=2**32 - 1)
        if not 0 <= checked_real("alpha", self.alpha) < np.inf:
            raise ValueError(f"alpha = {self.alpha} is no weight of a regulariser: give a finite number from 0 up.")


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


def train(
    training: tuple[torch.Tensor, torch.Tensor],
    test: tuple[torch.Tensor, torch.Tensor],
    configurations: Sequence[Configuration],
    outputs: int,
    max_epochs: int,
    batch_size: int,
) -> list[tuple[float, int, bool, np.ndarray, np.ndarray]]:
    """Train probes together: the loss, epochs, convergence of each, and which training and test rows it has right."""
    x, y = training
    n, d = x.shape
    # Probes of the same sizes and seed draw the same numbers, so they share a generator and an order of the rows.
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
            # scikit-learn takes m √(1 − β₂ᵗ) / (1 − β₁ᵗ) / (√v + ε), torch m / (1 − β₁ᵗ) / (√v / √(1 − β₂ᵗ) + ε): the
            # first is the second with ε / √(1 − β₂ᵗ).
            epsilon = EPSILON / (1 - BETAS[1] ** steps) ** 0.5
            adam_step(parameters, gradients, moments, taken, LEARNING_RATE, epsilon)
        loss = total.cpu().numpy() / n
        best, waited = _epochs_without_improvement(loss, best, waited)
        converged = waited > PATIENCE
        ended = converged | (epoch == max_epochs)
        leaving = [values[torch.from_numpy(ended).to(x.device)] for values in parameters]
        # Of probes that go on, the next epoch's loss shows whether their parameters are finite.
        sound = np.isfinite(loss)
        sound[ended] &= torch.stack([v.isfinite().flatten(1).all(1) for v in leaving]).all(0).cpu().numpy()
        if not sound.all():
            one = configurations[running[sound.argmin()]]
            raise ValueError(f"Training of {one} diverged in epoch {epoch}: scale x or alpha down.")
        if ended.any():
            right = [_right(leaving, *split) for split in (training, test)]
            leavers = zip(running[ended], loss[ended], converged[ended], *right, strict=True)
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
    """The best losses so far, and the number of epochs in a row that were not ``TOLERANCE`` below the earlier best."""
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
    """Write the gradients of the loss on a batch, x (1 or k, m, d), y (1 or k, m); return m times the losses, (k,)."""
    first, second, logits = _forward(parameters, x)
    k, m, outputs = logits.shape
    # Classes come before rows, since torch's softmax is twenty times slower over the last axis.
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
    inputs, shrinking, squares = (x.expand(k, -1, -1), first, second), alphas / m, 0
    for layer in (2, 1, 0):
        weights = parameters[2 * layer]
        torch.bmm(inputs[layer].transpose(1, 2), error, out=gradients[2 * layer]).addcmul_(weights, shrinking)
        torch.sum(error, 1, keepdim=True, out=gradients[2 * layer + 1])
        squares = squares + torch.linalg.vector_norm(weights, dim=(1, 2)).square()
        if layer:
            error = torch.bmm(error, weights.transpose(1, 2))
            # The derivative of relu: the error passes where the activation is above 0.
            torch.ops.aten.threshold_backward.grad_input(error, inputs[layer], 0, grad_input=error)
    return total.add_(squares * alphas.flatten(), alpha=0.5)


def _right(parameters: list[torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> np.ndarray:
    """Which rows each probe classifies correctly, (k, n)."""
    right = []
    for rows, labels in zip(x.split(ROWS_AT_ONCE), y.split(ROWS_AT_ONCE), strict=True):
        logits = _forward(parameters, rows[None])[-1]
        predicted = logits[..., 0] > 0 if logits.shape[-1] == 1 else logits.argmax(-1)
        right.append((predicted == labels).cpu())
    return torch.cat(right, dim=1).numpy()
