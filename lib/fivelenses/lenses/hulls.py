r"""The distance between the convex hulls of two sets of points, with its proof.

.. math::

    \min_{\alpha, \beta} \Bigl\Vert \sum_i \alpha_i a_i - \sum_j \beta_j b_j \Bigr\Vert
    \;=\; \max_{\Vert w \Vert = 1} \Bigl( \min_i a_i \cdot w - \max_j b_j \cdot w \Bigr),
    \qquad \alpha, \beta \ge 0, \quad \sum_i \alpha_i = \sum_j \beta_j = 1,

if it is above 0, which is twice the hard margin of a linear classifier between the two sets; it is 0 iff the hulls
meet (Zhou & Srikumar 2021). A separation is proven by a hyperplane checked against all points of both hulls, a meeting
by a point that lies in both, and a distance by the bounds from both sides of the equation. Hulls meet if they are
closer than the tolerance times the pair's radius, the largest distance of one of its points from their mean.

Shapes: points (n, d). Distances are in the points' own units, in [0, ∞); moving and rotating the points changes none.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.optimize import linprog
from threadpoolctl import ThreadpoolController

from fivelenses.lenses.arrays import Array, as_doubles

# Hulls closer than this share of their radius meet. Single-precision activations are rounded at 6e-8 of their size, and
# after layer normalisation they differ only by rounding in some directions, where a finer tolerance would see a gap.
TOLERANCE = 1e-6

# The largest value of a point whose squares, and their sums, are numbers of double precision.
LARGEST = (1e-140, 1e140)

# A distance is exact if its two bounds agree to this share of it, plus ROUNDING of the radius.
RELATIVE_GAP = 1e-9
ROUNDING = 1e-14

# A difference below this share of the radius is minimised without the Gram matrix, where rounding would hide it.
NEAR = 1e-4

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
        weights_a: (n_a,) weights of the points of a whose convex combination is the nearest point found.
        weights_b: (n_b,) those of b. If the hulls meet, the two nearest points are equal within ``tolerance``.
        tolerance: the distance, in the points' units, below which hulls meet.
    """

    distance: float
    lower: float
    separable: bool
    normal: np.ndarray | None
    weights_a: np.ndarray
    weights_b: np.ndarray
    tolerance: float


@one_thread
def hull_distance(a: Array, b: Array) -> HullDistance:
    """The distance between the convex hulls of two sets of points.

    Args:
        a: (n_a, d).
        b: (n_b, d).

    Refused: wrong shapes, values that are not finite or whose squares are no numbers, or hulls so near the tolerance
    that rounding decides.

    Example:
        >>> triangle = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
        >>> result = hull_distance(triangle, np.array([[3.0, 3.0]]))
        >>> round(result.distance, 6), result.weights_a.round(3)
        (1.414214, array([0. , 0.5, 0.5]))
        >>> hull_distance(triangle, np.array([[1.0, 1.0]])).separable
        False
    """
    a, b = checked_points("a", a), checked_points("b", b)
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"a has {a.shape[1]} features and b has {b.shape[1]}: hulls must lie in the same space.")
    largest = float(max(np.abs(a).max(), np.abs(b).max()))
    if not (largest == 0 or LARGEST[0] <= largest <= LARGEST[1]):
        raise ValueError(f"The points' largest value is {largest:.1g}, whose square is no number: rescale them.")
    return nearest_points(a, b, None, exact=True)


def nearest_points(
    a: np.ndarray,
    b: np.ndarray,
    direction: np.ndarray | None,
    exact: bool,
    weights: np.ndarray | None = None,
) -> HullDistance:
    """The distance of checked points, or without ``exact`` only whether the hulls meet: the distance is then a bound.

    A ``direction`` that separates them is checked with one product. ``weights``, (n_a + n_b,), are a guess such as
    those of a subset's nearest points, and save most of the rounds if they are good.
    """
    pair = _Pair(a, b)
    guess = pair.z[: pair.n_a].mean(0) + pair.z[pair.n_a :].mean(0) if direction is None else direction
    scores = pair.bound(guess) if np.any(guess) else np.zeros(len(pair.z))
    if not exact and pair.separated:
        pair.x[scores[: pair.n_a].argmin()] = pair.x[pair.n_a + scores[pair.n_a :].argmin()] = 1
        return pair.answer(separable=True)
    separable = _descend(pair, scores, exact, weights)
    return pair.answer(_by_linear_program(pair) if separable is None else separable)


class _Pair:
    """Two sets of points about a common origin, those of b negated: z (n, d), with weights x of the nearest points
    found, and the best lower bound checked so far with its normal.
    """

    def __init__(self, a: np.ndarray, b: np.ndarray) -> None:
        self.n_a, n = len(a), len(a) + len(b)
        # Weights sum to 1 on either side, so that the origin is free; near the points, rounding errors are smallest.
        origin = (a.sum(0) + b.sum(0)) / n
        self.z = np.empty((n, a.shape[1]))
        np.subtract(a, origin, out=self.z[: self.n_a])
        np.subtract(origin, b, out=self.z[self.n_a :])
        self.radius = float(np.sqrt(np.einsum("ij,ij->i", self.z, self.z).max()))
        self.tolerance = TOLERANCE * self.radius
        self.side = np.zeros((n, 2))
        self.side[: self.n_a, 0] = self.side[self.n_a :, 1] = 1
        self.x = np.zeros(n)
        self.lower, self.normal = -np.inf, np.zeros(a.shape[1])

    @property
    def separated(self) -> bool:
        return self.lower > self.tolerance

    def bound(self, w: np.ndarray) -> np.ndarray:
        """The points' scores along a direction, whose gap is a lower bound."""
        unit = w / np.linalg.norm(w)
        scores = self.z @ unit
        gap = float(scores[: self.n_a].min() + scores[self.n_a :].min())
        if gap > self.lower:
            self.lower, self.normal = gap, unit
        return scores

    def answer(self, separable: bool) -> HullDistance:
        x_a, x_b = self.x[: self.n_a], self.x[self.n_a :]
        if not separable:
            return HullDistance(0.0, 0.0, False, None, x_a, x_b, self.tolerance)
        distance = float(np.linalg.norm(self.x @ self.z))
        return HullDistance(distance, min(self.lower, distance), True, self.normal, x_a, x_b, self.tolerance)


def _descend(pair: _Pair, scores: np.ndarray, exact: bool, weights: np.ndarray | None) -> bool | None:
    """Whether the hulls are disjoint, by an active-set method that minimises ‖zᵀx‖; None where rounding stops it.

    Points on the wrong side of the current difference w = zᵀx enter the active set, many at a time; on the active set
    Newton's step is exact. ‖w‖ falls in each round, so that no set occurs twice: the method ends, in practice within
    ten rounds, with both bounds equal up to rounding.
    """
    x, z, side, n_a = pair.x, pair.z, pair.side, pair.n_a
    active = _lowest(scores, np.ones(len(z), dtype=bool), n_a, 16)
    if weights is None:
        x[active] = 1 / (side[active] @ side[active].sum(0))
    else:
        x[:] = weights
        active = np.union1d(active, np.flatnonzero(weights))
    gram, length = z[active] @ z[active].T, np.inf
    while True:
        active, gram = _minimise(x, z, side, active, gram)
        w = x[active] @ z[active]
        previous, length = length, float(np.linalg.norm(w))
        if length <= pair.tolerance:
            return False
        scores = pair.bound(w)
        if length - pair.lower <= RELATIVE_GAP * length + ROUNDING * pair.radius or (not exact and pair.separated):
            return True
        entering = scores < side @ (side.T @ (x * scores))
        entering[active] = False
        if length >= previous or not entering.any():
            return True if pair.separated else None
        added = _lowest(scores, entering, n_a, max(4, len(active) // 2))
        cross = z[added] @ z[active].T
        gram = np.block([[gram, cross.T], [cross, z[added] @ z[added].T]])
        active = np.concatenate([active, added])


def _minimise(
    x: np.ndarray, z: np.ndarray, side: np.ndarray, active: np.ndarray, gram: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise ‖zᵀx‖ over the weights of the active points, in place; returns the points that keep weight, and Gram.

    Newton's step p solves min ‖w + zᵀp‖² + ridge ‖p‖² with sums of 0 on both sides; the ridge, at the level of
    rounding, is for linearly dependent active points. Points whose weight the step would make negative leave: those
    without weight at once; others together if the difference still gets shorter; else the first one that reaches 0.
    """
    ridge = 1e-13 * float(np.trace(gram))
    while True:
        w = x[active] @ z[active]
        if w @ w <= NEAR**2 * gram.diagonal().max():
            step = _step_without_gram(w, z[active], side[active], x[active])
        else:
            step, ridge = _step(w, z[active], side[active], gram, ridge)
        sums = side[active]
        old = x[active]
        new = old + step
        useless = (old == 0) & (step < 0)
        if useless.any():
            new = np.where(useless, 0, old)
            keep = ~useless
        elif new.min() >= 0:
            keep = None
        else:
            new = np.maximum(new, 0)
            new /= sums @ (new @ sums)
            shorter = new @ z[active]
            if shorter @ shorter > w @ w * (1 - 1e-3):
                falling = np.flatnonzero(step < 0)
                ratios = old[falling] / -step[falling]
                new = np.maximum(old + ratios.min() * step, 0)
                new[falling[ratios.argmin()]] = 0
            keep = new > 0
        x[active] = new / (sums @ (new @ sums))
        left = x[active] > 0 if keep is None else keep
        if not left.all():
            active, gram = active[left], gram[np.ix_(left, left)]
        if keep is None:
            return active, gram


def _step(w: np.ndarray, z: np.ndarray, sums: np.ndarray, gram: np.ndarray, ridge: float) -> tuple[np.ndarray, float]:
    """Newton's step by a Cholesky factor of the Gram matrix, and the ridge that it needed."""
    # Steps sum to 0 on both sides, so that the added ones only make the matrix definite.
    matrix = gram + (sums @ sums.T) * gram.trace() / len(gram)
    while True:
        matrix.flat[:: len(gram) + 1] += ridge
        factor, failed = dpotrf(matrix, lower=1)
        if not failed:
            break
        ridge = 100 * max(ridge, np.finfo(float).tiny)
    solved = dpotrs(factor, np.column_stack([z @ w, sums]), lower=1)[0]
    return solved[:, 1:] @ np.linalg.solve(sums.T @ solved[:, 1:], sums.T @ solved[:, 0]) - solved[:, 0], ridge


def _step_without_gram(w: np.ndarray, z: np.ndarray, sums: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The same step by singular values for short w: unlike the Gram matrix, they do not square the condition."""
    heaviest = (x[:, None] * sums).argmax(0)
    step = np.linalg.lstsq((z - sums @ z[heaviest]).T, -w)[0]
    step[heaviest] = 0
    step[heaviest] = -(step @ sums)
    return step


def _lowest(scores: np.ndarray, allowed: np.ndarray, n_a: int, count: int) -> np.ndarray:
    """The indices of up to ``count`` lowest scores on either side, among those allowed."""
    lowest = []
    for first, last in ((0, n_a), (n_a, len(scores))):
        places = first + np.flatnonzero(allowed[first:last])
        if len(places) > count:
            places = places[np.argpartition(scores[places], count - 1)[:count]]
        lowest.append(places)
    return np.concatenate(lowest)


def _by_linear_program(pair: _Pair) -> bool:
    """Whether the hulls are disjoint, by the widest gap over directions |wᵢ| ≤ 1: slow, and only a proposal."""
    z, side, (n, d) = pair.z / pair.radius, pair.side, pair.z.shape
    # Interior points, since HiGHS's dual simplex may take hours if the gap is near the tolerances.
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    bounds = [(-1, 1)] * d + [(None, None)] * 2
    solved = linprog(
        np.repeat([0.0, -1.0], [d, 2]), np.hstack([-z, side]), np.zeros(n), bounds=bounds, method="highs-ipm",
        options=options,
    )  # fmt: skip
    if solved.x is None:
        weights, w = side @ (1 / side.sum(0)), np.zeros(d)
    else:
        weights, w = np.maximum(-solved.ineqlin.marginals, 0), solved.x[:d]
        weights = weights / (side @ (weights @ side))
    pair.x = weights
    if np.linalg.norm(weights @ pair.z) <= pair.tolerance:
        return False
    if np.any(w):
        pair.bound(w)
    if pair.lower <= 0:
        raise ValueError(
            f"Hulls of {pair.n_a} and {n - pair.n_a} points are so near the tolerance, {pair.tolerance:g}, that "
            "rounding hides whether they meet: give a larger tolerance."
        )
    return True


def checked_points(name: str, points: Array) -> np.ndarray:
    """Points as (n, d) doubles, refused if they are none or not finite."""
    points = as_doubles(points)
    if points.ndim != 2 or 0 in points.shape:
        raise ValueError(f"{name} has shape {points.shape}, not (n, d) with at least one point and one feature.")
    finite = np.isfinite(points).all(1)
    if not finite.all():
        raise ValueError(f"{name}, row {int(finite.argmin())}: the point holds NaN or infinity; remove it.")
    return points
