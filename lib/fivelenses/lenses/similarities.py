r"""Similarities of two representations of the same tokens: CKA, RSA, Procrustes distance and nearest neighbours.

Shapes: x (n, d₁), y (n, d₂), rows of the same tokens in the same order; :math:`X` and :math:`Y` are the two centred,
and :math:`S_{xy} = X^\top Y` their scatter matrices, which :class:`~fivelenses.lenses.moments.Moments` gathers from a
stream.

**Linear CKA** (Kornblith et al. 2019), in [0, 1], is 1 for representations that are equal up to rotation, scaling and
translation; at n rows, independent white data have about d / (n + d):

.. math::

    \mathrm{linear\ CKA} = \frac{\Vert S_{xy} \Vert_F^2}{\Vert S_{xx} \Vert_F \Vert S_{yy} \Vert_F} .

**Debiased CKA** (with the unbiased estimator of Song et al. 2012; Nguyen et al. 2021) takes each kernel
:math:`K = X X^\top` without its diagonal:

.. math::

    \langle X, Y \rangle = \Vert S_{xy} \Vert_F^2
        - \frac{n}{n - 2} \sum_i \Vert x_i \Vert^2 \Vert y_i \Vert^2
        + \frac{\Vert X \Vert_F^2 \, \Vert Y \Vert_F^2}{(n - 1)(n - 2)},
    \qquad
    \mathrm{CKA} = \frac{\langle X, Y \rangle}{\sqrt{\langle X, X \rangle \langle Y, Y \rangle}} ,

the cosine of the two kernels after U-centring (Székely and Rizzo 2014), in [-1, 1]; independent data have 0 on average,
whatever n.

**Representational similarity analysis** asks whether the same pairs of tokens are similar in both: the correlation of
the strict upper triangles of the two cosine kernels (Kriegeskorte et al. 2008; with this kernel, Merchant et al. 2020),

.. math::

    \mathrm{RSA} = \operatorname{Pearson}_{i < j}(\hat x_i \cdot \hat x_j,\ \hat y_i \cdot \hat y_j),
    \qquad \hat x = x / \Vert x \Vert,

in [-1, 1]; 1 if one is the other rotated and scaled, possibly with a factor per token, and about 0 if they are
independent. Translation changes it, since a cosine is taken from the origin. No kernel is computed: with the mean
:math:`c` of the unit rows, their scatter matrices and :math:`\delta = 1 - \Vert c \Vert^2`,

.. math::

    \mathrm{RSA} = \frac{R_{xy}}{\sqrt{R_{xx} R_{yy}}}, \qquad
    R_{xy} = \Vert S_{xy} \Vert_F^2 + 2 n\, c_x^\top S_{xy}\, c_y - \tfrac{n^2}{n - 1} \delta_x \delta_y,

where no large numbers cancel. The paper takes 5 000 tokens, a stream may take all.

**Orthogonal Procrustes distance** is how far the two stay apart after the best rotation, at Frobenius norm 1 and the
narrower one widened by zeros (Schönemann 1966; Ding et al. 2021, who take its square):

.. math::

    d(X, Y) = \min_{Q^\top Q = I} \Vert X - Y Q \Vert_F
            = \sqrt{2 - 2\, \frac{\Vert S_{xy} \Vert_*}{\sqrt{\operatorname{tr} S_{xx} \operatorname{tr} S_{yy}}}} ,

with the sum :math:`\Vert \cdot \Vert_*` of singular values, in [0, √2]; 0 where CKA is 1, up to 1e-7, since the root
makes rounding visible. It is a metric (Williams et al. 2021).

**Mutual nearest neighbours** asks whether the same tokens are close to each other (Huh et al. 2024),

.. math::

    \mathrm{MNN}(X, Y) = \frac{1}{n} \sum_{i=1}^{n} \frac{\lvert N_k^X(i) \cap N_k^Y(i) \rvert}{k} ,

with the k rows :math:`N_k^X(i)` that are nearest to row i in Euclidean distance, without i itself; in [0, 1], and
k / (n − 1) on average if the two are independent. Of equally distant rows the first ones count, in both: with many
equal rows (a token without context), take fewer of them.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch

from fivelenses.lenses.arrays import Array, as_tensor
from fivelenses.lenses.cca import warn_of_few_rows
from fivelenses.lenses.moments import ROWS_AT_ONCE, Moments, Scatter, as_representations, scatter_of

# A kernel whose U-centred square is below this share of its plain one is constant up to rounding.
EQUAL_KERNEL = 1e-13
# Cosines that deviate by less than this are equal up to the rounding of single precision.
EQUAL_COSINES = 1e-12
# Of neighbours: rows whose distances to all others, and pairs whose exact distances, are taken at once.
NEIGHBOURS_AT_ONCE, PAIRS_AT_ONCE = 256, 4096


def permuted_null(measure: Callable[[Array, Array], float], x: Array, y: Array, seed: int = 0) -> float:
    """A measure of x and y with the rows of y permuted: its value for independent tokens with these spectra and this n.

    Example:
        >>> x = torch.randn(400, 4, generator=torch.Generator().manual_seed(0))
        >>> mutual_neighbours(x, x), round(permuted_null(mutual_neighbours, x, x), 2)
        (1.0, 0.03)
    """
    y = as_tensor(y)
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed)).to(y.device)
    return measure(x, y[order])


def linear_cka(x: Array | Scatter, y: Array | None = None) -> float:
    """Linear CKA in [0, 1]; ``x`` may be the scatter of a pair.

    Refused: fewer than four rows. Fewer than 10 × max(d₁, d₂) raise a warning.

    Example:
        >>> x = torch.randn(100, 4, generator=torch.Generator().manual_seed(0))
        >>> round(linear_cka(x, -2 * x), 6)
        1.0
    """
    scatter = scatter_of(x, y)
    _check_rows(scatter.n)
    warn_of_few_rows(scatter)
    # Each side in units of its own largest entry: squares of second moments overflow long before the moments do.
    (xx, unit_x), (yy, unit_y) = ((own / own.abs().max(), own.abs().max().sqrt()) for own in (scatter.xx, scatter.yy))
    shared = (scatter.xy / unit_x / unit_y).square().sum()
    # Bounded by Cauchy and Schwarz, so that only the rounding of the last digit is cut.
    return min(1.0, float(shared / (xx.norm() * yy.norm())))


def debiased_linear_cka(x: Array, y: Array) -> float:
    """Debiased linear CKA in [-1, 1]; fewer than four rows are refused.

    Example:
        >>> x = torch.randn(12, 50, generator=torch.Generator().manual_seed(0))
        >>> debiased_linear_cka(x, x)
        1.0
    """
    cka = DebiasedCKA()
    cka.update(x, y)
    return cka.similarity()


class DebiasedCKA:
    """Debiased linear CKA of several representations of the same rows, gathered from a stream; ``pairs`` are those to
    compare, by their position in :meth:`update`.
    """

    def __init__(self, pairs: Sequence[tuple[int, int]] = ((0, 1),)) -> None:
        self._moments, self._shifts = Moments(pairs), []

    def update(self, *representations: Array) -> None:
        """Add rows: (rows, d) of each representation; refused is what :meth:`Moments.update` refuses."""
        sides = as_representations(representations)
        # Lengths are taken from near the mean, where they have their digits.
        shifts = self._shifts or [rows.mean(0, dtype=torch.float64) for rows in sides]
        for block in zip(*(rows.split(ROWS_AT_ONCE) for rows in sides), strict=True):
            shifted = [rows.double() - shift for rows, shift in zip(block, shifts, strict=True)]
            # With the squared length of each row as one more feature, second moments hold all the sums.
            self._moments.update(*(torch.column_stack([rows, rows.square().sum(1)]) for rows in shifted))
        self._shifts = shifts

    def similarity(self, i: int = 0, j: int = 1) -> float:
        """Debiased linear CKA of representations i and j, in [-1, 1]; exactly 1 of equal ones."""
        itself = [_inner(self._moments.pair(side, side)) for side in (i, j)]
        for side, (value, plain) in zip((i, j), itself, strict=True):
            if not value > EQUAL_KERNEL * plain:
                raise ValueError(f"The kernel of representation {side} is constant: its rows do not vary.")
        # Roots before the product: squares of second moments overflow long before the moments do.
        value = float(_inner(self._moments.pair(i, j))[0] / itself[0][0].sqrt() / itself[1][0].sqrt())
        if not -2 < value < 2:
            raise ValueError("The squares of these representations overflow double precision: scale them down.")
        return min(1.0, max(-1.0, value)) if abs(value - 1) > 1e-15 else 1.0


def _inner(scatter: Scatter) -> tuple[torch.Tensor, torch.Tensor]:
    """The debiased inner product of two representations with their squared lengths, and its first term."""
    n = scatter.n
    _check_rows(n)
    # The squared length of a centred row is that of the shifted one less twice its product with the mean, and a number.
    x, y = (torch.cat([-2 * mean[:-1], mean.new_ones(1)]) for mean in (scatter.x_mean, scatter.y_mean))
    squares = scatter.xx.diagonal()[:-1].sum() * scatter.yy.diagonal()[:-1].sum()
    lengths = x @ scatter.xy @ y + squares / n
    plain = scatter.xy[:-1, :-1].square().sum()
    return plain - n / (n - 2) * lengths + squares / ((n - 1) * (n - 2)), plain


def _check_rows(n: int) -> None:
    if n < 4:
        raise ValueError(f"n = {n} rows are too few for CKA, which is 1 for any two rows: give at least 4.")


def sample_positions(total: int, sample: int | None = 5000, seed: int = 0) -> np.ndarray:
    """Increasing positions, (min(sample, total),), of tokens drawn without replacement, the same in every model's
    stream; all with ``sample=None``.

    Example:
        >>> sample_positions(10, 4), sample_positions(3)
        (array([2, 4, 5, 7]), array([0, 1, 2]))
    """
    if sample is None or sample >= total:
        return np.arange(total)
    return np.sort(np.random.default_rng(seed).choice(total, sample, replace=False))


def rsa(x: Array | Scatter, y: Array | None = None, sample: int | None = 5000, seed: int = 0) -> float:
    """RSA in [-1, 1] over a sample of the rows (:func:`sample_positions`); ``x`` may be the scatter of a pair of
    :func:`unit_rows`.

    Refused: fewer than 3 rows, a zero vector, which has no cosine, and cosines that are all equal.

    Example:
        >>> x = np.random.default_rng(0).standard_normal((100, 4))
        >>> round(rsa(x, 2 * x[:, ::-1]), 6), round(rsa(x, x + 3), 1)
        (1.0, 0.5)
    """
    if not isinstance(x, Scatter):
        sides, moments = as_representations((x, y)), Moments()
        positions = torch.from_numpy(sample_positions(len(sides[0]), sample, seed))
        moments.update(*(unit_rows(rows[positions.to(rows.device)]) for rows in sides))
        x = moments.pair()
    n, (mean_x, mean_y) = x.n, (x.x_mean, x.y_mean)
    if n < 3:
        raise ValueError(f"n = {n} tokens are too few: a correlation over pairs needs at least 3.")
    above_x, above_y = (float(own.trace()) / n for own in (x.xx, x.yy))

    def over_pairs(products: torch.Tensor, one: torch.Tensor, other: torch.Tensor, diagonal: float) -> float:
        return float(products.square().sum() + 2 * n * (one @ products @ other)) - diagonal * n**2 / (n - 1)

    spread_x, spread_y = over_pairs(x.xx, mean_x, mean_x, above_x**2), over_pairs(x.yy, mean_y, mean_y, above_y**2)
    for name, spread, above in (("first", spread_x, above_x), ("second", spread_y, above_y)):
        # If all cosines are equal, two sums of about n δ² cancel.
        if spread <= max((n * EQUAL_COSINES) ** 2, 1e-12 * n * above**2):
            raise ValueError(f"All cosines of the {name} representation are equal: there is nothing to correlate.")
    together = over_pairs(x.xy, mean_x, mean_y, above_x * above_y)
    return float(np.clip(together / np.sqrt(spread_x * spread_y), -1, 1))


def unit_rows(rows: torch.Tensor) -> torch.Tensor:
    """Rows of length 1 in float64, for the :class:`~fivelenses.lenses.moments.Moments` of a stream."""
    least, most = rows.aminmax(dim=1)
    largest = torch.maximum(-least, most).double()
    if (zero := largest == 0).any():
        raise ValueError(f"Row {int(zero.int().argmax())} is the zero vector, which has no cosine: leave it out.")
    # Divided by their largest entry first, so that no square overflows or vanishes.
    rows = rows / largest[:, None]
    return rows.div_(torch.linalg.vector_norm(rows, dim=1, keepdim=True))


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
    for first in range(0, n, NEIGHBOURS_AT_ONCE):
        near = [_nearest(*of_side, first, k) for of_side in zip(sides, singles, squares, strict=True)]
        shared += int((near[0] & near[1].to(near[0].device)).count_nonzero())
    return shared / (n * k)


def _scaled(rows: torch.Tensor) -> torch.Tensor:
    """Rows divided by a power of two, so that their squares are numbers and no digit is lost."""
    return torch.ldexp(rows, -torch.frexp(rows.abs().max()).exponent)


def _nearest(rows: torch.Tensor, single: torch.Tensor, squares: torch.Tensor, first: int, k: int) -> torch.Tensor:
    """(block, n) which rows are among the k nearest of each of a block."""
    # Products in single precision tell which may be; where these are more than k, double precision decides.
    of = torch.arange(first, min(first + NEIGHBOURS_AT_ONCE, len(rows)), device=rows.device)
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
