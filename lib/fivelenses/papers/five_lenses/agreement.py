r"""Whether measures of change order the layers of an encoder alike, from the record of `measure.changes_by_layer`.

A correlation of two lenses is the mean over the pairs of their measures, first within a model, then over models.

- **Interval.** The bootstrap draws models, each a task and a seed; a single model has none.
- **Chance.** Models share their pre-trained encoder, so that their curves are no independent draws of layers. All are
  therefore relabelled alike: one order of the layers of the first lens for all models.
- **Depth.** Two measures that rise with depth agree for that alone. The partial correlation holds the layer's number
  fixed; it is undefined where a measure is strictly monotone.
- **Centre.** :math:`\sum_l l\, s_l / \sum_l s_l` for the values :math:`s` scaled to [0, 1] within the model.

Rows of correlations that are undefined hold NaN.
"""

from dataclasses import asdict, dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from fivelenses.papers.five_lenses.instruments import ADDED, BY_KEY, DISTINCTIONS, OWN, lens
from fivelenses.papers.five_lenses.measure import MIN_LAYERS
from fivelenses.papers.five_lenses.rank_statistics import (
    RESAMPLES,
    Estimate,
    holm,
    mean_over_models,
    partial_correlation,
    permutation_p,
    rank_correlation,
    scaled,
    standardised_ranks,
)

MODEL, PAIR = ["task", "seed"], ["first", "second"]


def curves(changes: pd.DataFrame, value: str = "value") -> dict[tuple[str, int], pd.DataFrame]:
    """(task, seed) to a table of that model, with one row per measure and one column per layer.

    Args:
        changes: of `measure.changes_by_layer`.
        value: the column read.

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
    """The rank correlation of each pair of measures in each model.

    Returns:
        `task`, `seed`, `first`, `second`, `correlation`, `given_depth` (the partial one).
    """
    rows = []
    for model, table in curves(changes).items():
        depth = {measure: rank_correlation(curve, table.columns) for measure, curve in table.iterrows()}
        for first, second in combinations(table.index, 2):
            correlation = rank_correlation(table.loc[first], table.loc[second])
            partial = partial_correlation(correlation, depth[first], depth[second])
            rows.append((*model, first, second, correlation, partial))
    return pd.DataFrame(rows, columns=[*MODEL, *PAIR, "correlation", "given_depth"])


def between_measures(changes: pd.DataFrame, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Each pair of measures, over models.

    Returns:
        `first`, `second`, `same_lens`, `correlation`, `low`, `high`, `models` (where it is defined), `undefined`
        (models where it is not).
    """
    rows = []
    for (first, second), group in by_model(changes).groupby(PAIR, sort=False):
        mean = mean_over_models(group["correlation"], resamples)
        row = {"first": first, "second": second, "same_lens": lens(first) == lens(second)}
        rows.append(row | _columns(mean) | {"undefined": len(group) - mean.models})
    return pd.DataFrame(rows)


def _columns(mean: Estimate) -> dict[str, float]:
    return {"correlation" if name == "value" else name: value for name, value in asdict(mean).items()}


def between_seeds(changes: pd.DataFrame) -> pd.DataFrame:
    """How far each measure repeats: its rank correlation with itself in two models of one task.

    Returns:
        `task`, `seed` (`0–1`), `measure`, `correlation`; no row where a task has one seed.
    """
    rows = []
    for ((task, seed), first), ((other, another), second) in combinations(curves(changes).items(), 2):
        for measure in first.index if task == other else ():
            correlation = rank_correlation(first.loc[measure], second.loc[measure])
            rows.append((task, f"{seed}–{another}", measure, correlation))
    return pd.DataFrame(rows, columns=["task", "seed", "measure", "correlation"])


def repeated(changes: pd.DataFrame) -> pd.Series:
    """By measure, its mean rank correlation with itself between seeds; empty for a single seed."""
    return between_seeds(changes).groupby("measure", sort=False)["correlation"].mean().dropna()


def lenses_by_model(changes: pd.DataFrame) -> pd.DataFrame:
    """The correlation of each pair of lenses in each model, the mean over the pairs of their measures.

    Returns:
        `task`, `seed`, `first`, `second`, `correlation`, `given_depth`.
    """
    table = by_model(changes)
    table = table.assign(**{side: table[side].map(lens) for side in PAIR})
    table = table[table["first"] != table["second"]]
    return table.groupby([*MODEL, *PAIR], sort=False)[["correlation", "given_depth"]].mean().reset_index()


def between_lenses(changes: pd.DataFrame, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Each pair of lenses, over models, with what chance would do.

    Returns:
        `first`, `second` (lenses), `correlation`, `low`, `high`, `models`, `p`, `p_holm` (over all pairs),
        `given_depth`, `given_depth_models` (where that is defined).
    """
    rows = []
    for pair, group in lenses_by_model(changes).groupby(PAIR, sort=False):
        mean, partial = (mean_over_models(group[column], resamples) for column in ("correlation", "given_depth"))
        row = dict(zip(PAIR, pair, strict=True)) | _columns(mean) | {"p": _chance(changes, pair, resamples)}
        rows.append(row | {"given_depth": partial.value, "given_depth_models": partial.models})
    table = pd.DataFrame(rows)
    table.insert(table.columns.get_loc("p") + 1, "p_holm", holm(table["p"]))
    return table


def _chance(changes: pd.DataFrame, pair: tuple[str, str], resamples: int) -> float:
    products = []
    for table in curves(changes).values():
        ranks = {key: standardised_ranks(curve) for key, curve in table.iterrows() if np.ptp(curve) > 0}
        of_lens = [[curve for key, curve in ranks.items() if lens(key) == side] for side in pair]
        if all(of_lens):
            products.append(np.mean([np.outer(one, other) for one in of_lens[0] for other in of_lens[1]], axis=0))
    return permutation_p(np.mean(products, axis=0), resamples) if products else np.nan


def overall(changes: pd.DataFrame, resamples: int = RESAMPLES) -> Estimate:
    """The mean correlation of two different lenses, over all pairs and models."""
    return mean_over_models(lenses_by_model(changes).groupby(MODEL)["correlation"].mean(), resamples)


def centres(changes: pd.DataFrame) -> pd.DataFrame:
    """Where in the encoder each measure sees change.

    Returns:
        One row per model and measure, with `task`, `seed`, `measure`, `centre` (of the scaled values), `top` (the
        layer of greatest change, the lowest of equals), `rises` (rank correlation with depth); NaN where it is
        constant.
    """
    rows = []
    for model, table in curves(changes).items():
        layers = table.columns.to_numpy(dtype=float)
        for measure, curve in table.iterrows():
            shares, centre, top = scaled(curve), np.nan, np.nan
            if not np.isnan(shares).any():
                centre, top = float(layers @ shares / shares.sum()), float(layers[shares.argmax()])
            rows.append((*model, measure, centre, top, rank_correlation(curve, layers)))
    return pd.DataFrame(rows, columns=[*MODEL, "measure", "centre", "top", "rises"])


def added(changes: pd.DataFrame) -> pd.DataFrame:
    """Whether what a layer adds agrees with its own parameters better than what it puts out.

    Of a measure of a layer's output, what the layer adds is its value less that of what enters the layer.

    Returns:
        One row per model, measure of the output and measure of the parameters, with `task`, `seed`, `measure`, `own`,
        `output` and `added` (rank correlations with `own`).
    """
    rows = []
    entering = curves(changes[changes["measure"].isin(ADDED)], "entering")
    for model, table in curves(changes).items():
        for measure, below in entering[model].iterrows():
            for own in (key for key in OWN if key in table.index):
                compared = (table.loc[measure], table.loc[measure] - below)
                rows.append((*model, measure, own, *(rank_correlation(one, table.loc[own]) for one in compared)))
    return pd.DataFrame(rows, columns=[*MODEL, "measure", "own", "output", "added"])


def apart(changes: pd.DataFrame) -> pd.DataFrame:
    """Whether measures of different lenses agree more that are alike in one respect.

    Returns:
        One row per model and distinction, with `task`, `seed`, `distinction` (a key of `instruments.DISTINCTIONS`),
        `alike` and `different` (mean correlation of the pairs of either kind; NaN where there is none).
    """
    table = by_model(changes)
    table = table[table["first"].map(lens) != table["second"].map(lens)]
    parts = []
    for distinction in DISTINCTIONS:
        sides = [table[side].map(lambda key, what=distinction: getattr(BY_KEY[key], what)) for side in PAIR]
        kind = (sides[0] == sides[1]).map({True: "alike", False: "different"})
        means = table.groupby([*MODEL, kind.rename("kind")], sort=False)["correlation"].mean().unstack("kind")
        parts.append(means.reindex(columns=["alike", "different"]).assign(distinction=distinction).reset_index())
    return pd.concat(parts, ignore_index=True).rename_axis(columns=None)


@dataclass(frozen=True)
class Parting:
    """The two measures of different lenses that agree least, and the layer at which they differ most.

    Attributes:
        higher, lower: the measures; `higher` gives that layer the higher rank.
        correlation: over models.
        layer: of all layers the one with the greatest mean difference of ranks.
        difference: that difference, in ranks, at least 0.
    """

    higher: str
    lower: str
    correlation: Estimate
    layer: int
    difference: float


def estimate(pair: pd.Series) -> Estimate:
    """The correlation in a row of `between_measures` or `between_lenses`."""
    return Estimate(*(float(pair[key]) for key in ("correlation", "low", "high")), int(pair["models"]))


def parting(changes: pd.DataFrame, resamples: int = RESAMPLES) -> Parting:
    """Where the lenses part most.

    Raises:
        ValueError: no pair of measures of different lenses has a defined correlation.
    """
    table = between_measures(changes, resamples)
    table = table[~table["same_lens"]].dropna(subset=["correlation"])
    if table.empty:
        raise ValueError("No two measures of different lenses have a correlation: each is the same at all layers.")
    least = table.loc[table["correlation"].idxmin()]
    first, second = (str(least[side]) for side in PAIR)
    both = [of_model.loc[[first, second]] for of_model in curves(changes).values()]
    ranks = pd.concat(
        of_model.loc[first].rank() - of_model.loc[second].rank()
        for of_model in both
        if (np.ptp(of_model, axis=1) > 0).all()
    )
    difference = ranks.groupby(level=0).mean()
    layer = difference.abs().idxmax()
    higher, lower = (first, second) if difference[layer] >= 0 else (second, first)
    return Parting(higher, lower, estimate(least), int(layer), float(abs(difference[layer])))
