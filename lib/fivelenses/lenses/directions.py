r"""Parameters as vectors: named tensors that are subtracted, measured, scaled, projected, and put into a model.

A point :math:`\theta` and a direction :math:`\delta` map the same names to tensors of the same shapes. Inner products
run over all of them: :math:`\langle \delta, \eta \rangle = \sum_{\text{names}} \sum_i \delta_i \eta_i`.

A random direction is filter-normalised (Li et al. 2018, section 4): each row of its matrices has the length of that row
of the point's, :math:`\delta_{j} \leftarrow \delta_{j} \Vert \theta_{j} \Vert / \Vert \delta_{j} \Vert`, where row
:math:`j` feeds one output unit. Biases and normalisations, which are no matrices, do not move.

A point :math:`\theta^i` of a trajectory from :math:`\theta_0`, with :math:`\delta^i = \theta^i - \theta_0`, has the
coordinates (Hao et al. 2019, equations 3 to 5, whose × is an inner product)

.. math::

    v_{\cos} = \frac{\langle \delta^i, \delta_1 \rangle}{\Vert \delta^i \Vert \Vert \delta_1 \Vert}, \qquad
    d^\alpha = \frac{\langle \delta^i, \delta_1 \rangle}{\Vert \delta_1 \Vert^2}, \qquad
    d^\beta = \sqrt{\frac{\Vert \delta^i \Vert^2}{\Vert \delta_1 \Vert^2} - (d^\alpha)^2}.

:math:`d^\beta` has no sign and is no coordinate along :math:`\delta_2`: it is the distance from the first axis, in the
unit of that axis. So we also give the least-squares coordinates in the plane of both directions.

Sums are computed in double precision; results keep the precision of their input, at least single. Refused everywhere
are values that are not finite, and other names or shapes than the point's.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from fivelenses.lenses.arrays import as_tensor
from fivelenses.models.layers import part

Parameters = Mapping[str, torch.Tensor]


def vector(values: Parameters, like: Mapping[str, torch.Tensor] | None = None) -> dict[str, torch.Tensor]:
    """The tensors of a point or direction, without gradient and in at least single precision, shared where they can be;
    with the names and shapes of another, ``like``, in its precision and on its device.
    """
    tensors = {key: as_tensor(tensor) for key, tensor in values.items()}
    for key, tensor in tensors.items():
        if not tensor.is_floating_point() or not tensor.isfinite().all():
            raise ValueError(
                f"{key!r} holds NaN, infinity or {tensor.dtype}: take those of a run that did not diverge."
            )
    if like is None:
        return {key: tensor.to(torch.promote_types(tensor.dtype, torch.float32)) for key, tensor in tensors.items()}
    for key in sorted(set(tensors) | set(like)):
        if key not in tensors or key not in like or tensors[key].shape != like[key].shape:
            raise ValueError(f"Point and direction do not have the same parameters: {key!r} is missing or differs.")
    return {key: tensors[key].to(tensor) for key, tensor in like.items()}


def difference(end: Parameters, start: Parameters) -> dict[str, torch.Tensor]:
    r"""The direction :math:`\theta_1 - \theta_0` from one point to another."""
    end = vector(end)
    start = vector(start, end)
    return {key: end[key] - start[key] for key in end}


def norm(direction: Parameters) -> float:
    """The Euclidean length of a direction over all its parameters."""
    return math.hypot(*(float(torch.linalg.vector_norm(tensor.double())) for tensor in vector(direction).values()))


def angle(first: Parameters, second: Parameters) -> float:
    """The angle between two directions in degrees, in [0, 180].

    Example:
        >>> round(angle({"x": torch.tensor([1.0, 0.0])}, {"x": torch.tensor([1.0, 1.0])}), 6)
        45.0
    """
    first = vector(first)
    one, other = _unit(first), _unit(vector(second, first))
    # Kahan's form keeps its digits for nearly equal and nearly opposite directions, where the arc cosine loses them.
    apart = norm({key: one[key] - other[key] for key in one})
    together = norm({key: one[key] + other[key] for key in one})
    return math.degrees(2 * math.atan2(apart, together))


def _unit(direction: Parameters) -> dict[str, torch.Tensor]:
    length = norm(direction)
    return {key: tensor.double() / length for key, tensor in direction.items()}


def rescaled(direction: Parameters, like: Parameters) -> dict[str, torch.Tensor]:
    """A direction with the length of another, as the second axis of a surface has that of the first.

    Example:
        >>> rescaled({"x": torch.tensor([0.0, 1.0])}, {"x": torch.tensor([3.0, 4.0])})
        {'x': tensor([0., 5.])}
    """
    like = vector(like)
    direction = vector(direction, like)
    ratio = norm(like) / norm(direction)
    return {key: tensor * ratio for key, tensor in direction.items()}


def moved(origin: Parameters, direction: Parameters, share: float = 1.0) -> dict[str, torch.Tensor]:
    r"""The point :math:`\theta + c \delta` for a share :math:`c` of the direction, in new tensors."""
    origin = vector(origin)
    direction = vector(direction, origin)
    return {key: torch.add(tensor, direction[key], alpha=share) for key, tensor in origin.items()}


def random_direction(origin: Parameters, seed: int) -> dict[str, torch.Tensor]:
    """A filter-normalised direction of independent normal numbers, the same on every device; 0 in tensors of one axis.

    A tensor of two or more axes is a matrix with one row per index of its first axis; a point without one is refused.

    Example:
        >>> point = {"weight": torch.tensor([[3.0, 4.0], [0.0, 2.0]]), "bias": torch.ones(2)}
        >>> random_direction(point, seed=0)["weight"].norm(dim=1).round(decimals=3)
        tensor([5., 2.])
    """
    generator, origin = torch.Generator().manual_seed(seed), vector(origin)
    if all(tensor.ndim < 2 for tensor in origin.values()):
        raise ValueError("The point has no matrix, so a direction has no filters to normalise: scale it yourself.")
    direction = {}
    for key, tensor in origin.items():
        random = torch.randn(tensor.shape, generator=generator).to(tensor)
        if tensor.ndim < 2:
            direction[key] = torch.zeros_like(tensor)
            continue
        lengths, point_lengths = (torch.linalg.vector_norm(rows.flatten(1), dim=1) for rows in (random, tensor))
        direction[key] = random * (point_lengths / lengths).reshape(-1, *[1] * (tensor.ndim - 1))
    return direction


class Projection(NamedTuple):
    """Where t points of a trajectory lie, (t,) each: the cosine of their angle to the first direction, in [-1, 1]; the
    paper's coordinates, alphas and betas, at least 0, in lengths of the first direction; the coordinates (t, 2) of the
    nearest point in the ``plane`` of both directions; and the share of the squared displacement that the plane holds,
    in [0, 1]. Cosine and share are NaN for a point that has not moved.
    """

    cosines: np.ndarray
    alphas: np.ndarray
    betas: np.ndarray
    plane: np.ndarray
    share: np.ndarray


def project(trajectory: Iterable[Parameters], origin: Parameters, first: Parameters, second: Parameters) -> Projection:
    """The points of a trajectory on a surface, taken one at a time, so that a generator may load them.

    Refused: parallel directions.

    Example:
        >>> origin, first = {"x": torch.zeros(3)}, {"x": torch.tensor([2.0, 0.0, 0.0])}
        >>> second = {"x": torch.tensor([0.0, 2.0, 0.0])}
        >>> projected = project([{"x": torch.tensor([2.0, -6.0, 8.0])}], origin, first, second)
        >>> projected.alphas, projected.betas, projected.plane, projected.share.round(3)
        (array([1.]), array([5.]), array([[ 1., -3.]]), array([0.385]))
    """
    origin = vector(origin)
    axes = [vector(axis, origin) for axis in (first, second)]
    lengths = [norm(axis) for axis in axes]
    # Axes have unit length, so that their products are cosines whatever the scale.
    axes = [_unit(axis) for axis in axes]
    cosine = _inner(*axes)
    if 1 - cosine**2 < 1e-12:
        raise ValueError("The two directions are parallel: they span no plane.")
    rows = []
    for point in trajectory:
        displacement = {name: tensor.double() for name, tensor in difference(point, origin).items()}
        along = np.array([_inner(displacement, axis) for axis in axes])
        length = norm(displacement)
        within = np.linalg.solve([[1, cosine], [cosine, 1]], along)
        # The length of the residual avoids the difference of nearly equal squares.
        outside = norm(moved(displacement, axes[0], -along[0]))
        of_length = [np.nan, np.nan]
        if length:
            of_length = [np.clip(along[0] / length, -1, 1), np.clip((along / length) @ (within / length), 0, 1)]
        rows.append([*of_length, along[0] / lengths[0], outside / lengths[0], *(within / lengths)])
    cosines, shares, alphas, betas, *plane = np.array(rows, dtype=float).T
    return Projection(cosines, alphas, betas, np.stack(plane, axis=1), shares)


def _inner(first: Parameters, second: Parameters) -> float:
    return sum(float((first[key] * second[key]).sum()) for key in first)


def layer_parameters(model: nn.Module, layers: Iterable[int]) -> dict[str, torch.Tensor]:
    """The parameters of some layers 1…L, or of the embeddings, 0, as a point that shares them: by their names in the
    base model, so that models with different heads, or none, have the same. The head and the pooler are in no layer.
    """
    wanted = {id(parameter) for layer in set(layers) for parameter in part(model, layer).parameters()}
    named = model.base_model.named_parameters()
    return {name: parameter.detach() for name, parameter in named if id(parameter) in wanted}


@contextmanager
def placed(model: nn.Module, point: Parameters) -> Iterator[nn.Module]:
    """A model with a point's values in the parameters that the point names, within a ``with`` block.

    If precision and device agree, nothing is copied: the model holds the point's tensors, and afterwards its own again,
    which never changed. A transformers model's parameters are named as in its base model.

    Example:
        >>> line = nn.Linear(1, 1)
        >>> with placed(line, {"weight": torch.tensor([[2.0]]), "bias": torch.tensor([1.0])}):
        ...     line(torch.tensor([[3.0]])).item()
        7.0
    """
    parameters = dict(getattr(model, "base_model", model).named_parameters())
    for name, tensor in point.items():
        if name not in parameters or tensor.shape != parameters[name].shape:
            shape = tuple(tensor.shape)
            raise ValueError(f"{name!r} of shape {shape} is no parameter of the model: take those of layer_parameters.")
    own = {name: parameters[name].data for name in point}
    try:
        for name, tensor in point.items():
            parameters[name].data = tensor.detach().to(own[name])
        yield model
    finally:
        for name, tensor in own.items():
            parameters[name].data = tensor
