r"""One step of Adam, taken in place on stacked probes by torch's fused kernel.

.. math::

    m \leftarrow \beta_1 m + (1 - \beta_1) g, \quad v \leftarrow \beta_2 v + (1 - \beta_2) g^2, \quad
    \theta \leftarrow \theta - \eta \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + \epsilon}.

Source: Kingma and Ba 2015, with β₁ = 0.9 and β₂ = 0.999.
"""

from collections.abc import Sequence

import torch
from torch.optim.adam import adam

BETAS, EPSILON = (0.9, 0.999), 1e-8
_SETTINGS = {"fused": True, "amsgrad": False, "weight_decay": 0, "maximize": False}


def adam_step(
    values: Sequence[torch.Tensor],
    gradients: Sequence[torch.Tensor],
    moments: Sequence[Sequence[torch.Tensor]],
    steps: Sequence[torch.Tensor],
    rate: float,
    epsilon: float = EPSILON,
) -> None:
    """Move the values by one step, and update the moments and the numbers of steps, all in place.

    Args:
        values, gradients: parameters θ, and g of the same shapes.
        moments: m and v, each with a tensor of the same shape per parameter.
        steps: per parameter the steps taken so far, a scalar.
        rate: η.
        epsilon: ε.

    Example:
        >>> theta, zeros = [torch.ones(2)], [[torch.zeros(2)], [torch.zeros(2)]]
        >>> adam_step(theta, [torch.tensor([3.0, -3.0])], zeros, [torch.zeros(())], rate=0.5)
        >>> theta[0].round(decimals=4)
        tensor([0.5000, 1.5000])
    """
    settings = _SETTINGS | {"beta1": BETAS[0], "beta2": BETAS[1], "lr": float(rate), "eps": epsilon}
    adam(list(values), list(gradients), *map(list, moments), [], list(steps), **settings)
