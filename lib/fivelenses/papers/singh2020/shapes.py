"""Is a falling curve a line, concave, or a step? Fitted and tested, not judged by eye.

A curve is the score of a model against the share of its layers that are re-initialised, from 0 to 1, with one value
per seed at each place. Three forms are fitted by least squares: a line, a parabola, and a logistic step. The parabola
against the line is an F-test (are the points bent?), and all three are compared by Akaike's criterion with the
correction for few points.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.optimize import OptimizeWarning, curve_fit
from scipy.special import expit
from scipy.stats import f as f_distribution

MIN_WIDTH, MAX_WIDTH = 0.02, 0.5  # of a logistic step, in shares of the depth
MIN_POINTS, MIN_PLACES = 7, 4  # the step has four parameters, and its criterion needs two more points
FLOOR = 1e-12  # share of the variance below which residuals are rounding


@dataclass(frozen=True)
class Shape:
    """The shape of a falling curve.

    Attributes:
        drop: fitted line's start minus its end, in units of the score.
        line_r2: share of the variance that a straight line explains, at most 1.
        curvature: coefficient of the square in the parabola, over the drop of the mean curve; negative is concave
            (falls late), 0 a line, positive convex (falls early).
        curvature_p: of the F-test that the square is not needed.
        step_centre: where the logistic step stands, as a share of the layers.
        best: `line`, `parabola` or `step`, the form with the least corrected Akaike criterion.
    """

    drop: float
    line_r2: float
    curvature: float
    curvature_p: float
    step_centre: float
    best: str


def _step(place, top, drop, centre, width):
    return top - drop * expit((place - centre) / width)


def fit_shape(place: np.ndarray, score: np.ndarray) -> Shape:
    """Fit the three forms to points of a curve.

    Args:
        place: (n,) shares of the layers in [0, 1], with repetitions (seeds).
        score: (n,) the scores there.

    Returns:
        The shape.

    Raises:
        ValueError: unequal lengths, a value that is not finite, fewer than seven points or four places, or a curve that
            does not fall.

    Example:
        >>> place = np.repeat([0.0, 0.25, 0.5, 0.75, 1.0], 2)
        >>> fit_shape(place, 1 - place**2).curvature < 0
        True
    """
    place, score = np.asarray(place, dtype=float), np.asarray(score, dtype=float)
    if place.shape != score.shape or place.ndim != 1:
        raise ValueError(f"A curve needs as many scores as places, not {score.shape} and {place.shape}.")
    if not (np.isfinite(place).all() and np.isfinite(score).all()):
        raise ValueError("A curve has a place or score that is not finite: a diverged training has no score to fit.")
    if place.size < MIN_POINTS or np.unique(place).size < MIN_PLACES:
        raise ValueError(f"A shape needs seven points at four places, not {place.size} at {np.unique(place).size}.")
    means = {at: score[place == at].mean() for at in np.unique(place)}
    fall = means[min(means)] - means[max(means)]
    if fall <= 0:
        raise ValueError("The curve does not fall from its first place to its last: it has no shape to name.")
    line, parabola = np.polyfit(place, score, 1), np.polyfit(place, score, 2)
    step, n, variation = _best_step(place, score, fall), place.size, ((score - score.mean()) ** 2).sum()
    fitted = {"line": np.polyval(line, place), "parabola": np.polyval(parabola, place), "step": _step(place, *step)}
    floor = FLOOR * max(variation, FLOOR)
    residuals = {name: max(((score - values) ** 2).sum(), floor) for name, values in fitted.items()}
    statistic = (residuals["line"] - residuals["parabola"]) / (residuals["parabola"] / (n - 3))
    parameters = {"line": 2, "parabola": 3, "step": 4}
    criteria = {name: _corrected_akaike(residuals[name], n, count) for name, count in parameters.items()}
    return Shape(
        drop=float(-line[0]),
        line_r2=float(1 - residuals["line"] / variation),
        curvature=float(parabola[0] / fall),
        curvature_p=float(f_distribution.sf(max(statistic, 0.0), 1, n - 3)),
        step_centre=float(step[2]),
        best=min(criteria, key=criteria.get),
    )


def _best_step(place: np.ndarray, score: np.ndarray, fall: float) -> np.ndarray:
    """The logistic step of least squares, from several starts: its surface has several valleys."""
    steps = []
    bounds = ([-np.inf, 0, 0, MIN_WIDTH], [np.inf, np.inf, 1, MAX_WIDTH])
    for centre in (0.15, 0.35, 0.5, 0.65, 0.85):
        start = (score.max(), fall, centre, 0.1)
        with warnings.catch_warnings():
            # The covariance, which is not used, cannot be told where the fit is exact.
            warnings.simplefilter("ignore", OptimizeWarning)
            steps.append(curve_fit(_step, place, score, start, bounds=bounds, max_nfev=5_000)[0])
    return min(steps, key=lambda step: ((score - _step(place, *step)) ** 2).sum())


def _corrected_akaike(residual: float, n: int, parameters: int) -> float:
    k = parameters + 1  # and the variance
    return n * np.log(residual / n) + 2 * k + 2 * k * (k + 1) / (n - k - 1)


def concavity(place: np.ndarray, score: np.ndarray) -> float:
    """Area between a curve and the straight line from its first point to its last, over its drop.

    Args:
        place: (n,) increasing, from 0 to 1.
        score: (n,) the score there, one per place.

    Returns:
        In [-1/2, 1/2] for a curve that only falls: 1/2 falls at the very end, 0 is a line, -1/2 falls at once.

    Raises:
        ValueError: places that do not run from 0 to 1, or a curve that does not fall.

    Example:
        >>> round(concavity(np.array([0.0, 0.5, 1.0]), np.array([0.9, 0.9, 0.5])), 3)
        0.25
    """
    place, score = np.asarray(place, dtype=float), np.asarray(score, dtype=float)
    if place.size < 2 or place[0] != 0 or place[-1] != 1 or (np.diff(place) <= 0).any():
        raise ValueError("Concavity needs places that increase from 0 to 1.")
    drop = score[0] - score[-1]
    if not drop > 0:
        raise ValueError("The curve does not fall from its first place to its last: it has no shape to name.")
    return float(np.trapezoid((score - score[-1]) / drop, place) - 0.5)
