"""How often the ledger's 95 % intervals hold the truth, simulated, with the Multi-Bootstrap beside: prints a table.

    python bench/coverage.py > book/coverage.csv
    python bench/coverage.py --quick

Each model scores the same 200 examples, or differs there from the model that it is paired with. Within a model the
scores have the standard deviation 1, half of which in variance is the example's own, common to all models; models
differ by the `spread`: one of 0.1 moves the mean as much as 100 such examples do.
"""

import csv
import sys

import numpy as np

from fivelenses.judging import LEVEL, crossed

MODELS = (2, 3, 5, 10)
SPREADS = {"not at all": 0.0, "a little (0.03)": 0.03, "much (0.1)": 0.1, "very much (0.3)": 0.3}
EXAMPLES = 200


def multibootstrap(scores: np.ndarray, resamples: int = 1000, seed: int = 0) -> np.ndarray:
    """The ends of the Multi-Bootstrap (Sellam et al. 2022, "The MultiBERTs", section 4) of mean scores, as a check.

    θ* = Σ_i Σ_j u_i v_j x_ij / mn, where u and v count how often m models and n examples were drawn with replacement.
    The ends are percentiles of θ*, which few models make too narrow.

    Args:
        scores: (…, models, examples).
    """
    rng, (models, examples) = np.random.default_rng(seed), scores.shape[-2:]
    v, u = (rng.multinomial(count, np.full(count, 1 / count), size=resamples) / count for count in (examples, models))
    means = np.einsum("...mb,bm->...b", scores @ v.T, u)
    return np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=-1)


def coverage(models: int, spread: float, simulations: int, seed: int = 0) -> tuple[float, float]:
    """The share of simulations whose interval holds the true mean 0: of the components, and of percentiles."""
    rng, held = np.random.default_rng([seed, models, round(100 * spread)]), np.zeros(2)
    batch = 250
    for _ in range(simulations // batch):
        example, noise = rng.normal(0, np.sqrt(0.5), size=(2, batch, models, EXAMPLES))
        scores = spread * rng.normal(size=(batch, models, 1)) + example[:, :1] + noise
        bounds = np.array([crossed(of_models).bounds() for of_models in scores]).T, multibootstrap(scores)
        held += [np.sum((low <= 0) & (high >= 0)) for low, high in bounds]
    return tuple(held / (simulations // batch * batch))


def main() -> None:
    simulations = 500 if "--quick" in sys.argv else 4000
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["models", "models differ", "our interval", "Multi-Bootstrap"])
    for models in MODELS:
        for name, spread in SPREADS.items():
            table.writerow([models, name, *(f"{share:.0%}" for share in coverage(models, spread, simulations))])


if __name__ == "__main__":
    main()
