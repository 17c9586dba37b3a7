r"""Linear CKA: how similar two representations of the same tokens are up to a rotation, and its debiased form.

With centred :math:`X` (n, d₁) and :math:`Y` (n, d₂), and their scatter matrices :math:`S`,

.. math::

    \mathrm{linear\ CKA} = \frac{\Vert S_{xy} \Vert_F^2}{\Vert S_{xx} \Vert_F \Vert S_{yy} \Vert_F}

(Kornblith et al. 2019). At n rows, independent white data have about d / (n + d), not 0. The debiased form (with the
unbiased estimator of Song et al. 2012; Nguyen et al. 2021) takes each kernel :math:`K = X X^\top` without its diagonal:

.. math::

    \langle X, Y \rangle = \Vert S_{xy} \Vert_F^2
        - \frac{n}{n - 2} \sum_i \Vert x_i \Vert^2 \Vert y_i \Vert^2
        + \frac{\Vert X \Vert_F^2 \, \Vert Y \Vert_F^2}{(n - 1)(n - 2)},
    \qquad
    \mathrm{CKA} = \frac{\langle X, Y \rangle}{\sqrt{\langle X, X \rangle \langle Y, Y \rangle}} .

This is the cosine of the two kernels after U-centring, an inner product (Székely and Rizzo 2014). So its range is
[-1, 1], and independent data have 0 on average, whatever n; that of linear CKA is [0, 1]. Both are 1 for
representations that are equal up to rotation, scaling and translation, and refuse fewer than four rows.

Shapes: x (n, d₁), y (n, d₂), rows of the same tokens in the same order.
"""

from collections.abc import Sequence

import torch

from fivelenses.lenses.arrays import Array
from fivelenses.lenses.cca import warn_of_few_rows
from fivelenses.lenses.moments import ROWS_AT_ONCE, Moments, Scatter, as_representations, scatter_of

MIN_ROWS = 4
# A kernel whose U-centred square is below this share of its plain one is constant up to rounding.
RELATIVE_TOLERANCE = 1e-13


def linear_cka(x: Array | Scatter, y: Array | None = None) -> float:
    """Linear CKA, a similarity in [0, 1].

    Args:
        x: (n, d₁), n ≥ 4; or, without ``y``, the scatter of a pair. Fewer than 10 × max(d₁, d₂) rows raise a warning.
        y: (n, d₂) for the same rows.

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
    """Debiased linear CKA of two representations, (n, d₁) and (n, d₂) with n ≥ 4, in [-1, 1].

    Example:
        >>> x = torch.randn(12, 50, generator=torch.Generator().manual_seed(0))
        >>> debiased_linear_cka(x, x)
        1.0
    """
    cka = DebiasedCKA()
    cka.update(x, y)
    return cka.similarity()


class DebiasedCKA:
    """Debiased linear CKA of several representations of the same rows, gathered from a stream.

    The squared length of each row is one more feature, so that second moments hold all the sums.

    Args:
        pairs: the representations to compare, by their position in :meth:`update`.

    Example:
        >>> x = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))
        >>> cka = DebiasedCKA()
        >>> for rows in x.split(7):
        ...     cka.update(rows, 3 - 2 * rows)
        >>> round(cka.similarity(), 6)
        1.0
    """

    def __init__(self, pairs: Sequence[tuple[int, int]] = ((0, 1),)) -> None:
        self._moments, self._shifts = Moments(pairs), []

    def update(self, *representations: Array) -> None:
        """Add rows: (rows, d) of each representation; refused is what :meth:`Moments.update` refuses."""
        sides = as_representations(representations, [len(shift) for shift in self._shifts])
        # Lengths are taken from near the mean, where they have their digits.
        shifts = self._shifts or [rows.mean(0, dtype=torch.float64) for rows in sides]
        for block in zip(*(rows.split(ROWS_AT_ONCE) for rows in sides), strict=True):
            shifted = [rows.double() - shift for rows, shift in zip(block, shifts, strict=True)]
            self._moments.update(*(torch.column_stack([rows, rows.square().sum(1)]) for rows in shifted))
        self._shifts = shifts

    def similarity(self, i: int = 0, j: int = 1) -> float:
        """Debiased linear CKA of representations i and j, in [-1, 1]; exactly 1 of equal ones."""
        itself = [_inner(self._moments.pair(side, side)) for side in (i, j)]
        for side, (value, plain) in zip((i, j), itself, strict=True):
            if not value > RELATIVE_TOLERANCE * plain:
                raise ValueError(f"The kernel of representation {side} is constant: its rows do not vary.")
        # Roots before the product: squares of second moments overflow long before the moments do.
        value = float(_inner(self._moments.pair(i, j))[0] / itself[0][0].sqrt() / itself[1][0].sqrt())
        if not -2 < value < 2:
            raise ValueError("The squares of these representations overflow double precision: scale them down.")
        # Bounded by Cauchy and Schwarz: only the rounding of the last digits is cut.
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
    if n < MIN_ROWS:
        raise ValueError(f"n = {n} rows are too few for CKA, which is 1 for any two rows: give at least {MIN_ROWS}.")
