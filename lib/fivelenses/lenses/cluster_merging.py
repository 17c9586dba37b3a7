"""DirectProbe's clusters where the hulls of whole labels meet: those of one label are joined, nearest first, as long as
the new hull meets no other label's.

The rule is in :func:`fivelenses.lenses.directprobe.probe`; here is what makes it fast.
"""

from collections.abc import Callable

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


def _overlap_test(
    points: np.ndarray,
    codes: np.ndarray,
    meets: np.ndarray,
    members: dict[int, np.ndarray],
    cluster_of: np.ndarray,
    planes: dict[int, dict[int, np.ndarray]],
) -> Callable[[np.ndarray, int, int], bool]:
    """A function of a union and its two clusters: whether its hull meets no present cluster of another label.

    One direction, that of linear discriminant analysis between the union and all points, tells most clusters apart from
    it with one product; from others a plane found earlier does, between them and a part of the union; each that is left
    is decided by itself. ``planes`` holds, per cluster and other cluster, a direction from the higher label to the
    lower, in single precision, since it is a guess that is checked before use.
    """
    centred = points - points.mean(0)
    spread = centred.T @ centred / len(points)
    spread.flat[:: len(spread) + 1] += 1e-3 * spread.trace() / len(spread)
    whitened = np.linalg.solve(spread, centred.T).T
    # At least the tolerance of every pair, whose radius is at most twice that of all points.
    margin = 2 * TOLERANCE * np.sqrt(np.einsum("ij,ij->i", centred, centred).max())

    def disjoint(union: np.ndarray, first: int, second: int) -> bool:
        direction = whitened[union].mean(0)
        scores = centred @ direction
        near = scores >= scores[union].min() - margin * np.linalg.norm(direction)
        near &= meets[codes[first]][codes]
        clusters, counts = np.unique(cluster_of[near], return_counts=True)
        inside = centred[union]
        # Those with most points on the wrong side first: one that meets the union ends the search.
        for cluster in clusters[np.argsort(-counts, kind="stable")].tolist():
            outside = centred[members[cluster]]
            sign = 1 if codes[first] < codes[cluster] else -1
            guess = direction - whitened[members[cluster]].mean(0)
            for part in (second, first):
                if cluster in planes[part]:
                    guess = sign * planes[part][cluster].astype(float)
                    if (inside @ guess).min() - (outside @ guess).max() > margin * 1.001:
                        plane = guess
                        break
            else:
                found = nearest_points(inside, outside, guess, TOLERANCE, exact=False)
                if not found.separable:
                    return False
                plane = found.normal
            planes[first][cluster] = planes[cluster][first] = (sign * plane).astype(np.float32)
        return True

    return disjoint


def _hand_over(planes: dict[int, dict[int, np.ndarray]], first: int, second: int) -> None:
    """The planes of the second cluster, which becomes a part of the first, go to the first where it has none."""
    for cluster, plane in planes.pop(second).items():
        del planes[cluster][second]
        planes[first].setdefault(cluster, plane)
        planes[cluster].setdefault(first, plane)
