"""The arrays that lenses take: NumPy's or torch's."""

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
