r"""Mutual nearest neighbours: whether the same tokens are close to each other in two representations.

.. math::

    \mathrm{MNN}(X, Y) = \frac{1}{n} \sum_{i=1}^{n} \frac{\lvert N_k^X(i) \cap N_k^Y(i) \rvert}{k} ,

where :math:`N_k^X(i)` are the k rows nearest to row i in Euclidean distance, without i itself (as a measure of
alignment, Huh et al. 2024; the survey of Klabunde et al. 2025 has it among the measures of neighbourhoods).

Shapes: x (n, d₁), y (n, d₂), rows of the same tokens in the same order, 1 ≤ k < n. Range: [0, 1]; 1 if all
neighbourhoods agree, k / (n − 1) on average if they are independent. Moving, rotating and scaling change nothing, and
neither does any map that keeps the order of distances. Of equally distant rows the first ones count, in both
representations: with many equal rows (a token without context), take fewer of them.

Distances are told by products of matrices, some rows at a time, so that memory grows with n and not with n²: in single
precision first, and for the rows whose k nearest that leaves open in double precision.
"""

import torch

from fivelenses.lenses.arrays import Array, as_tensor, checked_whole
from fivelenses.lenses.moments import check_rows

ROWS_AT_ONCE = 256


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
    precisions = [(rows.float(), rows) for rows in centred]
    shared = 0
    for first in range(0, n, ROWS_AT_ONCE):
        near = [_nearest(rows, first, k) for rows in precisions]
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


def _nearest(precisions: tuple[torch.Tensor, ...], first: int, k: int) -> torch.Tensor:
    """(block, n) which rows are among the k nearest of each of a block, the first ones of equally distant ones.

    Args:
        precisions: the same rows, the coarser precision first.
        first: of the block.
        k: neighbours.
    """
    rows = precisions[-1]
    of = torch.arange(first, min(first + ROWS_AT_ONCE, len(rows)), device=rows.device)
    near, open_rows = _near_by_products(precisions[0], of, k)
    for rows in precisions[1:]:
        if len(open_rows):
            near[open_rows], still = _near_by_products(rows, of[open_rows], k)
            open_rows = open_rows[still]
    if len(open_rows):
        distances = torch.cdist(rows[of[open_rows]], rows, compute_mode="donot_use_mm_for_euclid_dist")
        distances.scatter_(1, of[open_rows, None], torch.inf)
        nearest = distances.sort(dim=1, stable=True).indices[:, :k]
        near[open_rows] = torch.zeros_like(distances, dtype=torch.bool).scatter_(1, nearest, True)
    return near


def _near_by_products(rows: torch.Tensor, of: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Which rows are among the k nearest of some, or may be by a product that rounds; and for which of these some there
    are more than k.
    """
    squares = rows.square().sum(dim=1)
    gaps = torch.addmm(squares, rows[of], rows.T, alpha=-2)  # squared distances, but for what a row has in all of them
    gaps.scatter_(1, of[:, None], torch.inf)
    # Each of the two gaps that are compared is off by less than half of this.
    off = 3 * (rows.shape[1] + 4) * torch.finfo(rows.dtype).eps * squares.max()
    near = gaps <= gaps.topk(k, largest=False).values[:, -1:] + off
    return near, (near.count_nonzero(dim=1) > k).nonzero()[:, 0]
