r"""Parameters as vectors: named tensors that are subtracted, measured, rotated and scaled as one vector.

A point :math:`\theta` and a direction :math:`\delta` map the same names to tensors of the same shapes. Inner products
run over all of them:

.. math::

    \langle \delta, \eta \rangle = \sum_{\text{names}} \sum_i \delta_i \eta_i,
    \qquad
    \cos \angle(\delta, \eta) = \frac{\langle \delta, \eta \rangle}{\Vert \delta \Vert \, \Vert \eta \Vert}.

Filter normalisation (Li et al. 2018, section 4) gives each row of a direction's matrices the length of that row of the
point's: :math:`\delta_{j} \leftarrow \delta_{j} \Vert \theta_{j} \Vert / \Vert \delta_{j} \Vert`, where row :math:`j`
feeds one output unit. Biases and normalisations, which are no matrices, do not move.

Sums are computed in double precision; results keep the precision of their input, at least single.
"""

import math
from collections.abc import Mapping, Sequence

import torch

from fivelenses.lenses.arrays import as_tensor, checked_list, checked_real, checked_whole

Parameters = Mapping[str, torch.Tensor]
# Lengths whose squares double precision holds with all their digits.
SQUARED = (1e-140, 1e150)


def vector(values: Parameters, name: str = "The point") -> dict[str, torch.Tensor]:
    """The tensors of a point or direction, without gradient and in at least single precision.

    Args:
        values: names to floating-point tensors or arrays of any shape.
        name: how an error message begins.

    Returns:
        Names to tensors, shared with the caller if they need no conversion.

    Raises:
        ValueError: no tensor, no floating-point numbers, or a value that is NaN or infinite.

    Example:
        >>> vector({"weight": torch.ones(2, dtype=torch.float16)})
        {'weight': tensor([1., 1.])}
    """
    if not isinstance(values, Mapping):
        raise ValueError(f"{name} is of type {type(values).__name__}: give names with their tensors.")
    if not values:
        raise ValueError(f"{name} has no parameters: name at least one tensor.")
    checked = {}
    for key, value in values.items():
        tensor = as_tensor(value)
        if not tensor.is_floating_point():
            raise ValueError(f"{name} holds {tensor.dtype} in {key!r}: only floating-point parameters can be moved.")
        checked[key] = tensor.to(torch.promote_types(tensor.dtype, torch.float32))
        if not checked[key].isfinite().all():
            raise ValueError(f"{name} holds NaN or infinity in {key!r}: take parameters of a run that did not diverge.")
    return checked


def direction_at(
    direction: Parameters, origin: Mapping[str, torch.Tensor], name: str = "The direction"
) -> dict[str, torch.Tensor]:
    """A direction in which a point can move, in the point's precision and on its device.

    Args:
        direction: names to tensors; the names and shapes are those of ``origin``.
        origin: the point, as :func:`vector` gives it.
        name: how an error message begins.

    Raises:
        ValueError: what :func:`vector` refuses, other names or shapes than the point's, or all values 0.

    Example:
        >>> direction_at({"x": torch.ones(1)}, {"x": torch.zeros(1, dtype=torch.float64)})
        {'x': tensor([1.], dtype=torch.float64)}
    """
    direction, origin = vector(direction, name), vector(origin)
    _check_alike(direction, origin, name)
    if not any(tensor.any() for tensor in direction.values()):
        raise ValueError(f"{name} is 0 in all its parameters: it leads nowhere.")
    return {key: direction[key].to(origin[key]) for key in origin}


def _check_alike(one: Parameters, other: Parameters, name: str) -> None:
    unshared = sorted(set(one) ^ set(other))
    if unshared:
        raise ValueError(f"{name} and the point do not name the same parameters: {unshared[0]!r} is in one only.")
    for key, tensor in one.items():
        if tensor.shape != other[key].shape:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)} in {key!r}, where the point has {tuple(other[key].shape)}."
            )


def difference(end: Parameters, start: Parameters) -> dict[str, torch.Tensor]:
    r"""The direction :math:`\theta_1 - \theta_0` from one point to another.

    Raises:
        ValueError: the two do not name the same parameters, or :func:`vector` refuses one.

    Example:
        >>> difference({"x": torch.tensor([3.0])}, {"x": torch.tensor([1.0])})
        {'x': tensor([2.])}
    """
    end, start = vector(end, "The end"), vector(start, "The start")
    _check_alike(end, start, "The end")
    return {key: end[key] - start[key].to(end[key].device) for key in end}


def inner(first: Parameters, second: Parameters) -> float:
    """The inner product of two directions that name the same parameters.

    Raises:
        ValueError: the two do not name the same parameters, or their product is beyond double precision.

    Example:
        >>> inner({"x": torch.tensor([1.0, 2.0])}, {"x": torch.tensor([3.0, -1.0])})
        1.0
    """
    first, second = vector(first, "The first direction"), vector(second, "The second direction")
    _check_alike(second, first, "The second direction")
    product = sum(float((first[key].double() * second[key].to(first[key].device).double()).sum()) for key in first)
    if not math.isfinite(product):
        raise ValueError("The inner product of the two directions is beyond double precision: rescale them.")
    return product


def norm(direction: Parameters) -> float:
    """The Euclidean length of a direction over all its parameters.

    Raises:
        ValueError: what :func:`vector` refuses, or a length beyond double precision.

    Example:
        >>> norm({"x": torch.tensor([3.0]), "y": torch.tensor([4.0])})
        5.0
    """
    length = math.hypot(*map(_length, vector(direction, "The direction").values()))
    if math.isinf(length):
        raise ValueError("The length of the direction is beyond double precision: rescale it.")
    return length


def _length(tensor: torch.Tensor) -> float:
    """The Euclidean length of a tensor, also where the squares of its values are no numbers of double precision."""
    tensor = tensor.double()
    length = float(torch.linalg.vector_norm(tensor))
    if SQUARED[0] < length < SQUARED[1] or not tensor.any():
        return length
    largest = tensor.abs().max()
    return float(largest * torch.linalg.vector_norm(tensor / largest))


def angle(first: Parameters, second: Parameters) -> float:
    """The angle between two directions in degrees, in [0, 180].

    Raises:
        ValueError: the two do not name the same parameters, or one is 0.

    Example:
        >>> round(angle({"x": torch.tensor([1.0, 0.0])}, {"x": torch.tensor([1.0, 1.0])}), 6)
        45.0
    """
    first = vector(first, "The first direction")
    second = direction_at(second, first, "The second direction")
    lengths = norm(first), norm(second)
    if lengths[0] == 0:
        raise ValueError("The first direction is 0 in all its parameters: it has no angle to another.")
    one, other = (
        {key: tensor.double() / length for key, tensor in side.items()}
        for side, length in zip((first, second), lengths, strict=True)
    )
    # Kahan's form keeps its digits for nearly equal and nearly opposite directions, where the arc cosine loses them.
    apart = norm({key: one[key] - other[key] for key in one})
    together = norm({key: one[key] + other[key] for key in one})
    return math.degrees(2 * math.atan2(apart, together))


def rescaled(direction: Parameters, like: Parameters) -> dict[str, torch.Tensor]:
    """A direction with the length of another, as the second axis of a surface has that of the first.

    Raises:
        ValueError: the two do not name the same parameters, one is 0, or the result is beyond their precision.

    Example:
        >>> rescaled({"x": torch.tensor([0.0, 1.0])}, {"x": torch.tensor([3.0, 4.0])})
        {'x': tensor([0., 5.])}
    """
    like = vector(like, "The first direction")
    direction = direction_at(direction, like, "The second direction")
    ratio = norm(direction_at(like, like, "The first direction")) / norm(direction)
    scaled = {key: tensor * ratio for key, tensor in direction.items()}
    if not all(tensor.isfinite().all() for tensor in scaled.values()):
        raise ValueError("The second direction cannot be as long as the first in its precision: rescale the first.")
    return scaled


def moved(
    origin: Parameters, directions: Sequence[Parameters], coefficients: Sequence[float]
) -> dict[str, torch.Tensor]:
    r"""The point :math:`\theta + \sum_k c_k \delta_k`, in new tensors.

    Raises:
        ValueError: what :func:`vector` refuses, other names or shapes than the origin's, or not one coefficient per
            direction that is finite in the origin's precision.

    Example:
        >>> moved({"x": torch.tensor([1.0])}, [{"x": torch.tensor([2.0])}], [-1.0])
        {'x': tensor([-1.])}
    """
    point = {key: tensor.clone() for key, tensor in vector(origin, "The origin").items()}
    directions, coefficients = checked_list("directions", directions), checked_list("coefficients", coefficients)
    if len(directions) != len(coefficients):
        raise ValueError(f"{len(directions)} directions have {len(coefficients)} coefficients: give one for each.")
    largest = min(torch.finfo(tensor.dtype).max for tensor in point.values())
    for direction, coefficient in zip(directions, coefficients, strict=True):
        coefficient = checked_real("A coefficient", coefficient)
        if not abs(coefficient) <= largest:
            raise ValueError(f"A coefficient is {coefficient}: give ones that are finite in the point's precision.")
        direction = vector(direction, "A direction")
        _check_alike(direction, point, "A direction")
        for key, tensor in point.items():
            tensor.add_(direction[key], alpha=coefficient)
    return point


def filter_normalised(direction: Parameters, origin: Parameters) -> dict[str, torch.Tensor]:
    """A direction whose matrix rows have the lengths of the point's rows (Li et al. 2018).

    Args:
        direction: names to tensors; ``origin``'s names and shapes.
        origin: the point. A tensor of two or more axes is a matrix with one row per index of its first axis.

    Returns:
        The direction; 0 in tensors of fewer than two axes, and in rows where the direction or the point is 0.

    Raises:
        ValueError: what :func:`direction_at` refuses, or a point without matrices.

    Example:
        >>> point = {"weight": torch.tensor([[3.0, 4.0], [0.0, 2.0]]), "bias": torch.ones(2)}
        >>> ones = {name: torch.ones_like(tensor) for name, tensor in point.items()}
        >>> filter_normalised(ones, point)["weight"].norm(dim=1).round(decimals=3)
        tensor([5., 2.])
    """
    origin = vector(origin)
    direction = direction_at(direction, origin)
    if all(tensor.ndim < 2 for tensor in origin.values()):
        raise ValueError("The point has no matrix, so a direction has no filters to normalise: scale it yourself.")
    normalised = {}
    for key, tensor in direction.items():
        if tensor.ndim < 2:
            normalised[key] = torch.zeros_like(tensor)
            continue
        lengths, point_lengths = (
            torch.linalg.vector_norm(rows.flatten(1), dim=1).reshape(-1, *[1] * (tensor.ndim - 1))
            for rows in (tensor, origin[key])
        )
        if not (lengths.isfinite().all() and point_lengths.isfinite().all()):
            raise ValueError(f"The lengths of the rows of {key!r} overflow: rescale the point.")
        normalised[key] = torch.where(lengths > 0, tensor * (point_lengths / lengths), torch.zeros_like(tensor))
    return normalised


def random_direction(origin: Parameters, seed: int) -> dict[str, torch.Tensor]:
    """A filter-normalised direction of independent normal numbers.

    Args:
        origin: the point, with at least one matrix.
        seed: of the draw, which also depends on the order of the names; the same on every device.

    Raises:
        ValueError: what :func:`filter_normalised` refuses.

    Example:
        >>> point = {"weight": torch.eye(3)}
        >>> random_direction(point, seed=0)["weight"].norm(dim=1).round(decimals=3)
        tensor([1., 1., 1.])
    """
    generator = torch.Generator().manual_seed(checked_whole("seed", seed))
    origin = vector(origin)
    drawn = {key: torch.randn(value.shape, generator=generator).to(value.device) for key, value in origin.items()}
    return filter_normalised(drawn, origin)
