"""The arrays that lenses take, NumPy's or torch's, and the checks that several lenses share."""

from numbers import Integral
from typing import TYPE_CHECKING, Union

import numpy as np

# Pages read surfaces with lenses that need no torch, which takes seconds to load.
if TYPE_CHECKING:
    import torch

Array = Union[np.ndarray, "torch.Tensor"]


def as_tensor(values: Array) -> "torch.Tensor":
    """The values as a tensor without gradient: shared with the caller where torch can, copied where it cannot.

    Example:
        >>> as_tensor([[1.0, 2.0]]).shape
        torch.Size([1, 2])
    """
    import torch

    if isinstance(values, torch.Tensor):
        return values.detach()
    try:
        return torch.from_numpy(np.require(values, requirements=["C", "W"]))
    except (TypeError, ValueError) as error:
        raise _no_array(error) from error


def as_array(values: Array) -> np.ndarray:
    """The values as a NumPy array, shared with the caller where they already lie in the processor's memory.

    NumPy has no bfloat16: such values come as single precision.
    """
    if not hasattr(values, "detach"):
        return np.asarray(values)
    import torch

    return (values.float() if values.dtype == torch.bfloat16 else values).detach().cpu().numpy()


def as_doubles(values: Array) -> np.ndarray:
    """The values as a NumPy array of double precision; what are no numbers is refused."""
    try:
        array = as_array(values)
    except ValueError as error:
        raise _no_array(error) from error
    if array.dtype.kind not in "biuf":
        raise _no_array(f"they are of type {array.dtype}")
    return array.astype(float)


def _no_array(reason: object) -> ValueError:
    # NumPy and torch have sentences of their own for rows of several lengths, texts and objects.
    reason = str(reason).partition(". ")[0].rstrip(".")
    return ValueError(f"These values are no array of numbers ({reason}): give rows of one length.")


def check_counts(**counts: int) -> None:
    """Refuse what is no whole number from 1."""
    for name, count in counts.items():
        if not isinstance(count, Integral) or isinstance(count, bool) or count < 1:
            raise ValueError(f"{name} = {count!r}: give a whole number from 1.")


def check_positive(**values: float) -> None:
    """Refuse what is no finite number above 0."""
    for name, value in values.items():
        if not 0 < value < np.inf:
            raise ValueError(f"{name} = {value}: give a positive number.")


def check_rows(name: str, rows: "torch.Tensor") -> None:
    """Refuse what is not (rows, features) of numbers that are finite in single precision, in which probes compute."""
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"{name} has shape {tuple(rows.shape)}, not (rows, features): give at least one of each.")
    if not rows.is_floating_point():
        raise ValueError(f"{name} holds {rows.dtype}, not floating-point numbers: convert it.")
    finite = rows.float().isfinite().all(1)
    if not finite.all():
        raise ValueError(
            f"{name} holds NaN or infinity in single precision, first in row {int(finite.int().argmin())}: "
            "check the model that computed it."
        )


def check_sentence(where: str, vectors: "torch.Tensor", like: "torch.Tensor") -> None:
    """Refuse a sentence that is not (layers, words, features), finite, with the layers and features of another."""
    if vectors.ndim != 3 or 0 in vectors.shape or vectors.shape[::2] != like.shape[::2]:
        raise ValueError(
            f"{where} has shape {tuple(vectors.shape)}, not (layers, words, features) with the layers and features "
            f"of the first, {tuple(like.shape)}."
        )
    if not vectors.is_floating_point() or not vectors.float().isfinite().all():
        raise ValueError(f"{where} holds NaN, infinity in single precision, or no floating-point numbers.")
