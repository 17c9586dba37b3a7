"""The arrays that lenses take, NumPy's or torch's, and the checks that several lenses share."""

from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Union

import numpy as np

# Pages read surfaces with lenses that need no torch, which takes seconds to load.
if TYPE_CHECKING:
    import torch

Array = Union[np.ndarray, "torch.Tensor"]


def as_tensor(values: Array) -> "torch.Tensor":
    """The values as a tensor without gradient: shared with the caller where torch can, copied where it cannot.

    Args:
        values: any shape; what is not a tensor goes through NumPy, so nested lists work too.

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
        # NumPy and torch have sentences of their own for rows of several lengths, texts and objects.
        reason = str(error).partition(". ")[0].rstrip(".")
        raise ValueError(f"These values are no array of numbers ({reason}): give rows of one length.") from error


def checked_whole(name: str, value: int, least: int = 0, most: int = 2**63 - 1) -> int:
    """A whole number, refused if it is none, too small or too large.

    Example:
        >>> checked_whole("seed", np.int64(3))
        3
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        upto = f" to {most}" if most < 2**63 - 1 else ""
        raise ValueError(f"{name} = {value!r}: give a whole number from {least}{upto}.")
    return int(value)


def checked_real(name: str, value: float) -> float:
    """A number, refused if it is none; its range, which NaN is outside of, is the caller's to check.

    Example:
        >>> checked_real("rise", 1)
        1.0
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} = {value!r}: give a number.")
    return float(value)


def checked_positive(name: str, value: float) -> float:
    """A finite number above 0, refused if it is none.

    Example:
        >>> checked_positive("learning_rate", 1e-3)
        0.001
    """
    if not 0 < checked_real(name, value) < np.inf:
        raise ValueError(f"{name} = {value}: give a positive number.")
    return float(value)


def checked_list(name: str, values: Iterable) -> list:
    """What can be listed, refused if it is a text or cannot.

    Example:
        >>> checked_list("seeds", range(2))
        [0, 1]
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ValueError(f"{name} is of type {type(values).__name__}: give a list.")
    return list(values)


def checked_function(name: str, function: Callable) -> Callable:
    """What can be called, refused if it cannot.

    Example:
        >>> checked_function("evaluate", abs)(-1)
        1
    """
    if not callable(function):
        raise ValueError(f"{name} is of type {type(function).__name__}: give a function.")
    return function


def as_array(values: Array) -> np.ndarray:
    """The values as a NumPy array, shared with the caller where they already lie in the processor's memory.

    NumPy has no bfloat16: such values come as single precision.

    Example:
        >>> import torch
        >>> as_array(torch.ones(2, requires_grad=True))
        array([1., 1.], dtype=float32)
    """
    if not hasattr(values, "detach"):
        return np.asarray(values)
    import torch

    return (values.float() if values.dtype == torch.bfloat16 else values).detach().cpu().numpy()


def as_doubles(values: Array) -> np.ndarray:
    """The values as a NumPy array of double precision.

    Raises:
        ValueError: rows of several lengths, or what are no numbers.

    Example:
        >>> as_doubles([[1, 2]])
        array([[1., 2.]])
    """
    try:
        array = as_array(values)
        if array.dtype.kind in "biuf":
            return array.astype(float)
        reason = f"they are of type {array.dtype}"
    except ValueError as error:
        reason = str(error).partition(". ")[0].rstrip(".")
    raise ValueError(f"These values are no array of numbers ({reason}): give rows of one length.")


def checked_rows(name: str, rows: Array) -> "torch.Tensor":
    """Rows as a tensor, refused if they are not (rows, features) of numbers that are finite in single precision.

    Single precision is what probes compute in; a large number in double precision is infinite there.

    Example:
        >>> checked_rows("x", [[1.0, 2.0]])
        tensor([[1., 2.]], dtype=torch.float64)
    """
    rows = as_tensor(rows)
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
    return rows


def checked_sentence(where: str, vectors: "torch.Tensor", like: "torch.Tensor") -> None:
    """Refuse a sentence that is not (layers, words, features), finite, with the layers and features of another.

    Args:
        where: what an error calls the sentence.
        vectors: of its words.
        like: the first sentence.
    """
    if vectors.ndim != 3 or 0 in vectors.shape or vectors.shape[::2] != like.shape[::2]:
        raise ValueError(
            f"{where} has shape {tuple(vectors.shape)}, not (layers, words, features) with the layers and features "
            f"of the first, {tuple(like.shape)}."
        )
    if not vectors.is_floating_point() or not vectors.float().isfinite().all():
        raise ValueError(f"{where} holds NaN, infinity in single precision, or no floating-point numbers.")
