r"""DirectProbe: the geometry of the points of different labels, without a classifier.

The points of each label are merged into clusters, as long as the convex hulls of clusters of different labels do not
meet (Zhou & Srikumar 2021). If there are as many clusters as labels, the labels are linearly separable, and the vector
of the distances of all pairs of hulls (:mod:`~fivelenses.lenses.hulls`, with their proofs) describes their geometry.
The spatial similarity of two representations is Pearson's r of two such vectors.

Shapes: points (n, d), labels (n,). Distances are in the points' own units, in [0, ∞); a similarity is in [-1, 1].
Moving and rotating the points changes nothing; scaling them scales distances and nothing else.

n points in general position in n - 1 or more dimensions are separable whatever their labels are, so that separability
should be compared with that of the same points with random labels, see :func:`random_label_control`.
"""

from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import cdist, pdist

from fivelenses.lenses.arrays import Array, as_array
from fivelenses.lenses.hulls import RELATIVE_GAP, TOLERANCE, HullDistance, checked_points, nearest_points, one_thread

# Of the points along an axis: the squares of their differences neither underflow nor overflow.
SPREAD = (1e-140, 1e140)


@dataclass(frozen=True, eq=False)
class DirectProbe:
    """Clusters of one label each, whose hulls meet no hull of another label.

    Attributes:
        assignments: (n,) the cluster of each point; clusters are numbered in label order, then by their first point.
        cluster_labels: (n_clusters,) the label of each cluster.
        labels: (k,) the labels, sorted.
        distances: (n_clusters, n_clusters) between hulls; 0 on the diagonal, NaN between clusters of the same label,
            whose hulls may meet and were never compared.
        certificates: the proof for each pair of clusters i < j of different labels, a
            :class:`~fivelenses.lenses.hulls.HullDistance`.
    """

    assignments: np.ndarray
    cluster_labels: np.ndarray
    labels: np.ndarray
    distances: np.ndarray
    certificates: dict[tuple[int, int], HullDistance] = field(repr=False)

    @property
    def n_clusters(self) -> int:
        return len(self.cluster_labels)

    @property
    def linearly_separable(self) -> bool:
        """Whether each label has one cluster, so that a hyperplane separates each pair of labels."""
        return self.n_clusters == len(self.labels)

    @property
    def min_distances(self) -> np.ndarray:
        """(k,) per label the smallest distance of its clusters to any cluster of another label."""
        other = self.cluster_labels[:, None] != self.cluster_labels
        nearest = np.where(other, self.distances, np.inf).min(1)
        return np.array([nearest[self.cluster_labels == label].min() for label in self.labels])


@one_thread
def probe(points: Array, labels: Array, start: DirectProbe | None = None) -> DirectProbe:
    """Clusters by the authors' rule, and the distances between them.

    Initially every point is a cluster. Repeatedly, the two clusters of the same label with the nearest centroids (means
    of all their points, Euclidean) are merged, unless the new hull meets a hull of another label; such a pair is not
    tried again, and neither is a pair that contains it, whose hull would meet the same one. Ties are broken by the
    clusters' first points. One cluster per label is tried first; if it suffices, no merging is needed.

    Args:
        points: (n, d).
        labels: (n,) integers or strings.
        start: the result for similar points, such as those of an earlier training step, whose directions are tried
            first; it saves time and changes nothing else.

    Refused: wrong shapes, values that are not finite, a single label, equal points with different labels, or a start of
    another dimension.

    Example:
        >>> result = probe(np.array([[0.0], [1.0], [3.0], [5.0]]), np.array(["x", "x", "y", "x"]))
        >>> result.assignments, result.cluster_labels, result.min_distances.round(6)
        (array([0, 0, 2, 1]), array(['x', 'x', 'y'], dtype='<U1'), array([2., 2.]))
    """
    points = checked_points("points", points)
    spread = float(np.ptp(points, axis=0).max())
    if not (spread == 0 or SPREAD[0] <= spread <= SPREAD[1]):
        raise ValueError(f"The points spread over {spread:.1g}, whose square is no number: rescale them.")
    labels, codes = _checked_labels(labels, len(points))
    _refuse_points_of_two_labels(points, labels, codes)
    directions = {} if start is None else _directions(start, labels, points.shape[1])
    clusters = [np.flatnonzero(codes == code) for code in range(len(labels))]
    certificates = {}
    meets = np.zeros((len(labels), len(labels)), dtype=bool)
    for i, j in combinations(range(len(labels)), 2):
        pair = points[clusters[i]], points[clusters[j]], directions.get((i, j))
        certificates[i, j] = nearest_points(*pair, exact=not meets.any())
        meets[i, j] = meets[j, i] = not certificates[i, j].separable
    if meets.any():
        clusters, certificates = clusters_by_merging(points, codes, meets), {}
        for i, j in combinations(range(len(clusters)), 2):
            if codes[clusters[i][0]] != codes[clusters[j][0]]:
                certificates[i, j] = nearest_points(points[clusters[i]], points[clusters[j]], None, exact=True)
    of_label = np.array([codes[rows[0]] for rows in clusters])
    assignments = np.empty(len(points), dtype=np.int64)
    for cluster, rows in enumerate(clusters):
        assignments[rows] = cluster
    distances = np.where(of_label[:, None] == of_label, np.nan, 0.0)
    np.fill_diagonal(distances, 0)
    for (i, j), certificate in certificates.items():
        distances[i, j] = distances[j, i] = certificate.distance
    return DirectProbe(assignments, labels[of_label], labels, distances, certificates)


def spatial_similarity(p: DirectProbe, q: DirectProbe) -> float:
    """Pearson's r of the distances between the labels common to both results, in [-1, 1].

    Refused: fewer than three common labels, distances that are all equal, or labels that are not separable.

    Example:
        >>> points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
        >>> round(spatial_similarity(probe(points, [0, 1, 2]), probe(3 * points - 1, [0, 1, 2])), 6)
        1.0
    """
    common = [label for label in p.labels if label in set(q.labels.tolist())]
    if len(common) < 3:
        raise ValueError(f"The results have {len(common)} labels in common: a correlation needs at least 3.")
    vectors = []
    for name, result in (("first", p), ("second", q)):
        if not result.linearly_separable:
            raise ValueError(f"The labels of the {name} result are not linearly separable: no pair has one distance.")
        rows = np.flatnonzero(np.isin(result.labels, common))
        distances = result.distances[np.ix_(rows, rows)][np.triu_indices(len(common), 1)]
        if np.ptp(distances) <= RELATIVE_GAP * distances.max():
            raise ValueError(f"All distances of the {name} result are equal: their correlation is undefined.")
        vectors.append(distances)
    return float(np.clip(np.corrcoef(*vectors)[0, 1], -1, 1))


@one_thread
def linearly_separable(points: Array, labels: Array) -> bool:
    """Whether a hyperplane separates each pair of labels, which :func:`probe` decides first.

    Arguments and errors are those of :func:`probe`, but equal points may have different labels: these are not
    separable.

    Example:
        >>> linearly_separable(np.array([[0.0], [1.0], [3.0]]), ["x", "y", "x"])
        False
    """
    points = checked_points("points", points)
    labels, codes = _checked_labels(labels, len(points))
    parts = [points[codes == code] for code in range(len(labels))]
    return all(nearest_points(a, b, None, exact=False).separable for a, b in combinations(parts, 2))


def random_label_control(points: Array, labels: Array, seed: int) -> bool:
    """Whether the same points are separable with their labels permuted, the control for separability.

    Each label keeps its number of points. Arguments and errors are those of :func:`linearly_separable`.

    Example:
        >>> points = np.random.default_rng(0).standard_normal((20, 30))
        >>> random_label_control(points, np.arange(20) % 4, seed=0)
        True
    """
    chance = np.random.default_rng(seed)
    points = checked_points("points", points)
    labels, codes = _checked_labels(labels, len(points))
    return linearly_separable(points, chance.permutation(labels[codes]))


def _directions(start: DirectProbe, labels: np.ndarray, d: int) -> dict[tuple[int, int], np.ndarray]:
    """Per pair of labels, the normal between two of their clusters in an earlier result."""
    if any(certificate.normal.shape != (d,) for certificate in start.certificates.values()):
        raise ValueError(f"The start has other features than the points, which have {d}: give one of {d}.")
    code_of = {label: code for code, label in enumerate(labels.tolist())}
    directions = {}
    for (i, j), certificate in start.certificates.items():
        pair = tuple(code_of.get(label) for label in start.cluster_labels[[i, j]].tolist())
        if None not in pair:
            directions.setdefault(pair, certificate.normal)
    return directions


def _checked_labels(labels: Array, n: int) -> tuple[np.ndarray, np.ndarray]:
    labels = as_array(labels)
    if labels.shape != (n,):
        raise ValueError(f"labels has shape {labels.shape}, not ({n},): give one label per point.")
    try:
        names, codes = np.unique(labels, return_inverse=True)
        unordered = bool((names != names).any())
    except TypeError:
        unordered = True
    if unordered:
        raise ValueError("labels holds missing or mixed values: give integers only, or strings only.")
    if len(names) < 2:
        raise ValueError(
            f"All points have the label {names.tolist()[0]!r}: a geometry of labels needs at least two labels."
        )
    return names, codes


def _refuse_points_of_two_labels(points: np.ndarray, labels: np.ndarray, codes: np.ndarray) -> None:
    seen, names = {}, labels.tolist()
    # Adding 0 turns -0 into 0, which has other bytes.
    for row, point in enumerate(points + 0.0):
        first = seen.setdefault(point.tobytes(), row)
        if codes[first] != codes[row]:
            raise ValueError(
                f"Rows {first} and {row} are the same point with the labels {names[codes[first]]!r} and "
                f"{names[codes[row]]!r}, so no clusters have disjoint hulls: remove one of them."
            )


# --- clusters by merging ----------------------------------------------------------------------------------------------


def clusters_by_merging(points: np.ndarray, codes: np.ndarray, meets: np.ndarray) -> list[np.ndarray]:
    """The rows of each cluster, in label order, then by first row; ``meets`` says which labels' whole hulls meet.

    A label whose whole hull meets no other is one cluster in any case, and two clusters can meet only if their labels'
    hulls do. Hulls only grow, so that no state before one without overlap has any: the merges up to that state need no
    test. We try the state with twice as many clusters as labels, then that with four times as many, …
    """
    entangled = np.flatnonzero(meets[codes].any(1))
    whole = [np.flatnonzero(codes == code) for code in np.flatnonzero(~meets.any(1))]
    present, renumbered = np.unique(codes[entangled], return_inverse=True)
    among, inside, n = meets[np.ix_(present, present)], points[entangled], len(entangled)
    order = _merge_order(inside, renumbered)
    left = 2 * len(present) if order else n
    while (merged := _merge(inside, renumbered, among, _after(order[: max(n - left, 0)], n))) is None:
        left *= 2
    return sorted(whole + [entangled[rows] for rows in merged], key=lambda rows: (codes[rows[0]], rows[0]))


def _merge_order(points: np.ndarray, codes: np.ndarray) -> list[tuple[int, int]]:
    """The merges if none were refused, as pairs of clusters' first rows; none if equal distances leave them open."""
    waiting, lengths = [], []
    for code in range(codes.max() + 1):
        rows = np.flatnonzero(codes == code)
        if len(rows) < 2:
            waiting.append([])
            continue
        first_row, merges = rows.tolist(), []
        for left, right, length, _ in linkage(pdist(points[rows]), "centroid"):
            pair = sorted((first_row[int(left)], first_row[int(right)]))
            first_row.append(pair[0])
            merges.append((length, *pair))
        waiting.append(merges[::-1])
        lengths += [length for length, *_ in merges]
    if len(np.unique(lengths)) < len(lengths):
        return []
    order = []
    while any(waiting):
        _, first, second = min(merges[-1] for merges in waiting if merges)
        next(merges for merges in waiting if merges and merges[-1][1:] == (first, second)).pop()
        order.append((first, second))
    return order


def _after(merges: list[tuple[int, int]], n: int) -> dict[int, np.ndarray]:
    """First row to rows of the clusters of n points after some merges."""
    members = {row: [row] for row in range(n)}
    for first, second in merges:
        members[first] += members.pop(second)
    return {first: np.sort(rows) for first, rows in members.items()}


def _merge(
    points: np.ndarray, codes: np.ndarray, meets: np.ndarray, members: dict[int, np.ndarray]
) -> list[np.ndarray] | None:
    """The final clusters after those in ``members``, or None if hulls of ``members`` already overlap."""
    candidates, clusters = _Candidates(points, codes, members), _Clusters(points, codes, meets, members)
    # Large clusters come first: they overlap most often, and one overlap decides. Single points were checked before.
    if len(members) < len(points) and not all(
        clusters.disjoint(cluster, cluster) for cluster in sorted(members, key=lambda row: -len(members[row]))
    ):
        return None
    while (pair := candidates.nearest_pair()) is not None:
        if clusters.disjoint(*pair):
            candidates.join(*pair, clusters.join(*pair))
        else:
            candidates.refuse(*pair)
    return sorted((np.sort(rows) for rows in members.values()), key=lambda rows: (codes[rows[0]], rows[0]))


class _Candidates:
    """Pairs of clusters of one label that may be merged, and each cluster's nearest partner."""

    def __init__(self, points: np.ndarray, codes: np.ndarray, members: dict[int, np.ndarray]) -> None:
        n = len(points)
        self._codes, self._centroids = codes, points.copy()
        for first, rows in members.items():
            self._centroids[first] = points[rows].mean(0)
        firsts = sorted(members)
        self._rows_of = [np.array([row for row in firsts if codes[row] == code]) for code in range(codes.max() + 1)]
        self._place = np.empty(n, dtype=np.int64)
        for rows in self._rows_of:
            self._place[rows] = np.arange(len(rows))
        # Per label: distances of centroids, infinite for pairs refused or already merged; then each row's nearest.
        self._between = [cdist(self._centroids[rows], self._centroids[rows]) for rows in self._rows_of]
        self._nearest, self._partner = np.full(n, np.inf), np.zeros(n, dtype=np.int64)
        for code, matrix in enumerate(self._between):
            np.fill_diagonal(matrix, np.inf)
            self._find_nearest(code, np.arange(len(matrix)))

    def _find_nearest(self, code: int, places: np.ndarray) -> None:
        rows, matrix = self._rows_of[code][places], self._between[code]
        columns = matrix[places].argmin(1)
        self._nearest[rows], self._partner[rows] = matrix[places, columns], self._rows_of[code][columns]

    def nearest_pair(self) -> tuple[int, int] | None:
        first = int(self._nearest.argmin())
        return (first, int(self._partner[first])) if np.isfinite(self._nearest[first]) else None

    def refuse(self, first: int, second: int) -> None:
        code, i, j = self._codes[first], self._place[first], self._place[second]
        self._between[code][i, j] = self._between[code][j, i] = np.inf
        self._find_nearest(code, np.array([i, j]))

    def join(self, first: int, second: int, sizes: tuple[int, int]) -> None:
        """Merge the second cluster into the first; a pair that was refused to one of them is refused to both."""
        code, i, j = self._codes[first], self._place[first], self._place[second]
        matrix, rows, centroids, nearest = self._between[code], self._rows_of[code], self._centroids, self._nearest
        possible = np.isfinite(matrix[i]) & np.isfinite(matrix[j])
        centroids[first] = (sizes[0] * centroids[first] + sizes[1] * centroids[second]) / sum(sizes)
        matrix[j] = matrix[:, j] = np.inf
        matrix[i] = np.where(possible, cdist(centroids[first : first + 1], centroids[rows])[0], np.inf)
        matrix[:, i] = matrix[i]
        stale = (self._partner[rows] == first) | (self._partner[rows] == second)
        stale |= (matrix[i] < nearest[rows]) | ((matrix[i] == nearest[rows]) & (first < self._partner[rows]))
        stale[[i, j]] = True
        self._find_nearest(code, np.flatnonzero(stale))


class _Plane(NamedTuple):
    """A plane that separated two clusters, a guess for larger ones that is checked before use."""

    normal: np.ndarray
    rows: np.ndarray
    weights: np.ndarray


class _Clusters:
    """The clusters of a state by their first row, and the planes known to separate them from those of other labels."""

    def __init__(
        self, points: np.ndarray, codes: np.ndarray, meets: np.ndarray, members: dict[int, np.ndarray]
    ) -> None:
        self.members = members
        self._codes, self._meets = codes, meets
        self._cluster_of = np.empty(len(points), dtype=np.int64)
        for first, rows in members.items():
            self._cluster_of[rows] = first
        self._planes: dict[int, dict[int, _Plane]] = {first: {} for first in members}
        self._centred = points - points.mean(0)
        spread = self._centred.T @ self._centred / len(points)
        spread.flat[:: len(spread) + 1] += 1e-3 * spread.trace() / len(spread)
        self._whitened = np.linalg.solve(spread, self._centred.T).T
        # At least the tolerance of every pair, whose radius is at most twice that of all points.
        self._margin = 2 * TOLERANCE * np.sqrt(np.einsum("ij,ij->i", self._centred, self._centred).max())

    def join(self, first: int, second: int) -> tuple[int, int]:
        """Merge two clusters into the first, which keeps its number and planes; returns their sizes before."""
        rows = self.members.pop(second)
        sizes = len(self.members[first]), len(rows)
        self.members[first] = np.concatenate([self.members[first], rows])
        self._cluster_of[rows] = first
        for cluster, plane in self._planes.pop(second).items():
            del self._planes[cluster][second]
            self._planes[first].setdefault(cluster, plane)
            self._planes[cluster].setdefault(first, plane)
        return sizes

    def disjoint(self, first: int, second: int) -> bool:
        """Whether the hull of the union of two clusters (or of one, twice) meets no cluster of another label."""
        # The direction of linear discriminant analysis between the union and all points separates most clusters by one
        # product; earlier planes, of a part of the union, separate others; each remaining one is decided by itself.
        union = np.concatenate([self.members[part] for part in dict.fromkeys((first, second))])
        direction = self._whitened[union].mean(0)
        scores = self._centred @ direction
        near = scores >= scores[union].min() - self._margin * np.linalg.norm(direction)
        near &= self._meets[self._codes[first]][self._codes]
        clusters, counts = np.unique(self._cluster_of[near], return_counts=True)
        # Clusters with most points on the wrong side come first: one that meets the union ends the search.
        clusters = clusters[np.argsort(-counts, kind="stable")]
        signs = np.where(self._codes[first] < self._codes[clusters], 1.0, -1.0)
        gaps = np.stack([self._gaps(union, clusters, signs, self._planes[part]) for part in (first, second)])
        planes = {}
        for cluster, sign, part, gap in zip(clusters.tolist(), signs, gaps.argmax(0), gaps.max(0), strict=True):
            plane = self._planes[(first, second)[part]].get(cluster)
            if gap <= self._margin * 1.001:
                plane = self._separation(union, direction, cluster, sign, plane)
            if plane is None:
                return False
            planes[cluster] = plane
        for cluster, plane in planes.items():
            self._planes[first][cluster] = self._planes[cluster][first] = plane
        return True

    def _gaps(self, union: np.ndarray, clusters: np.ndarray, signs: np.ndarray, known: dict[int, _Plane]) -> np.ndarray:
        """The gap between the union and each cluster along its known plane, -inf without one."""
        gaps = np.full(len(clusters), -np.inf)
        tried = np.flatnonzero([cluster in known for cluster in clusters.tolist()])
        if len(tried):
            normals = np.stack([known[cluster].normal for cluster in clusters[tried].tolist()]) * signs[tried, None]
            rows = [self.members[cluster] for cluster in clusters[tried].tolist()]
            counts = np.array([len(part) for part in rows])
            outside = self._centred[np.concatenate(rows)]
            scores = np.einsum("ij,ij->i", outside, np.repeat(normals, counts, axis=0))
            highest = np.maximum.reduceat(scores, np.cumsum(counts) - counts)
            gaps[tried] = (self._centred[union] @ normals.T).min(0) - highest
        return gaps

    def _separation(
        self, union: np.ndarray, direction: np.ndarray, cluster: int, sign: float, known: _Plane | None
    ) -> _Plane | None:
        """The plane between the union and a cluster, or None if their hulls meet."""
        outside, weights = self.members[cluster], None
        rows = np.concatenate([union, outside])
        if known is None:
            guess = direction - self._whitened[outside].mean(0)
        else:
            guess = sign * known.normal.astype(float)
            weights = np.zeros(len(self._codes))
            weights[known.rows] = known.weights
            weights = weights[rows]
        inside, beyond = self._centred[union], self._centred[outside]
        nearest = nearest_points(inside, beyond, guess, exact=False, weights=weights)
        if not nearest.separable:
            return None
        weights = np.concatenate([nearest.weights_a, nearest.weights_b])
        used = np.flatnonzero(weights)
        return _Plane((sign * nearest.normal).astype(np.float32), rows[used], weights[used])
