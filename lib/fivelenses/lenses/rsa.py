r"""Representational similarity analysis (RSA): whether the same pairs of tokens are similar in two representations.

.. math::

    \mathrm{RSA}(X, Y) = \operatorname{Pearson}_{i < j}(\hat x_i \cdot \hat x_j,\ \hat y_i \cdot \hat y_j),
    \qquad \hat x = x / \Vert x \Vert,

the correlation of the strict upper triangles of the two cosine kernels of the same n tokens (Kriegeskorte et al. 2008;
with this kernel, Merchant et al. 2020). Shapes: x (n, d₁), y (n, d₂), rows of the same tokens in the same order. Range:
[-1, 1]; 1 if one is the other rotated and scaled, possibly with a factor per token, and about 0 if they are
independent. Translation changes it, since a cosine is taken from the origin.

No kernel is computed. With the mean :math:`c` of the unit rows and their centred scatter matrices :math:`S`, the
cosines, less their mean over all n² pairs, are :math:`u_i \cdot u_j + c \cdot u_i + c \cdot u_j` for
:math:`u = \hat x - c`; since the u sum to 0, their products over all pairs add up to

.. math::

    T_{xy} = \Vert S_{xy} \Vert_F^2 + 2 n\, c_x^\top S_{xy}\, c_y,

and without the diagonal, whose cosines are 1, that is :math:`\delta = 1 - \Vert c \Vert^2` above that mean,

.. math::

    \mathrm{RSA} = \frac{R_{xy}}{\sqrt{R_{xx} R_{yy}}}, \qquad
    R_{xy} = T_{xy} - \tfrac{n^2}{n - 1} \delta_x \delta_y.

So the moments of :func:`unit_rows` are enough, whatever n; no large numbers cancel, and the result agrees with that of
the two full kernels to about ten digits. The paper takes 5 000 tokens, a stream may take all.
"""

import numpy as np
import torch

from fivelenses.lenses.arrays import Array
from fivelenses.lenses.moments import Moments, Scatter, as_representations

# Cosines that deviate by less than this are equal up to the rounding of single precision.
EQUAL_COSINES = 1e-12


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


def similarity(x: Array, y: Array, sample: int | None = 5000, seed: int = 0) -> float:
    """RSA of two representations over a sample of their rows (:func:`sample_positions`), in [-1, 1].

    Refused: fewer than 3 rows, a zero vector, which has no cosine, and cosines that are all equal.

    Example:
        >>> x = np.random.default_rng(0).standard_normal((100, 4))
        >>> round(similarity(x, 2 * x[:, ::-1]), 6), round(similarity(x, x + 3), 1)
        (1.0, 0.5)
    """
    sides, moments = as_representations((x, y)), Moments()
    positions = torch.from_numpy(sample_positions(len(sides[0]), sample, seed))
    moments.update(*(unit_rows(rows[positions.to(rows.device)]) for rows in sides))
    return correlation(moments.pair())


def unit_rows(rows: torch.Tensor) -> torch.Tensor:
    """Rows of length 1 in float64, for the :class:`~fivelenses.lenses.moments.Moments` of a stream."""
    least, most = rows.aminmax(dim=1)
    largest = torch.maximum(-least, most).double()
    if (zero := largest == 0).any():
        raise ValueError(
            f"Row {int(zero.int().argmax())} is the zero vector, which has no cosine: leave this token out."
        )
    # Divided by their largest entry first, so that no square overflows or vanishes.
    rows = rows / largest[:, None]
    return rows.div_(torch.linalg.vector_norm(rows, dim=1, keepdim=True))


def correlation(scatter: Scatter) -> float:
    """RSA, in [-1, 1], from the moments of unit rows."""
    n = scatter.n
    if n < 3:
        raise ValueError(f"n = {n} tokens are too few: a correlation over pairs needs at least 3.")
    above_x, above_y = (float(own.trace()) / n for own in (scatter.xx, scatter.yy))

    def over_pairs(products: torch.Tensor, one: torch.Tensor, other: torch.Tensor, diagonal: float) -> float:
        return float(products.square().sum() + 2 * n * (one @ products @ other)) - diagonal * n**2 / (n - 1)

    spread_x = over_pairs(scatter.xx, scatter.x_mean, scatter.x_mean, above_x**2)
    spread_y = over_pairs(scatter.yy, scatter.y_mean, scatter.y_mean, above_y**2)
    for name, spread, above in (("first", spread_x, above_x), ("second", spread_y, above_y)):
        # If all cosines are equal, two sums of about n δ² cancel.
        if spread <= max((n * EQUAL_COSINES) ** 2, 1e-12 * n * above**2):
            raise ValueError(f"All cosines of the {name} representation are equal: there is nothing to correlate.")
    together = over_pairs(scatter.xy, scatter.x_mean, scatter.y_mean, above_x * above_y)
    # Bounded by Cauchy and Schwarz, so that only the rounding of the last digit is cut.
    return float(np.clip(together / np.sqrt(spread_x * spread_y), -1, 1))
