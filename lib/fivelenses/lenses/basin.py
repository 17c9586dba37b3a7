r"""The shape of a loss landscape in numbers: the width and area of a point's basin, and the path down to it.

The basin of a point :math:`p` at a rise :math:`r` is the part of :math:`\{f \le f(p) + r\}` that is connected to
:math:`p`. Its half widths on an axis are the distances from :math:`p` at which the loss first exceeds that level,
linearly interpolated between grid points; its area on a plane takes :math:`f` as bilinear between grid points. Both are
in the units of the axes, the lengths of the directions.

A cell of the grid that is NaN has no finite loss and lies above every level: a basin ends at the last finite point
before it. Points are given by their positions on the grid; one whose loss is not finite is refused.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.ndimage import label

# Squares per cell of the grid, along each axis, when an area is measured.
SQUARES = 16


class Surface(NamedTuple):
    """A loss over a plane, (rows, columns), NaN where it is not finite, at the increasing positions of both axes:
    ``alphas`` (columns,) and ``betas`` (rows,).
    """

    alphas: np.ndarray
    betas: np.ndarray
    losses: np.ndarray


class Path(NamedTuple):
    """How a loss changes on the straight path from start to end: ``falling`` is the share of the steps between grid
    points on which it falls, in [0, 1], and ``climb`` the largest rise from a point to a later one, 0 or more, infinite
    if the loss is not finite somewhere.
    """

    falling: float
    climb: float


def half_widths(positions: Sequence[float], losses: Sequence[float], at: float, rise: float) -> tuple[float, float]:
    """The distances below and above a grid point, ``at``, at which the loss (k,) has risen by so many nats; infinity if
    it has not up to the end of the grid.

    Example:
        >>> half_widths([0, 1, 2, 3], [4.0, 1.0, 1.1, 1.2], at=1, rise=1.5)
        (0.5, inf)
    """
    positions, losses = _line(positions, losses)
    index = _index(positions, at)
    level = _level(losses[index], rise)
    below = _first_crossing(positions[index] - positions[index::-1], losses[index::-1], level)
    return below, _first_crossing(positions[index:] - positions[index], losses[index:], level)


def area(surface: Surface, at: tuple[float, float], rise: float) -> tuple[float, bool]:
    """The area of the basin of a grid point, ``at`` its α and β; and False if it reaches the edge of the grid, so
    that the area is a lower bound.

    Example:
        >>> alphas = np.linspace(-2, 2, 41)
        >>> bowl = Surface(alphas, alphas, alphas**2 + alphas[:, None] ** 2)
        >>> unit_disc, whole = area(bowl, at=(0, 0), rise=1)
        >>> round(unit_disc, 1), whole
        (3.1, True)
    """
    column, row = _index(surface.alphas, at[0]), _index(surface.betas, at[1])
    losses = np.where(np.isnan(surface.losses), np.inf, surface.losses)
    parts, _ = label(_level(losses[row, column], rise) >= _between(_between(losses).T).T)
    row, column = SQUARES * row, SQUARES * column
    touching = parts[max(row - 1, 0) : row + 1, max(column - 1, 0) : column + 1]
    inside = np.isin(parts, touching[touching > 0])
    heights, widths = (np.diff(axis).repeat(SQUARES) / SQUARES for axis in (surface.betas, surface.alphas))
    edges = (inside[0], inside[-1], inside[:, 0], inside[:, -1])
    return float(heights @ inside @ widths), not any(edge.any() for edge in edges)


def share_below(surface: Surface, at: tuple[float, float], rise: float, radius: float) -> float:
    """The share of a disc around a grid point in which the loss is at most ``rise`` above that point's, connected or
    not; NaN if the disc leaves the grid.

    Of the grid points in the disc, its rim included, each counts with the area that it stands for, up to half way to
    its neighbours.

    Example:
        >>> alphas = np.linspace(-2, 2, 81)
        >>> bowl = Surface(alphas, alphas, alphas**2 + alphas[:, None] ** 2)
        >>> round(share_below(bowl, at=(0, 0), rise=1, radius=2), 2)
        0.25
    """
    column, row = _index(surface.alphas, at[0]), _index(surface.betas, at[1])
    level = _level(surface.losses[row, column], rise)
    away = [axis - axis[index] for axis, index in ((surface.alphas, column), (surface.betas, row))]
    if any(radius * (1 - 1e-9) > min(-axis[0], axis[-1]) for axis in away):
        return float("nan")
    inside = np.hypot(*np.meshgrid(*away)) <= radius * (1 + 1e-9)
    areas = np.outer(np.gradient(surface.betas), np.gradient(surface.alphas))[inside]
    return float(np.average(surface.losses[inside] <= level, weights=areas))


def path(positions: Sequence[float], losses: Sequence[float]) -> Path:
    """How the loss (k,) changes from the position 0 to 1.

    Example:
        >>> path([0, 0.25, 0.5, 1, 2], [4.0, 2.0, 3.0, 1.0, 9.0])
        Path(falling=0.6666666666666666, climb=1.0)
    """
    positions, losses = _line(positions, losses)
    along = losses[_index(positions, 0) : _index(positions, 1) + 1]
    along = np.where(np.isfinite(along), along, np.nan)
    # A loss that is not finite makes the climb infinite, and no step to or from it falls.
    climb = np.inf if np.isnan(along).any() else (along - np.minimum.accumulate(along)).max()
    return Path(float((np.diff(along) < 0).mean()), float(climb))


def _line(positions: Sequence[float], losses: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    positions, losses = np.asarray(positions, dtype=float), np.asarray(losses, dtype=float)
    if losses.shape != positions.shape or positions.ndim != 1 or not (np.diff(positions) > 0).all():
        raise ValueError(
            f"{losses.shape} losses at {positions.shape} positions: give one for each, in increasing order."
        )
    return positions, losses


def _index(positions: np.ndarray, at: float) -> int:
    matches = np.flatnonzero(positions == at)
    if len(matches) != 1:
        raise ValueError(f"{at} is not one of the positions: measure at a point of the grid, such as grid() gives.")
    return int(matches[0])


def _level(loss: float, rise: float) -> float:
    if not np.isfinite(loss):
        raise ValueError("The loss at the point is not finite: it has no basin.")
    return float(loss + rise)


def _first_crossing(distances: np.ndarray, losses: np.ndarray, level: float) -> float:
    above = np.flatnonzero(~(losses <= level))
    if len(above) == 0:
        return float("inf")
    outer, inner = above[0], above[0] - 1
    if not np.isfinite(losses[outer]):
        return float(distances[inner])
    share = (level - losses[inner]) / (losses[outer] - losses[inner])
    return float(distances[inner] + share * (distances[outer] - distances[inner]))


def _between(values: np.ndarray) -> np.ndarray:
    """(SQUARES · (k - 1), n) the linear interpolation of (k, n) values at the centres of the squares on an axis."""
    shares = ((np.arange(SQUARES) + 0.5) / SQUARES)[:, None]
    mixed = (1 - shares) * values[:-1, None] + shares * values[1:, None]
    return mixed.reshape(-1, values.shape[1])
