r"""What a measure of two representations must pass, as scikit-learn's ``check_estimator`` does for an estimator.

A measure takes x (n, d₁) and y (n, d₂), rows of the same tokens in the same order, and returns a number.
:func:`check_measure` tries on random features what a :class:`Measure` is declared to be: its range, its bias at small n
and its *invariances*, changes of the features of one side that leave it as it was (Klabunde et al. 2025), with no other
change ignored. The type, the layout and the order of rows must not matter, and what is no pair of representations must
be refused in a sentence.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

INVARIANCES = ("permutation", "rotation", "scaling", "translation", "invertible linear map")
PERMUTATION, ROTATION, SCALING, TRANSLATION, LINEAR = INVARIANCES
RIGID = frozenset(INVARIANCES) - {LINEAR}

# What each measure of the chapters is called, and what it ignores.
DECLARED = {
    # Its principal directions hold a share of the variance, which an invertible map deals out anew.
    "svcca": ("SVCCA", RIGID),
    "pwcca": ("PWCCA, CCA of all directions", RIGID | {LINEAR}),
    "cka": ("linear CKA", RIGID),
    "cka_debiased": ("debiased CKA", RIGID),
    "procrustes": ("Procrustes", RIGID),
    "neighbours": ("mutual neighbours", RIGID),
    "rsa": ("RSA", RIGID - {TRANSLATION}),  # cosines are taken from the origin
    "labels": ("distance of labels", RIGID - {SCALING}),  # a distance between hulls scales with the points
    # A probe that is trained with a penalty from weights that were drawn for its inputs is invariant to nothing.
    "probe": ("classifier probe", frozenset()),
    "structure": ("structural probe", frozenset()),
}
ROWS, WIDTH = 120, 5


@dataclass(frozen=True)
class Measure:
    """A measure of two representations, a ``function`` of x and y, and what it is declared to be: its value for a
    representation with ``itself``; its range; its mean for ``independent`` normal data, from n and d; which of
    ``INVARIANCES`` leave it as it was; and whether it is the same from y to x.
    """

    key: str
    function: Callable[[np.ndarray, np.ndarray], float]
    itself: float
    least: float
    most: float
    independent: Callable[[int, int], float]
    invariances: frozenset[str]
    symmetric: bool = True

    def __call__(self, x: np.ndarray, y: np.ndarray) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return float(self.function(x, y))


def measures() -> list[Measure]:
    """The measures of two representations in this library."""
    from fivelenses.lenses import cca, similarities

    def correlated(n: int, d: int) -> float:
        # The mean singular value of a d × d matrix of normal numbers is about 0.85 √d.
        return 8 / (3 * np.pi) * (d / n) ** 0.5

    rows = [
        ("svcca", cca.svcca_distance, 0, 0, 1, lambda n, d: 1 - correlated(n, d)),
        ("pwcca", cca.pwcca_distance, 0, 0, 1, lambda n, d: 1 - correlated(n, d)),
        ("cka", similarities.linear_cka, 1, 0, 1, lambda n, d: d / (n + d)),
        ("cka_debiased", similarities.debiased_linear_cka, 1, -1, 1, lambda n, d: 0.0),
        ("procrustes", similarities.procrustes_distance, 0, 0, 2**0.5, lambda n, d: (2 - 2 * correlated(n, d)) ** 0.5),
        ("neighbours", similarities.mutual_neighbours, 1, 0, 1, lambda n, d: 10 / (n - 1)),
        ("rsa", similarities.rsa, 1, -1, 1, lambda n, d: 0.0),
    ]
    return [Measure(key, *rest, DECLARED[key][1], symmetric=key != "pwcca") for key, *rest in rows]


def check_measure(measure: Measure) -> None:
    """Try all that a measure is declared to be; an AssertionError says what does not hold.

    Example:
        >>> def correlation_of_lengths(x, y):
        ...     return np.corrcoef(np.linalg.norm(x, axis=1), np.linalg.norm(y, axis=1))[0, 1]
        >>> measure = Measure("lengths", correlation_of_lengths, 1, -1, 1, lambda n, d: 0, RIGID)
        >>> try:
        ...     check_measure(measure)
        ... except AssertionError as difference:
        ...     print(str(difference).partition(" by ")[0])
        lengths: translation changes it
    """
    _check_range(measure)
    _check_order(measure)
    for change in INVARIANCES:
        _check_change(measure, change)
    for n in (100, 1600):
        _check_independent(measure, n)
    _check_types(measure)
    _check_refusals(measure)
    for factor in (0, 1e-70, 1e70, 1e160):
        _check_factor(measure, factor)


def invariance_table() -> pd.DataFrame:
    """A row per declared measure, and a column per change of the features with yes or no."""
    rows = [
        {"measure": name} | {change: "yes" if change in ignored else "no" for change in INVARIANCES}
        for name, ignored in DECLARED.values()
    ]
    return pd.DataFrame(rows)


def features(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two representations that share a part, with unequal variances and a mean away from 0."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((ROWS, WIDTH)) * np.geomspace(2, 0.3, WIDTH) + 1
    return x, x @ random.standard_normal((WIDTH, WIDTH)) + random.standard_normal((ROWS, WIDTH)) + 1


def changed(change: str, y: np.ndarray, seed: int) -> np.ndarray:
    """A representation (n, 5) after a change of its features."""
    random = np.random.default_rng(seed + 1)
    rotation = np.linalg.qr(random.standard_normal((WIDTH, WIDTH)))[0]
    if change == PERMUTATION:
        return y[:, np.roll(np.arange(WIDTH), random.integers(1, WIDTH))]
    if change == ROTATION:
        return y @ rotation
    if change == SCALING:
        return y * np.exp(random.uniform(1, 4))
    if change == TRANSLATION:
        return y + random.uniform(2, 6, WIDTH)
    return y @ (rotation * np.geomspace(0.05, 20, WIDTH)) @ np.linalg.qr(rotation + np.eye(WIDTH))[0]


def _holds(truth: bool, measure: Measure, sentence: str) -> None:
    if not truth:
        raise AssertionError(f"{measure.key}: {sentence}.")


def _check_range(measure: Measure) -> None:
    for seed in range(10):
        x, y = features(seed)
        value, itself = measure(x, y), measure(x, x)
        _holds(measure.least <= value <= measure.most, measure, f"{value} is outside its range")
        _holds(abs(itself - measure.itself) < 1e-6, measure, f"{itself} is that of a representation with itself")


def _check_order(measure: Measure) -> None:
    x, y = features(0)
    order = np.random.default_rng(0).permutation(ROWS)
    _holds(abs(measure(x[order], y[order]) - measure(x, y)) < 1e-6, measure, "the order of rows matters")
    alike = abs(measure(y, x) - measure(x, y)) < 1e-6
    _holds(alike == measure.symmetric, measure, f"it is {'' if alike else 'not '}the same from y to x")


def _check_change(measure: Measure, change: str) -> None:
    moved = []
    for seed in range(10):
        x, y = features(seed)
        moved.append(abs(measure(x, changed(change, y, seed)) - measure(x, y)))
    if change in measure.invariances:
        _holds(max(moved) < 1e-6, measure, f"{change} changes it by {max(moved)}")
    else:
        _holds(max(moved) > 1e-3, measure, f"{change} is ignored, but not declared")


def _check_independent(measure: Measure, n: int, d: int = 20, draws: int = 10) -> None:
    random = np.random.default_rng(n)
    values = [measure(*random.standard_normal((2, n, d))) for _ in range(draws)]
    mean, expected = float(np.mean(values)), measure.independent(n, d)
    tolerance = 4 * float(np.std(values)) / draws**0.5 + 0.05 * (d / n) ** 0.5
    _holds(abs(mean - expected) <= tolerance, measure, f"{mean} at {n} rows, not {expected}")


def _check_types(measure: Measure) -> None:
    import torch

    x, y = features(0)
    value, copies = measure(x, y), (x.copy(), y.copy())
    read_only = np.broadcast_to(x, x.shape)
    _holds(measure(read_only, np.asfortranarray(y)) == value, measure, "the layout in memory matters")
    tensors = torch.from_numpy(x).requires_grad_(), torch.from_numpy(y)
    _holds(measure(*tensors) == value, measure, "tensors give another value than arrays")
    for kind, tolerance in ((np.float32, 1e-4), (np.float16, 0.02)):
        rounded = measure(x.astype(kind), y.astype(kind))
        _holds(abs(rounded - value) < tolerance, measure, f"{kind.__name__} gives {rounded}, double precision {value}")
    _holds(np.array_equal((x, y), copies), measure, "it changes its input")


def _check_refusals(measure: Measure) -> None:
    x, y = features(0)
    nan, infinity = x.copy(), x.copy()
    nan[3, 1], infinity[3, 1] = np.nan, np.inf
    pairs = {
        "NaN": (nan, y),
        "infinity": (y, infinity),
        "no rows": (x[:0], y[:0]),
        "one row": (x[:1], y[:1]),
        "other numbers of rows": (x, y[:-1]),
        "one axis": (x[:, 0], y),
        "no features": (x, y[:, :0]),
        "whole numbers": (x.astype(int), y),
    }
    for reason, pair in pairs.items():
        try:
            value = measure(*pair)
        except ValueError as refusal:
            _holds(str(refusal).endswith("."), measure, f"{reason}: {refusal} is no sentence")
        else:
            _holds(False, measure, f"{reason} gives {value} and is not refused")


def _check_factor(measure: Measure, factor: float) -> None:
    """Equal, tiny and huge rows are refused, or have a value in the range: the same if scaling is ignored."""
    x, y = features(0)
    try:
        value = measure(x * factor, y)
    except ValueError as refusal:
        _holds(str(refusal).endswith("."), measure, f"x times {factor:g}: {refusal} is no sentence")
        return
    _holds(measure.least <= value <= measure.most, measure, f"{value} of x times {factor:g} is outside its range")
    if factor and SCALING in measure.invariances:
        _holds(abs(value - measure(x, y)) < 1e-6, measure, f"x times {factor:g} gives {value}, not {measure(x, y)}")
