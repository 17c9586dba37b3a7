"""The arrays that lenses take, NumPy's or torch's, and the checks that several lenses share."""

from typing import TYPE_CHECKING, Union

import numpy as np

# Pages read surfaces with lenses that need no torch, which takes seconds to load.
if TYPE_CHECKING:
    import torch

Array = Union[np.ndarray, "torch.Tensor"]


def as_tensor(values: Array) -> "torch.Tensor":
    """The values as a tensor without gradient: shared with the caller where torch can, copied where it cannot."""
    import torch

    if isinstance(values, torch.Tensor):
        return values.detach()
    try:
        return torch.from_numpy(np.require(values, requirements=["C", "W"]))
    except (TypeError, ValueError) as error:
        raise ValueError("These values are no array of numbers: give rows of one length.") from error


def as_array(values: Array) -> np.ndarray:
    """The values as a NumPy array, shared with the caller where they already lie in the processor's memory."""
    if not hasattr(values, "detach"):
        return np.asarray(values)
    import torch

    # NumPy has no bfloat16.
    return (values.float() if values.dtype == torch.bfloat16 else values).detach().cpu().numpy()


def check_rows(name: str, rows: "torch.Tensor") -> None:
    """Refuse what is not (rows, features) of numbers that are finite in single precision, in which probes compute."""
    if rows.ndim != 2 or 0 in rows.shape or not rows.is_floating_point():
        raise ValueError(
            f"{name} has shape {tuple(rows.shape)} of {rows.dtype}, not (rows, features) of floating-point numbers."
        )
    finite = rows.float().isfinite().all(1)
    if not finite.all():
        row = int(finite.int().argmin())
        raise ValueError(f"{name} holds NaN or infinity in single precision, first in row {row}: check the model.")


def check_sentence(where: str, vectors: "torch.Tensor", like: "torch.Tensor") -> None:
    """Refuse a sentence that is not (layers, words, features), finite, with the layers and features of another."""
    if vectors.ndim != 3 or 0 in vectors.shape or vectors.shape[::2] != like.shape[::2]:
        raise ValueError(
            f"{where} has shape {tuple(vectors.shape)}, not (layers, words, features) with the layers and features "
            f"of the first, {tuple(like.shape)}."
        )
    if not vectors.is_floating_point() or not vectors.float().isfinite().all():
        raise ValueError(f"{where} holds NaN, infinity in single precision, or no floating-point numbers.")
