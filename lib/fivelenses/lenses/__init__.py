"""The lenses: each module is one measure, a page of mathematics that knows no paper, task or file.

- :mod:`~fivelenses.lenses.attention`: Jensen–Shannon divergence between two models' attentions.
- :mod:`~fivelenses.lenses.cca`: SVCCA, PWCCA and linear CKA between two representations of the same tokens.
- :mod:`~fivelenses.lenses.moments`: the second moments that the latter needs, gathered from a stream.
- :mod:`~fivelenses.lenses.directprobe`: clusters of one label whose convex hulls meet no other label's.
- :mod:`~fivelenses.lenses.hulls`: the distance between two convex hulls, with its proof.
- :mod:`~fivelenses.lenses.mlp_probe`: what networks with two hidden layers read from a representation.

Lenses take NumPy arrays or torch tensors, compute with torch on the device that their input is on, and never change it.
"""

import numpy as np
import torch

Array = np.ndarray | torch.Tensor


def as_tensor(values: Array) -> torch.Tensor:
    """The values as a tensor without gradient: shared with the caller where torch can, copied where it cannot.

    Args:
        values: any shape; what is not a tensor goes through NumPy, so nested lists work too.

    Example:
        >>> as_tensor([[1.0, 2.0]]).shape
        torch.Size([1, 2])
    """
    if isinstance(values, torch.Tensor):
        return values.detach()
    return torch.from_numpy(np.require(values, requirements=["C", "W"]))
