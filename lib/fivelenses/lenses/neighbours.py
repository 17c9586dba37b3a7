r"""Mutual nearest neighbours: whether the same tokens are close to each other in two representations.

.. math::

    \mathrm{MNN}(X, Y) = \frac{1}{n} \sum_{i=1}^{n} \frac{\lvert N_k^X(i) \cap N_k^Y(i) \rvert}{k} ,

where :math:`N_k^X(i)` are the k rows nearest to row i in Euclidean distance, without i itself (as a measure of
alignment, Huh et al. 2024; the survey of Klabunde et al. 2025 has it among the measures of neighbourhoods).

Shapes: x (n, d₁), y (n, d₂), rows of the same tokens in the same order, 1 ≤ k < n. Range: [0, 1]; 1 if all
neighbourhoods agree, k / (n − 1) on average if they are independent. Moving, rotating and scaling change nothing, and
neither does any map that keeps the order of distances. Of equally distant rows the first ones count, in both
representations: with many equal rows (a token without context), take fewer of them.

Distances are computed in double precision, some rows at a time, so that memory grows with n and not with n².
"""

import torch

from fivelenses.lenses.arrays import Array, as_tensor, checked_whole
from fivelenses.lenses.moments import check_rows

ROWS_AT_ONCE = 256
ROUNDING = 1e-12  # of the largest square of a length: more than a product in double precision is off by


def mutual_neighbours(x: Array, y: Array, k: int = 10) -> float:
    """The share of the k nearest neighbours that two representations have in common, mean over rows, in [0, 1].

    Args:
        x, y: (n, d₁) and (n, d₂).
        k: neighbours of a row, less than n.

    Raises:
        ValueError: no such k, other shapes, different numbers of rows, or NaN or infinity.

    Example:
        >>> x = torch.tensor([[0.0], [1.0], [5.0], [6.0]])
        >>> mutual_neighbours(x, -2 * x, k=1), mutual_neighbours(x, x[[0, 2, 1, 3]], k=1)
        (1.0, 0.0)
    """
    sides = [as_tensor(x), as_tensor(y)]
    for side, rows in enumerate(sides):
        check_rows(side, rows, sides[0], rows)
    n = len(sides[0])
    if not 1 <= checked_whole("k", k) < n:
        raise ValueError(f"k = {k} neighbours of {n} rows: give a k from 1 to {n - 1}.")
    centred = [_centred(rows) for rows in sides]
    shared = 0
    for first in range(0, n, ROWS_AT_ONCE):
        near = [_nearest(rows, first, k) for rows in centred]
        shared += int((near[0] & near[1].to(near[0].device)).count_nonzero())
    return shared / (n * k)


def _centred(rows: torch.Tensor) -> torch.Tensor:
    """Rows less their mean, divided by a power of two, so that their squares are numbers and no digit is lost."""
    rows = rows.double()
    largest = rows.abs().max()
    rows = torch.ldexp(rows, -torch.frexp(largest).exponent) if largest > 0 else rows
    rows = rows - rows.mean(0)
    spread = rows.abs().max()
    return torch.ldexp(rows, -torch.frexp(spread).exponent) if spread > 0 else rows


def _nearest(rows: torch.Tensor, first: int, k: int) -> torch.Tensor:
    """(block, n) which rows are among the k nearest of each of a block, the first ones of equally distant ones."""
    of = torch.arange(first, min(first + ROWS_AT_ONCE, len(rows)), device=rows.device)
    squares = rows.square().sum(dim=1)
    gaps = torch.addmm(squares, rows[of], rows.T, alpha=-2)  # squared distances, but for what a row has in all of them
    gaps.diagonal(first).fill_(torch.inf)
    # A product of matrices is fast and rounds: where it cannot tell the k nearest from the next, distances decide.
    near = gaps <= gaps.topk(k, largest=False).values[:, -1:] + ROUNDING * squares.max()
    unclear = near.count_nonzero(dim=1) > k
    if unclear.any():
        distances = torch.cdist(rows[of[unclear]], rows, compute_mode="donot_use_mm_for_euclid_dist")
        distances.scatter_(1, of[unclear, None], torch.inf)
        nearest = distances.sort(dim=1, stable=True).indices[:, :k]
        near[unclear] = torch.zeros_like(distances, dtype=torch.bool).scatter_(1, nearest, True)
    return near
