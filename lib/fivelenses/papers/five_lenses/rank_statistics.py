r"""Rank correlations of curves over layers.

For two measures with values :math:`a_l` and :math:`b_l` at layers 1…L, Spearman's correlation is Pearson's of their
ranks, ties at their mean rank,

.. math:: \rho_{ab} = \frac{\sum_l (r^a_l - \bar r)(r^b_l - \bar r)}
    {\sqrt{\sum_l (r^a_l - \bar r)^2 \sum_l (r^b_l - \bar r)^2}},

undefined where one of them is the same at all layers. Undefined correlations are NaN here, left out of means and
counted, never taken for 0. Layers are no sample: nothing here asks how a correlation would vary with other layers.
"""

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from fivelenses.first_exhibits.effects import Interval
from fivelenses.papers.five_lenses.instruments import MIN_LAYERS


def number(value: float) -> str:
    """A number as it is printed: two digits, a minus sign that is one, no negative zero, and words for NaN.

    Example:
        >>> number(-0.304), number(-0.001), number(float("nan"))
        ('−0.30', '0.00', 'undefined')
    """
    return "undefined" if np.isnan(value) else f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")


def with_interval(interval: Interval | None) -> str:
    """A mean with its interval of 95 %, where that was measured.

    Example:
        >>> from fivelenses.first_exhibits.effects import over_models, without_interval
        >>> with_interval(over_models([0.4, 0.6, 0.5])), with_interval(without_interval(0.5)), with_interval(None)
        ('0.50 (0.25 to 0.75)', '0.50', 'undefined')
    """
    if interval is None or not interval.measured:
        return "undefined" if interval is None else number(interval.estimate)
    return between(interval.estimate, interval.low, interval.high)


def between(value: float, low: float, high: float) -> str:
    """A number with the ends of its interval, where there are such.

    Example:
        >>> between(0.5, 0.25, 0.75), between(0.5, float("nan"), float("nan"))
        ('0.50 (0.25 to 0.75)', '0.50')
    """
    return number(value) + (f" ({number(low)} to {number(high)})" if np.isfinite(low) else "")


def rank_correlations(curves: pd.DataFrame) -> pd.DataFrame:
    """Spearman's rank correlation of each curve with each other, in [-1, 1]; NaN where one of them is constant.

    Args:
        curves: one row per curve, one column per layer; refused are fewer than three layers, NaN or infinity.

    Example:
        >>> curves = pd.DataFrame([[1, 2, 3, 9], [0.1, 0.3, 0.2, 0.4], [5, 5, 5, 5]], ["a", "b", "c"])
        >>> rank_correlations(curves).loc["a"].tolist()
        [1.0, 0.8, nan]
    """
    values = _correlations(curves.to_numpy(dtype=float))
    return pd.DataFrame(values, index=curves.index, columns=curves.index)


def _correlations(curves: np.ndarray) -> np.ndarray:
    """(curves, layers) to (curves, curves)."""
    layers = curves.shape[1]
    if layers < MIN_LAYERS:
        raise ValueError(f"Curves over {layers} layers: an order of layers needs at least {MIN_LAYERS}.")
    if not np.isfinite(curves).all():
        raise ValueError("A curve holds NaN or infinity: its layers have no order.")
    ranks = rankdata(curves, axis=1) - (layers + 1) / 2
    length = np.linalg.norm(ranks, axis=1, keepdims=True)
    ranks = ranks / np.where(length > 0, length, np.nan)
    # Rounded, because equal sums that were added up in another order differ in their last digits.
    return np.clip(ranks @ ranks.T, -1, 1).round(12)


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """That of two curves; refused over different layers, and what `rank_correlations` refuses.

    Example:
        >>> rank_correlation([1, 2, 3, 9], [0.1, 0.3, 0.2, 0.4])
        0.8
    """
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(f"Curves of shapes {first.shape} and {second.shape}: a correlation needs the same layers.")
    return float(_correlations(np.stack([first, second]))[0, 1])


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


def scaled(curve: np.ndarray) -> np.ndarray:
    """A curve's values scaled to [0, 1] by its own range; NaN throughout where it is constant.

    Example:
        >>> scaled([1.0, 3.0, 2.0])
        array([0. , 1. , 0.5])
    """
    curve = np.asarray(curve, dtype=float)
    extent = np.ptp(curve)
    return (curve - curve.min()) / extent if extent > 0 else np.full_like(curve, np.nan)
