"""From the rows of a record to an effect with its interval: scores by example, and measures with folds left out.

A record keeps what an interval needs in one of two forms:

- *scores by example* (`checkpoints.predictions`): one row per model and example;
- *replicates*: the same rows again for each of K folds of sentences left out, with `fold` 0…K − 1, beside those of all
  sentences, with `fold` −1 (WHOLE).

A record without either gives estimates whose interval was not measured.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from fivelenses import tasks
from fivelenses.first_exhibits import effects
from fivelenses.first_exhibits.effects import Interval, Values
from fivelenses.records import FOLDS, WHOLE
from fivelenses.tasks.subsets import folds


def whole(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a record that were measured on all sentences, without `fold`; all where it has no replicates.

    Example:
        >>> whole(pd.DataFrame({"fold": [-1, 0, 1], "js": [0.2, 0.1, 0.3]}))["js"].tolist()
        [0.2]
    """
    if "fold" not in table.columns:
        return table
    return table[table["fold"] == WHOLE].drop(columns="fold").reset_index(drop=True)


def of_measure(
    table: pd.DataFrame,
    measure: Callable[[pd.DataFrame], float],
    model: str | list[str] = "seed",
    reference: pd.DataFrame | None = None,
    paired_models: bool = True,
    examples: int | None = None,
    log: bool = False,
) -> Interval:
    """The interval of any measure of a record's rows, from its folds and over its models.

    Args:
        table: rows of one group; `fold` where the record has replicates.
        measure: the rows of one model (and fold) to one number. It is called for each of them: on columns taken as
            arrays (`rows["js"].to_numpy()`) it is ten times as fast as on columns of the table.
        model: the column, or columns, that tell models apart.
        reference: rows of what is subtracted, of the same models if paired; one model is common to all.
        paired_models, examples: as for `effects.from_replicates`.
        log: the measure is a ratio.

    Returns:
        The interval; without `fold`, the mean over models, or its difference, with no interval.

    Raises:
        ValueError: no rows, folds of some models only, or pairs of other models.

    Example:
        >>> rows = pd.DataFrame({"seed": [0, 0, 0, 1, 1, 1], "fold": [-1, 0, 1] * 2, "x": [2.0, 1, 3, 4, 3, 5]})
        >>> of_measure(rows, lambda of_model: of_model["x"].mean()).estimate
        3.0
    """
    sides = [_replicates(side, measure, model) for side in (table, reference) if side is not None]
    _check_pairs([names for names, *_ in sides], paired_models)
    if any(replicates is None for *_, replicates in sides):
        return _without_interval([estimates for _, estimates, _ in sides], log)
    (estimates, replicates), *others = (side[1:] for side in sides)
    return effects.from_replicates(
        estimates, replicates, *others, paired_models=paired_models, examples=examples, log=log
    )


def _without_interval(sides: Sequence[Values], log: bool) -> Interval:
    """The mean over models, or the difference of two means; of ratios, by their logarithms."""
    means = [(np.log(side) if log else side).mean() for side in sides]
    value = means[0] - sum(means[1:])
    return effects.without_interval(np.exp(value) if log else value, log)


def of_pairs(
    table: pd.DataFrame,
    measure: Callable[[pd.DataFrame], float],
    examples: int | None = None,
    log: bool = False,
) -> Interval:
    r"""The interval of a measure of pairs of models, all pairs of m, for the mean over pairs.

    Pairs that share a model are not independent. The mean over pairs U is a U statistic, and the jackknife over
    *models* takes the place of theirs (Arvesen 1969): with :math:`U_i` the mean over the pairs of model i, its
    pseudo-value is :math:`U + \frac{2 (m - 1)}{m - 2} (U_i - U)`. Two models are one pair, which is *of this pair*.
    Arguments as for `of_measure`; `first` and `second` are the columns that name the two models of a pair.

    Raises:
        ValueError: no rows, or not all pairs.

    Example:
        >>> rows = pd.DataFrame({"first": [0, 0, 1], "second": [1, 2, 2], "x": [1.0, 2, 3]}).merge(
        ...     pd.DataFrame({"fold": [-1, 0, 1]}), how="cross"
        ... )
        >>> found = of_pairs(rows, lambda of_pair: of_pair["x"].mean())
        >>> found.estimate, found.models, round(found.standard_error, 3)
        (2.0, 3, 1.155)
    """
    pairs, estimates, replicates = _replicates(table, measure, ["first", "second"])
    models = sorted({model for pair in pairs for model in pair})
    if len(pairs) != len(models) * (len(models) - 1) // 2:
        raise ValueError(f"{len(pairs)} pairs are not all pairs of {len(models)} models.")
    if replicates is None:
        return _without_interval([estimates], log)
    if len(models) > 2:
        belongs = np.array([[model in pair for pair in pairs] for model in models], dtype=float)
        share = 2 * (len(models) - 1) / (len(models) - 2)
        to_models = (1 - share) / len(pairs) + share / (len(models) - 1) * belongs
        estimates, replicates = (
            np.exp(to_models @ np.log(values)) if log else to_models @ values for values in (estimates, replicates)
        )
    return effects.from_replicates(estimates, replicates, examples=examples, log=log)


def _replicates(table: pd.DataFrame, measure: Callable, model: str | list[str]) -> tuple[list, Values, Values | None]:
    """The models, the measure of each on all sentences, and without each fold; None where the record has no folds."""
    if table.empty:
        raise ValueError("There are no rows to measure.")
    keys = [model] if isinstance(model, str) else list(model)
    if "fold" not in table.columns or (table["fold"] == WHOLE).all():
        values = {name: measure(rows) for name, rows in table.groupby(keys)}
        return list(values), np.array(list(values.values()), dtype=float), None
    by_fold = {name: measure(rows) for name, rows in table.groupby([*keys, "fold"])}
    models, folds = sorted({name[:-1] for name in by_fold}), sorted({name[-1] for name in by_fold} - {WHOLE})
    lacking = next(((one, fold) for one in models for fold in (WHOLE, *folds) if (*one, fold) not in by_fold), None)
    if lacking:
        name = ", ".join(f"{key} {value}" for key, value in zip(keys, lacking[0], strict=True))
        raise ValueError(f"The replicates of {name} lack fold {lacking[1]}, which other models have or which is all.")
    replicates = [[by_fold[*one, fold] for fold in folds] for one in models]
    return models, np.array([by_fold[*one, WHOLE] for one in models], dtype=float), np.array(replicates, dtype=float)


def _check_pairs(models: Sequence[list], paired: bool) -> None:
    """Refuse to pair models of other names; one model on the right is common to all."""
    if paired and len(models) == 2 and len(models[1]) > 1 and models[0] != models[1]:
        raise ValueError(f"The models {models[0]} and {models[1]} are no pairs: say paired_models=False.")


def of_scores(
    rows: pd.DataFrame, reference: pd.DataFrame | None = None, paired_models: bool = True, over_null: bool = False
) -> Interval:
    """The interval of a score, or of the difference of two, from predictions of the same examples.

    Accuracy and F1 of answers are means over examples. Matthews correlation, and the scores of sentences with
    several words, are not: their examples are dealt into folds, by label where they have one.

    Args:
        rows, reference: `checkpoints.predictions.by_example` of models of one kind, told apart by `seed`, and of what
            is subtracted.
        paired_models: whether models of one seed belong together; False where the seeds of both sides are others.
        over_null: subtract what a model scores that does not read.

    Raises:
        ValueError: no predictions, examples of two tasks, several models of one seed, or pairs of other seeds.

    Example:
        >>> names = ["seed", "example", "metric", "score", "weight", "null"]
        >>> values = [(0, 0, "accuracy", 1, 1, 1), (0, 1, "accuracy", 1, 1, 0)]
        >>> of_scores(pd.DataFrame(values, columns=names), over_null=True).estimate
        0.5
    """
    if over_null and reference is not None:
        raise ValueError("A difference of scores has no null rate: ask for one or the other.")
    given = [side for side in (rows, reference) if side is not None]
    if len({task for side in given if "task" in side.columns for task in side["task"].unique()}) > 1:
        raise ValueError("Scores of different tasks share no examples: take their effects.independent_difference.")
    sides = [_by_model(side, over_null) for side in given]
    _check_pairs([sorted(side["seed"].unique()) for side in given], paired_models)
    if all(metric != "matthews" and (weights == 1).all() for metric, weights, *_ in sides):
        scores = [right - null for _, _, right, null, *_ in sides]
        return effects.interval(*scores, paired_models=paired_models)
    (estimates, replicates), *others = map(_left_out, sides)
    examples = rows["example"].nunique()
    return effects.from_replicates(estimates, replicates, *others, paired_models=paired_models, examples=examples)


def with_folds(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Scores on all examples and without each fold of them, as `of_measure` takes them, from predictions by example of
    models that the columns `by` tell apart.

    Returns:
        One row per model and fold: `by`, `fold`, `score`, `scored_examples`. Examples are dealt into folds by
        label, the same for all models.

    Example:
        >>> values = {"model": 1, "seed": 0, "example": [0, 1], "metric": "accuracy", "score": [1, 0], "weight": 1}
        >>> with_folds(pd.DataFrame(values), ["model"])[["fold", "score"]].values.tolist()
        [[-1.0, 0.5], [0.0, 0.0], [1.0, 1.0]]
    """
    tables = []
    count = rows.groupby(by)["example"].transform("size")
    for (_, examples), alike in rows.groupby(["metric", count], sort=False):
        whole, left_out = _left_out(_by_model(alike, False, by))
        names = pd.MultiIndex.from_frame(alike[by].drop_duplicates().sort_values(by))
        wide = pd.DataFrame(
            np.column_stack([whole, left_out]), names, pd.RangeIndex(WHOLE, left_out.shape[1], name="fold")
        )
        tables.append(wide.stack().rename("score").reset_index().assign(scored_examples=examples))
    return pd.concat(tables, ignore_index=True)


def _by_model(rows: pd.DataFrame, over_null: bool, by: str | list[str] = "seed") -> tuple:
    """The metric and, as (models, examples): weights, scores, null scores (or zeros), labels and predicted labels."""
    if rows.empty or rows.duplicated([*([by] if isinstance(by, str) else by), "example"]).any():
        what = "no predictions" if rows.empty else "several predictions of one seed on one example"
        raise ValueError(f"There are {what}: give those of models of one kind, one per seed.")
    (metric,) = rows["metric"].unique()
    columns = [name for name in ("weight", "score", "null", "label", "predicted") if name in rows.columns]
    wide = {name: rows.pivot(index=by, columns="example", values=name).to_numpy(float) for name in columns}
    if not all(np.isfinite(values).all() for values in wide.values()):
        raise ValueError("The models of one kind were scored on different examples.")
    null = wide["null"] if over_null else 0 * wide["score"]
    return metric, wide["weight"], wide["score"], null, wide.get("label"), wide.get("predicted")


def _left_out(side: tuple) -> tuple[Values, Values]:
    """The score of each model on all examples (models,), and without each fold (models, folds)."""
    metric, weights, right, null, labels, predicted = side
    fold_of = folds(np.zeros(weights.shape[1]) if labels is None else labels[0], min(FOLDS, weights.shape[1]))

    def scored(kept: Values) -> Values:
        if metric == "matthews":
            return np.array(
                [tasks.score(metric, *pair) for pair in zip(predicted[:, kept], labels[:, kept], strict=True)]
            )
        return (right - null)[:, kept].sum(1) / weights[:, kept].sum(1)

    replicates = [scored(fold_of != fold) for fold in np.unique(fold_of)]
    return scored(np.full(weights.shape[1], True)), np.stack(replicates, axis=1)
