r"""SVCCA and PWCCA: how far two representations of the same tokens lie apart, whatever the basis of each.

With centred :math:`X` (n, d₁) and :math:`Y` (n, d₂), whose rows are the same tokens in the same order, their scatter
matrices :math:`S_{xx} = X^\top X`, :math:`S_{yy}` and :math:`S_{xy}`, and the first principal directions of each side,
:math:`S_{xx} \approx U_x \Lambda_x U_x^\top`:

.. math::

    \rho = \operatorname{singular\ values\ of}\ M = \Lambda_x^{-1/2} U_x^\top S_{xy} U_y \Lambda_y^{-1/2},

    \mathrm{SVCCA\ distance} = 1 - \operatorname{mean}(\rho), \qquad
    \mathrm{PWCCA\ distance} = 1 - \sum_i \frac{\alpha_i}{\sum_j \alpha_j} \rho_i.

SVCCA is of Raghu et al. 2017, PWCCA of Morcos et al. 2018 (:math:`\alpha_i` is the sum over features of the absolute
products of the feature with the i-th canonical variate). Both are in [0, 1], and 0 if one side is a linear image of the
other. Translation changes neither; an invertible linear map changes neither if ``variance_kept=1.0``.

Independent data do not reach the other end of the range: their mean correlation over d directions each is about
:math:`0.85 \sqrt{d/n}` (0.17 for d = 768 and n = 20 000). So a distance should be read beside its null, the same
measure of permuted rows.

Both follow from second moments, which :class:`~fivelenses.lenses.moments.Moments` gathers from a stream.
"""

import warnings

import torch

from fivelenses.lenses.arrays import Array
from fivelenses.lenses.moments import Scatter, scatter_of

# A direction is kept only if its variance is above this share of the largest: its deviation is then above 1e-5 of the
# largest, where single-precision input still has two digits, and the error of correlations is at most about 1e-6.
RELATIVE_TOLERANCE = 1e-10

# W (…, d, k) and variances Λ (…, k); a direction that is not kept is 0 in both.
Whitening = tuple[torch.Tensor, torch.Tensor]


def svcca_distance(x: Array | Scatter, y: Array | None = None, variance_kept: float = 0.99) -> float:
    """SVCCA distance, 1 − mean correlation over min(k₁, k₂), in [0, 1]; ``x`` may be the scatter of a pair.

    Each side keeps the first directions that hold the share ``variance_kept`` of its variance, in (0, 1], and of these
    only such whose variance is above ``RELATIVE_TOLERANCE`` of the largest. Refused: n ≤ d₁ + d₂ (some correlations are
    then 1 whatever the data) and a representation that does not vary. Fewer than 10 × max(d₁, d₂) rows raise a warning.

    Example:
        >>> x = torch.randn(100, 4, generator=torch.Generator().manual_seed(0))
        >>> round(svcca_distance(x, 3 - x.flip(1)), 6)
        0.0
    """
    scatter = enough_rows(scatter_of(x, y))
    return float(svcca(scatter.xy, *(whitening(own, variance_kept) for own in (scatter.xx, scatter.yy))))


def svcca(crossed: torch.Tensor, of_x: Whitening, of_y: Whitening) -> torch.Tensor:
    """(…,) SVCCA distances from S_xy (…, d₁, d₂) and each side's :func:`whitening`, which serves all of its pairs."""
    (to_x, variances_x), (to_y, variances_y) = of_x, of_y
    between = to_x.mT @ crossed @ to_y
    if between.shape[-2] < between.shape[-1]:
        between = between.mT
    # Singular values as roots of eigenvalues, exact to about 1e-8, since a GPU decomposes many symmetric matrices at
    # once. Rounding lifts a correlation above 1 by at most about 1e-6, see RELATIVE_TOLERANCE.
    correlations = torch.linalg.eigvalsh(between.mT @ between).clamp(0, 1).sqrt()
    return 1 - correlations.sum(-1) / torch.minimum(_count(variances_x), _count(variances_y))


def pwcca_distance(x: Array | Scatter, y: Array | None = None, variance_kept: float = 1.0) -> float:
    """PWCCA distance in [0, 1]; as :func:`svcca_distance`, without truncation by default.

    The weights are those of the side with fewer directions, and of x if the numbers are equal: then the distance of x
    to y is not that of y to x.

    Example:
        >>> x = torch.randn(100, 4, generator=torch.Generator().manual_seed(0))
        >>> round(pwcca_distance(x[:, :3], x), 6)
        0.0
    """
    scatter = enough_rows(scatter_of(x, y))
    return pwcca(scatter.xy, *(whitening(own, variance_kept) for own in (scatter.xx, scatter.yy)))


def pwcca(crossed: torch.Tensor, of_x: Whitening, of_y: Whitening) -> float:
    """PWCCA distance of one pair; arguments as :func:`svcca`."""
    if _count(of_x[1]) > _count(of_y[1]):
        crossed, of_x, of_y = crossed.mT, of_y, of_x
    (to_white, variances), (to_other, _) = of_x, of_y
    between = to_white.mT @ crossed @ to_other
    squares, variates = torch.linalg.eigh(between @ between.mT)
    # The products of X's features with its canonical variates X W P are (W Λ) P, since W = U Λ^(-1/2) whitens X.
    weights = ((to_white * variances) @ variates).abs().sum(0)
    return float(1 - (squares.clamp(0, 1).sqrt() @ weights) / weights.sum())


def enough_rows(scatter: Scatter) -> Scatter:
    """The scatter of a pair that CCA can compare; refused where it cannot."""
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
    """W = U Λ^(-1/2), (…, d, k), and Λ, (…, k), of the first principal directions that hold this share of the variance
    of one side's scatter, (…, d, d), k being the largest number of directions that one of several matrices keeps.

    Example:
        >>> to_white, variances = whitening(torch.diag(torch.tensor([4.0, 0.01], dtype=torch.float64)))
        >>> to_white.abs(), variances
        (tensor([[0.5000],
                [0.0000]], dtype=torch.float64), tensor([4.], dtype=torch.float64))
    """
    variances, directions = torch.linalg.eigh(scatter)
    variances, directions = variances.flip(-1), directions.flip(-1)
    variances = variances * (variances > RELATIVE_TOLERANCE * variances[..., :1])
    scales = torch.where(variances > 0, variances.rsqrt(), 0)
    return truncated((directions * scales[..., None, :], variances), variance_kept)


def truncated(whitened: Whitening, variance_kept: float) -> Whitening:
    """The first directions of a :func:`whitening` that hold a share of the variance: it serves several shares."""
    to_white, variances = whitened
    if variance_kept < 1:
        # A direction is kept while those before it hold less than the share; the slack is for rounding: of four equal
        # directions two hold the half.
        held = variances.cumsum(-1)
        variances = variances * (held - variances < variance_kept * held[..., -1:] * (1 - 1e-12))
    most = int(_count(variances).max())
    return to_white[..., :most] * (variances > 0)[..., None, :most], variances[..., :most]


def _count(variances: torch.Tensor) -> torch.Tensor:
    """How many directions are kept."""
    return (variances > 0).sum(-1)
