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

import heapq
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import cdist, pdist

from fivelenses.lenses.arrays import Array, as_array
from fivelenses.lenses.hulls import RELATIVE_GAP, TOLERANCE, HullDistance, checked_points, nearest_points, one_thread


@dataclass(frozen=True, eq=False)
class DirectProbe:
    """Clusters of one label each, whose hulls meet no hull of another label.

    Attributes:
        assignments: (n,) the cluster of each point; clusters are numbered in label order, then by their first point.
        cluster_labels: (n_clusters,) the label of each cluster.
        labels: (k,) the labels, sorted.
        distances: (n_clusters, n_clusters) between hulls; 0 on the diagonal, NaN between clusters of the same label,
            whose hulls may meet and were never compared.
        certificates: the proof for each pair of clusters i < j of different labels.
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
def probe(points: Array, labels: Array) -> DirectProbe:
    """Clusters of points (n, d) with labels (n,), integers or strings, by the authors' rule, and their distances.

    Initially every point is a cluster. Repeatedly, the two clusters of the same label with the nearest centroids (means
    of all their points, Euclidean) are merged, unless the new hull meets a hull of another label; such a pair is not
    tried again, and neither is a pair that contains it, whose hull would meet the same one. Ties are broken by the
    clusters' first points. One cluster per label is tried first; if it suffices, no merging is needed.

    Refused: wrong shapes, values that are not finite, a single label, or equal points with different labels.

    Example:
        >>> result = probe(np.array([[0.0], [1.0], [3.0], [5.0]]), np.array(["x", "x", "y", "x"]))
        >>> result.assignments, result.cluster_labels, result.min_distances.round(6)
        (array([0, 0, 2, 1]), array(['x', 'x', 'y'], dtype='<U1'), array([2., 2.]))
    """
    points, labels, codes = _checked(points, labels)
    _refuse_points_of_two_labels(points, labels, codes)
    clusters = [np.flatnonzero(codes == code) for code in range(len(labels))]
    certificates = {}
    meets = np.zeros((len(labels), len(labels)), dtype=bool)
    for i, j in combinations(range(len(labels)), 2):
        certificates[i, j] = nearest_points(points[clusters[i]], points[clusters[j]], exact=not meets.any())
        meets[i, j] = meets[j, i] = not certificates[i, j].separable
    if meets.any():
        clusters, certificates = clusters_by_merging(points, codes, meets), {}
        for i, j in combinations(range(len(clusters)), 2):
            if codes[clusters[i][0]] != codes[clusters[j][0]]:
                certificates[i, j] = nearest_points(points[clusters[i]], points[clusters[j]])
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
    """Whether a hyperplane separates each pair of labels; equal points of different labels are not separable."""
    points, labels, codes = _checked(points, labels)
    parts = [points[codes == code] for code in range(len(labels))]
    return all(nearest_points(a, b, exact=False).separable for a, b in combinations(parts, 2))


def random_label_control(points: Array, labels: Array, seed: int) -> bool:
    """Whether the same points are separable with their labels permuted, the control for separability."""
    return linearly_separable(points, np.random.default_rng(seed).permutation(as_array(labels)))


def _checked(points: Array, labels: Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points (n, d), the labels that occur, and the place of each point's among these, (n,)."""
    points, labels = checked_points("points", points), as_array(labels)
    n = len(points)
    if labels.shape != (n,) or pd.isna(labels).any():
        raise ValueError(f"labels has shape {labels.shape}, not ({n},), or a missing value: give each point a label.")
    names, codes = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        raise ValueError(f"All points have the label {names.tolist()[0]!r}: a geometry of labels needs two or more.")
    return points, names, codes


def _refuse_points_of_two_labels(points: np.ndarray, labels: np.ndarray, codes: np.ndarray) -> None:
    # Adding 0 turns -0 into 0, which has other bytes.
    _, places, copies = np.unique(points + 0.0, axis=0, return_index=True, return_inverse=True)
    first = places[copies.ravel()]
    differing = np.flatnonzero(codes != codes[first])
    if len(differing):
        row = differing[0]
        names = " and ".join(map(str, labels[codes[[first[row], row]]]))
        raise ValueError(f"Rows {first[row]} and {row} are the same point with the labels {names}: remove one of them.")


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
    while (merged := _Clusters(inside, renumbered, among, order[: max(n - left, 0)]).merged()) is None:
        left *= 2
    return sorted(whole + [entangled[rows] for rows in merged], key=lambda rows: (codes[rows[0]], rows[0]))


def _merge_order(points: np.ndarray, codes: np.ndarray) -> list[tuple[int, int]]:
    """The merges if none were refused, as pairs of clusters' first rows; none if equal distances leave them open."""
    merges_of = []
    for code in range(codes.max() + 1):
        first_row, merges = np.flatnonzero(codes == code).tolist(), []
        between = pdist(points[first_row])
        for left, right, length, _ in linkage(between, "centroid") if len(between) else []:
            pair = sorted((first_row[int(left)], first_row[int(right)]))
            first_row.append(pair[0])
            merges.append((length, *pair))
        merges_of.append(merges)
    # A label's lengths may fall, and only its next merge competes with those of other labels.
    order = list(heapq.merge(*merges_of))
    alike = len({length for length, *_ in order}) < len(order)
    return [] if alike else [(first, second) for _, first, second in order]


class _Clusters:
    """Clusters by their first rows, after some merges, and normals of planes that separated them from other labels'."""

    def __init__(self, points: np.ndarray, codes: np.ndarray, meets: np.ndarray, merges: list[tuple[int, int]]) -> None:
        self._points, self._codes, self._meets = points, codes, meets
        self._cluster_of = np.arange(len(points))
        for first, second in merges:
            self._cluster_of[self._cluster_of == second] = first
        firsts = np.unique(self._cluster_of).tolist()
        self._members = {first: np.flatnonzero(self._cluster_of == first) for first in firsts}
        self._normals: dict[tuple[int, int], np.ndarray] = {}
        self._centred = points - points.mean(0)
        spread = self._centred.T @ self._centred / len(points)
        spread.flat[:: len(spread) + 1] += 1e-3 * spread.trace() / len(spread)
        self._whitened = np.linalg.solve(spread, self._centred.T).T
        # At least the tolerance of every pair, whose radius is at most twice that of all points.
        self._margin = 2 * TOLERANCE * np.sqrt(np.einsum("ij,ij->i", self._centred, self._centred).max())

    def merged(self) -> list[np.ndarray] | None:
        """The final clusters, or None if hulls overlap before any further merge."""
        members, firsts = self._members, list(self._members)
        # Large clusters come first: they overlap most often, and one overlap decides. Single points were checked.
        largest_first = sorted(firsts, key=lambda row: -len(members[row]))
        if len(firsts) < len(self._codes) and not all(self._disjoint(one, one) for one in largest_first):
            return None
        centroids = np.stack([self._points[rows].mean(0) for rows in members.values()])
        # Distances of centroids, infinite for pairs that cannot be merged.
        between, of_label = cdist(centroids, centroids), self._codes[firsts]
        between[(of_label[:, None] != of_label) | np.eye(len(firsts), dtype=bool)] = np.inf
        nearest = between.min(1)
        while np.isfinite(nearest.min()):
            i = int(nearest.argmin())
            j = int(between[i].argmin())
            if not self._disjoint(firsts[i], firsts[j]):
                between[i, j] = between[j, i] = np.inf
                nearest[[i, j]] = between[[i, j]].min(1)
                continue
            kept, added = members[firsts[i]], members.pop(firsts[j])
            members[firsts[i]] = np.concatenate([kept, added])
            self._cluster_of[added] = firsts[i]
            centroids[i] = (len(kept) * centroids[i] + len(added) * centroids[j]) / (len(kept) + len(added))
            # A pair that was refused to one of them is refused to both.
            possible = np.isfinite(between[i]) & np.isfinite(between[j])
            changed = (np.minimum(between[i], between[j]) == nearest) & np.isfinite(nearest)
            changed[[i, j]] = True
            between[j] = between[:, j] = np.inf
            between[i] = between[:, i] = np.where(possible, cdist(centroids[i : i + 1], centroids)[0], np.inf)
            nearest = np.minimum(nearest, between[i])
            nearest[changed] = between[changed].min(1)
        return [np.sort(rows) for rows in members.values()]

    def _disjoint(self, first: int, second: int) -> bool:
        """Whether the hull of the union of two clusters (or of one, twice) meets no cluster of another label."""
        # The direction of linear discriminant analysis between the union and all points separates most clusters by one
        # product. The normal of an earlier plane, of a part of the union, is the first guess for each remaining one.
        union = np.concatenate([self._members[part] for part in {first: None, second: None}])
        direction = self._whitened[union].mean(0)
        scores = self._centred @ direction
        near = scores >= scores[union].min() - self._margin * np.linalg.norm(direction)
        near &= self._meets[self._codes[first]][self._codes]
        clusters, counts = np.unique(self._cluster_of[near], return_counts=True)
        # Clusters with most points on the wrong side come first: one that meets the union ends the search.
        clusters, guesses = clusters[np.argsort(-counts, kind="stable")].tolist(), []
        for cluster in clusters:
            known = self._normals.get((first, cluster), self._normals.get((second, cluster)))
            guesses.append(direction - self._whitened[self._members[cluster]].mean(0) if known is None else known)
        inside = self._centred[union]
        lowest = (inside @ np.array(guesses).T).min(0) if guesses else []
        for cluster, normal, least in zip(clusters, guesses, lowest, strict=True):
            outside = self._centred[self._members[cluster]]
            if least - (outside @ normal).max() <= self._margin * np.linalg.norm(normal):
                nearest = nearest_points(inside, outside, exact=False, direction=normal)
                if not nearest.separable:
                    return False
                normal = nearest.normal
            self._normals[first, cluster], self._normals[cluster, first] = normal, -normal
        return True
