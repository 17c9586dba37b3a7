"""The training loop of all probes: Adam with patience, for several probes at once, each as it would be alone.

The parameters of n probes are stacked, (n, …). After each period (an epoch, or so many batches) every probe is scored
on held-out data. A probe whose score did not improve for so many periods leaves the stack, and its rate falls where the
plan says so; the parameters with the best score are kept. A step is torch's of Adam (Kingma and Ba 2015), with
β₁ = 0.9, β₂ = 0.999 and ε = 1e-8.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch.optim.adam import adam

Stack = dict[str, torch.Tensor]

# The batches of a period; the losses (n,) and gradients of a batch; and the scores (n,), of which lower ones are
# better. Each takes the numbers of the probes that still train.
Batches = Callable[[np.ndarray], Iterable]
Gradient = Callable[[Stack, np.ndarray, object], tuple[torch.Tensor, Stack]]
Score = Callable[[Stack, np.ndarray], np.ndarray]

_SETTINGS = dict(beta1=0.9, beta2=0.999, eps=1e-8, fused=True, amsgrad=False, weight_decay=0, maximize=False)


@dataclass(frozen=True)
class Plan:
    """How probes are trained: at the ``rate`` η, for so many ``periods`` at most, and each until its score was for
    ``patience`` periods in a row not below the best by more than the ``tolerance``.

    The rate falls by a factor, ``decay``, after every ``decay_after`` periods in a row without improvement, and with
    ``restart`` Adam then forgets its moments.
    """

    rate: float
    periods: int
    patience: int
    tolerance: float
    decay: float = 1.0
    decay_after: int = 1
    restart: bool = False


class _Adam:
    """Adam's moments, stacked as the parameters are, and the steps of each probe."""

    def __init__(self, stack: Stack, probes: int) -> None:
        self._moments = [{name: torch.zeros_like(values) for name, values in stack.items()} for _ in range(2)]
        self._steps = np.zeros(probes, dtype=int)

    def step(self, stack: Stack, gradients: Stack, rates: np.ndarray) -> None:
        """Move the parameters in place: all probes at once while they have equal rates and steps."""
        alike = len(rates) == 1 or (np.ptp(rates) == 0 and np.ptp(self._steps) == 0)
        for probe in range(1 if alike else len(rates)):
            lists = [list(part.values()) for part in (stack, gradients, *self._moments)]
            if not alike:
                lists = [[values[probe] for values in part] for part in lists]
            steps = [values.new_full((), float(self._steps[probe])) for values in lists[0]]
            adam(*lists, [], steps, lr=float(rates[probe]), **_SETTINGS)
        self._steps += 1

    def restart(self, places: np.ndarray) -> None:
        self._steps[places] = 0
        for values in (values for moment in self._moments for values in moment.values()):
            values[places] = 0

    def keep(self, places: list[int]) -> None:
        self._moments = [{name: values[places] for name, values in moment.items()} for moment in self._moments]
        self._steps = self._steps[places]


@torch.no_grad()
def train(
    initial: Stack, batches: Batches, gradient: Gradient, score: Score, plan: Plan, scores: np.ndarray | None = None
) -> tuple[Stack, np.ndarray]:
    """The best parameters of stacked probes, from the ``initial`` ones (n, …) by name, and their scores (n,).

    ``scores`` (n,) are those of the initial parameters, which are kept unless a period improves on them. A loss or
    score that is not finite is refused.

    Example:
        >>> start = {"x": torch.tensor([[4.0], [1.0]])}
        >>> gradient = by_autograd(lambda stack, running, batch: stack["x"].square().sum(1))
        >>> score = lambda stack, running: stack["x"].square().sum(1).numpy()
        >>> best, scores = train(start, lambda running: range(50), gradient, score, Plan(0.1, 20, 3, 1e-6))
        >>> best["x"].abs().max() < 0.01, scores.max() < 1e-4
        (tensor(True), np.True_)
    """
    probes = len(next(iter(initial.values())))
    stack, best = ({name: values.clone() for name, values in initial.items()} for _ in range(2))
    adam_of_stack, running = _Adam(stack, probes), np.arange(probes)
    rates, waited = np.full(probes, float(plan.rate)), np.zeros(probes, dtype=int)
    lowest = np.full(probes, np.inf) if scores is None else scores.copy()
    for period in range(1, plan.periods + 1):
        total = 0.0
        for batch in batches(running):
            losses, gradients = gradient(stack, running, batch)
            adam_of_stack.step(stack, gradients, rates[running])
            total = total + losses
        current = score(stack, running)
        if not (total.isfinite().all() and np.isfinite(current).all()):
            raise ValueError(f"Training diverged before validation {period}: scale the vectors or the rate down.")
        improved = current < lowest[running] - plan.tolerance
        for name, values in stack.items():
            best[name][running[improved]] = values[np.flatnonzero(improved).tolist()]
        lowest[running[improved]] = current[improved]
        waited[running] = np.where(improved, 0, waited[running] + 1)
        falls = (waited[running] > 0) & (waited[running] % plan.decay_after == 0)
        rates[running[falls]] *= plan.decay
        if plan.restart:
            adam_of_stack.restart(np.flatnonzero(falls))
        going = np.flatnonzero(waited[running] < plan.patience).tolist()
        if len(going) < len(running):
            stack = {name: values[going] for name, values in stack.items()}
            adam_of_stack.keep(going)
            running = running[going]
        if not going:
            break
    return best, lowest


def by_autograd(loss: Callable[[Stack, np.ndarray, object], torch.Tensor], longest: float | None = None) -> Gradient:
    """The gradient of a loss (n,) of stacked parameters, in which each probe's loss depends on its own parameters; that
    of each probe is at most ``longest`` in norm, if this is given.
    """

    def gradient(stack: Stack, running: np.ndarray, batch: object) -> tuple[torch.Tensor, Stack]:
        leaves = {name: values.detach().requires_grad_() for name, values in stack.items()}
        with torch.enable_grad():
            losses = loss(leaves, running, batch)
            slopes = torch.autograd.grad(losses.sum(), list(leaves.values()))
        if longest is not None:
            squares = sum(torch.linalg.vector_norm(slope.flatten(1), dim=1).square() for slope in slopes)
            factors = (longest / squares.sqrt()).clamp(max=1)
            for slope in slopes:
                slope.mul_(factors.reshape(-1, *[1] * (slope.ndim - 1)))
        return losses.detach(), dict(zip(leaves, slopes, strict=True))

    return gradient
