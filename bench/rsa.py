"""RSA of one layer pair against the two full cosine matrices: time, peak memory, and agreement, from one run.

    python bench/rsa.py [--quick] [--repeats N]

The plain way makes both kernels, takes their upper triangles and correlates them, all in the precision of the input.
"""

import numpy as np
from measure import HEADER, arguments, compare, report

from fivelenses.lenses.similarities import rsa


def plain_rsa(x: np.ndarray, y: np.ndarray) -> float:
    kernels = []
    for rows in (x, y):
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        kernels.append(unit @ unit.T)
    above = np.triu_indices(len(x), 1)
    return float(np.corrcoef(kernels[0][above], kernels[1][above])[0, 1])


def layer_pair(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Two float32 representations that agree in a part, with a common direction as encoders have."""
    random = np.random.default_rng(0)
    x = random.standard_normal((n, d), dtype=np.float32)
    y = 0.8 * x + 0.6 * random.standard_normal((n, d), dtype=np.float32)
    return x + 1, y - 1


def main() -> None:
    quick, repeats = arguments(__doc__, "the smallest shape alone, once")
    shapes = [(1000, 128), *([] if quick else [(5000, 384), (5000, 768)])]
    print(HEADER)
    for n, d in shapes:
        plain, ours = compare(plain_rsa, rsa, layer_pair(n, d), layer_pair(200, 16), repeats)
        print(report(f"RSA ({n}, {d})", plain, ours), flush=True)


if __name__ == "__main__":
    main()
