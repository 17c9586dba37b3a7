r"""Rank correlations of curves over layers, their means over models with intervals, and what chance would do.

For two measures with values :math:`a_l` and :math:`b_l` at layers 1…L, Spearman's correlation is Pearson's of their
ranks, ties at their mean rank,

.. math:: \rho_{ab} = \frac{\sum_l (r^a_l - \bar r)(r^b_l - \bar r)}
    {\sqrt{\sum_l (r^a_l - \bar r)^2 \sum_l (r^b_l - \bar r)^2}},

undefined where one of them is the same at all layers. Undefined correlations are NaN here, left out of means and
counted, never taken for 0.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.stats import bootstrap, permutation_test, rankdata, spearmanr

from fivelenses.lenses.arrays import Array
from fivelenses.papers.five_lenses.measure import MIN_LAYERS

LEVEL = 0.95
RESAMPLES = 10_000  # of a bootstrap, and orders of layers; all orders of seven layers are fewer
SEED = 0


@dataclass(frozen=True)
class Estimate:
    """A mean over models.

    Attributes:
        value: the mean over the models for which it is defined; NaN for none.
        low, high: its bootstrap interval of 95 %; NaN for fewer than two models.
        models: how many were averaged.
    """

    value: float
    low: float
    high: float
    models: int

    def __str__(self) -> str:
        interval = "" if np.isnan(self.low) else f" ({number(self.low)} to {number(self.high)})"
        return number(self.value) + interval


def number(value: float) -> str:
    """A number as it is printed: two digits, a minus sign that is one, no negative zero, and words for NaN.

    Example:
        >>> number(-0.304), number(-0.001), number(float("nan"))
        ('−0.30', '0.00', 'undefined')
    """
    return "undefined" if np.isnan(value) else f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")


def _checked(curve: Array) -> np.ndarray:
    curve = np.asarray(curve, dtype=float)
    if curve.ndim != 1 or len(curve) < MIN_LAYERS:
        raise ValueError(f"A curve of shape {curve.shape}: an order of layers needs at least {MIN_LAYERS} layers.")
    if not np.isfinite(curve).all():
        raise ValueError("A curve holds NaN or infinity: its layers have no order.")
    return curve


def rank_correlation(first: Array, second: Array) -> float:
    """Spearman's rank correlation of two curves over layers, in [-1, 1]; NaN where one of them is constant.

    Args:
        first, second: (layers,) at least three.

    Raises:
        ValueError: curves over different layers, another shape, fewer than three layers, NaN or infinity.

    Example:
        >>> rank_correlation([1, 2, 3, 9], [0.1, 0.3, 0.2, 0.4]), rank_correlation([1, 2, 3], [5, 5, 5])
        (0.8, nan)
    """
    first, second = _checked(first), _checked(second)
    if first.shape != second.shape:
        raise ValueError(f"Curves over {len(first)} and {len(second)} layers: a correlation needs the same layers.")
    if not (np.ptp(first) > 0 and np.ptp(second) > 0):
        return np.nan
    return float(np.round(spearmanr(first, second).statistic, 12))


def partial_correlation(of_pair: float, first_with_third: float, second_with_third: float) -> float:
    r"""What is left of a correlation when a third quantity is held fixed, in [-1, 1]; NaN where that fixes either.

    .. math:: \rho_{ab \cdot d} = (\rho_{ab} - \rho_{ad} \rho_{bd}) / \sqrt{(1 - \rho_{ad}^2)(1 - \rho_{bd}^2)}

    Example:
        >>> partial_correlation(0.5, 0.0, 0.0), partial_correlation(0.9, 1.0, 0.9)
        (0.5, nan)
    """
    left = (1 - first_with_third**2) * (1 - second_with_third**2)
    if not left > 1e-12:
        return np.nan
    return float(np.clip((of_pair - first_with_third * second_with_third) / np.sqrt(left), -1, 1))


def mean_over_models(values: Iterable[float], resamples: int = RESAMPLES) -> Estimate:
    """The mean of one number per model, with percentiles of the means of models resampled with replacement.

    Args:
        values: one per model; NaN where it is undefined.
        resamples: of the bootstrap.

    Raises:
        ValueError: an infinite value.

    Example:
        >>> str(mean_over_models([0.5, 0.5, float("nan")])), str(mean_over_models([0.4]))
        ('0.50 (0.50 to 0.50)', '0.40')
    """
    values = np.asarray(list(values), dtype=float)
    if np.isinf(values).any():
        raise ValueError("A value is infinite: take measures of models whose training did not diverge.")
    values = values[~np.isnan(values)]
    if not len(values):
        return Estimate(np.nan, np.nan, np.nan, 0)
    low = high = np.nan
    if len(values) > 1:
        drawn = dict(n_resamples=resamples, confidence_level=LEVEL, method="percentile", rng=SEED)
        low, high = bootstrap((values,), np.mean, **drawn).confidence_interval
    return Estimate(float(values.mean()), float(low), float(high), len(values))


def standardised_ranks(curve: Array) -> np.ndarray:
    """Ranks with mean 0 and length 1, so that products of two are their correlation; NaN where all values are equal.

    Args:
        curve: (layers,) at least three.

    Raises:
        ValueError: as :func:`rank_correlation`.

    Example:
        >>> standardised_ranks([10.0, 20.0, 1000.0]).round(3)
        array([-0.707,  0.   ,  0.707])
    """
    ranks = rankdata(_checked(curve)) - (len(curve) + 1) / 2
    length = np.linalg.norm(ranks)
    return ranks / length if length > 0 else np.full_like(ranks, np.nan)


def permutation_p(products: Array, resamples: int = RESAMPLES) -> float:
    r"""How often another order of the layers of one side correlates with the other as strongly, two-sided.

    Args:
        products: (layers, layers), the products of standardised ranks :math:`z^a_i z^b_j`, averaged over whatever pairs
            of curves are relabelled alike: the sum of the diagonal is their mean correlation.
        resamples: orders that are drawn; all of them where there are no more.

    Returns:
        The p-value, exact where all orders were tried.

    Example:
        >>> rising = standardised_ranks([1, 2, 3, 4, 5])
        >>> round(permutation_p(np.outer(rising, rising)) * 120)
        2
    """
    return float(_permuted(np.asarray(products, dtype=float), resamples).pvalue)


def chance_bound(layers: int, resamples: int = RESAMPLES) -> float:
    """The rank correlation that two unrelated curves over so many layers exceed, up or down, in at most 5 % of cases.

    Example:
        >>> round(chance_bound(6), 3)
        0.829
    """
    ranks = standardised_ranks(np.arange(layers))
    drawn = _permuted(np.outer(ranks, ranks), resamples).null_distribution
    return float(np.quantile(np.abs(drawn), LEVEL, method="inverted_cdf"))


def _permuted(products: np.ndarray, resamples: int):
    layers = np.arange(len(products))

    def correlation(order: np.ndarray, axis: int = -1) -> np.ndarray:
        places = np.moveaxis(order, axis, -1)
        # Equal sums that were added up in another order differ in their last digits.
        return np.round(products[places, layers].sum(axis=-1), 12)

    drawn = dict(permutation_type="pairings", vectorized=True, n_resamples=resamples, rng=SEED)
    return permutation_test((layers,), correlation, **drawn)


def holm(p_values: Iterable[float]) -> np.ndarray:
    """p-values adjusted by Holm's step-down method; NaN stays NaN and is not counted.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        array([0.03, 0.06, 0.06])
    """
    p_values = np.asarray(list(p_values), dtype=float)
    adjusted = np.full_like(p_values, np.nan)
    there = np.flatnonzero(~np.isnan(p_values))
    order = there[np.argsort(p_values[there], kind="stable")]
    raised = (len(order) - np.arange(len(order))) * p_values[order]
    adjusted[order] = np.minimum(np.maximum.accumulate(raised), 1.0)
    return adjusted


def scaled(curve: Array) -> np.ndarray:
    """A curve's values scaled to [0, 1] by its own range; NaN throughout where it is constant.

    Example:
        >>> scaled([1.0, 3.0, 2.0])
        array([0. , 1. , 0.5])
    """
    curve = np.asarray(curve, dtype=float)
    extent = np.ptp(curve)
    return (curve - curve.min()) / extent if extent > 0 else np.full_like(curve, np.nan)
