r"""Mutual nearest neighbours: whether the same tokens are close to each other in two representations.

.. math::

    \mathrm{MNN}(X, Y) = \frac{1}{n} \sum_{i=1}^{n} \frac{\lvert N_k^X(i) \cap N_k^Y(i) \rvert}{k} ,

where :math:`N_k^X(i)` are the k rows nearest to row i in Euclidean distance, without i itself (as a measure of
alignment, Huh et al. 2024; the survey of Klabunde et al. 2025 has it among the measures of neighbourhoods).

Shapes: x (n, d₁), y (n, d₂), rows of the same tokens in the same order, 1 ≤ k < n. Range: [0, 1]; 1 if all
neighbourhoods agree, k / (n − 1) on average if they are independent. Moving, rotating and scaling change nothing, and
neither does any map that keeps the order of distances. Of equally distant rows the first ones count, in both
representations: with many equal rows (a token without context), take fewer of them.

Products of matrices in single precision, some rows at a time, tell which rows may be among the nearest; where these are
more than k, their distances in double precision decide. Memory grows with n and not with n².
"""

import torch

from fivelenses.lenses.arrays import Array, as_tensor, checked_whole
from fivelenses.lenses.moments import check_rows

ROWS_AT_ONCE, PAIRS_AT_ONCE = 256, 4096


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
    sides = [_scaled(rows.double()) for rows in sides]
    singles = [_scaled(rows - rows.mean(0)).float() for rows in sides]
    squares = [rows.square().sum(dim=1) for rows in singles]
    shared = 0
    for first in range(0, n, ROWS_AT_ONCE):
        near = [_nearest(*of_side, first, k) for of_side in zip(sides, singles, squares, strict=True)]
        shared += int((near[0] & near[1].to(near[0].device)).count_nonzero())
    return shared / (n * k)


def _scaled(rows: torch.Tensor) -> torch.Tensor:
    """Rows divided by a power of two, so that their squares are numbers and no digit is lost."""
    largest = rows.abs().max()
    return torch.ldexp(rows, -torch.frexp(largest).exponent) if largest > 0 else rows


def _nearest(rows: torch.Tensor, single: torch.Tensor, squares: torch.Tensor, first: int, k: int) -> torch.Tensor:
    """(block, n) which rows are among the k nearest of each of a block, the first ones of equally distant ones."""
    of = torch.arange(first, min(first + ROWS_AT_ONCE, len(rows)), device=rows.device)
    # Squared distances, but for what a row has in all of them; `addmm` takes twice as long.
    gaps = (-2 * single[of] @ single.T).add_(squares)
    gaps.diagonal(first).fill_(torch.inf)
    # Each of the two gaps that are compared is off by less than half of this.
    off = 3 * (rows.shape[1] + 4) * torch.finfo(single.dtype).eps * squares.max()
    near = gaps <= gaps.topk(k, largest=False).values[:, -1:] + off
    counts = near.count_nonzero(dim=1)
    places = (counts > k).nonzero()[:, 0]
    if len(places):
        # Of these rows more than k may be the nearest: in order of row and column, and then of row and distance.
        row, column = near[places].nonzero(as_tuple=True)
        pairs = zip(of[places][row].split(PAIRS_AT_ONCE), column.split(PAIRS_AT_ONCE), strict=True)
        distances = torch.cat([torch.linalg.vector_norm(rows[one] - rows[other], dim=1) for one, other in pairs])
        order = distances.argsort(stable=True)
        order = order[row[order].argsort(stable=True)]
        begins = counts[places].cumsum(0) - counts[places]
        nearest = order[torch.arange(len(row), device=row.device) - begins[row] < k]
        near[places] = False
        near[places[row[nearest]], column[nearest]] = True
    return near
