"""The pictures of chapter 6, from the table of `measurements`."""

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from fivelenses import tasks
from fivelenses.exhibits import curves, style
from fivelenses.exhibits.exhibit import Exhibit, counted
from fivelenses.papers.five_lenses import agreement
from fivelenses.papers.five_lenses.instruments import BY_KEY, name
from fivelenses.papers.five_lenses.rank_statistics import number, scaled

# Narrower than a page, so that letters are read on a phone.
WIDTH = 5.6
COLUMNS = 2
SHADES = "YlGnBu"  # its lightness falls evenly: it reads the same in grey and to colour-blind readers
SIGNED = "PuOr_r"  # safe for colour-blind readers, light at 0
MISSING = "#BBBBBB"
FAR = 2  # a null so many times above the greatest value is written, not drawn: it would press the curves together


def _titles(changes: pd.DataFrame) -> dict[str, str]:
    return {task: tasks.find(task).title for task in changes["task"].unique()}


def models_in_words(changes: pd.DataFrame) -> str:
    """The models behind a picture, in words.

    Example:
        >>> models_in_words(pd.DataFrame({"task": ["rte", "rte"], "seed": [0, 1]}))
        '2 models of 1 task'
    """
    models, kinds = len(changes[agreement.MODEL].drop_duplicates()), changes["task"].nunique()
    return f"{counted(models, 'model')} of {counted(kinds, 'task')}"


def _panels(count: int, height: float, sharey: bool) -> tuple[Figure, list[Axes]]:
    """So many panels in two columns, each `height` inches high, with layers on a shared axis."""
    rows = -(-count // COLUMNS)
    figure, grid = plt.subplots(
        rows, COLUMNS, figsize=(WIDTH, height * rows + 0.6), layout="constrained", squeeze=False, sharey=sharey
    )
    for axes in grid.flat[count:]:
        axes.set_visible(False)
    return figure, list(grid.flat[:count])


def overview(changes: pd.DataFrame) -> Exhibit:
    """The overview: a panel a task, a row a measure, a column a layer, dark where the measure sees most change."""
    titles = _titles(changes)
    means = changes.groupby(["task", "measure", "layer"], sort=False)["value"].mean()
    measures, layers = list(changes["measure"].unique()), sorted(changes["layer"].unique())
    figure, panels = _panels(len(titles), 0.31 * len(measures) + 0.45, sharey=True)
    shades = colormaps[SHADES].with_extremes(bad=MISSING)
    tops = []
    for axes, (task, title) in zip(panels, titles.items(), strict=True):
        rows = np.stack([scaled(means[task, measure].loc[layers]) for measure in measures])
        image = axes.pcolormesh(layers, range(len(measures)), rows, cmap=shades, vmin=0, vmax=1, edgecolors="white")
        defined = [place for place, row in enumerate(rows) if not np.isnan(row).any()]
        top = {place: layers[rows[place].argmax()] for place in defined}
        axes.plot(list(top.values()), list(top), "o", color="white", markersize=5.5, markeredgecolor="white")
        axes.set_title(title, fontweight="bold")
        axes.grid(False)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        style.layer_axis(axes, layers, "")
        tops.append(f"{title}: " + ", ".join(f"{name(measures[place])} at layer {top[place]}" for place in defined))
    panels[0].set_yticks(range(len(measures)), [name(measure) for measure in measures])
    panels[0].invert_yaxis()
    _between_lenses(panels, measures)
    figure.supxlabel("layer")
    bar = figure.colorbar(image, ax=panels, location="top", shrink=0.6, aspect=30, ticks=[0, 1])
    bar.ax.set_xticklabels(["the row's least change", "its greatest"])
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    caption = (
        f"Where fine-tuning changes an encoder, by {len(measures)} measures of five lenses "
        f"({models_in_words(changes)}, mean over seeds). Each row is scaled to its own range, from least to greatest "
        "change, so that shades compare layers and not rows; a white dot marks the layer of greatest change, white "
        "lines part the lenses."
    )
    alt = f"Shaded tables of change by measure and layer. The layer of greatest change: {'; '.join(tops)}."
    return Exhibit("five-lenses-overview", "Overview", changes, caption, alt, figure)


def _between_lenses(panels: list[Axes], measures: list[str]) -> None:
    for place in range(1, len(measures)):
        if BY_KEY[measures[place]].lens != BY_KEY[measures[place - 1]].lens:
            for axes in panels:
                axes.axhline(place - 0.5, color="white", linewidth=5)


def all_curves(changes: pd.DataFrame) -> Exhibit:
    """Each measure in its own unit, a curve a task, with its null."""
    titles, measures = _titles(changes), list(changes["measure"].unique())
    figure, panels = _panels(len(measures), 1.9, sharey=False)
    for axes, measure in zip(panels, measures, strict=True):
        table = changes[changes["measure"] == measure]
        null = table.groupby("layer")["null"].mean()
        far = null.min() > FAR * table["value"].max()
        looks = (titles, style.TASK_COLOURS, style.TASK_MARKERS)
        curves.draw(axes, table, "value", "task", *looks, null=None if far else null)
        axes.set_title(name(measure))
        if far:
            text = f"null: {number(null.min())} to {number(null.max())}"
            axes.set_title(text, loc="right", color=style.NULL_COLOUR, fontsize=9)
        style.layer_axis(axes, table["layer"], "layer" if measure in measures[-COLUMNS:] else "")
    curves.task_legend(figure, titles, 3)
    nulls = "; ".join(f"{name(measure)}: {BY_KEY[measure].null}" for measure in measures)
    caption = (
        f"Every measure in its own unit, more change upwards ({models_in_words(changes)}, bands from least to greatest "
        f"seed). Dashed, mean over the models: {nulls}."
    )
    said = [
        f"{name(measure)}, {curves.ends(changes[changes['measure'] == measure], 'value', 'task')}"
        for measure in measures
    ]
    return Exhibit(
        "five-lenses-curves", "All curves", changes, caption, f"Curves over layers. {'. '.join(said)}.", figure
    )


def correlations(changes: pd.DataFrame) -> Exhibit:
    """The matrix of rank correlations between measures, and of each with itself between seeds on the diagonal."""
    table, measures = agreement.between_measures(changes), list(changes["measure"].unique())
    itself = agreement.between_seeds(changes).groupby("measure", sort=False)["correlation"].mean().dropna()
    matrix = pd.DataFrame(np.nan, measures, measures)
    for pair in table.itertuples():
        matrix.loc[pair.second, pair.first] = pair.correlation
    for measure, correlation in itself.items():
        matrix.loc[measure, measure] = correlation
    figure, axes = plt.subplots(figsize=(WIDTH, WIDTH), layout="constrained")
    shades = colormaps[SIGNED].with_extremes(bad="white")
    image = axes.pcolormesh(matrix.to_numpy(), cmap=shades, vmin=-1, vmax=1, edgecolors="white")
    # Intervals away from 0 stand out.
    bold = {(pair.second, pair.first) for pair in table.itertuples() if pair.low > 0 or pair.high < 0}
    for row, below in enumerate(measures):
        for column, beside in enumerate(measures[: row + 1]):
            value = matrix.loc[below, beside]
            weight = "bold" if (below, beside) in bold else "normal"
            # Dark cells carry white figures.
            colour = "white" if abs(value) > 0.7 else "black"
            text = "–" if np.isnan(value) else number(value)
            axes.text(
                column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=10, fontweight=weight, color=colour
            )
            if row == column:
                axes.add_patch(Rectangle((column + 0.06, row + 0.06), 0.88, 0.88, fill=False, color="black"))
    places, names = np.arange(len(measures)) + 0.5, [name(measure) for measure in measures]
    axes.set_xticks(places, names, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    bar = figure.colorbar(image, ax=axes, location="top", shrink=0.6, aspect=30, label="mean rank correlation")
    bar.outline.set_visible(False)
    undefined = int(table["undefined"].sum())
    left_out = f" {undefined} correlations are undefined and left out: a measure is the same at all layers there."
    caption = (
        "Rank correlation over layers of each pair of measures, taken within a model and averaged "
        f"({models_in_words(changes)}); bold where the bootstrap interval of 95 % over models leaves out 0. Framed: of "
        "a measure with itself in two seeds of one task, which shows how far it repeats."
        f"{left_out if undefined else ''}"
    )
    ordered = table.dropna(subset=["correlation"]).sort_values("correlation", ascending=False)
    said = [f"{name(pair.first)} and {name(pair.second)} {number(pair.correlation)}" for pair in ordered.itertuples()]
    repeated = [f"{name(measure)} {number(correlation)}" for measure, correlation in itself.items()]
    alt = f"A triangle of correlations, from the highest: {'; '.join(said)}. Between seeds: {'; '.join(repeated)}."
    return Exhibit("five-lenses-correlations", "Rank correlations", table, caption, alt, figure)


def centres(changes: pd.DataFrame) -> Exhibit:
    """The centre of change of each measure: a point a model, a bar at the mean."""
    table, titles = agreement.centres(changes), _titles(changes)
    measures, middle = list(changes["measure"].unique()), (changes["layer"].min() + changes["layer"].max()) / 2
    figure, axes = plt.subplots(figsize=(WIDTH, 0.42 * len(measures) + 1.5), layout="constrained")
    axes.axvline(middle, color=style.NULL_COLOUR, linestyle="--", linewidth=1.4)
    said = []
    for place, measure in enumerate(measures):
        rows = table[table["measure"] == measure].dropna(subset=["centre"])
        if rows.empty:
            continue
        for order, (task, title) in enumerate(titles.items()):
            points = rows[rows["task"] == task]["centre"]
            height = place + 0.5 * ((order + 0.5) / len(titles) - 0.5)
            axes.plot(
                points,
                np.full(len(points), height),
                style.TASK_MARKERS[task],
                color=style.TASK_COLOURS[task],
                markersize=5,
                label=title if not place else None,
            )
        mean = rows["centre"].mean()
        axes.plot([mean, mean], [place - 0.36, place + 0.36], color="black", linewidth=2.5)
        said.append(f"{name(measure)} {mean:.1f}")
    axes.set_yticks(range(len(measures)), [name(measure) for measure in measures])
    axes.invert_yaxis()
    axes.set_xlim(changes["layer"].min(), changes["layer"].max())
    style.layer_axis(axes, changes["layer"])
    figure.legend(loc="outside upper center", ncols=len(titles), columnspacing=1.0, handletextpad=0.2)
    caption = (
        "The centre of change of each measure: the mean layer, weighted by its values scaled to its own range. A point "
        f"a model ({models_in_words(changes)}), a bar at their mean; dashed, the middle of the encoder."
    )
    alt = f"Points along the layers, a row a measure. Mean centres: {', '.join(said)}; the middle is {middle:g}."
    return Exhibit("five-lenses-centres", "Centres of change", table, caption, alt, figure)
