r"""From the rows of a record to the verdict on a claim.

**Intervals** cover two sources of chance, models (seeds) and examples. Every model i is scored on the same examples j,

.. math:: x_{ij} = \mu + a_i + b_j + e_{ij},

so the mean over m models and n examples varies with the models, with the examples, and with their interaction, noise
included (Searle, Casella and McCulloch 1992, chapter 4)::

    M = var_i(x_i.)/m      E = var_j(x_.j)/n      I = Σ_ij (x_ij − x_i. − x_.j + x..)² / ((m−1)(n−1)mn)
    V = max(M, I) + max(E, I) − I

M and E both contain the interaction, so it is subtracted once. The interval is Student's t with Satterthwaite's degrees
of freedom, V² / Σ part²/degrees; in simulation, 95% intervals cover 94 to 96% with five models, 92 to 95 with three
and as few as 88 with two. A measure that is no mean over examples (SVCCA) is measured again without each of K folds;
the pseudo-values p_ik = K θ_i − (K−1) θ_i(k) then take the place of the scores x_ij (Shao and Tu 1995, section 2.3).

**Verdicts.** A claim gives one number or several (its *parts*) per group, a task for example, and each has to lie above
its threshold. A group *holds* if the interval of each part lies wholly above, *fails* if that of some part at level
1 − (1 − level)/parts lies wholly below, and is *open* otherwise: all parts must hold, so holding needs no correction
(an intersection-union test, Berger 1982); one suffices to fail, so failing has Bonferroni's. Over the groups, a claim
is *reproduced* (fails nowhere, holds in at least two thirds), *contradicted* (holds nowhere, fails in at least two
thirds), *mixed* (holds in some, fails in some), *open*, or *cannot be tested* (no group). A sentence of two halves
(large sets late *and* MRPC early) is reproduced only if a group holds in each, and open where a half has no group.

A claim that holds for a **control**, too (twins that moved at random, models of shuffled labels), may be true, but does
not speak of what was learned. The **multiverse** judges the same records in other settings: thresholds a quarter lower
and higher, intervals of 90% and 99%, and the claim's variants.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from pydantic import TypeAdapter
from scipy.special import stdtrit

from fivelenses import catalogue
from fivelenses.records import CONTROLS, TWINS, USUAL_RATE, WHOLE, Missing, select
from fivelenses.tasks import FOLDS, folds

LEVEL = 0.95
HOLDS, FAILS, OPEN = "holds", "fails", "open"
REPRODUCED, CONTRADICTED, MIXED, CANNOT_BE_TESTED = "reproduced", "contradicted", "mixed", "cannot be tested"
OUTCOMES = (REPRODUCED, CONTRADICTED, MIXED, OPEN, CANNOT_BE_TESTED)  # of a claim
OURS = "this project"  # the place of a statement that no paper makes
RATIO = "ratio"  # the unit of what is judged by its logarithm
PAIR = ("first", "second")  # the columns of a record that compares two models
ROUNDING = 1e-12  # of the threshold: what lies nearer is a tie
EQUAL = 1 + 1e-9  # variances that differ by rounding alone must not change the degrees of freedom
LEARNED = 0.02  # score minus null rate: less than two points is no use of what was learned
OF_GAIN = 0.1  # of the gain over the null rate that the paper reports, where it reports one
# How many times as far thresholds of size lie, and the level of intervals, in other settings.
SETTINGS = {"thresholds × 0.75": (0.75, LEVEL), "thresholds × 1.25": (1.25, LEVEL)}
SETTINGS |= {"90% intervals": (1.0, 0.90), "99% intervals": (1.0, 0.99)}

Record = pd.DataFrame | Mapping[str, pd.DataFrame] | Missing


class CannotTest(ValueError):
    """Raised in a claim whose rows lack what it is about; the message is the rest of "because …"."""


# --- intervals --------------------------------------------------------------------------------------------------------


class Source(NamedTuple):
    """A source of chance: the variance that it gives an estimate, and its degrees of freedom."""

    variance: float
    degrees: float


NONE = Source(0.0, 0.0)


@dataclass(frozen=True)
class Interval:
    """An estimate with the three variances M, E and I of the module's formula.

    Attributes:
        mean: the estimate, or of a ratio (`log`) its logarithm, so that doubling counts as much as halving.
        models: how many it rests on.
        bounded: whether each end is known: at the edge of a grid, a value is at least, or at most, what was measured.
        within: what the number can be; the interval goes no further.
        tests: so many intervals hold together, with Bonferroni's correction.

    >>> crossed(np.array([[1.0, 2, 3, 4], [2, 3, 4, 7]]))
    3.25 [-0.24, 6.74]
    """

    mean: float
    by_model: Source
    by_example: Source = NONE
    interaction: Source = NONE
    models: int = 1
    log: bool = False
    bounded: tuple[bool, bool] = (True, True)
    within: tuple[float, float] = (-math.inf, math.inf)
    tests: int = 1

    @property
    def variance(self) -> Source:
        """V, with Satterthwaite's degrees."""
        own = [one.variance > EQUAL * self.interaction.variance for one in (self.by_model, self.by_example)]
        return _added((self.by_model, self.by_example, self.interaction), (*own, 1 - sum(own)))

    def bounds(self, level: float = LEVEL) -> tuple[float, float]:
        """mean ± t √V, in the measure's own units; infinite where an end is not known."""
        low, high = self.uncensored(level)
        return low if self.bounded[0] else -math.inf, high if self.bounded[1] else math.inf

    def uncensored(self, level: float = LEVEL) -> tuple[float, float]:
        """The bounds as if no value lay at the edge of a grid."""
        variance, (least, most) = self.variance, self.within
        reach = stdtrit(variance.degrees, 1 - (1 - level) / self.tests / 2) * math.sqrt(variance.variance)
        low, high = self._in_units(self.mean - reach), self._in_units(self.mean + reach)
        return min(max(low, least), self.estimate), max(min(high, most), self.estimate)

    def at_least(self) -> "Interval":
        """The same where some values are larger than could be measured: the upper end is open."""
        return replace(self, bounded=(self.bounded[0], False))

    def at_most(self) -> "Interval":
        """The same where some values are smaller than could be measured: the lower end is open."""
        return replace(self, bounded=(False, self.bounded[1]))

    def cut(self, least: float, most: float) -> "Interval":
        """The same, no wider than what the measure can be: Student's t knows no bounds."""
        return replace(self, within=(least, most))

    def simultaneous(self, tests: int) -> "Interval":
        """The same, wide enough that as many intervals hold together."""
        return replace(self, tests=tests)

    @property
    def estimate(self) -> float:
        return self._in_units(self.mean)

    @property
    def low(self) -> float:
        return self.bounds()[0]

    @property
    def high(self) -> float:
        return self.bounds()[1]

    def __sub__(self, other: "Interval") -> "Interval":
        """Of two that share neither models nor examples, such as two tasks; of ratios, the first over the second."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in ("by_model", "by_example", "interaction"))
        return Interval(self.mean - other.mean, *map(_added, pairs), min(self.models, other.models), self.log)

    def _in_units(self, value: float) -> float:
        with np.errstate(over="ignore"):
            return float(np.exp(value) if self.log else value)

    def __repr__(self) -> str:
        return f"{self.estimate:.3g} [{self.low:.2f}, {self.high:.2f}]"


def _added(sources: Sequence[Source], signs: Sequence[int] = (1, 1)) -> Source:
    """Sources added (1), subtracted (−1) or left out (0), with degrees V² / Σ part²/degrees, at least 1."""
    terms = [(sign * one.variance, one.degrees) for one, sign in zip(sources, signs, strict=True)]
    variance = sum(term for term, _ in terms)
    scale = variance if 0 < variance < math.inf else 1.0
    inverse = sum((term / scale) ** 2 / max(degrees, 1e-9) for term, degrees in terms)
    return Source(variance, 1 / min(inverse, 1.0) if inverse > 0 else 1.0)


def crossed(values: np.ndarray) -> Interval:
    """The interval of the mean of `values` (models, examples), every model scored on the same examples."""
    return _interval([_of_scores(values)])


def difference(values: np.ndarray, reference: np.ndarray) -> Interval:
    """The interval of the mean of `values` (models, examples) minus that of other models on the same examples; models
    that belong together are paired by `crossed(values - reference)`.
    """
    return _interval([_of_scores(values), _of_scores(reference)], paired=False)


def jackknife(theta: np.ndarray, left_out: np.ndarray, log: bool = False) -> Interval:
    """The interval of the mean of theta (models,) from its values without each fold of examples, (models, folds). With
    `log`, these are the logarithms of a ratio.

    >>> jackknife(np.array([0.50, 0.54]), np.array([[0.49, 0.50, 0.51], [0.54, 0.53, 0.55]])).estimate
    0.52
    """
    return _interval([_of_folds(theta, left_out)], log=log)


def over_seeds(theta: np.ndarray, log: bool = False, step: float = 0.0) -> Interval:
    """The interval of the mean of theta (models,), for examples that are given; infinite for one model. Values
    that are whole multiples of a `step` (a count has 1) vary by step²/12 at least.

    >>> over_seeds([4, 6, 5]), over_seeds([2, 2, 2], step=1)
    (5 [2.52, 7.48], 2 [1.28, 2.72])
    """
    theta = _finite(theta)
    by_model = _of_mean(theta) if len(theta) > 1 else Source(math.inf, 1.0)
    by_model = Source(max(by_model.variance, step**2 / 12 / len(theta)), by_model.degrees)
    return Interval(float(theta.mean()), by_model, models=len(theta), log=log)


def estimate(
    rows: pd.DataFrame,
    function: Callable[[pd.DataFrame], float | dict[str, float]],
    models: str | Sequence[str] = "seed",
    unit: str | Mapping[str, str] = "",
    reference: pd.DataFrame | None = None,
) -> Interval | dict[str, Interval]:
    """The interval of a function of the rows of one model; one for each part where it gives several numbers.

    Args:
        rows: of one group; with `fold` (−1: on all examples), or without, for examples that are given.
        function: of the rows of each model, on all examples and without each fold; NaN where examples are given.
        models: the column, or columns, that tell models apart; PAIR for all pairs of models.
        unit: `ratio` for what is judged by its logarithm; by part where parts differ.
        reference: rows of what is subtracted; models of the same names are pairs.

    >>> rows = pd.DataFrame({"seed": [0, 0, 0, 1, 1, 1], "fold": [-1, 0, 1] * 2, "x": [2.0, 1, 3, 4, 3, 5]})
    >>> estimate(rows, lambda of_model: of_model["x"].mean()).estimate
    3.0
    """
    columns = [models] if isinstance(models, str) else list(models)
    sides = [_by_part(one, function, columns) for one in (rows, reference) if one is not None]
    found = {}
    for part in sides[0]:
        log = of_part(unit, part) == RATIO
        of_sides = [_replicates(side[part].astype(float).unstack(), tuple(columns) == PAIR, log) for side in sides]
        paired = sides[0].index.equals(sides[-1].index)
        found[part] = _interval(of_sides, paired, log)
    return found[""] if list(found) == [""] else found


def _by_part(rows: pd.DataFrame, function: Callable, columns: list[str]) -> pd.DataFrame:
    """A column per part (named "" where there is one), a row per model and fold."""
    rows = rows if "fold" in rows else rows.assign(fold=WHOLE)
    values = {key: function(of_one) for key, of_one in rows.groupby([*columns, "fold"])}
    table = pd.DataFrame([value if isinstance(value, dict) else {"": value} for value in values.values()])
    return table.set_index(pd.MultiIndex.from_tuples(values))


def _replicates(wide: pd.DataFrame, pairs: bool, log: bool) -> tuple[np.ndarray, np.ndarray]:
    """What an interval is made from, out of the numbers of models (or pairs of models) × folds."""
    theta, left_out = wide[WHOLE], wide.drop(columns=WHOLE)
    left_out = left_out.iloc[:, :0] if left_out.isna().all(axis=None) else left_out
    incomplete = theta.isna() | left_out.isna().any(axis=1)
    if incomplete.any():
        raise ValueError(f"Some models lack folds that others have: {wide.index[incomplete].tolist()}.")
    values = theta.to_numpy(), left_out.to_numpy()
    if log and min(values[0].min(), values[1].min(initial=1)) <= 0:
        raise ValueError("A ratio is judged by its logarithm, so each has to be positive.")
    values = tuple(map(np.log, values)) if log else values
    return _of_folds(*(_over_models(list(wide.index), one) for one in values) if pairs else values)


def _over_models(pairs: Sequence[tuple], values: np.ndarray) -> np.ndarray:
    """From values of all pairs of m models, (pairs, …), to one pseudo-value per model, (m, …), with the same mean."""
    # Pairs that share a model are not independent, so models are left out, too (Arvesen 1969): with U the mean over all
    # pairs and U(i) that over the pairs without model i, it is m U − (m−1) U(i). Two models are one pair.
    models = sorted({model for pair in pairs for model in pair})
    m, mean = len(models), values.mean(axis=0)
    if set(map(frozenset, pairs)) != set(map(frozenset, combinations(models, 2))):
        raise ValueError(f"{len(pairs)} pairs are not all pairs of {m} models.")
    if m == 2:
        return values
    without = [values[[model not in pair for pair in pairs]].mean(axis=0) for model in models]
    return np.array([m * mean - (m - 1) * mean_without for mean_without in without])


def score(predictions: pd.DataFrame, reference: pd.DataFrame | None = None) -> Interval:
    """The interval of the score of models, one per seed, or of a difference of two. Examples whose score is no mean
    over them (Matthews correlation, sentences of several words) are dealt into folds, by label if they have one.

    Args:
        predictions: `checkpoints.tables.by_example` of models of one kind.
        reference: the same of what is subtracted: models of the same seeds are pairs, a single one is common to all.
    """
    sides = [_by_model(side, ["seed"]) for side in (predictions, reference) if side is not None]
    if all(side["metric"] != "matthews" and (side["weight"] == 1).all() for side in sides):
        values = [_of_scores(side["score"]) for side in sides]
    else:
        values = [_of_folds(*_without_folds(side)) for side in sides]
    seeds = [list(side["models"]) for side in sides]
    return _interval(values, paired=len(seeds[-1]) == 1 or seeds[0] == seeds[-1])


def scores_by_fold(predictions: pd.DataFrame | Missing, by: Sequence[str]) -> pd.DataFrame | Missing:
    """Scores of models, which the columns `by` tell apart, from predictions by example
    (`checkpoints.tables.by_example`): a row on all examples and without each fold, with `by`, `fold`, `score`.

    >>> values = {"model": 1, "seed": 0, "example": [0, 1], "metric": "accuracy", "score": [1, 0], "weight": 1}
    >>> scores_by_fold(pd.DataFrame(values), ["model"])["score"].tolist()
    [0.5, 0.0, 1.0]
    """
    if isinstance(predictions, Missing):
        return predictions
    by, tables = list(by), []
    count = predictions.groupby(by)["example"].transform("size")
    same = ["metric", count, *predictions.columns.intersection(["task"])]
    for _, alike in predictions.groupby(same, sort=False):
        side = _by_model(alike, by)
        values = np.column_stack(_without_folds(side))
        wide = pd.DataFrame(values, side["models"], pd.RangeIndex(WHOLE, values.shape[1] - 1, name="fold"))
        tables.append(wide.stack().rename("score").reset_index())
    return pd.concat(tables, ignore_index=True)


def _by_model(rows: pd.DataFrame, by: list[str]) -> dict:
    """Metric, models and, as (models, examples): weights, scores, labels and predicted labels where there are any."""
    columns = [name for name in ("weight", "score", "label", "predicted") if name in rows]
    whole = rows.pivot(index=by, columns="example", values=columns)
    wide = {name: whole[name].to_numpy(float) for name in columns}
    return wide | {"metric": rows["metric"].iloc[0], "models": whole.index, "score": _finite(wide["score"])}


def _without_folds(side: Mapping) -> tuple[np.ndarray, np.ndarray]:
    """The score of each model on all examples (models,), and without each fold (models, folds)."""
    weight, count = side["weight"], side["weight"].shape[1]
    fold = folds(side["label"][0] if "label" in side else np.zeros(count), min(FOLDS, count))

    def scored(kept: np.ndarray) -> np.ndarray:
        if side["metric"] != "matthews":
            return side["score"][:, kept].sum(axis=1) / weight[:, kept].sum(axis=1)
        both = np.stack([side["predicted"], side["label"]])
        given, gold = both[:, :, kept, None] == np.unique(both)
        given, gold = (kind - kind.mean(axis=1, keepdims=True) for kind in (given, gold))
        own, common = ((one * gold).sum((1, 2)) for one in (gold, given))
        with np.errstate(invalid="ignore"):  # of a constant prediction: 0
            return np.nan_to_num(common / np.sqrt(own * (given**2).sum((1, 2))))

    return scored(np.full(count, True)), np.stack([scored(fold != one) for one in np.unique(fold)], axis=1)


def _of_scores(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What an interval is made from: the estimate of each model (models,), and its scores (models, examples)."""
    values = _finite(values)
    return values.mean(axis=1), values


def _of_folds(theta: np.ndarray, left_out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same from estimates without each fold (models, folds), whose pseudo-values take the place of scores."""
    count = left_out.shape[1]
    return theta, count * theta[:, None] - (count - 1) * left_out


def _interval(sides: Sequence[tuple], paired: bool = True, log: bool = False) -> Interval:
    """Of the mean of one side, or of the first minus the second; without a score, for examples that are given."""
    (theta, values), (reference, others) = sides[0], sides[-1]
    if len(sides) == 2 and not paired:
        first, second = (_interval([side], log=log) for side in sides)
        return replace(first - second, by_example=_of_mean(values.mean(axis=0) - others.mean(axis=0)))
    if len(sides) == 2:
        theta, values = theta - reference, values - others
    if not values.shape[1]:
        return over_seeds(theta, log)
    sources = _of_mean(theta), _of_mean(values.mean(axis=0)), _interaction(values)
    return Interval(float(theta.mean()), *sources, len(theta), log)


def _of_mean(values: np.ndarray) -> Source:
    """var(x)/n; none of a single value."""
    return NONE if len(values) < 2 else Source(float(values.var(ddof=1)) / len(values), len(values) - 1)


def _interaction(values: np.ndarray) -> Source:
    """What neither model nor example explains; none for a single model."""
    m, n = values.shape
    if m == 1 or n == 1:
        return NONE
    rest = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0, keepdims=True) + values.mean()
    degrees = (m - 1) * (n - 1)
    return Source(float((rest**2).sum()) / (degrees * m * n), degrees)


def _finite(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, dtype=float)  # records keep scores in single precision
    if not values.size or not np.isfinite(values).all():
        raise ValueError("Values to be judged are missing or not finite, or models were scored on different examples.")
    return values


# --- the gate ---------------------------------------------------------------------------------------------------------

ORDINARY = {"frozen": -1, "truncated": -1, "reinitialised": 0, "shuffled_labels": False}


def ordinary(models: pd.DataFrame) -> pd.DataFrame:
    """Of `checkpoints.tables.models` those trained as usual: all layers, true labels, fewest epochs of their size."""
    for column, value in ORDINARY.items():
        models = models[models[column] == value]
    fewest = models.groupby(["encoder", "task", "examples"])["epochs"].transform("min")
    return models[models["epochs"] == fewest]


def unlearned(
    models: pd.DataFrame, predictions: pd.DataFrame, leading: str, gains: Mapping | None = None, words: Record = ()
) -> dict[str, str]:
    """Why tasks that ordinary fine-tuned models did not learn take no part in claims, by their names of `of_size`.

    A task, and each smaller training set of it, was learned where the interval of score minus null rate lies wholly
    above two points, or a tenth of the gain that the paper reports, and that of score minus a bag of words on the same
    examples above zero.

    Args:
        models, predictions: `ordinary`, and `checkpoints.tables.by_example` of these.
        leading: the run's own encoder, whose tasks are also named without it, as the largest training set is without
            its size ("rte from 500 examples on bert-base", "rte").
        gains: by how much the paper's models score above the null rate, by task.
        words: `checkpoints.tables.words_by_example`; tasks without are compared with the null rate alone.
    """
    largest = models.groupby(["encoder", "task"])["examples"].max()
    reasons = {}
    for (encoder, task, size), of_models in models.groupby(["encoder", "task", "examples"], sort=False):
        predicted = predictions[predictions["address"].isin(of_models["address"])]
        bag = words.query("task == @task and examples == @size") if len(words) else words
        if why := _why_unlearned(of_models, predicted, (gains or {}).get(task), bag):
            sizes = [None, size] if size == largest[encoder, task] else [size]
            encoders = ["", encoder] if encoder == leading else [encoder]
            said = f"{of_size(title(task), sizes[0], encoders[0])} {why}"
            reasons |= {of_size(task, *one): said for one in product(sizes, encoders)}
    return reasons


def _why_unlearned(models: pd.DataFrame, predicted: pd.DataFrame, gain: float | None, words: Record) -> str:
    """The rest of a sentence about one training set; empty where it was learned."""

    def said(above: Interval, what: str) -> str:
        numbers = f"is {above.estimate:z.3f} [{above.low:z.3f}, {above.high:z.3f}]"
        return f"its score of {models['score'].mean():z.3f} minus {what} {numbers}".replace("-", "−")

    # The interval of two models is wide, but no score is above 1.
    null, least = models["null_rate"].mean(), -1.0 if (predicted["metric"] == "matthews").all() else 0.0
    margin = LEARNED if gain is None else OF_GAIN * gain
    over_null = predicted["score"].astype(float) - predicted["null"]
    above = score(predicted.assign(score=over_null)).cut(least - null, 1 - null)
    if above.low > margin + ROUNDING:
        over = score(predicted, words).cut(least - 1, 1 - least) if len(words) else None
        if over is None or over.low > ROUNDING:
            return ""
        return f"was not clearly learned: {said(over, 'that of a bag of words')}"
    if above.estimate <= margin:
        return f"was not learned: {said(above, 'the null rate')}, not above {margin:.2g}"
    with_models = f"with {len(models)} model" + "s" * (len(models) > 1)
    reaches = f"{said(above, 'the null rate')}, and {with_models} the interval reaches below {margin:.2g}"
    return f"was not clearly learned: {reaches}"


def of_size(task: str, examples: int | None = None, encoder: str = "") -> str:
    """The name under which the gate knows a task, such as "rte from 2,500 examples on bert-base"."""
    return task + ("" if examples is None else f" from {examples:,} examples") + (f" on {encoder}" if encoder else "")


# --- verdicts ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """One number of a claim in one group, and what became of it."""

    name: str
    interval: Interval
    outcome: str = OPEN


@dataclass(frozen=True)
class Group:
    """What became of one group: it holds, fails, or is open; `half` is the half of the sentence that it is about."""

    name: str
    outcome: str
    parts: tuple[Part, ...]
    half: str = ""

    @property
    def models(self) -> int:
        """Of the part that has fewest."""
        return min(part.interval.models for part in self.parts)

    @property
    def chance(self) -> float:
        """At most this is the probability of a decision if every effect lay at its threshold."""
        bounds = [part.interval.bounds() for part in self.parts]
        can_hold, can_fail = all(low > -math.inf for low, _ in bounds), sum(high < math.inf for _, high in bounds)
        tests = min(part.interval.tests for part in self.parts)
        return (1 - LEVEL) / 2 / tests * (can_hold + can_fail / len(bounds))


@dataclass(frozen=True)
class Verdict:
    """What became of a claim.

    Attributes:
        groups, left_out: those judged, and the others with the reason.
        reason: why it cannot be tested.
        alone: one group, or fewer than half of them, is all that it rests on.
        untested, left_of_half: halves of the sentence without a group, and with one alone that is left.
        controls, settings: the verdict on each control, and the outcome in each setting of the multiverse.
    """

    outcome: str
    groups: tuple[Group, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    alone: bool = False
    untested: tuple[str, ...] = ()
    left_of_half: Mapping[str, str] = field(default_factory=dict)
    controls: Mapping[str, "Verdict"] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)

    def of(self, outcome: str) -> list[Group]:
        """The groups that hold, fail or are open."""
        return [group for group in self.groups if group.outcome == outcome]

    @property
    def changed(self) -> dict[str, str]:
        """The settings in which the verdict is another."""
        return {name: outcome for name, outcome in self.settings.items() if outcome != self.outcome}

    @property
    def stays(self) -> str:
        """In how many of the settings the verdict stays, for a table (*1/2*); empty where there are none."""
        return f"{len(self.settings) - len(self.changed)}/{len(self.settings)}" if self.settings else ""

    @property
    def range(self) -> str:
        """The range of the first part over the groups, for prose (*5.1 to 8.8*)."""
        parts = [part for group in self.groups for part in group.parts]
        estimates = sorted(part.interval.estimate for part in parts if part.name == parts[0].name)
        ends = dict.fromkeys(f"{value:z.2g}".replace("-", "−") for value in (estimates[:1] + estimates[-1:]))
        return " to ".join(ends) or "not measured"


@dataclass(frozen=True)
class Claim:
    """A statement of a paper that records can support or not. The function that decides it is given to `judge`.

    Attributes:
        says, place: what the paper says, in our words and short, and where.
        measure, code: what the numbers are, in the middle of a sentence, and the function's name.
        by: the column of the groups, or encoder and task; empty for a function of all groups.
        above, because, unit: the threshold (0, and 1 for a ratio, of an order alone), why, and the unit; by part where
            parts differ.
        per: what a group is, in the singular.
        halves: of a sentence that has two, each with the names of its groups.
        printed: the number that the paper itself prints.
        no_twin, if_empty: why no twin can be measured, and why a record without rows cannot be judged.
        pools_tasks: a group is a mean over tasks, so rows of a task that was not learned are taken out, not groups.
        variants: further settings of the multiverse, by name: arguments of the function.
    """

    key: str
    paper: str
    says: str
    place: str
    measure: str = ""
    code: str = ""
    by: str | Sequence[str] = ""
    above: float | Mapping[str, float] = 0.0
    because: str | Mapping[str, str] = ""
    unit: str | Mapping[str, str] = ""
    per: str = ""
    halves: Mapping[str, Sequence[str]] = field(default_factory=dict)
    printed: str = ""
    exhibits: tuple[str, ...] = ()
    no_twin: str = ""
    if_empty: str = "there is nothing to compare"
    pools_tasks: bool = False
    variants: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    @property
    def noun(self) -> str:
        """What a group is."""
        return self.per or {"task": "task", "pair": "pair of tasks", "measure": "measure"}.get(str(self.by), "group")

    def threshold(self, part: str, factor: float = 1.0) -> float:
        """Of a part; so many times as far from that of an order, a ratio's by its logarithm."""
        above, ratio = of_part(self.above, part), of_part(self.unit, part) == RATIO
        return float(above or 1) ** factor if ratio else float(above or 0) * factor


def judge(claim: Claim, function: Callable, record: Record, excluded: Mapping[str, str] | None = None) -> Verdict:
    """What becomes of a claim on a record, on each control that the record holds, and in each setting.

    Args:
        function: where the claim has `by`, from the rows of one model to a number, or to numbers by part; without, from
            all rows to an Interval per group, Intervals by part, or a reason why it is left out. A group is named by
            its task, a pair of tasks ("rte–mnli"), or a tuple of a name and the tasks that it needs (`of_size`).
        record: a table, or several by name.
        excluded: of `unlearned`: groups on such a task take no part.

    >>> table = pd.DataFrame({"task": "rte", "seed": [1, 2, 3], "x": [4.0, 6.0, 5.0]})
    >>> judge(Claim("up", "p", "It rises.", "§1", by="task"), lambda of_model: of_model["x"].mean(), table).outcome
    'reproduced'
    """
    tables, excluded = dict(record) if isinstance(record, Mapping) else {"": record}, excluded or {}
    if missing := [table for table in tables.values() if isinstance(table, Missing)]:
        return Verdict(CANNOT_BE_TESTED, reason=missing[0].sentence)
    verdict = _judge(claim, function, tables, excluded)
    measured = {name for table in tables.values() if "control" in table for name in table["control"].unique()}
    controls = [name for name in CONTROLS if name in measured and not (claim.no_twin and name in TWINS)]
    settings = _in_other_settings(claim, verdict)
    for name, setting in claim.variants.items() if verdict.groups else ():
        settings[name] = _judge(claim, partial(function, **setting), tables, excluded).outcome
    of_controls = {name: _judge(claim, function, tables, excluded, name) for name in controls}
    return replace(verdict, controls=of_controls, settings=settings)


def _judge(
    claim: Claim, function: Callable, tables: Mapping[str, pd.DataFrame], excluded: Mapping[str, str], control: str = ""
) -> Verdict:
    rows, pooled_out = {name: select(table, control, folds=True) for name, table in tables.items()}, {}
    for name, table in rows.items():
        if claim.pools_tasks and "task" in table:
            out = table["task"].isin(list(excluded))
            pooled_out |= {title(task): excluded[task] for task in table.loc[out, "task"].unique()}
            rows[name] = table[~out]
    if all(table.empty for table in rows.values()):
        return as_verdict(claim, (), pooled_out)
    try:
        found, left_out = _groups(claim, function, rows.get("", rows), excluded)
    except CannotTest as reason:
        return Verdict(CANNOT_BE_TESTED, left_out=pooled_out, reason=str(reason))
    groups = [judge_group(claim, name, intervals) for name, intervals in sorted(found.items())]
    return replace(as_verdict(claim, groups, left_out), left_out=left_out | pooled_out)


def _groups(claim: Claim, function: Callable, rows, excluded: Mapping[str, str]) -> tuple[dict, dict[str, str]]:
    """By name, the intervals of each group that takes part, and why the others are left out."""
    if not claim.by:
        given = function(rows)
    elif isinstance(claim.by, str):
        given = dict(list(rows.groupby(claim.by, sort=False)))
    else:  # an encoder on a task
        given = {
            (f"{short(encoder)} on {title(task)}", of_size(task, None, encoder)): of_group
            for (encoder, task), of_group in rows.groupby(list(claim.by), sort=False)
        }
    found, left_out = {}, {}
    for key, one in given.items():
        name, *on = key if isinstance(key, tuple) else (key, *str(key).split("–"))
        name, reasons = title(name), dict.fromkeys(excluded[task] for task in on if task in excluded)
        if isinstance(one, str) or reasons:
            left_out[name] = "; ".join(reasons) or one
        else:
            found[name] = estimate(one, function, unit=claim.unit) if claim.by else one
    return found, left_out


def judge_group(
    claim: Claim, name: str, intervals: Interval | Mapping[str, Interval], factor: float = 1.0, level: float = LEVEL
) -> Group:
    """Whether a group holds (every part), fails (some part) or is open, with thresholds `factor` times as far."""
    if isinstance(intervals, Interval):
        intervals = {claim.code.replace("_", " "): intervals}
    corrected, parts = 1 - (1 - level) / len(intervals), []
    for part, interval in intervals.items():
        above = claim.threshold(part, factor)
        tie = ROUNDING * max(1.0, abs(above))
        low, high = interval.bounds(level)[0], interval.bounds(corrected)[1]
        outcome = HOLDS if low > above + tie else FAILS if high < above - tie else OPEN
        parts.append(Part(part, interval, outcome))
    outcomes = {part.outcome for part in parts}
    of_group = FAILS if FAILS in outcomes else OPEN if OPEN in outcomes else HOLDS
    half = next((half for half, names in claim.halves.items() if name in names), "")
    return Group(name, of_group, tuple(parts), half)


def as_verdict(claim: Claim, groups: Sequence[Group], left_out: Mapping[str, str]) -> Verdict:
    """The verdict from the groups, and from what was left out."""
    if not groups:
        reason = "; ".join(dict.fromkeys(left_out.values())) or claim.if_empty
        return Verdict(CANNOT_BE_TESTED, left_out=left_out, reason=reason)
    outcomes = [group.outcome for group in groups]
    held, failed = outcomes.count(HOLDS), outcomes.count(FAILS)
    clear = 3 * max(held, failed) >= 2 * len(groups)
    outcome = MIXED if held and failed else OPEN if not clear else REPRODUCED if held else CONTRADICTED
    of_half = {half: [group for group in groups if group.half == half] for half in claim.halves}
    untested = tuple(half for half, of_groups in of_half.items() if not of_groups)
    unheld = any(all(group.outcome != HOLDS for group in of_groups) for of_groups in of_half.values())
    outcome = OPEN if untested or (unheld and outcome == REPRODUCED) else outcome
    lost = [half for half, names in claim.halves.items() if set(names) & set(left_out)]
    left_of_half = {half: of_half[half][0].name for half in sorted(lost) if len(of_half[half]) == 1}
    alone = len(groups) == 1 or len(groups) < len(left_out)
    return Verdict(outcome, tuple(groups), left_out, "", alone, untested, left_of_half)


def _in_other_settings(claim: Claim, verdict: Verdict) -> dict[str, str]:
    """The outcome with other thresholds, where some part has one of size, and at other levels."""
    names = {part.name for group in verdict.groups for part in group.parts}
    of_order = all(claim.threshold(name) == claim.threshold(name, 2) for name in names)
    outcomes = {}
    for name, (factor, level) in SETTINGS.items() if verdict.groups else ():
        groups = []
        for group in verdict.groups:
            intervals = {part.name: part.interval for part in group.parts}
            groups.append(judge_group(claim, group.name, intervals, factor, level))
        if factor == 1 or not of_order:
            outcomes[name] = as_verdict(claim, groups, verdict.left_out).outcome
    return outcomes


# --- words and files --------------------------------------------------------------------------------------------------


def of_part(value, part: str):
    """What is said of one part: the same of all, or by the part's name."""
    return value.get(part) if isinstance(value, Mapping) else value


def title(name: str) -> str:
    """What a task, or a pair of tasks, is called; what is no task keeps its name.

    >>> title("sst2"), title("rte–mnli"), title("attention")
    ('SST-2', 'RTE–MNLI', 'attention')
    """
    return "–".join(catalogue.find(one).title if catalogue.is_task(one) else one for one in str(name).split("–"))


def short(encoder: str) -> str:
    """An encoder's name without its owner; the book's own ("toy-bert/seed-0") have none."""
    return encoder if encoder.startswith(("toy-bert", "english-bert")) else encoder.rpartition("/")[2]


def listed(words: Iterable[str]) -> str:
    """Words as a sentence lists them, each once: "one, two and three"."""
    words = list(dict.fromkeys(words))
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1] if words else "")))


def save(claims: Iterable[tuple[Claim, Verdict]], folder: Path) -> None:
    """Write ``claims.json`` into a run's folder: what the claims are, and what became of them."""
    entries = [[asdict(claim), asdict(verdict)] for claim, verdict in claims]
    (folder / "claims.json").write_text(json.dumps(entries, indent=1), encoding="utf-8")


def load(folder: Path) -> list[tuple[Claim, Verdict]]:
    """The claims of a run with what became of them; a file that is damaged, or of another version, is refused."""
    file = folder / "claims.json"
    try:
        entries = json.loads(file.read_text(encoding="utf-8"))
        return TypeAdapter(list[tuple[Claim, Verdict]]).validate_python(entries)
    except ValueError as error:
        raise ValueError(f"{file} holds no verdicts of this version: run its chapter again.") from error


TABLE = dict.fromkeys(("claim", "verdict", "reason", "group", "group_outcome", "part"), "string")
TABLE |= dict.fromkeys(("estimate", "low", "high"), "float64") | {"outcome": "string"}


def as_table(claims: Iterable[tuple[Claim, Verdict]]) -> pd.DataFrame:
    """What became of claims: one row per claim, group and part, with `claim`, `verdict`, `reason` (of a claim that
    cannot be tested), `group`, `group_outcome` (holds, fails, open), `part`, `estimate`, `low`, `high` (infinite where
    an end is not known) and `outcome`. A claim without groups has one row, in which the rest is missing.
    """
    rows = []
    for claim, verdict in claims:
        of_claim = (claim.key, verdict.outcome, verdict.reason)
        parts = [(group, part) for group in verdict.groups for part in group.parts]
        for group, part in parts:
            numbers = (part.interval.estimate, *part.interval.bounds(), part.outcome)
            rows.append((*of_claim, group.name, group.outcome, part.name, *numbers))
        rows += [] if parts else [of_claim + (None,) * 7]
    return pd.DataFrame(rows, columns=list(TABLE)).astype(TABLE)


def by_rate(table: pd.DataFrame) -> pd.DataFrame:
    """Of the table of claims of `records.learning_rates`: a row for each claim that some rate tests, with the verdict
    at each, and `stays`: at how many of the other rates that test it the verdict is that at the usual one.

    >>> table = pd.DataFrame({"claim": "up", "learning_rate": [2e-5, 5e-5, 1e-4], "verdict": ["open", "open", "mixed"]})
    >>> by_rate(table)["stays"].item()
    '1/2'
    """
    verdicts = table.pivot_table("verdict", "claim", "learning_rate", "first").reindex(table["claim"].unique())
    verdicts = verdicts[(verdicts != CANNOT_BE_TESTED).any(axis=1)]
    others = verdicts.drop(columns=USUAL_RATE)
    same, tested = others.eq(verdicts[USUAL_RATE], axis=0), others != CANNOT_BE_TESTED
    counts = zip((same & tested).sum(axis=1), tested.sum(axis=1), strict=True)
    return verdicts.assign(stays=[f"{stays}/{of}" for stays, of in counts])
