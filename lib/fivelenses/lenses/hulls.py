r"""The distance between the convex hulls of two sets of points, with its proof.

.. math::

    \min_{\alpha, \beta} \Bigl\Vert \sum_i \alpha_i a_i - \sum_j \beta_j b_j \Bigr\Vert
    \;=\; \max_{\Vert w \Vert = 1} \Bigl( \min_i a_i \cdot w - \max_j b_j \cdot w \Bigr),
    \qquad \alpha, \beta \ge 0, \quad \sum_i \alpha_i = \sum_j \beta_j = 1,

if it is above 0, which is twice the hard margin of a linear classifier between the two sets; it is 0 iff the hulls
meet (Zhou & Srikumar 2021). A separation is proven by a hyperplane checked against all points of both hulls, a meeting
by a point that lies in both, and a distance by the bounds from both sides of the equation, which agree to about 1e-7 of
it. Hulls meet if they are closer than 1e-6 of the pair's radius, the largest distance of a point from the mean of all.

Shapes: points (n, d). Distances are in the points' own units, in [0, ∞); moving and rotating the points changes none.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls
from threadpoolctl import ThreadpoolController

from fivelenses.lenses.arrays import Array, as_array

# Hulls closer than this share of their radius meet. Single-precision activations are rounded at 6e-8 of their size, and
# after layer normalisation they differ only by rounding in some directions, where a finer tolerance would see a gap.
TOLERANCE = 1e-6

# The search ends when the two bounds of a distance agree to this share of it.
RELATIVE_GAP = 1e-9

# The weight of the rows that hold the sums of weights at 1 in least squares, where points have a radius of 1.
HEAVY = 1e4

# Steps of least squares per active point: a pair of hulls in 768 dimensions took 3.7, SciPy allows 3.
MOST_STEPS = 100

# NumPy and SciPy have a thread pool each, and on matrices this small the threads mostly wait for each other.
one_thread = ThreadpoolController().wrap(limits=1, user_api="blas")


@dataclass(frozen=True, eq=False)
class HullDistance:
    """The distance between the hulls of a and b, with its proof.

    Attributes:
        distance: between the nearest points found, an upper bound; 0 if the hulls meet.
        lower: min(a @ normal) - max(b @ normal), a checked lower bound; 0 if the hulls meet.
        separable: whether the hulls do not meet.
        normal: (d,) unit vector from b to a, normal to a separating hyperplane; None if the hulls meet.
        weights_a, weights_b: (n_a,) and (n_b,) weights of the points whose convex combinations are the nearest points
            found. If the hulls meet, these are the same point, up to what counts as meeting.
    """

    distance: float
    lower: float
    separable: bool
    normal: np.ndarray | None
    weights_a: np.ndarray
    weights_b: np.ndarray


@one_thread
def hull_distance(a: Array, b: Array) -> HullDistance:
    """The distance between the convex hulls of two sets of points, (n_a, d) and (n_b, d).

    Refused: wrong shapes, values that are not finite, or hulls so near the tolerance that rounding decides.

    Example:
        >>> triangle = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
        >>> result = hull_distance(triangle, np.array([[3.0, 3.0]]))
        >>> round(result.distance, 6), result.weights_a.round(3)
        (1.414214, array([0. , 0.5, 0.5]))
        >>> hull_distance(triangle, np.array([[1.0, 1.0]])).separable
        False
    """
    return nearest_points(checked_points("a", a), checked_points("b", b))


def nearest_points(
    a: np.ndarray, b: np.ndarray, exact: bool = True, direction: np.ndarray | None = None
) -> HullDistance:
    """The distance of checked points, or without ``exact`` only whether the hulls meet: the distance is then a bound.

    Points with the least score along the current difference of the nearest points join the active ones, many at a time,
    and least squares gives their weights, most of which are 0. The difference gets shorter in each round, so that no
    set occurs twice: the search ends, in practice within ten rounds. A ``direction`` (d,), a guess of the difference,
    that separates the hulls decides at once.
    """
    pair = _Pair(a, b)
    guess = pair.z[: pair.n_a].mean(0) + pair.z[pair.n_a :].mean(0) if direction is None else direction
    scores = pair.bound(guess) if np.any(guess) else np.zeros(len(pair.z))
    if not exact and pair.lower > pair.tolerance:
        pair.x[scores[: pair.n_a].argmin()] = pair.x[pair.n_a + scores[pair.n_a :].argmin()] = 1
        return pair.answer(separable=True)
    active = pair.lowest(scores, np.ones(len(scores), dtype=bool), 16)
    length = np.inf
    while True:
        w = pair.weigh(active)
        previous, length = length, float(np.linalg.norm(w))
        if length <= pair.tolerance:
            return pair.answer(separable=False)
        scores = pair.bound(w)
        proven = length - pair.lower <= RELATIVE_GAP * length
        if proven or (not exact and pair.lower > pair.tolerance):
            return pair.answer(separable=True)
        active = np.flatnonzero(pair.x)
        entering = scores < pair.side @ (pair.side.T @ (pair.x * scores))
        entering[active] = False
        if length >= previous or not entering.any():
            if pair.lower <= 0:
                raise ValueError(f"Rounding hides whether hulls of {len(a)} and {len(b)} points meet: leave one out.")
            return pair.answer(separable=True)
        active = np.concatenate([active, pair.lowest(scores, entering, max(4, len(active) // 2))])


class _Pair:
    """Two sets of points about a common origin, those of b negated: z (n, d), and the best bounds found so far."""

    def __init__(self, a: np.ndarray, b: np.ndarray) -> None:
        self.n_a = len(a)
        # Weights sum to 1 on either side, so that the origin is free; near the points, rounding errors are smallest.
        origin = (a.sum(0) + b.sum(0)) / (len(a) + len(b))
        self.z = np.empty((len(a) + len(b), a.shape[1]))
        np.subtract(a, origin, out=self.z[: self.n_a])
        np.subtract(origin, b, out=self.z[self.n_a :])
        self.radius = float(np.sqrt(np.einsum("ij,ij->i", self.z, self.z).max()))
        self.tolerance = TOLERANCE * self.radius
        self.side = np.repeat(np.eye(2), [len(a), len(b)], axis=0)
        self.x = np.zeros(len(self.z))
        self.lower, self.normal = -np.inf, None

    def weigh(self, active: np.ndarray) -> np.ndarray:
        """Give the active points the weights that make the difference zᵀx shortest, and return it."""
        side = self.side[active]
        rows = np.vstack([self.z[active].T / (self.radius or 1), HEAVY * side.T])
        sums = np.append(np.zeros(self.z.shape[1]), [HEAVY, HEAVY])
        weights, _ = nnls(rows, sums, maxiter=MOST_STEPS * len(active))
        self.x[:] = 0
        self.x[active] = weights / (side @ (weights @ side))
        return self.x[active] @ self.z[active]

    def bound(self, w: np.ndarray) -> np.ndarray:
        """The points' scores along a direction, whose gap is a lower bound."""
        unit = w / np.linalg.norm(w)
        scores = self.z @ unit
        gap = float(scores[: self.n_a].min() + scores[self.n_a :].min())
        if gap > self.lower:
            self.lower, self.normal = gap, unit
        return scores

    def lowest(self, scores: np.ndarray, allowed: np.ndarray, count: int) -> np.ndarray:
        """The places of up to ``count`` lowest scores on either side, among those allowed."""
        lowest = []
        for first, last in ((0, self.n_a), (self.n_a, len(scores))):
            places = first + np.flatnonzero(allowed[first:last])
            if len(places) > count:
                places = places[np.argpartition(scores[places], count - 1)[:count]]
            lowest.append(places)
        return np.concatenate(lowest)

    def answer(self, separable: bool) -> HullDistance:
        weights = self.x[: self.n_a], self.x[self.n_a :]
        if not separable:
            return HullDistance(0.0, 0.0, False, None, *weights)
        distance = float(np.linalg.norm(self.x @ self.z))
        return HullDistance(distance, min(self.lower, distance), True, self.normal, *weights)


def checked_points(name: str, points: Array) -> np.ndarray:
    """Points as (n, d) doubles, refused if they are none or not finite."""
    points = as_array(points).astype(float)
    if points.ndim != 2 or 0 in points.shape:
        raise ValueError(f"{name} has shape {points.shape}, not (n, d) with at least one point and one feature.")
    finite = np.isfinite(points).all(1)
    if not finite.all():
        raise ValueError(f"{name}, row {int(finite.argmin())}: the point holds NaN or infinity; remove it.")
    return points
