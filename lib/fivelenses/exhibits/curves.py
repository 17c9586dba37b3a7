"""The one way to draw a quantity per layer: a curve a group, a band over seeds, a grey line for the null."""

from collections.abc import Mapping

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fivelenses.exhibits import style


def per_layer(
    table: pd.DataFrame,
    value: str,
    group: str,
    axis_label: str,
    names: Mapping[str, str],
    colours: Mapping[str, str],
    markers: Mapping[str, str],
    null: pd.Series | None = None,
    null_name: str = "null",
    layer_label: str = "layer",
    position: str = "layer",
    bottom: float | None = 0.0,
) -> Figure:
    """Draw `value` against a number of layers, one curve a group: the mean over the other columns, with a band from
    least to greatest.

    Args:
        table: tidy, with columns `position`, `group` and `value`; several rows a group and position are repetitions
            (seeds).
        value: the column drawn.
        group: the column that tells curves apart.
        axis_label: the quantity and its unit.
        names: group to the name written beside its curve, in drawing order.
        colours, markers: group to colour and marker.
        null: by position, what independent models, or an answer without reading, would give; drawn dashed and grey.
        null_name: the words beside the null.
        layer_label: the words under the horizontal axis.
        position: the column of the horizontal axis, whole numbers of layers.
        bottom: where the vertical axis begins, as the data ask when None.

    Returns:
        The figure.

    Raises:
        ValueError: a group without rows, or a value that is not finite.
    """
    figure, axes = plt.subplots(figsize=(style.WIDTH, 3.6), layout="constrained")
    ends = draw(axes, table, value, group, names, colours, markers, null, null_name, position)
    axes.set_ylabel(axis_label)
    if bottom is not None:
        axes.set_ylim(bottom=bottom)
    style.layer_axis(axes, table[position], layer_label)
    style.label_line_ends(axes, table[position].max(), ends)
    return figure


def draw(
    axes: Axes,
    table: pd.DataFrame,
    value: str,
    group: str,
    names: Mapping[str, str],
    colours: Mapping[str, str],
    markers: Mapping[str, str],
    null: pd.Series | None = None,
    null_name: str = "null",
    position: str = "layer",
) -> dict[str, tuple[float, str]]:
    """The curves of `per_layer`, in axes that are there; names, labels and limits are left to the caller.

    Returns:
        The name beside each curve to the ordinate of its end and its colour.

    Raises:
        ValueError: as `per_layer`.
    """
    if not table[value].map(pd.notna).all():
        raise ValueError(f"The column {value!r} has a missing value: a curve would hide it.")
    ends = {}
    for key, name in names.items():
        rows = table[table[group] == key]
        if rows.empty:
            raise ValueError(f"There is nothing to draw for {name}: the table has no row with {group} = {key!r}.")
        spread = rows.groupby(position)[value].agg(["mean", "min", "max"])
        axes.fill_between(spread.index, spread["min"], spread["max"], color=colours[key], alpha=0.18, linewidth=0)
        axes.plot(spread.index, spread["mean"], color=colours[key], marker=markers[key])
        ends[name] = (spread["mean"].iloc[-1], colours[key])
    if null is not None:
        axes.plot(null.index, null.to_numpy(), color=style.NULL_COLOUR, linestyle="--", linewidth=1.4)
        ends[null_name] = (null.iloc[-1], style.NULL_COLOUR)
    return ends


def task_legend(
    figure: Figure,
    titles: Mapping[str, str],
    columns: int,
    colours: Mapping[str, str] = style.TASK_COLOURS,
    markers: Mapping[str, str] = style.TASK_MARKERS,
) -> None:
    """One legend above panels whose curves are tasks: their marks, and the dashed null.

    Args:
        figure: with a constrained layout.
        titles: task to its name.
        columns: of the legend.
        colours, markers: task to colour and marker, those of the book by default.
    """
    handles = [
        plt.Line2D([], [], color=colours[task], marker=markers[task], label=title) for task, title in titles.items()
    ]
    handles.append(plt.Line2D([], [], color=style.NULL_COLOUR, linestyle="--", label="null"))
    figure.legend(handles=handles, loc="outside upper center", ncols=columns)


def ends(table: pd.DataFrame, value: str, group: str, position: str = "layer") -> str:
    """The first and last point of each curve, means over repetitions, for an alternative text.

    Example:
        >>> ends(pd.DataFrame({"task": ["rte", "rte"], "layer": [1, 6], "js": [0.1, 0.4]}), "js", "task")
        'rte: 0.100 at 1 and 0.400 at 6'
    """
    said = []
    for name, rows in table.groupby(group, sort=False):
        means = rows.groupby(position)[value].mean()
        said.append(f"{name}: {means.iloc[0]:.3f} at {means.index[0]} and {means.iloc[-1]:.3f} at {means.index[-1]}")
    return "; ".join(said)
