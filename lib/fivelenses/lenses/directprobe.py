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

import numpy as np

from fivelenses.lenses.arrays import Array, as_array
from fivelenses.lenses.cluster_merging import clusters_by_merging
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
        centroids: (n_clusters, d) the mean of each cluster's points.
        distances: (n_clusters, n_clusters) between hulls; 0 on the diagonal, NaN between clusters of the same label,
            whose hulls may meet and were never compared; None if distances were not requested.
        certificates: the proof for each pair of clusters i < j of different labels, a
            :class:`~fivelenses.lenses.hulls.HullDistance`. If distances were not requested, its distance is only an
            upper bound, and labels that are not separable have no certificates.
    """

    assignments: np.ndarray
    cluster_labels: np.ndarray
    labels: np.ndarray
    centroids: np.ndarray
    distances: np.ndarray | None
    certificates: dict[tuple[int, int], HullDistance] = field(repr=False)

    @property
    def n_clusters(self) -> int:
        return len(self.cluster_labels)

    @property
    def linearly_separable(self) -> bool:
        """Whether each label has one cluster, so that a hyperplane separates each pair of labels."""
        return self.n_clusters == len(self.labels)

    @property
    def distance_vector(self) -> np.ndarray:
        """(k(k-1)/2,) distances of the pairs of labels (0, 1), (0, 2), …, (1, 2), …

        Refused: the labels are not separable, or distances were not requested.
        """
        if not self.linearly_separable:
            raise ValueError(
                f"{self.n_clusters} clusters for {len(self.labels)} labels: the labels are not linearly separable, "
                "so that there is no distance per pair of labels; read min_distances."
            )
        return _requested(self.distances)[np.triu_indices(self.n_clusters, 1)]

    @property
    def min_distances(self) -> np.ndarray:
        """(k,) per label the smallest distance of its clusters to any cluster of another label.

        Refused: distances were not requested.
        """
        other = self.cluster_labels[:, None] != self.cluster_labels
        nearest = np.where(other, _requested(self.distances), np.inf).min(1)
        return np.array([nearest[self.cluster_labels == label].min() for label in self.labels])


@one_thread
def probe(points: Array, labels: Array, start: DirectProbe | None = None, distances: bool = True) -> DirectProbe:
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
        distances: False leaves the distances out, if only the clusters matter.

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
        certificates[i, j] = nearest_points(*pair, TOLERANCE, exact=distances and not meets.any())
        meets[i, j] = meets[j, i] = not certificates[i, j].separable
    if meets.any():
        clusters, certificates = clusters_by_merging(points, codes, meets), {}
    of_label = np.array([codes[rows[0]] for rows in clusters])
    if distances and not certificates:
        for i, j in combinations(range(len(clusters)), 2):
            if of_label[i] != of_label[j]:
                pair = points[clusters[i]], points[clusters[j]], None
                certificates[i, j] = nearest_points(*pair, TOLERANCE, exact=True)
    assignments = np.empty(len(points), dtype=np.int64)
    for cluster, rows in enumerate(clusters):
        assignments[rows] = cluster
    matrix = _distance_matrix(of_label, certificates) if distances else None
    centroids = np.stack([points[rows].mean(0) for rows in clusters])
    return DirectProbe(assignments, labels[of_label], labels, centroids, matrix, certificates)


def _distance_matrix(of_label: np.ndarray, certificates: dict[tuple[int, int], HullDistance]) -> np.ndarray:
    matrix = np.where(of_label[:, None] == of_label, np.nan, 0.0)
    np.fill_diagonal(matrix, 0)
    for (i, j), certificate in certificates.items():
        matrix[i, j] = matrix[j, i] = certificate.distance
    return matrix


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
        result.distance_vector  # noqa: B018  # refuses labels that are not separable
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
    return all(nearest_points(a, b, None, TOLERANCE, exact=False).separable for a, b in combinations(parts, 2))


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
    if start.centroids.shape[1] != d:
        raise ValueError(f"The start has {start.centroids.shape[1]} features and the points have {d}: give one of {d}.")
    code_of = {label: code for code, label in enumerate(labels.tolist())}
    directions = {}
    for (i, j), certificate in start.certificates.items():
        pair = tuple(code_of.get(label) for label in start.cluster_labels[[i, j]].tolist())
        if None not in pair:
            directions.setdefault(pair, certificate.normal)
    return directions


def _requested(distances: np.ndarray | None) -> np.ndarray:
    if distances is None:
        raise ValueError("The distances were left out: call probe with distances=True.")
    return distances


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
