"""The paper's grid of 128 probes against scikit-learn one by one: time, peak memory, and agreement, from one run.

    python bench/mlp_probe.py [--quick] [--repeats N]

scikit-learn trains 16 of the 128, every pair of hidden sizes once and every α twice, and its time is multiplied by 8;
we train all 128. Both get single precision and train for the same number of epochs, too few for a probe to stop, so
that the work is the same. What is apart is the mean loss of the 16 in the last epoch.
"""

import dataclasses
import warnings

import numpy as np
from measure import HEADER, arguments, compare, report
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from fivelenses.lenses.mlp_probe import fit, grid

EPOCHS, CLASSES = 12, 12
GRID = grid()
# The grid holds 8 α for each pair of sizes in turn; 3 shares no factor with 8, so that no α is missed.
SAMPLE = [8 * pair + 3 * pair % 8 for pair in range(16)]


def plain_sample(x: np.ndarray, y: np.ndarray) -> float:
    losses = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for one in (GRID[place] for place in SAMPLE):
            model = MLPClassifier(
                one.hidden, alpha=one.alpha, batch_size=min(200, len(x)), max_iter=EPOCHS, random_state=0
            )
            losses.append(model.fit(x, y).loss_)
    return float(np.mean(losses))


def our_grid(x: np.ndarray, y: np.ndarray) -> float:
    # One test row, since scikit-learn's side only trains.
    return float(fit(x, y, x[:1], y[:1], GRID, max_epochs=EPOCHS).loss[SAMPLE].mean())


def clouds(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    y = random.integers(0, CLASSES, n)
    centres = random.standard_normal((CLASSES, d), dtype=np.float32) / 4
    return centres[y] + random.standard_normal((n, d), dtype=np.float32), y


def main() -> None:
    quick, repeats = arguments(__doc__, "a quarter of the rows, one width, once", repeats=1)
    shapes = [(500, 128)] if quick else [(2000, 128), (1000, 768)]
    print(
        f"plain: time EXTRAPOLATED from {len(SAMPLE)} of {len(GRID)} probes × {EPOCHS} epochs; memory of one at a time"
    )
    print(HEADER)
    for n, d in shapes:
        plain, ours = compare(plain_sample, our_grid, clouds(n, d), clouds(50, 16), repeats)
        plain = dataclasses.replace(plain, seconds=plain.seconds * len(GRID) / len(SAMPLE))
        print(report(f"grid ({n}, {d})", plain, ours), flush=True)


if __name__ == "__main__":
    main()
