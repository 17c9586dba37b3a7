"""DirectProbe against plain versions of it: time, peak memory, and agreement, from one run.

    python bench/directprobe.py [--quick] [--repeats N]

Where the labels are separable, the plain version is scikit-learn's linear support vector machine with a hard margin for
each pair of labels, distance 2/‖w‖; compared are the summed distances. Where they are not, it merges one pair at a time
and tests each against every cluster of another label by a linear program; compared are the numbers of clusters.
"""

from itertools import combinations

import numpy as np
from measure import HEADER, arguments, compare, report
from scipy.optimize import linprog
from scipy.spatial.distance import cdist
from sklearn.svm import SVC

from fivelenses.lenses.directprobe import clusters_by_merging, probe


def plain_distances(points: np.ndarray, codes: np.ndarray) -> float:
    total = 0.0
    for i, j in combinations(range(codes.max() + 1), 2):
        rows = (codes == i) | (codes == j)
        total += 2 / np.linalg.norm(SVC(kernel="linear", C=1e6).fit(points[rows], codes[rows]).coef_)
    return total


def our_distances(points: np.ndarray, codes: np.ndarray) -> float:
    return float(np.triu(probe(points, codes).distances).sum())


def hulls_meet(a: np.ndarray, b: np.ndarray) -> bool:
    sums = np.repeat([[1.0, 0.0], [0.0, 1.0]], [len(a), len(b)], axis=1)
    right = np.append(np.zeros(a.shape[1]), [1.0, 1.0])
    return linprog(np.zeros(len(a) + len(b)), A_eq=np.vstack([np.hstack([a.T, -b.T]), sums]), b_eq=right).success


def plain_clusters(points: np.ndarray, codes: np.ndarray) -> float:
    clusters = {row: [row] for row in range(len(points))}
    centroids = points.copy()
    distances = cdist(points, points)
    distances[(codes[:, None] != codes) | np.eye(len(points), dtype=bool)] = np.inf
    while np.isfinite(distances.min()):
        p, q = divmod(int(distances.argmin()), len(points))
        union = clusters[p] + clusters[q]
        if any(hulls_meet(points[union], points[rows]) for c, rows in clusters.items() if codes[c] != codes[p]):
            distances[p, q] = distances[q, p] = np.inf
            continue
        clusters[p] = union
        del clusters[q]
        centroids[p] = points[union].mean(0)
        distances[q] = distances[:, q] = np.inf
        own = [row for row in clusters if codes[row] == codes[p] and row != p]
        distances[p, own] = distances[own, p] = cdist(centroids[p : p + 1], centroids[own])[0]
    return float(len(clusters))


def our_clusters(points: np.ndarray, codes: np.ndarray) -> float:
    meets = ~np.eye(codes.max() + 1, dtype=bool)
    return float(len(clusters_by_merging(points, codes, meets)))


def gaussian_classes(n: int, d: int, labels: int, spread: float) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    codes = np.arange(n) % labels
    return (random.standard_normal((labels, d)) * spread)[codes] + random.standard_normal((n, d)), codes


def main() -> None:
    quick, repeats = arguments(__doc__, "small cases only", repeats=1)
    separable = (plain_distances, our_distances)
    tangled = (plain_clusters, our_clusters)
    cases = [("separable", separable, (600, 64, 6, 1.0)), ("not separable", tangled, (100, 8, 5, 0.3))]
    if not quick:
        cases = [
            ("separable", separable, (2000, 128, 10, 1.0)),
            ("separable", separable, (5000, 768, 17, 1.0)),
            ("not separable", tangled, (150, 16, 5, 0.1)),
        ]
    print(HEADER)
    for title, (plain, ours), shape in cases:
        costs = compare(plain, ours, gaussian_classes(*shape), gaussian_classes(40, 4, 4, 2.0), repeats)
        print(report(f"{title} {shape[:2]}", *costs), flush=True)


if __name__ == "__main__":
    main()
