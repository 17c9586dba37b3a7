r"""Loss landscapes: a loss along a line and over a plane of parameter space.

For parameters :math:`\theta` and directions :math:`\delta_1, \delta_2` (Hao et al. 2019, equations 1 and 2, after
Goodfellow and Vinyals 2015 and Li et al. 2018)

.. math::

    f(\alpha) = \mathcal{J}(\theta + \alpha \delta_1),
    \qquad
    f(\alpha, \beta) = \mathcal{J}(\theta + \alpha \delta_1 + \beta \delta_2).

Parameters are named tensors (:mod:`~fivelenses.lenses.directions`). The loss is any function of them that returns a
:class:`Measurement` or a number. It may read the tensors but neither store nor change them, since they are overwritten
between calls. The cell of a loss that is not finite is NaN.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
import torch

from fivelenses.files import written_beside
from fivelenses.lenses.arrays import as_array
from fivelenses.lenses.directions import Parameters, moved, random_direction, vector


@dataclass(frozen=True)
class Measurement:
    """The loss and error of a model at one point, or at each point of a line (k,) or of a plane (rows, columns), where
    all are NaN if the loss is not finite.

    The loss is a mean over the examples, in nats for a cross-entropy, the error a share of wrong predictions in [0, 1];
    ``left_out_loss`` and ``left_out_error``, (folds, …), are the same means without each fold of the examples.
    """

    loss: float | np.ndarray
    error: float | np.ndarray = math.nan
    loss_standard_error: float | np.ndarray = math.nan
    error_standard_error: float | np.ndarray = math.nan
    left_out_loss: Sequence[float] | np.ndarray = ()
    left_out_error: Sequence[float] | np.ndarray = ()


Evaluate = Callable[[Parameters], Measurement | float]


def grid(low: float = -4.0, high: float = 4.0, count: int = 40) -> np.ndarray:
    """Equally spaced positions, plus -1, 0 and 1 if they are in range, so that start and end are on the grid: the
    paper's 40 from -4 to 4 include none of the three.

    Example:
        >>> grid(-2, 2, 4).round(2), len(grid())
        (array([-2.  , -1.  , -0.67,  0.  ,  0.67,  1.  ,  2.  ]), 43)
    """
    spaced = np.linspace(low, high, count)
    marks = np.array([mark for mark in (-1.0, 0.0, 1.0) if low <= mark <= high])
    # Equal spacing can miss a mark by rounding.
    apart = [position for position in spaced if not np.isclose(position, marks, rtol=0, atol=1e-9 * (high - low)).any()]
    return np.sort(np.concatenate([apart, marks]))


def curve(evaluate: Evaluate, start: Parameters, direction: Parameters, alphas: Sequence[float]) -> Measurement:
    """The loss at ``start`` + α ``direction`` for each α (equation 1), (k,) increasing; 0 is the start, and 1 the end
    if the direction is ``difference(end, start)``.

    Example:
        >>> parabola = lambda point: float(point["x"].square().sum())
        >>> curve(parabola, {"x": torch.tensor([2.0])}, {"x": torch.tensor([-1.0])}, [0, 1, 2, 3]).loss
        array([4., 1., 0., 1.])
    """
    start = vector(start)
    return _measured(_row(evaluate, start, vector(direction, start), alphas))


def surface(
    evaluate: Evaluate,
    origin: Parameters,
    directions: tuple[Parameters, Parameters],
    alphas: Sequence[float],
    betas: Sequence[float],
    *,
    folder: Path | None = None,
    identity: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> Measurement:
    """The loss at ``origin`` + α ``directions[0]`` + β ``directions[1]`` for each pair (equation 2).

    Memory: the origin, the directions, and two more copies of the parameters.

    Args:
        directions: two, whose lengths are the units of the axes.
        alphas, betas: (columns,) and (rows,), increasing.
        folder: stores finished rows in a file named after grid, origin, directions and identity, so that an interrupted
            surface resumes and a finished one is read.
        identity: any text that tells surfaces of different losses apart.
        progress: takes the numbers of finished rows and of all rows after each row.

    Example:
        >>> bowl = lambda point: float((point["x"] ** 2).sum())
        >>> first, second = {"x": torch.tensor([1.0, 0.0])}, {"x": torch.tensor([0.0, 2.0])}
        >>> surface(bowl, {"x": torch.zeros(2)}, (first, second), [0, 1, 2], [0, 1]).loss
        array([[0., 1., 4.],
               [4., 5., 8.]])
    """
    alphas, betas = (np.asarray(axis, dtype=float) for axis in (alphas, betas))
    origin = vector(origin)
    first, second = (vector(direction, origin) for direction in directions)
    facts = identity, alphas.tolist(), betas.tolist()
    file = folder and folder / f"{fingerprint(facts, origin, first, second)}.npy"
    rows = list(np.load(file)) if file and file.exists() else []
    for beta in betas[len(rows) :]:
        rows.append(_row(evaluate, moved(origin, second, beta), first, alphas))
        if file:
            with written_beside(file) as place:
                np.save(place, np.stack(rows))
        if progress is not None:
            progress(len(rows), len(betas))
    return _measured(np.stack(rows, axis=1))


def sharpness(
    evaluate: Evaluate, point: Parameters, radius: float = 0.1, draws: int = 10, seed: int = 0
) -> tuple[float, float]:
    """The rise of the loss when each filter moves by ± a share of its length, ``radius``, in random directions (filter
    normalisation, Li et al. 2018); it does not depend on the axes of a surface.

    Returns:
        The mean rise over directions and signs, NaN if one is not finite, and its standard error over the directions,
        two or more, whose seeds follow each other; both in nats.

    Example:
        >>> bowl = lambda point: 0.5 * float(point["weight"].square().sum())
        >>> round(sharpness(bowl, {"weight": torch.zeros(2, 2) + 1}, radius=0.1, draws=3)[0], 6)
        0.02
    """
    directions = [random_direction(point, seed + draw) for draw in range(draws)]
    here = curve(evaluate, point, directions[0], [0.0]).loss
    rises = np.stack([curve(evaluate, point, direction, [-radius, radius]).loss - here for direction in directions])
    return float(rises.mean()), float(rises.mean(1).std(ddof=1) / np.sqrt(draws))


def _row(evaluate: Evaluate, base: Parameters, direction: Parameters, alphas: Sequence[float]) -> np.ndarray:
    """(4 + 2 folds, k) the fields of the measurements along a line, NaN where the loss is not finite."""
    point = {name: tensor.clone() for name, tensor in base.items()}
    columns = []
    for alpha in map(float, alphas):
        for name, tensor in point.items():
            torch.add(base[name], direction[name], alpha=alpha, out=tensor)
        measured = evaluate(point)
        if not isinstance(measured, Measurement):
            measured = Measurement(float(measured))
        column = np.hstack(astuple(measured), dtype=float)  # in the order in which `_measured` reads them
        columns.append(column if math.isfinite(measured.loss) else np.full_like(column, np.nan))
    return np.stack(columns, axis=1)


def _measured(cells: np.ndarray) -> Measurement:
    """Stacked measurements, (4 + 2 folds, …)."""
    return Measurement(*cells[:4], *np.split(cells[4:], 2))


def fingerprint(facts: tuple, *groups: Parameters) -> str:
    """A hash of some facts, by their ``repr``, and of groups of named tensors, wherever these lie."""
    content = hashlib.sha256(repr(facts).encode())
    for tensors in groups:
        for name in sorted(tensors):
            content.update(f"{name} {tensors[name].dtype} {tuple(tensors[name].shape)}".encode())
            content.update(np.ascontiguousarray(as_array(tensors[name])))
    return content.hexdigest()[:20]
