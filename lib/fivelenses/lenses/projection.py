r"""A trajectory of points in parameter space, projected on the line or the plane of a loss landscape.

A point :math:`\theta^i` of a trajectory from :math:`\theta_0`, with :math:`\delta^i = \theta^i - \theta_0`, has the
coordinates (Hao et al. 2019, equations 3 to 5, whose × is an inner product)

.. math::

    v_{\cos} = \frac{\langle \delta^i, \delta_1 \rangle}{\Vert \delta^i \Vert \Vert \delta_1 \Vert}, \qquad
    d^\alpha = \frac{\langle \delta^i, \delta_1 \rangle}{\Vert \delta_1 \Vert^2}, \qquad
    d^\beta = \sqrt{\frac{\Vert \delta^i \Vert^2}{\Vert \delta_1 \Vert^2} - (d^\alpha)^2}.

:math:`d^\beta` has no sign and is no coordinate along :math:`\delta_2`: it is the distance from the first axis, in the
unit of that axis. So we also give the least-squares coordinates in the plane of both directions, with the share of the
squared displacement that lies in the plane.

Parameters are named tensors (:mod:`~fivelenses.lenses.directions`).

Shapes: (t,) per coordinate of t points. Range: cosines [-1, 1]; coordinates in lengths of the first direction.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fivelenses.lenses.directions import Parameters, difference, direction_at, inner, moved, norm, vector


@dataclass(frozen=True, eq=False)
class Projection:
    """A trajectory of t points, projected on a line or a plane.

    Attributes:
        cosines: (t,) of the angle to the first direction, in [-1, 1]; NaN for a point that has not moved.
        alphas: (t,) the paper's first coordinate, in lengths of the first direction.
        betas: (t,) the paper's second coordinate, at least 0: the distance from the first axis.
        plane: (t, 2) coordinates of the nearest point in the plane of both directions; None without a second one.
        share: (t,) of the squared displacement that lies in the plane, in [0, 1]; NaN for a point that has not moved.
    """

    cosines: np.ndarray
    alphas: np.ndarray
    betas: np.ndarray
    plane: np.ndarray | None
    share: np.ndarray | None


def project(
    trajectory: Iterable[Parameters], origin: Parameters, direction: Parameters, second: Parameters | None = None
) -> Projection:
    """The points of a trajectory on a surface: the paper's coordinates and the least-squares ones.

    The paper's second coordinate is computed as the length of the residual of the first, which avoids the difference of
    nearly equal squares. Points are taken one at a time, so that a generator may load them.

    Args:
        trajectory: t points, at least one.
        origin: the start of the trajectory.
        direction: of the first axis.
        second: of the second axis, for least squares in the plane.

    Raises:
        ValueError: an empty trajectory, names or shapes that differ, a direction that is 0, two that are parallel, NaN
            or infinity.

    Example:
        >>> import torch
        >>> origin, first = {"x": torch.zeros(3)}, {"x": torch.tensor([2.0, 0.0, 0.0])}
        >>> second = {"x": torch.tensor([0.0, 2.0, 0.0])}
        >>> projected = project([{"x": torch.tensor([2.0, -6.0, 8.0])}], origin, first, second)
        >>> projected.alphas, projected.betas, projected.plane, projected.share.round(3)
        (array([1.]), array([5.]), array([[ 1., -3.]]), array([0.385]))
    """
    if not isinstance(trajectory, Iterable):
        raise ValueError(f"trajectory is of type {type(trajectory).__name__}: give points, one after another.")
    origin = vector(origin, "The origin")
    axes = [direction_at(direction, origin, "The first direction")]
    if second is not None:
        axes.append(direction_at(second, origin, "The second direction"))
    lengths = [norm(axis) for axis in axes]
    # Axes have unit length, so that their products are cosines whatever the scale.
    axes = [{name: axis[name].double() / length for name in axis} for axis, length in zip(axes, lengths, strict=True)]
    products = np.array([[inner(one, other) for other in axes] for one in axes])
    if second is not None and 1 - products[0, 1] ** 2 < 1e-12:
        raise ValueError("The two directions are parallel: they span no plane.")
    rows = []
    for point in trajectory:
        displacement = {name: tensor.double() for name, tensor in difference(point, origin).items()}
        along = np.array([inner(displacement, axis) for axis in axes])
        length = norm(displacement)
        cosine = np.clip(along[0] / length, -1, 1) if length else np.nan
        outside = norm(moved(displacement, axes[:1], [-along[0]]))
        within = np.linalg.solve(products, along)
        share = np.clip((along / length) @ (within / length), 0, 1) if length else np.nan
        rows.append([cosine, along[0] / lengths[0], outside / lengths[0], *(within / lengths), share])
    if not rows:
        raise ValueError("The trajectory has no points: give at least one.")
    table = np.array(rows, dtype=float)
    cosines, alphas, betas = table[:, :3].T
    return Projection(cosines, alphas, betas, *((None, None) if second is None else (table[:, 3:5], table[:, -1])))
