"""Effects with intervals that cover both sources of chance: the models (seeds) and the examples.

Every model is scored on the same examples: x_ij = μ + a_i + b_j + e_ij with random models a_i, random examples b_j and
their interaction e_ij, noise included. Three mean squares estimate the variance σ_a²/m + σ_b²/n + σ_e²/mn of the mean
over m models and n examples (Searle, Casella and McCulloch 1992, chapter 4)::

    M = var_i(x_i.)/m      E = var_j(x_.j)/n      I = Σ_ij (x_ij − x_i. − x_.j + x..)² / ((m−1)(n−1)mn)
    V = max(M, I) + max(E, I) − I

M and E both contain the interaction, so V is M + E − I, where a source whose own variance comes out negative counts as
none. The interval is Student's t with Satterthwaite's degrees of freedom, V² / Σ part²/degrees over the parts that make
up V. At 95 % it covers 93 to 97 % in simulation with five models, 92 to 98 with three, but with two as few as 87.

A ratio is judged by its logarithm: the mean over models is then the geometric one, and doubling counts as much as
halving. What comes in whole units, such as a count, varies by rounding at least, 1/12 of a unit squared, even where all
models give the same number.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import nctdtr, stdtrit

Values = NDArray[np.float64]
Number = float | Values
POWER = 0.8  # with which the number of models or examples that is said to be needed would decide
SURE = 30.0  # standard errors from the threshold, at which the power is 1
ROUNDED = 1 / 12  # of a unit squared: the variance of a number that is uniform between two whole ones
TIE = 1 + 1e-9  # parts that differ by rounding alone count as equal: the order of a sum must not change the degrees


class Part(NamedTuple):
    """One source's share of the variance of an estimate, with its degrees of freedom."""

    variance: Number
    degrees: Number


@dataclass(frozen=True)
class Interval:
    """An effect with its interval; numbers, or arrays with the leading dimensions of what was measured.

    Attributes:
        estimate, low, high, standard_error: in the measure's own units.
        degrees, level: of freedom (Satterthwaite; NaN for a percentile interval), and two-sided, 0.95 for 95 %.
        models, examples: how many there are, models on the smaller side of a comparison; 0 examples if they are given,
            0 models if the interval was not measured.
        of_this_model: a side has one model, so the interval says nothing about other seeds.
        parts: M, E and I above; empty for a percentile interval.
        log: it is a ratio, judged by its logarithm, whose are standard_error and parts.
    """

    estimate: Number
    low: Number
    high: Number
    standard_error: Number
    degrees: Number
    level: float
    models: int
    examples: int
    of_this_model: bool
    parts: tuple[Part, ...] = ()
    log: bool = False

    @property
    def measured(self) -> bool:
        """False where the estimate is all there is."""
        return self.models > 0


def interval(
    scores: ArrayLike, reference: ArrayLike | None = None, paired_models: bool = True, level: float = 0.95
) -> Interval:
    """Mean score, or mean difference from a reference, over models and examples.

    Args:
        scores: (…, models, examples).
        reference: what is subtracted, on the same examples: (…, models, examples), the models in the same order if
            paired, or one row that is given and common to all of them (the pre-trained encoder).
        paired_models: False where the reference has other models. Then M and I are sums over both sides, and E is of
            the difference of the examples' means.
        level: of the two-sided interval.

    Raises:
        ValueError: values not finite, fewer than two examples, or a reference of another shape.

    >>> effect = interval([[1, 2, 3, 4], [2, 3, 4, 7]])
    >>> print(f"{effect.estimate} in [{effect.low:.2f}, {effect.high:.2f}], {effect.degrees:.2f} degrees of freedom")
    3.25 in [-0.24, 6.74], 3.05 degrees of freedom
    """
    sides = _sides(scores, reference, paired_models)
    return _from_sides([side.mean(-1) for side in sides], sides, level, sides[0].shape[-1])


def multibootstrap(
    scores: ArrayLike,
    reference: ArrayLike | None = None,
    paired_models: bool = True,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """The Multi-Bootstrap (Sellam et al. 2022, "The MultiBERTs", section 4) of the same effect, as a check.

    θ* = Σ_i Σ_j u_i v_j x_ij / mn, where u and v count how often m models and n examples were drawn with replacement.
    Both sides of a comparison share v, and u if models are paired. Low and high are percentiles of θ*, which few models
    make too narrow. Arguments and errors as for `interval`.

    >>> effect = multibootstrap([[1, 2, 3, 4], [2, 3, 4, 7]])
    >>> print(f"{effect.estimate}, within {effect.low > 1 and effect.high < 7}")
    3.25, within True
    """
    if resamples < 2:
        raise ValueError(f"A bootstrap needs at least two resamples, not {resamples}.")
    sides = _sides(scores, reference, paired_models)
    examples, *models = counts = [sides[0].shape[-1], *(side.shape[-2] for side in sides)]
    rng = np.random.default_rng(seed)
    v, *us = (rng.multinomial(count, np.full(count, 1 / count), size=resamples) / count for count in counts)
    drawn = _minus([np.einsum("...mb,bm->...b", side @ v.T, u) for side, u in zip(sides, us, strict=True)])
    low, high = np.quantile(drawn, _tails(level), axis=-1)
    estimate = _minus([side.mean((-2, -1)) for side in sides])
    numbers = map(_plain, (estimate, low, high, drawn.std(-1, ddof=1), np.full_like(estimate, np.nan)))
    return Interval(*numbers, level, min(models), examples, min(models) == 1)


def from_replicates(
    estimates: ArrayLike,
    replicates: ArrayLike,
    reference: tuple[ArrayLike, ArrayLike] | None = None,
    paired_models: bool = True,
    level: float = 0.95,
    examples: int | None = None,
    log: bool = False,
) -> Interval:
    """Interval of a measure that is no mean over examples (CCA, RSA, a correlation), by leaving out folds.

    The delete-a-group jackknife (Shao and Tu 1995, section 2.3) with K folds of about equal size, the same sentences
    for all models. With θ_i of model i on all sentences and θ_i(k) without fold k, M = var_i(θ_i)/m, and the
    pseudo-values p_ik = K θ_i − (K−1) θ_i(k) take the place of scores in E and I. So E is the jackknife variance
    (K−1)/K Σ_k (θ.(k) − θ.(.))² of the *mean over models*: what a fold does to all models alike does not average out.

    Args:
        estimates, replicates: θ (…, models) and θ(k) (…, models, folds).
        reference: estimates and replicates of what is subtracted, on the same folds.
        examples: how many sentences the folds hold together, which `needed` counts in; the folds if not given.
        paired_models, level: as for `interval`.
        log: the estimates are ratios; a reference divides them.

    >>> effect = from_replicates([0.50, 0.54], [[0.49, 0.50, 0.51], [0.54, 0.53, 0.55]], level=0.9)
    >>> print(f"{effect.estimate:.2f}, standard error {effect.standard_error:.3f}")
    0.52, standard error 0.022
    """
    values = []
    for whole, left_out in [(estimates, replicates)] + ([] if reference is None else [reference]):
        whole, left_out = (_logarithm(side) if log else side for side in (whole, left_out))
        whole, left_out = _numbers(whole, "estimates", 1)[..., None], _numbers(left_out, "replicates", 2)
        folds = left_out.shape[-1]
        if whole.shape[:-1] != left_out.shape[:-1] or folds < 2:
            raise ValueError(f"Replicates {left_out.shape} leave no folds out of {whole.shape[:-1]} estimates.")
        values.append(np.concatenate([whole, folds * whole - (folds - 1) * left_out], -1))
    sides = _sides(values[0], None if reference is None else values[1], paired_models)
    estimates, values = [side[..., 0] for side in sides], [side[..., 1:] for side in sides]
    return _from_sides(estimates, values, level, examples or folds, log)


def over_models(values: ArrayLike, level: float = 0.95, log: bool = False, unit: float = 0.0) -> Interval:
    """Interval over models alone, for what is not smooth in the examples: mean ± t(m−1) · sd/√m of (…, models).

    That of one value is infinite, with the flag `of_this_model`.

    Args:
        log: the values are ratios.
        unit: the values are whole multiples of it (a count has 1), so they vary by unit²/12 at least.

    >>> effect = over_models([4, 6, 5])
    >>> print(f"{effect.estimate} in [{effect.low:.2f}, {effect.high:.2f}]")
    5.0 in [2.52, 7.48]
    >>> print(f"{over_models([2, 2, 2], unit=1).low:.2f}")
    1.28
    """
    values = _numbers(_logarithm(values) if log else values, "values", 1)
    models = values.shape[-1]
    part = _of_mean(values) if models > 1 else Part(np.full(values.shape[:-1], np.inf), 0.0)
    part = Part(np.maximum(part.variance, unit**2 * ROUNDED / models), part.degrees)
    return _from_parts(values.mean(-1), (part, *[Part(0.0, 0.0)] * 2), level, models, 0, log)


def without_interval(value: float, log: bool = False) -> Interval:
    """An estimate whose interval was not measured: what is left of a run that kept no replicates.

    >>> without_interval(0.3).measured
    False
    """
    value = float(_numbers(value, "value", 0))
    return Interval(value, value, value, np.nan, np.nan, 0.95, 0, 0, False, log=log)


def independent_difference(first: Interval, second: Interval) -> Interval:
    """First minus second, which share neither models nor examples (two tasks), at the first's level: each part adds.

    Of two ratios it is the first over the second. Where one of the two was not measured, neither is the difference.

    >>> f"{independent_difference(over_models([4, 6, 5]), over_models([1, 2, 3])).low:.2f}"
    '0.73'
    """
    difference = np.subtract(_on_scale(first, first.estimate), _on_scale(second, second.estimate))
    if not (first.measured and second.measured):
        return without_interval(np.exp(difference) if first.log else difference, first.log)
    parts = tuple(_added(pair) for pair in zip(_parts(first), _parts(second), strict=True))
    models, examples = min(first.models, second.models), min(first.examples, second.examples)
    return _from_parts(difference, parts, first.level, models, examples, first.log)


def at_level(interval: Interval, level: float) -> Interval:
    """The same interval at another level, from its standard error and degrees of freedom.

    >>> f"{at_level(over_models([4, 6, 5]), 0.99).low:.2f}"
    '-0.73'
    """
    counts = interval.models, interval.examples
    return _from_parts(_on_scale(interval, interval.estimate), _parts(interval), level, *counts, interval.log)


def cut(interval: Interval, least: float, most: float) -> Interval:
    """The same interval, no wider than what the measure can be: Student's t knows no bounds.

    >>> f"{cut(over_models([0.97, 0.99, 0.98]), -1, 1).high:.3f}"  # 1.005 before
    '1.000'
    """
    low = np.minimum(np.maximum(interval.low, least), interval.estimate)
    return replace(interval, low=low, high=np.maximum(np.minimum(interval.high, most), interval.estimate))


def needed(interval: Interval, threshold: float, of: str = "models", limit: int = 1_000_000) -> int | None:
    """How many models (or examples) would decide an effect of the size seen with a power of 80 %; those it has if it is
    decided already.

    The smallest count (to half a percent) at which a noncentral t, about abs(estimate − threshold)/√V, exceeds the
    interval's quantile of Student's t in four cases of five. f times the models (on both sides of a comparison) and h
    times the examples have V = max(M−I, 0)/f + max(E−I, 0)/h + I/fh; the models' degrees grow to (d+1)f − 1. None if no
    count up to the limit decides: the other source of chance alone leaves it open.

    >>> needed(over_models([4, 6, 5]), 4)
    10
    """
    if np.ndim(interval.estimate):
        raise ValueError("What is needed is counted for one interval, not for many.")
    if of not in ("models", "examples") or (of == "examples" and not interval.examples):
        raise ValueError(f"The interval does not count {of}.")
    if of == "models" and interval.of_this_model:
        raise ValueError("One model does not show how much models differ.")
    (models, first), (examples, second), (both, third) = _parts(interval)
    count = interval.models if of == "models" else interval.examples
    if not interval.low <= threshold <= interval.high:
        return count
    sizes = np.unique(np.geomspace(count + 1, max(limit, count + 1), 4000).astype(int))
    f, h = (sizes / count, 1.0) if of == "models" else (1.0, sizes / count)
    shared = both / (f * h)
    variances = max(models - both, 0) / f + shared, max(examples - both, 0) / h + shared, shared
    parts = tuple(map(Part, variances, ((first + 1) * f - 1, second, third)))
    distance = abs(float(_on_scale(interval, interval.estimate) - _on_scale(interval, threshold)))
    error, degrees = _error(parts)
    shift = np.minimum(np.divide(distance, error, out=np.full(sizes.shape, SURE), where=error > 0), SURE)
    power = 1 - nctdtr(degrees, shift, stdtrit(degrees, _tails(interval.level)[1]))
    enough = sizes[(power >= POWER) & (sizes <= limit)]
    return int(enough[0]) if enough.size else None


def _tails(level: float) -> tuple[float, float]:
    if not 0 < level < 1:
        raise ValueError(f"A level lies between 0 and 1, not at {level}.")
    return (1 - level) / 2, (1 + level) / 2


def _parts(interval: Interval) -> tuple[Part, ...]:
    if not interval.parts:
        raise ValueError("A percentile interval has no parts of variance: draw it anew instead.")
    return interval.parts


def _on_scale(interval: Interval, value: Number) -> Values:
    """A number on the scale on which the interval is symmetric."""
    return np.log(value) if interval.log else np.asarray(value)


def _logarithm(values: ArrayLike) -> Values:
    """Of ratios, which are positive."""
    values = np.asarray(values, dtype=float)
    if not (values > 0).all():
        raise ValueError("A ratio is judged by its logarithm, so each has to be positive.")
    return np.log(values)


def _numbers(values: ArrayLike, name: str, dimensions: int) -> Values:
    """`values` as floats, refused if not finite or without the trailing dimensions."""
    values = np.asarray(values, dtype=float)
    if values.ndim < dimensions or 0 in values.shape:
        raise ValueError(f"The {name} of shape {values.shape} need {dimensions} dimensions with values in each.")
    if not np.isfinite(values).all():
        raise ValueError(f"The {name} hold values that are not finite.")
    return values


def _sides(scores: ArrayLike, reference: ArrayLike | None, paired_models: bool) -> list[Values]:
    """What is resampled together: the paired differences, or the scores and the reference of other models."""
    scores = _numbers(scores, "scores", 2)
    if scores.shape[-1] < 2:
        raise ValueError("An interval over examples needs at least two examples.")
    if reference is None:
        return [scores]
    reference = _numbers(reference, "reference", 2)
    (*batch, models, examples), (*others_batch, others, others_examples) = scores.shape, reference.shape
    same = batch == others_batch and examples == others_examples
    if not same or (paired_models and others not in (1, models)):
        paired = "paired with" if paired_models else "on the same examples as"
        raise ValueError(f"A reference of shape {reference.shape} is not {paired} scores of shape {scores.shape}.")
    return [scores - reference] if paired_models else [scores, reference]


def _minus(terms: Sequence[Values]) -> Values:
    """The first of one or two terms, minus the second."""
    return np.asarray(terms[0] if len(terms) == 1 else np.subtract(*terms))


def _of_mean(values: Values) -> Part:
    """Variance of the mean over the last dimension; none for a single value."""
    return Part(values.var(-1, ddof=min(1, values.shape[-1] - 1)) / values.shape[-1], values.shape[-1] - 1.0)


def _interaction(values: Values) -> Part:
    """I above: what neither model nor example explains; none for a single model."""
    models, examples = values.shape[-2:]
    rest = values - values.mean(-1, keepdims=True)
    rest -= rest.mean(-2, keepdims=True)
    degrees = (models - 1.0) * (examples - 1.0)
    return Part(np.square(rest).sum((-2, -1)) / (max(degrees, 1.0) * models * examples), degrees)


def _added(parts: Iterable[Part], signs: Iterable[Number] = (1, 1)) -> Part:
    """Independent parts added (1), subtracted (−1) or left out (0), with Satterthwaite's degrees, at least one."""
    terms = [(sign * np.asarray(part.variance), part.degrees) for part, sign in zip(parts, signs, strict=False)]
    variance = np.asarray(sum(term for term, _ in terms))
    scale = np.where((variance > 0) & np.isfinite(variance), variance, 1.0)
    total = sum(np.square(term / scale) / np.fmax(degrees, 1e-9) for term, degrees in terms)
    return Part(variance, 1 / np.where(total > 0, np.fmin(total, 1.0), 1.0))


def _from_sides(
    estimates: Sequence[Values], values: Sequence[Values], level: float, examples: int, log: bool = False
) -> Interval:
    """Interval from one or two sides' estimates (…, models) and values (…, models, examples)."""
    of_examples = _of_mean(_minus([side.mean(-2) for side in values]))
    parts = _added([_of_mean(side) for side in estimates]), of_examples, _added([_interaction(side) for side in values])
    counts = min(side.shape[-1] for side in estimates), examples
    return _from_parts(_minus([side.mean(-1) for side in estimates]), parts, level, *counts, log)


def _error(parts: tuple[Part, ...]) -> tuple[Values, Values]:
    """The standard error, with its degrees of freedom, from the three parts."""
    models, examples, both = (part.variance for part in parts)
    own = np.greater(models, both * TIE), np.greater(examples, both * TIE)
    variance, degrees = _added(parts, (*own, 1 - own[0] - own[1]))
    return np.sqrt(variance), degrees


def _from_parts(
    estimate: Values, parts: tuple[Part, ...], level: float, models: int, examples: int, log: bool = False
) -> Interval:
    """Interval from the models' part, the examples' part and the interaction that both contain."""
    error, degrees = _error(parts)
    reach = stdtrit(degrees, _tails(level)[1]) * error
    ends = estimate, estimate - reach, estimate + reach
    with np.errstate(over="ignore"):
        ends = tuple(map(np.exp, ends)) if log else ends
    numbers = map(_plain, (*ends, error, degrees))
    parts = tuple(Part(*map(_plain, part)) for part in parts)
    return Interval(*numbers, level, models, examples, models == 1, parts, log)


def _plain(number: Number) -> Number:
    return float(number) if np.ndim(number) == 0 else number
