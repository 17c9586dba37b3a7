"""The exhibits of chapter 6, from the records of `measure.changes_by_layer` (`changes`) and `tables.models`.

Where the record has folds, correlations have intervals, and where it has twins, they are drawn beside the null.
"""

import numpy as np
import pandas as pd

from fivelenses.first_exhibits import plots, style
from fivelenses.first_exhibits.exhibit import ALL_DIVERGED, Exhibit, counted, title, trained_on
from fivelenses.first_exhibits.heat_maps import heat_maps
from fivelenses.papers.five_lenses import agreement
from fivelenses.papers.five_lenses.agreement import whole
from fivelenses.papers.five_lenses.instruments import BY_KEY, DISTINCTIONS, LENSES, name
from fivelenses.papers.five_lenses.rank_statistics import between, number, scaled, with_interval
from fivelenses.records import WHOLE

WIDTH = 5.6  # narrower than a page, so that letters are read on a phone
FAR = 2  # a null so many times above the greatest value is written, not drawn: it would press the curves together
KINDS = {
    (True, False): "activations",
    (True, True): "activations, labels",
    (False, False): "parameters",
    (False, True): "parameters, labels",
}


def _titles(changes: pd.DataFrame) -> dict[str, str]:
    return {task: title(task) for task in changes["task"].unique()}


def _names(changes: pd.DataFrame) -> dict[str, str]:
    return {measure: name(measure) for measure in changes["measure"].unique()}


def models_in_words(changes: pd.DataFrame) -> str:
    """The models behind a picture, in words.

    Example:
        >>> models_in_words(pd.DataFrame({"task": ["rte", "rte"], "seed": [0, 1]}))
        '2 models of 1 task'
    """
    models, kinds = len(changes[agreement.MODEL].drop_duplicates()), changes["task"].nunique()
    return f"{counted(models, 'model')} of {counted(kinds, 'task')}"


def table_of_models(models: pd.DataFrame) -> Exhibit:
    """The fine-tuned models that all lenses look at; refused where the training of every model diverged."""
    if models["diverged"].all():
        raise ValueError(ALL_DIVERGED)
    rows = []
    for task, group in models.groupby("task", sort=False):
        scores = np.where(group["diverged"], "diverged", group["score"].map("{:.3f}".format))
        row = {"task": title(task), "trained on": trained_on(group["examples"].iloc[0], group["training_data"].iloc[0])}
        row["score of each seed"] = ", ".join(scores)
        rows.append(row | {"null rate": f"{group['null_rate'].iloc[0]:.3f}"})
    caption = (
        "The fine-tuned models: development score (accuracy, or Matthews correlation where the null rate is 0) and the "
        "null rate. A model whose training diverged is not measured."
    )
    return Exhibit("five-lenses-models", "The models", models, caption, shown=pd.DataFrame(rows))


def table_of_instruments(changes: pd.DataFrame) -> Exhibit:
    """The measures: what each of them reads, in which direction it says more change, and its null."""
    rows = []
    for key, group in whole(changes).groupby("measure", sort=False):
        measure = BY_KEY[key]
        value, null = (
            f"{number(group[column].min())} to {number(group[column].max())}" for column in ("value", "null")
        )
        row = {"measure": measure.name, "lens": LENSES[measure.lens]}
        row |= {"reads": KINDS[measure.reads_activations, measure.knows_labels], "more is": measure.more}
        rows.append(row | {"here": value, "null": measure.null, "null here": null})
    caption = (
        "The measures of change. A larger value is more change in every one of them; below 0, fine-tuning went the "
        "other way."
    )
    return Exhibit("five-lenses-instruments", "The instruments", pd.DataFrame(rows), caption)


def overview(changes: pd.DataFrame) -> Exhibit:
    """The overview: one panel per task, one row per measure, one column per layer, dark where the measure sees most."""
    changes = whole(changes)
    names, matrices, tops = _names(changes), {}, []
    for task, panel in _titles(changes).items():
        means = changes[changes["task"] == task].pivot_table("value", "measure", "layer").loc[list(names)]
        matrix = means.apply(scaled, axis=1, result_type="broadcast").rename(names)
        matrices[panel] = matrix
        top = matrix.dropna().idxmax(axis=1)
        tops.append(f"{panel}: " + ", ".join(f"{measure} at layer {layer}" for measure, layer in top.items()))
    lenses = [BY_KEY[measure].lens for measure in names]
    figure = heat_maps(
        matrices,
        "",
        peaks=True,
        breaks=[place for place in range(1, len(lenses)) if lenses[place] != lenses[place - 1]],
        ticks={0: "the row's least change", 1: "its greatest"},
        x_label="layer",
        width=WIDTH,
    )
    caption = (
        f"Where fine-tuning changes an encoder, by {len(names)} measures of five lenses "
        f"({models_in_words(changes)}, mean over seeds). Each row is scaled to its own range, from least to greatest "
        "change, so that shades compare layers and not rows; a white dot marks the layer of greatest change, gaps "
        "part the lenses."
    )
    alt = f"Shaded tables of change by measure and layer. The layer of greatest change: {'; '.join(tops)}."
    return Exhibit("five-lenses-overview", "Overview", changes, caption, alt, figure)


def all_curves(changes: pd.DataFrame) -> Exhibit:
    """Each measure in its own unit, one curve per task, with its null."""
    titles, names, of_all = _titles(changes), _names(changes), changes[changes["fold"] == WHOLE]
    changes, twins = plots.with_twins(whole(changes), of_all, "value", [*agreement.MODEL, "measure", "layer"])
    drawn = dict(nulls={"null": "null"} | twins, col="measure", titles=names, far=FAR, width=WIDTH)
    figure = plots.curves(changes, "value", "task", plots.looks_of_tasks(titles), "", **drawn)
    caption = (
        f"Every measure in its own unit, more change upwards ({models_in_words(changes)}, bands from least to greatest "
        "seed). Dashed: the null of the table of instruments, mean over the models."
    )
    caption += "".join(f" {plots.OF_TWINS[column]}" for column in twins)
    ends = [
        f"{words}, {plots.ends(changes[changes['measure'] == measure], 'value', 'task')}"
        for measure, words in names.items()
    ]
    return Exhibit(
        "five-lenses-curves", "All curves", changes, caption, f"Curves over layers. {'. '.join(ends)}.", figure
    )


def correlations(changes: pd.DataFrame) -> Exhibit:
    """The matrix of rank correlations between measures, and of each with itself between seeds on the diagonal."""
    table, itself, names = agreement.between_measures(changes), agreement.repeated(changes), _names(changes)
    matrix = pd.DataFrame(np.nan, list(names), list(names))
    bold, framed = matrix.notna(), matrix.notna() | np.eye(len(names), dtype=bool)
    for pair in table.itertuples():
        matrix.loc[pair.second, pair.first] = pair.correlation
        # Intervals away from 0 stand out.
        bold.loc[pair.second, pair.first] = pair.low > 0 or pair.high < 0
    for measure, correlation in itself.items():
        matrix.loc[measure, measure] = correlation
    # Rounded before it is written, so that no zero has a minus sign.
    matrix = matrix.rename(index=names, columns=names).round(2) + 0.0
    drawn = dict(limits=(-1, 1), signed=True, written="{:.2f}", bold=bold, framed=framed, width=WIDTH)
    figure = heat_maps({"": matrix}, "mean rank correlation", height=WIDTH - 0.8, col_wrap=1, **drawn)
    undefined = int(table["undefined"].sum())
    left_out = f" {undefined} correlations are undefined and left out: a measure is the same at all layers there."
    caption = (
        "How alike two measures order the layers of a model, averaged over models "
        f"({models_in_words(changes)}); bold where the 95 % interval over models and sentences excludes 0. Framed: "
        "a measure with itself in two seeds of one task."
        f"{left_out if undefined else ''}"
    )
    ordered = table.dropna(subset=["correlation"]).sort_values("correlation", ascending=False)
    pairs = [f"{name(pair.first)} and {name(pair.second)} {number(pair.correlation)}" for pair in ordered.itertuples()]
    repeats = [f"{name(measure)} {number(correlation)}" for measure, correlation in itself.items()]
    alt = f"A triangle of correlations, from the highest: {'; '.join(pairs)}. Between seeds: {'; '.join(repeats)}."
    return Exhibit("five-lenses-correlations", "Rank correlations", table, caption, alt, figure)


def table_of_lenses(changes: pd.DataFrame) -> Exhibit:
    """Each pair of lenses: their correlation, and what is left with depth held fixed."""
    table = agreement.between_lenses(changes)
    rows = []
    for pair in table.sort_values("correlation", ascending=False, na_position="last").itertuples():
        row = {"lenses": f"{LENSES[pair.first]} / {LENSES[pair.second]}"}
        row |= {
            "rank correlation (95 % interval)": between(pair.correlation, pair.low, pair.high),
            "models": pair.models,
        }
        rows.append(row | {"given depth (models)": f"{number(pair.given_depth)} ({pair.given_depth_models})"})
    caption = (
        "From the most to the least alike: mean rank correlation over layers of their measures "
        f"({models_in_words(changes)}), with its interval over models and sentences, the layers being given, and "
        "the partial correlation with the layer's number held fixed, over the models in which it is defined."
    )
    return Exhibit("five-lenses-lenses", "Pairs of lenses", table, caption, shown=pd.DataFrame(rows))


def centres(changes: pd.DataFrame) -> Exhibit:
    """The centre of change of each measure: one point per model, a bar at the mean."""
    table, names = agreement.centres(changes), _names(changes)
    layers = whole(changes)["layer"]
    middle = (layers.min() + layers.max()) / 2
    looks = plots.looks_of_tasks(_titles(changes))
    figure = plots.dots(table, "centre", "measure", names, "layer", "task", looks, mean=True, line=middle, width=WIDTH)
    figure.axes[0].set_xlim(layers.min(), layers.max())
    style.layer_axis(figure.axes[0], layers)
    caption = (
        "The centre of change of each measure: the mean layer, weighted by its values scaled to its own range. One "
        f"point per model ({models_in_words(changes)}), a bar at their mean; dashed, the middle of the encoder."
    )
    means = table.groupby("measure", sort=False)["centre"].mean().dropna()
    rows = ", ".join(f"{name(measure)} {mean:.1f}" for measure, mean in means.items())
    alt = f"Points along the layers, one row per measure. Mean centres: {rows}; the middle is {middle:g}."
    return Exhibit("five-lenses-centres", "Centres of change", table, caption, alt, figure)


def greatest_change(changes: pd.DataFrame) -> Exhibit:
    """Where each measure puts its greatest change, and its centre."""
    table, between_seeds = agreement.centres(changes), agreement.between_seeds(changes)
    rows = []
    for measure, group in table.groupby("measure", sort=False):
        counts = group["top"].value_counts().sort_index()
        tops = ", ".join(f"{layer:.0f} ({count})" for layer, count in counts.items())
        row = {"measure": name(measure), "lens": LENSES[BY_KEY[measure].lens]}
        row |= {"layer of greatest change (models)": tops or "undefined"}
        row |= {"centre": _spread(group["centre"]), "with depth": _spread(group["rises"])}
        of_measure = between_seeds[between_seeds["measure"] == measure]
        rows.append(row | {"between seeds": _spread(of_measure["correlation"])})
    caption = (
        "The layer at which each measure is greatest, with the number of models; its centre; and its rank correlation "
        "with depth, and with itself in another seed of the same task, mean ± standard deviation "
        f"({models_in_words(changes)})."
    )
    return Exhibit("five-lenses-greatest", "Greatest change", table, caption, shown=pd.DataFrame(rows))


def _spread(values: pd.Series) -> str:
    values = values.dropna()
    return number(values.mean()) + (f" ± {values.std():.2f}" if len(values) > 1 else "")


def _means(group: pd.DataFrame, columns: dict[str, str]) -> dict[str, str]:
    """The means over models of some columns, under these headers, with their intervals."""
    return {header: with_interval(agreement.interval(group, column)) for header, column in columns.items()}


def what_sets_apart(changes: pd.DataFrame) -> Exhibit:
    """Whether measures agree more that are alike in what they read, or in whether they know the labels."""
    table = agreement.apart(changes)
    columns = dict(zip(*[("alike", "different", "difference")] * 2, strict=True))
    rows = [
        {"measures differ in": DISTINCTIONS[distinction]} | _means(group, columns)
        for distinction, group in table.groupby("distinction", sort=False)
    ]
    caption = (
        "Mean rank correlation of two measures of different lenses that are alike, and of two that are not, with "
        f"intervals over models ({models_in_words(changes)})."
    )
    return Exhibit("five-lenses-apart", "What sets measures apart", table, caption, shown=pd.DataFrame(rows))


def what_layers_add(changes: pd.DataFrame) -> Exhibit:
    """Whether what a layer adds to the change of features agrees better with its parameters than the whole does."""
    table = agreement.added(changes)
    columns = {"of what it puts out": "output", "of what it adds": "added", "difference": "difference"}
    rows = [
        {"measure": name(measure), "correlated with": name(own)} | _means(group, columns)
        for (measure, own), group in table.groupby(["measure", "own"], sort=False)
    ]
    caption = (
        "Rank correlation over layers of rollback or weights with the change of a layer's output, and with what the "
        f"layer adds, with intervals over models ({models_in_words(changes)})."
    )
    return Exhibit("five-lenses-added", "What a layer adds", table, caption, shown=pd.DataFrame(rows))
