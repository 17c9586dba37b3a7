r"""Whether measures of change order the layers of an encoder alike, from the record of `measure.changes_by_layer`.

A correlation of two lenses is the mean over the pairs of their measures, first within a model, then over models.

- **Interval.** Layers are no sample, and stay as they are. A rank correlation jumps where leaving out a fold of
  sentences changes the order of two layers, so sentences count as given, and what varies are the models. Models of one
  task have much in common, so that tasks are the draws where there are several; but few tasks may agree by chance, most
  of all in ranks, and where the interval over models is wider, it is taken.
- **Depth.** Two measures that rise with depth agree for that alone. The partial correlation holds the layer's number
  fixed; it is undefined where a measure is strictly monotone.
- **Centre.** :math:`\sum_l l\, s_l / \sum_l s_l` for the values :math:`s` scaled to [0, 1] within the model.

Rows of correlations that are undefined hold NaN.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from fivelenses.first_exhibits import effects, intervals
from fivelenses.first_exhibits.claims import seen_as
from fivelenses.first_exhibits.effects import Interval
from fivelenses.papers.five_lenses.instruments import ADDED, BY_KEY, DISTINCTIONS, MIN_LAYERS, OWN, lens
from fivelenses.papers.five_lenses.rank_statistics import (
    partial_correlation,
    rank_correlation,
    rank_correlations,
    scaled,
)
from fivelenses.records import WHOLE

MODEL, PAIR = ["task", "seed"], ["first", "second"]
# How far from zero a rank correlation can lie, by column, and a difference of two.
GREATEST = dict.fromkeys(("correlation", "alike", "different", "output", "added"), 1.0) | {"difference": 2.0}


def whole(changes: pd.DataFrame) -> pd.DataFrame:
    """The rows of the fine-tuned models on all sentences."""
    changes = seen_as(changes)
    return changes[changes["fold"] == WHOLE] if "fold" in changes.columns else changes


def interval(rows: pd.DataFrame, value: str = "correlation") -> Interval | None:
    """The mean of a column over models (`task`, `seed`), with its interval, which covers sentences where rows without
    each `fold` of them are given. A model for which it is undefined, with all sentences or without a fold, is left out;
    None where it is for all.

    An interval of a correlation, or of a difference of two, is cut at the bounds of these.
    """
    rows = rows[rows[value].notna().groupby([rows[name] for name in MODEL]).transform("all")]
    if rows.empty:
        return None
    without_folds = "fold" not in rows.columns or (rows["fold"] == WHOLE).all()
    means = []
    for model in (["task"], MODEL) if rows["task"].nunique() > 1 else (["seed"],):
        if without_folds:
            means.append(effects.over_models(rows.groupby(model)[value].mean()))
        else:
            means.append(intervals.of_measure(rows, lambda of_model: of_model[value].to_numpy().mean(), model))
    widest, most = max(means, key=lambda one: one.high - one.low), GREATEST.get(value, np.inf)
    return effects.cut(widest, -most, most)


def mean_by_model(rows: pd.DataFrame, value: str) -> pd.Series:
    """The mean of a column within each model."""
    return rows.groupby(MODEL, sort=False)[value].mean()


def curves(changes: pd.DataFrame, value: str = "value") -> dict[tuple[str, int], pd.DataFrame]:
    """(task, seed) to a table of that model, with one row per measure and one column per layer, of one control and
    fold.

    Raises:
        ValueError: a measure that lacks a layer or has it twice, NaN or infinity, or fewer than three layers.
    """
    of_models = {}
    for (task, seed), of_model in changes.groupby(MODEL, sort=False):
        model = f"the model {task}, seed {seed}"
        if of_model.duplicated(["measure", "layer"]).any():
            raise ValueError(f"T{model[1:]} has a measure twice at one layer: its table was joined to itself.")
        table = of_model.pivot(index="measure", columns="layer", values=value).sort_index(axis=1)
        if table.shape[1] < MIN_LAYERS:
            raise ValueError(
                f"T{model[1:]} has {table.shape[1]} layers: an order of layers needs at least {MIN_LAYERS}."
            )
        broken = table.index[~np.isfinite(table).all(axis=1)]
        if len(broken):
            raise ValueError(f"The measure {broken[0]} of {model} lacks a layer or is not finite there.")
        of_models[str(task), int(seed)] = table.reindex([key for key in BY_KEY if key in table.index])
    return of_models


def by_model(changes: pd.DataFrame) -> pd.DataFrame:
    """The rank correlation of each pair of measures in each model: `task`, `seed`, `first`, `second`, `correlation`,
    `given_depth` (the partial one).
    """
    rows = []
    for model, table in curves(whole(changes)).items():
        correlations = rank_correlations(pd.concat([table, pd.DataFrame([table.columns], ["depth"], table.columns)]))
        *measures, depths = correlations.to_numpy()
        for (one, first), (other, second) in combinations(enumerate(table.index), 2):
            of_pair = measures[one][other]
            rows.append((*model, first, second, of_pair, partial_correlation(of_pair, depths[one], depths[other])))
    return pd.DataFrame(rows, columns=[*MODEL, *PAIR, "correlation", "given_depth"])


def between_measures(changes: pd.DataFrame) -> pd.DataFrame:
    """Each pair of measures, over models: `first`, `second`, `same_lens`, `correlation`, `low`, `high`, `models` (where
    it is defined), `undefined` (models where it is not).
    """
    table = _over_models(by_model(changes))
    table["undefined"] = len(whole(changes)[MODEL].drop_duplicates()) - table["models"]
    table.insert(2, "same_lens", table["first"].map(lens) == table["second"].map(lens))
    return table


def _over_models(rows: pd.DataFrame) -> pd.DataFrame:
    """Pairs with `correlation`, `low`, `high` (NaN where no interval was measured) and `models`."""
    summary = []
    for pair, group in rows.groupby(PAIR, sort=False):
        mean, defined = interval(group), group.dropna(subset=["correlation"])
        low, high = (mean.low, mean.high) if mean is not None and mean.measured else (np.nan, np.nan)
        value = np.nan if mean is None else mean.estimate
        summary.append((*pair, value, low, high, len(defined[MODEL].drop_duplicates())))
    return pd.DataFrame(summary, columns=[*PAIR, "correlation", "low", "high", "models"])


def between_seeds(changes: pd.DataFrame) -> pd.DataFrame:
    """How far each measure repeats: its rank correlation with itself in two models of one task, as `task`, `seed`
    (`0–1`), `measure`, `correlation`; no row where a task has one seed.
    """
    rows = []
    for ((task, seed), first), ((other, another), second) in combinations(curves(whole(changes)).items(), 2):
        for measure in first.index if task == other else ():
            correlation = rank_correlation(first.loc[measure], second.loc[measure])
            rows.append((task, f"{seed}–{another}", measure, correlation))
    return pd.DataFrame(rows, columns=["task", "seed", "measure", "correlation"])


def repeated(changes: pd.DataFrame) -> pd.Series:
    """By measure, its mean rank correlation with itself between seeds; empty for a single seed."""
    return between_seeds(changes).groupby("measure", sort=False)["correlation"].mean().dropna()


def lenses_by_model(changes: pd.DataFrame) -> pd.DataFrame:
    """The correlation of each pair of lenses in each model, the mean over the pairs of their measures; columns as
    `by_model`.
    """
    table = by_model(changes)
    table = table.assign(**{side: table[side].map(lens) for side in PAIR})
    table = table[table["first"] != table["second"]]
    return table.groupby([*MODEL, *PAIR], sort=False)[["correlation", "given_depth"]].mean().reset_index()


def between_lenses(changes: pd.DataFrame) -> pd.DataFrame:
    """Each pair of lenses, over models: `first`, `second`, `correlation`, `low`, `high`, `models`, `given_depth`,
    `given_depth_models` (where that is defined).
    """
    rows = lenses_by_model(changes)
    table = _over_models(rows)
    depths = rows.groupby(PAIR, sort=False)["given_depth"].agg(["mean", "count"])
    return table.assign(given_depth=depths["mean"].to_numpy(), given_depth_models=depths["count"].to_numpy())


def overall(changes: pd.DataFrame) -> Interval | None:
    """The mean correlation of two different lenses, over all pairs and models."""
    rows = lenses_by_model(changes)
    return interval(mean_by_model(rows, "correlation").reset_index())


def centres(changes: pd.DataFrame) -> pd.DataFrame:
    """Where in the encoder each measure sees change: one row per model and measure, with `task`, `seed`, `measure`,
    `centre` (of the scaled values), `top` (the layer of greatest change, the lowest of equals), `rises` (rank
    correlation with depth); NaN where it is constant.
    """
    rows = []
    for model, table in curves(whole(changes)).items():
        layers = table.columns.to_numpy(dtype=float)
        for measure, curve in table.iterrows():
            shares, centre, top = scaled(curve), np.nan, np.nan
            if not np.isnan(shares).any():
                centre, top = float(layers @ shares / shares.sum()), float(layers[shares.argmax()])
            rows.append((*model, measure, centre, top, rank_correlation(curve, layers)))
    return pd.DataFrame(rows, columns=[*MODEL, "measure", "centre", "top", "rises"])


def added(changes: pd.DataFrame) -> pd.DataFrame:
    """Whether what a layer adds agrees with its own parameters better than what it puts out.

    Of a measure of a layer's output, what the layer adds is its value less that of what enters the layer. One row
    per model, measure of the output and measure of the parameters, with `task`, `seed`, `measure`, `own`, `output`
    and `added` (rank correlations with `own`), `difference`.
    """
    rows, changes = [], whole(changes)
    entering = curves(changes[changes["measure"].isin(ADDED)], "entering")
    for model, table in curves(changes).items():
        for measure, below in entering[model].iterrows():
            for own in (key for key in OWN if key in table.index):
                output = rank_correlation(table.loc[measure], table.loc[own])
                own_part = rank_correlation(table.loc[measure] - below, table.loc[own])
                rows.append((*model, measure, own, output, own_part, own_part - output))
    return pd.DataFrame(rows, columns=[*MODEL, "measure", "own", "output", "added", "difference"])


def apart(changes: pd.DataFrame) -> pd.DataFrame:
    """Whether measures of different lenses agree more that are alike in one respect: one row per model and distinction,
    with `task`, `seed`, `distinction` (a key of `instruments.DISTINCTIONS`), `alike` and `different` (mean
    correlation of the pairs of either kind; NaN where there is none), `difference` (of those alike from the others).
    """
    table = by_model(changes)
    table = table[table["first"].map(lens) != table["second"].map(lens)]
    parts = []
    for distinction in DISTINCTIONS:
        sides = [table[side].map(lambda key, what=distinction: getattr(BY_KEY[key], what)) for side in PAIR]
        kind = (sides[0] == sides[1]).map({True: "alike", False: "different"})
        means = table.groupby([*MODEL, kind.rename("kind")], sort=False)["correlation"].mean().unstack("kind")
        parts.append(means.reindex(columns=["alike", "different"]).assign(distinction=distinction).reset_index())
    table = pd.concat(parts, ignore_index=True).rename_axis(columns=None)
    return table.assign(difference=table["alike"] - table["different"])


@dataclass(frozen=True)
class Parting:
    """The two measures of different lenses that agree least, and the layer at which they differ most.

    Attributes:
        higher, lower: the measures; `higher` gives that layer the higher rank.
        correlation, low, high: over models; NaN where no interval was measured.
        layer: of all layers the one with the greatest mean difference of ranks.
        difference: that difference, in ranks, at least 0.
    """

    higher: str
    lower: str
    correlation: float
    low: float
    high: float
    layer: int
    difference: float


def parting(changes: pd.DataFrame) -> Parting:
    """Where the lenses part most; refused where no two measures of different lenses have a correlation."""
    table = between_measures(changes)
    table = table[~table["same_lens"]].dropna(subset=["correlation"])
    if table.empty:
        raise ValueError("No two measures of different lenses have a correlation: each is the same at all layers.")
    least = table.loc[table["correlation"].idxmin()]
    first, second = (str(least[side]) for side in PAIR)
    both = [of_model.loc[[first, second]] for of_model in curves(whole(changes)).values()]
    ranks = pd.concat(
        of_model.loc[first].rank() - of_model.loc[second].rank()
        for of_model in both
        if (np.ptp(of_model, axis=1) > 0).all()
    )
    difference = ranks.groupby(level=0).mean()
    layer = difference.abs().idxmax()
    higher, lower = (first, second) if difference[layer] >= 0 else (second, first)
    numbers = (float(least[column]) for column in ("correlation", "low", "high"))
    return Parting(higher, lower, *numbers, int(layer), float(abs(difference[layer])))
