import numpy as np
import pytest
import torch

from fivelenses.lenses.training import Plan, by_autograd, train


def trained(scores, plan, batches=1):
    """Where a probe of constant slope is after each period, and its result, when its scores are these."""
    places, said = [], iter(scores)

    def slope(stack, running, batch):
        return torch.zeros(len(running)), {"x": torch.ones_like(stack["x"])}

    def score(stack, running):
        places.append(float(stack["x"][0, 0]))
        return np.array([next(said)])

    best, lowest = train({"x": torch.zeros(1, 1)}, lambda running: range(batches), slope, score, plan)
    return places, float(best["x"]), float(lowest[0])


def test_the_rate_falls_after_each_period_without_improvement_and_the_best_state_is_kept():
    # Adam's first step, and each after a restart, is as long as the rate; the fourth score is no improvement.
    plan = Plan(rate=1.0, periods=9, patience=3, tolerance=0.1, decay=0.1, restart=True)
    places, best, lowest = trained([5.0, 4.0, 4.5, 3.95, 4.2], plan)
    assert np.diff([0, *places]) == pytest.approx([-1, -1, -1, -0.1, -0.01], abs=1e-4)
    assert best == pytest.approx(-2, abs=1e-4) and lowest == 4


def test_the_rate_falls_once_after_several_periods():
    places, _, _ = trained([1.0, 2, 2, 2, 2], Plan(1.0, 5, 20, 0.0, decay=0.5, decay_after=2))
    assert np.diff([0, *places]) == pytest.approx([-1, -1, -1, -0.5, -0.5], abs=1e-3)


def test_a_step_is_that_of_torchs_adam():
    start = torch.tensor([[1.0, -2.0], [0.5, 3.0]])
    by_torch = [row.clone().requires_grad_() for row in start]
    optimizer = torch.optim.Adam(by_torch, lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        sum((row**4).sum() for row in by_torch).backward()
        optimizer.step()
    gradient = by_autograd(lambda stack, running, batch: (stack["x"] ** 4).sum(1))
    best, _ = train({"x": start}, lambda running: range(5), gradient, lambda *_: np.zeros(2), Plan(0.1, 1, 1, 0.0))
    torch.testing.assert_close(best["x"], torch.stack([row.detach() for row in by_torch]))
