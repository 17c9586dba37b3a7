r"""SVCCA and PWCCA: how far two representations of the same tokens lie apart, whatever the basis of each.

With centred :math:`X` (n, d₁) and :math:`Y` (n, d₂), their scatter matrices :math:`S_{xx} = X^\top X`, :math:`S_{yy}`
and :math:`S_{xy}`, and the first principal directions of each side, :math:`S_{xx} \approx U_x \Lambda_x U_x^\top`:

.. math::

    \rho = \operatorname{singular\ values\ of}\ \Lambda_x^{-1/2} U_x^\top S_{xy} U_y \Lambda_y^{-1/2},

    \mathrm{SVCCA\ distance} = 1 - \operatorname{mean}(\rho), \qquad
    \mathrm{PWCCA\ distance} = 1 - \sum_i \frac{\alpha_i}{\sum_j \alpha_j} \rho_i.

Sources: SVCCA, Raghu et al. 2017; PWCCA, Morcos et al. 2018 (:math:`\alpha_i` is the sum over features of the absolute
products of the feature with the i-th canonical variate).

Shapes: x (n, d₁), y (n, d₂), rows of the same tokens in the same order. Range: [0, 1], 0 if one is a linear image of
the other. Translation changes neither; an invertible linear map changes neither CCA nor PWCCA if ``variance_kept=1.0``.

Independent data do not reach the other end of the range: their mean correlation over d directions each is about
:math:`0.85 \sqrt{d/n}` (0.17 for d = 768 and n = 20 000). So a distance should be read beside its null, the same
measure of permuted rows, and n ≤ d₁ + d₂ is refused.

Both follow from second moments, which :class:`~fivelenses.lenses.moments.Moments` gathers from a stream.
"""

import warnings

import torch

from fivelenses.lenses.arrays import Array
from fivelenses.lenses.moments import Scatter, scatter_of

# A direction is kept only if its variance is above this share of the largest: its deviation is then above 1e-5 of the
# largest, where single-precision input still has two digits, and the error of correlations is at most about 1e-6.
RELATIVE_TOLERANCE = 1e-10

Whitening = tuple[torch.Tensor, torch.Tensor]  # W (d, k) and variances Λ (k,) of the directions kept


def svcca_distance(
    x: Array | Scatter,
    y: Array | None = None,
    variance_kept: float = 0.99,
    whitened: tuple[Whitening, Whitening] | None = None,
) -> float:
    """SVCCA distance, 1 − mean correlation over min(k₁, k₂), in [0, 1].

    Args:
        x: (n, d₁); or, without ``y``, the :class:`~fivelenses.lenses.moments.Scatter` of a pair.
        y: (n, d₂) for the same rows.
        variance_kept: the least share of variance that each side's kept directions hold, in (0, 1]; 1.0 keeps every
            direction whose variance is above ``RELATIVE_TOLERANCE`` of the largest. No other direction is ever kept.
        whitened: what :func:`whitening` gives for each side, instead of ``variance_kept``, where a side is compared
            with several others: it takes most of the time.

    Refused: n ≤ d₁ + d₂ (some correlations are then 1 whatever the data) and a representation that does not vary. Fewer
    than 10 × max(d₁, d₂) rows raise a warning.

    Example:
        >>> x = torch.randn(100, 4, generator=torch.Generator().manual_seed(0))
        >>> round(svcca_distance(x, 3 - x.flip(1)), 6)
        0.0
    """
    scatter = _enough_rows(scatter_of(x, y))
    (to_x, _), (to_y, _) = whitened or (whitening(own, variance_kept) for own in (scatter.xx, scatter.yy))
    # Rounding lifts a correlation above 1 by at most about 1e-6, see RELATIVE_TOLERANCE.
    return 1 - float(torch.linalg.svdvals(to_x.T @ scatter.xy @ to_y).clamp(0, 1).mean())


def pwcca_distance(
    x: Array | Scatter,
    y: Array | None = None,
    variance_kept: float = 1.0,
    whitened: tuple[Whitening, Whitening] | None = None,
) -> float:
    """PWCCA distance in [0, 1]; as :func:`svcca_distance`, without truncation by default.

    The weights are those of the side with fewer directions, and of x if the numbers are equal: then the distance of x
    to y is not that of y to x.

    Example:
        >>> x = torch.randn(100, 4, generator=torch.Generator().manual_seed(0))
        >>> round(pwcca_distance(x[:, :3], x), 6)
        0.0
    """
    scatter = _enough_rows(scatter_of(x, y))
    sides = whitened or [whitening(own, variance_kept) for own in (scatter.xx, scatter.yy)]
    (to_x, variances_x), (to_y, variances_y) = sides
    left, values, right = torch.linalg.svd(to_x.T @ scatter.xy @ to_y, full_matrices=False)
    of_x = len(variances_x) <= len(variances_y)
    to_white, variances, variates = (to_x, variances_x, left) if of_x else (to_y, variances_y, right.T)
    # The products of X's features with its canonical variates X W P are (W Λ) P, since W = U Λ^(-1/2) whitens X.
    weights = ((to_white * variances) @ variates).abs().sum(0)
    return float(1 - (values.clamp(0, 1) @ weights) / weights.sum())


def _enough_rows(scatter: Scatter) -> Scatter:
    d1, d2 = scatter.xy.shape
    if scatter.n <= d1 + d2:
        raise ValueError(
            f"CCA needs more rows than both sides have features: n = {scatter.n} is not above "
            f"d1 + d2 = {d1} + {d2} = {d1 + d2}, so give more tokens."
        )
    warn_of_few_rows(scatter)
    return scatter


def warn_of_few_rows(scatter: Scatter) -> None:
    """Warn of fewer than ten rows per feature, of which chance makes much."""
    d = max(scatter.xy.shape)
    if scatter.n < 10 * d:
        warnings.warn(
            f"n = {scatter.n} rows are fewer than 10 × d = {10 * d}: chance makes them look alike, read the null, too.",
            stacklevel=3,
        )


def whitening(scatter: torch.Tensor, variance_kept: float = 0.99) -> Whitening:
    """W = U Λ^(-1/2), (d, k), and Λ, (k,), of the first principal directions that hold this share of the variance.

    Args:
        scatter: (d, d) of one side, as in :class:`~fivelenses.lenses.moments.Scatter`.
        variance_kept: as for :func:`svcca_distance`.

    Example:
        >>> to_white, variances = whitening(torch.diag(torch.tensor([4.0, 0.01], dtype=torch.float64)))
        >>> to_white.abs(), variances
        (tensor([[0.5000],
                [0.0000]], dtype=torch.float64), tensor([4.], dtype=torch.float64))
    """
    variances, directions = torch.linalg.eigh(scatter)
    variances, directions = variances.flip(0), directions.flip(1)
    kept = int((variances > RELATIVE_TOLERANCE * variances[0]).sum())
    return truncated((directions[:, :kept] / variances[:kept].sqrt(), variances[:kept]), variance_kept)


def truncated(whitened: Whitening, variance_kept: float) -> Whitening:
    """The first directions of a :func:`whitening` that hold a share of the variance: one decomposition serves several
    shares.
    """
    if not 0 < variance_kept <= 1:
        raise ValueError(f"variance_kept = {variance_kept} is not a share of variance in (0, 1].")
    to_white, variances = whitened
    if variance_kept == 1:
        return whitened
    held = variances.cumsum(0)
    # The slack is for rounding: of four equal directions two hold the half.
    kept = int((held < variance_kept * held[-1] * (1 - 1e-12)).sum()) + 1
    return to_white[:, :kept], variances[:kept]
