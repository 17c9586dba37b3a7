r"""Similarities of two representations of the same tokens that no paper of the book has, and the null of any.

**Mutual nearest neighbours**: whether the same tokens are close to each other,

.. math::

    \mathrm{MNN}(X, Y) = \frac{1}{n} \sum_{i=1}^{n} \frac{\lvert N_k^X(i) \cap N_k^Y(i) \rvert}{k} ,

where :math:`N_k^X(i)` are the k rows nearest to row i in Euclidean distance, without i itself (Huh et al. 2024). Range:
[0, 1]; k / (n − 1) on average if the two are independent. Moving, rotating and scaling change nothing, and neither does
any map that keeps the order of distances. Of equally distant rows the first ones count, in both representations: with
many equal rows (a token without context), take fewer of them. Products of matrices in single precision, some rows at a
time, tell which rows may be among the nearest; where these are more than k, their distances in double precision decide.

**Orthogonal Procrustes distance**: how far the two stay apart after the best rotation. For centred :math:`X`, :math:`Y`
of Frobenius norm 1, the narrower one widened by zeros,

.. math::

    d(X, Y) = \min_{Q^\top Q = I} \Vert X - Y Q \Vert_F
            = \sqrt{2 - 2\, \frac{\Vert S_{xy} \Vert_*}{\sqrt{\operatorname{tr} S_{xx} \operatorname{tr} S_{yy}}}} ,

where :math:`S` are the scatter matrices and :math:`\Vert \cdot \Vert_*` is the sum of the singular values (Schönemann
1966; Ding et al. 2021, who take its square). Range: [0, √2]; 0 for representations that are equal up to rotation,
scaling and translation. It is a metric, so unlike CKA it obeys the triangle inequality (Williams et al. 2021). The root
makes rounding visible: equal ones may be 1e-7 apart.

Shapes: x (n, d₁), y (n, d₂), rows of the same tokens in the same order.
"""

import math
from collections.abc import Callable

import torch

from fivelenses.lenses.arrays import Array, as_tensor
from fivelenses.lenses.moments import Scatter, as_representations, scatter_of

ROWS_AT_ONCE, PAIRS_AT_ONCE = 256, 4096


def permuted_null(measure: Callable[[Array, Array], float], x: Array, y: Array, seed: int = 0) -> float:
    """A measure of x and y with the rows of y permuted: its value for independent tokens with these spectra and this n.

    For a stream, give :class:`~fivelenses.lenses.moments.Moments` a ``null_seed`` and measure its ``null()``.

    Example:
        >>> x = torch.randn(400, 4, generator=torch.Generator().manual_seed(0))
        >>> mutual_neighbours(x, x), round(permuted_null(mutual_neighbours, x, x), 2)
        (1.0, 0.03)
    """
    y = as_tensor(y)
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed)).to(y.device)
    return measure(x, y[order])


def procrustes_distance(x: Array | Scatter, y: Array | None = None) -> float:
    """The distance of two representations, in [0, √2]; ``x`` may be the scatter of a pair.

    Example:
        >>> x = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
        >>> round(procrustes_distance(x, x[:, :1]), 4)
        0.7654
    """
    scatter = scatter_of(x, y)
    norms = scatter.xx.trace().sqrt() * scatter.yy.trace().sqrt()
    return math.sqrt(max(0.0, 2 - 2 * float(torch.linalg.svdvals(scatter.xy).sum() / norms)))


def mutual_neighbours(x: Array, y: Array, k: int = 10) -> float:
    """The share of the k nearest neighbours that two representations have in common, mean over rows, in [0, 1].

    Example:
        >>> x = torch.tensor([[0.0], [1.0], [5.0], [6.0]])
        >>> mutual_neighbours(x, -2 * x, k=1), mutual_neighbours(x, x[[0, 2, 1, 3]], k=1)
        (1.0, 0.0)
    """
    sides = as_representations((x, y))
    n = len(sides[0])
    if not 1 <= k < n:
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
