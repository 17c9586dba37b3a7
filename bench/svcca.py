"""SVCCA of one layer pair against the plain NumPy recipe: time, peak memory, and agreement, from one run.

    python bench/svcca.py [--quick] [--repeats N]

The recipe is the one of the first authors' tutorial: a singular value decomposition of each side, the covariance of
the reduced sides, a pseudo-inverse and a matrix square root of each, one more decomposition.
"""

import numpy as np
from measure import HEADER, arguments, compare, report

from fivelenses.lenses.cca import svcca_distance

KEEP = 0.99


def plain_svcca_distance(x: np.ndarray, y: np.ndarray) -> float:
    reduced = []
    for rows in (x, y):
        features = rows.T - rows.T.mean(1, keepdims=True)
        _, values, tokens = np.linalg.svd(features, full_matrices=False)
        kept = int(np.searchsorted(np.cumsum(values**2) / np.sum(values**2), KEEP)) + 1
        reduced.append(np.diag(values[:kept]) @ tokens[:kept])
    covariance = np.cov(*reduced)
    kept = len(reduced[0])
    roots = []
    for side in (covariance[:kept, :kept], covariance[kept:, kept:]):
        values, vectors = np.linalg.eigh(np.linalg.pinv(side))
        roots.append(vectors @ np.diag(np.sqrt(np.abs(values))) @ vectors.T)
    _, values, _ = np.linalg.svd(roots[0] @ covariance[:kept, kept:] @ roots[1])
    return 1 - float(values.mean())


def layer_pair(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Two float32 representations with a decaying spectrum, that agree most in their large directions."""
    random = np.random.default_rng(0)
    scales = np.arange(1, d + 1, dtype=np.float32) ** -0.5
    shared = np.linspace(1, 0.2, d, dtype=np.float32)
    rotations = [np.linalg.qr(random.standard_normal((d, d), dtype=np.float32))[0] for _ in range(2)]
    x = random.standard_normal((n, d), dtype=np.float32)
    y = shared * x + np.sqrt(1 - shared**2) * random.standard_normal((n, d), dtype=np.float32)
    return (x * scales) @ rotations[0] + 3, (y * scales) @ rotations[1] - 2


def main() -> None:
    quick, repeats = arguments(__doc__, "a tenth of the rows, small widths, once")
    shapes = [(2000, 64), (2000, 128)] if quick else [(20000, 768), (20000, 1024)]
    print(HEADER)
    for n, d in shapes:
        plain, ours = compare(plain_svcca_distance, svcca_distance, layer_pair(n, d), layer_pair(200, 16), repeats)
        print(report(f"SVCCA ({n}, {d})", plain, ours), flush=True)


if __name__ == "__main__":
    main()
