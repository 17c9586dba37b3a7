"""DirectProbe's clusters where the hulls of whole labels meet: those of one label are joined, nearest first, as long as
the new hull meets no other label's.

The rule is in :func:`fivelenses.lenses.directprobe.probe`; here is what makes it fast.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import cdist, pdist

from fivelenses.lenses.hulls import TOLERANCE, nearest_points


def clusters_by_merging(points: np.ndarray, codes: np.ndarray, meets: np.ndarray) -> list[np.ndarray]:
    """The rows of each cluster, in label order, then by first row; ``meets`` says which labels' whole hulls meet.

    A label whose whole hull meets no other is one cluster whatever the others do, and two clusters can meet only if
    their labels' hulls do. Hulls only grow, so that a state without overlap has none before it: the merges up to there
    need no test. Few merges are left for testing if the state of twice as many clusters as labels is one, else that of
    four times as many, …
    """
    entangled = np.flatnonzero(meets[codes].any(1))
    whole = [np.flatnonzero(codes == code) for code in np.flatnonzero(~meets.any(1))]
    present, ours = np.unique(codes[entangled], return_inverse=True)
    among, inside, n = meets[np.ix_(present, present)], points[entangled], len(entangled)
    order = _merge_order(inside, ours)
    left = 2 * len(present) if order else n
    while (found := _merge(inside, ours, among, _after(order[: max(n - left, 0)], n))) is None:
        left *= 2
    return sorted(whole + [entangled[rows] for rows in found], key=lambda rows: (codes[rows[0]], rows[0]))


def _merge_order(points: np.ndarray, codes: np.ndarray) -> list[tuple[int, int]]:
    """The merges if none were refused, as pairs of clusters' first rows; none where equal distances leave them open.

    The next merge within a label depends on that label alone; of the labels' next merges the shortest comes first.
    """
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
    """The clusters that come of those in ``members``, or None if hulls overlap there already.

    A cluster's number is its first row.
    """
    n = len(points)
    rows_of = [np.array([row for row in sorted(members) if codes[row] == code]) for code in range(codes.max() + 1)]
    place = np.empty(n, dtype=np.int64)
    centroids = points.copy()
    cluster_of = np.arange(n)
    for first, rows in members.items():
        centroids[first] = points[rows].mean(0)
        cluster_of[rows] = first
    for rows in rows_of:
        place[rows] = np.arange(len(rows))
    # Per label: distances of centroids, infinite for pairs that are refused or no more; then each row's nearest.
    between = [cdist(centroids[rows], centroids[rows]) for rows in rows_of]
    nearest, partner = np.full(n, np.inf), np.zeros(n, dtype=np.int64)

    def find_nearest(code: int, places: np.ndarray) -> None:
        rows = rows_of[code][places]
        columns = between[code][places].argmin(1)
        nearest[rows], partner[rows] = between[code][places, columns], rows_of[code][columns]

    for code, matrix in enumerate(between):
        np.fill_diagonal(matrix, np.inf)
        find_nearest(code, np.arange(len(matrix)))
    planes = {row: {} for row in members}
    disjoint = _overlap_test(points, codes, meets, members, cluster_of, planes)
    if len(members) < n:
        # Large clusters first: they overlap most often, and one overlap is enough.
        for cluster in sorted(members, key=lambda row: -len(members[row])):
            if not disjoint(members[cluster], cluster, cluster):
                return None
    while np.isfinite(nearest.min()):
        first = int(nearest.argmin())
        second = int(partner[first])
        code = codes[first]
        matrix, i, j = between[code], place[first], place[second]
        union = np.concatenate([members[first], members[second]])
        if not disjoint(union, first, second):
            matrix[i, j] = matrix[j, i] = np.inf
            find_nearest(code, np.array([i, j]))
            continue
        # What one of them could not be joined with, both cannot: hulls only grow.
        possible = np.isfinite(matrix[i]) & np.isfinite(matrix[j])
        _hand_over(planes, first, second)
        members[first] = union
        second_members = members.pop(second)
        cluster_of[second_members] = first
        sizes = len(union) - len(second_members), len(second_members)
        centroids[first] = (sizes[0] * centroids[first] + sizes[1] * centroids[second]) / len(union)
        rows = rows_of[code]
        matrix[j] = matrix[:, j] = np.inf
        matrix[i] = np.where(possible, cdist(centroids[first : first + 1], centroids[rows])[0], np.inf)
        matrix[:, i] = matrix[i]
        stale = (partner[rows] == first) | (partner[rows] == second)
        stale |= (matrix[i] < nearest[rows]) | ((matrix[i] == nearest[rows]) & (first < partner[rows]))
        stale[[i, j]] = True
        find_nearest(code, np.flatnonzero(stale))
    return sorted((np.sort(rows) for rows in members.values()), key=lambda rows: (codes[rows[0]], rows[0]))


class _Plane(NamedTuple):
    """What separated two clusters: a guess where it must hold for larger ones, checked before use.

    Attributes:
        normal: (d,) from the cluster of the higher label to that of the lower, in single precision.
        rows: (s,) the points between which the nearest two of both hulls lie, as far as they were found.
        weights: (s,) their weights, which sum to 1 in either cluster.
    """

    normal: np.ndarray
    rows: np.ndarray
    weights: np.ndarray


def _overlap_test(
    points: np.ndarray,
    codes: np.ndarray,
    meets: np.ndarray,
    members: dict[int, np.ndarray],
    cluster_of: np.ndarray,
    planes: dict[int, dict[int, _Plane]],
) -> Callable[[np.ndarray, int, int], bool]:
    """A function of a union and its two clusters: whether its hull meets no present cluster of another label.

    One direction, that of linear discriminant analysis between the union and all points, tells most clusters apart from
    it with one product; from others a plane found earlier does, between them and a part of the union; each that is left
    is decided by itself, from the nearest points that were found with that plane. ``planes`` holds them per cluster and
    other cluster.
    """
    centred = points - points.mean(0)
    spread = centred.T @ centred / len(points)
    spread.flat[:: len(spread) + 1] += 1e-3 * spread.trace() / len(spread)
    whitened = np.linalg.solve(spread, centred.T).T
    # At least the tolerance of every pair, whose radius is at most twice that of all points.
    margin = 2 * TOLERANCE * np.sqrt(np.einsum("ij,ij->i", centred, centred).max())
    place = np.empty(len(points), dtype=np.int64)

    def widths(inside: np.ndarray, signs: np.ndarray, clusters: np.ndarray, known: dict[int, _Plane]) -> np.ndarray:
        """The gap between the union and each cluster along its known plane, -inf where there is none."""
        gaps = np.full(len(clusters), -np.inf)
        tried = np.flatnonzero([cluster in known for cluster in clusters.tolist()])
        if len(tried):
            normals = np.stack([known[cluster].normal for cluster in clusters[tried].tolist()]) * signs[tried, None]
            rows = [members[cluster] for cluster in clusters[tried].tolist()]
            counts = np.array([len(part) for part in rows])
            scores = np.einsum("ij,ij->i", centred[np.concatenate(rows)], np.repeat(normals, counts, axis=0))
            highest = np.maximum.reduceat(scores, np.cumsum(counts) - counts)
            gaps[tried] = (inside @ normals.T).min(0) - highest
        return gaps

    def disjoint(union: np.ndarray, first: int, second: int) -> bool:
        direction = whitened[union].mean(0)
        scores = centred @ direction
        near = scores >= scores[union].min() - margin * np.linalg.norm(direction)
        near &= meets[codes[first]][codes]
        clusters, counts = np.unique(cluster_of[near], return_counts=True)
        # Those with most points on the wrong side first: one that meets the union ends the search.
        clusters = clusters[np.argsort(-counts, kind="stable")]
        signs = np.where(codes[first] < codes[clusters], 1.0, -1.0)
        inside = centred[union]
        gaps = np.stack([widths(inside, signs, clusters, planes[part]) for part in (first, second)])
        planes_of_union = {}
        for cluster, sign, part, gap in zip(clusters.tolist(), signs, gaps.argmax(0), gaps.max(0), strict=True):
            plane = planes[(first, second)[part]].get(cluster)
            if gap <= margin * 1.001:
                outside, weights = members[cluster], None
                if plane is None:
                    guess = direction - whitened[outside].mean(0)
                else:
                    guess = sign * plane.normal.astype(float)
                    place[union] = np.arange(len(union))
                    place[outside] = len(union) + np.arange(len(outside))
                    weights = np.zeros(len(union) + len(outside))
                    weights[place[plane.rows]] = plane.weights
                found = nearest_points(inside, centred[outside], guess, TOLERANCE, exact=False, weights=weights)
                if not found.separable:
                    return False
                weights = np.concatenate([found.weights_a, found.weights_b])
                used = np.flatnonzero(weights)
                rows = np.concatenate([union, outside])[used]
                plane = _Plane((sign * found.normal).astype(np.float32), rows, weights[used])
            planes_of_union[cluster] = plane
        for cluster, plane in planes_of_union.items():
            planes[first][cluster] = planes[cluster][first] = plane
        return True

    return disjoint


def _hand_over(planes: dict[int, dict[int, _Plane]], first: int, second: int) -> None:
    """The planes of the second cluster, which becomes a part of the first, go to the first where it has none."""
    for cluster, plane in planes.pop(second).items():
        del planes[cluster][second]
        planes[first].setdefault(cluster, plane)
        planes[cluster].setdefault(first, plane)
