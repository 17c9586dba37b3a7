"""Debiased CKA, Procrustes and mutual neighbours against plain ways: time, peak memory, and agreement, from one run.

    python bench/representations.py [--quick] [--repeats N]

The plain ways are two kernels without their diagonals for debiased CKA (Song et al. 2012, equation 4), SciPy's
`procrustes`, and scikit-learn's search for neighbours by brute force.
"""

import numpy as np
from measure import HEADER, arguments, compare, report
from scipy.spatial import procrustes
from sklearn.neighbors import NearestNeighbors

from fivelenses.lenses.similarities import debiased_linear_cka, mutual_neighbours, procrustes_distance

K = 10


def plain_debiased_cka(x: np.ndarray, y: np.ndarray) -> float:
    kernels = [rows.astype(np.float64) @ rows.T.astype(np.float64) for rows in (x, y)]
    for kernel in kernels:
        np.fill_diagonal(kernel, 0)

    def hsic(one: np.ndarray, other: np.ndarray) -> float:
        n = len(one)
        crossed = one.sum() * other.sum() / ((n - 1) * (n - 2)) - 2 * one.sum(0) @ other.sum(1) / (n - 2)
        return (np.sum(one * other) + crossed) / (n * (n - 3))

    first, second = kernels
    return float(hsic(first, second) / np.sqrt(hsic(first, first) * hsic(second, second)))


def plain_procrustes(x: np.ndarray, y: np.ndarray) -> float:
    *_, left = procrustes(x, y)  # with a scaling of the second side: 1 − s² in place of 2 − 2s
    return float(np.sqrt(2 - 2 * np.sqrt(1 - left)))


def plain_neighbours(x: np.ndarray, y: np.ndarray) -> float:
    search = [NearestNeighbors(n_neighbors=K, algorithm="brute").fit(rows) for rows in (x, y)]
    near = [one.kneighbors(return_distance=False) for one in search]
    return float(np.mean([len(np.intersect1d(*pair)) for pair in zip(*near, strict=True)]) / K)


def ours_neighbours(x: np.ndarray, y: np.ndarray) -> float:
    return mutual_neighbours(x, y, K)


MEASURES = {
    "debiased CKA": (plain_debiased_cka, debiased_linear_cka),
    "Procrustes": (plain_procrustes, procrustes_distance),
    "mutual neighbours": (plain_neighbours, ours_neighbours),
}


def layer_pair(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Two float32 representations that agree in a part."""
    random = np.random.default_rng(0)
    x = random.standard_normal((n, d), dtype=np.float32)
    return x + 1, 0.8 * x + 0.6 * random.standard_normal((n, d), dtype=np.float32) - 1


def main() -> None:
    quick, repeats = arguments(__doc__, "a fifth of the rows, one width, once")
    shapes = [(1000, 128)] if quick else [(1000, 128), (5000, 384), (5000, 768)]
    print(HEADER)
    for name, (plain, ours) in MEASURES.items():
        for n, d in shapes:
            costs = compare(plain, ours, layer_pair(n, d), layer_pair(200, 16), repeats)
            print(report(f"{name} ({n}, {d})", *costs), flush=True)


if __name__ == "__main__":
    main()
