"""The pictures of the book, on seaborn: curves and dots in the house style, each from one tidy table.

What a picture draws, null and published scores included, is a column of its table, so that the table saved beside it
says all that can be seen. Several rows of one group at one position are repetitions (seeds): curves are their mean,
bands and bars go from the least to the greatest.

Example:
    >>> table = pd.DataFrame({"task": "rte", "layer": [1, 2, 1, 2], "js": [0.1, 0.4, 0.2, 0.6], "null": 0.7})
    >>> looks = looks_of_tasks(table["task"].unique())
    >>> figure = curves(table, "js", "task", looks, "JS divergence (nats)", nulls={"null": "untrained"})
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['RTE', 'untrained']
    >>> style.close(figure)
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fivelenses.first_exhibits import style
from fivelenses.first_exhibits.style import Looks, looks_in_order, looks_in_sequence, looks_of_tasks
from fivelenses.records import FUNCTIONAL_TWIN, TWIN

__all__ = ["Looks", "curves", "dots", "ends", "looks_in_order", "looks_in_sequence", "looks_of_tasks", "with_twins"]

RANGE = ("pi", 100)  # seaborn's name for an interval from the least to the greatest
INK, PALE = "#333333", "#BBBBBB"
DASHES = {"-": "", "--": (4, 2), ":": (1, 1.5)}
DOUBLE_DOTTED = (0, (6, 1.5, 1, 1.5, 1, 1.5))
NULL_LINES = ((style.NULL_COLOUR, "--"), (INK, ":"), (style.NULL_COLOUR, DOUBLE_DOTTED), (style.NULL_COLOUR, ":"))
# Controls by the names that all chapters write: what moved at random, as far in its parameters or in its last layer,
# and models of shuffled labels.
AT_RANDOM, FUNCTIONAL, SHUFFLED_LABELS = "moved at random", "functional twin", "shuffled labels"
CONTROL_LINES = {
    AT_RANDOM: (INK, "-."),
    FUNCTIONAL: (INK, DOUBLE_DOTTED),
    SHUFFLED_LABELS: (style.NULL_COLOUR, "-."),
}
TWIN_COLUMNS = {TWIN: ("twin", AT_RANDOM), FUNCTIONAL_TWIN: ("functional_twin", FUNCTIONAL)}
OF_TWINS = {
    "twin": "Dash-dotted: twins, which moved as far in random directions.",
    "functional_twin": "Double-dotted: functional twins, whose last layer moved as far.",
}
MAX_LAYERS = 48
# What one row of dots has once: marker, edge, face, size.
MARKS = (
    ("x", style.NULL_COLOUR, style.NULL_COLOUR, 7),
    ("|", INK, INK, 16),
    *((marker, INK, "#F0E442", 9) for marker in "D*PX"),
)


def curves(
    table: pd.DataFrame,
    y: str,
    hue: str,
    looks: Looks,
    y_label: str,
    *,
    x: str = "layer",
    x_label: str = "layer",
    nulls: Mapping[str, str] | None = None,
    col: str | None = None,
    titles: Mapping | None = None,
    col_wrap: int = 2,
    sharey: bool = False,
    dash: str | None = None,
    dashes: Mapping | None = None,
    unit: str | None = None,
    label: str | None = None,
    bottom: float | None = 0.0,
    missing: str | None = None,
    far: float | None = None,
    log_x: bool = False,
    width: float = style.WIDTH,
    height: float | None = None,
) -> Figure:
    """Draw `y` against layers (or steps, shares, sizes), one curve per value of `hue`, in one panel or one per `col`.

    Args:
        table: tidy, with the columns named here.
        looks: of all values of `hue`.
        y_label, x_label: the quantities with their units.
        nulls: column to name of what would be seen without any effect: the first is dashed and grey, a second dotted,
            and those that are named as in CONTROL_LINES dash-dotted; their means per position are drawn.
        col, titles: the column of the panels, and its values with the panels' titles in order.
        col_wrap: panels side by side.
        sharey: whether panels have one vertical axis.
        dash, dashes: a column told apart by the kind of line, and its values with (name, "-", "--" or ":").
        unit: a column with several curves per hue, each named at its end; its repetitions are averaged.
        label: "ends" writes names at the ends of curves, as a single panel has by default, "legend" above all, as
            several panels have, "none" nowhere.
        bottom: where the vertical axis begins when nothing lies below; as the data ask when None.
        missing: words in a panel without any value; None refuses missing values.
        far: a null so many times above the greatest value is written above its panel, not drawn: it would press the
            curves together.
        log_x: a logarithmic horizontal axis.
        width, height: inches; the height is that of one panel.

    Raises:
        ValueError: a group without rows or without looks, or a missing value.
    """
    import seaborn as sns

    nulls, dashes = dict(nulls or {}), dict(dashes or {})
    lines = _null_lines(nulls.values())
    if missing is None and not table[y].map(pd.notna).all():
        raise ValueError(f"The column {y!r} has a missing value: a curve would hide it.")
    _check_groups(table, hue, looks.names)
    if col is not None:
        titles = dict(titles or {value: str(value) for value in table[col].unique()})
        _check_groups(table, col, titles)
    label, panels = label or ("ends" if col is None else "legend"), len(titles) if col is not None else 1
    columns, height = min(col_wrap, panels), height or (3.6 if col is None else 2.3)
    wrapping = dict(col=col, col_order=list(titles), col_wrap=columns) if col is not None else {}
    grid = sns.FacetGrid(table, sharex=False, sharey=sharey, despine=False, **wrapping)
    figure = grid.figure
    figure.set_size_inches(width, height * -(-panels // columns))
    figure.set_layout_engine("constrained")
    labels = {}
    for (_, place, _), rows in grid.facet_data():
        axes = grid.axes.flat[place]
        if col is not None:
            axes.set_title(list(titles.values())[place])
        names = _draw_curves(axes, rows.dropna(subset=[y]), x, y, hue, looks, dash, dashes, unit)
        if not names:
            axes.annotate(missing, (0.5, 0.5), xycoords="axes fraction", ha="center", color=style.NULL_COLOUR)
        for (column, name), (colour, line) in zip(nulls.items(), lines, strict=True):
            null = rows.groupby(x)[column].mean().dropna()
            if far is not None and len(null) and null.min() > far * rows[y].max():
                text = f"{name}: {null.min():.2f} to {null.max():.2f}"
                axes.set_title(text, loc="right", color=colour, fontsize=9)
            elif len(null):
                sns.lineplot(x=null.index, y=null, color=colour, linestyle=line, linewidth=1.4, ax=axes, zorder=1.9)
                names[name] = (float(null.iloc[-1]), colour)
        if log_x:
            axes.set_xscale("log")
        elif (rows[x] % 1 == 0).all() and np.ptp(rows[x]) <= MAX_LAYERS:
            style.layer_axis(axes, rows[x])
        labels[axes] = rows[x].max(), names
    grid.set_axis_labels(x_label, y_label)
    for axes in labels:
        if bottom is not None and axes.dataLim.y0 >= bottom:
            axes.set_ylim(bottom=bottom)
    for axes, (last, names) in labels.items():
        # Limits are final only now; more names than there is room for are written smaller.
        room = 0.17 / max(height - 0.9, 0.5)
        gap = min(room, 1.05 / max(len(names), 1))
        if label == "ends":
            style.label_line_ends(axes, last, names, gap, 10 * gap / room)
    if label == "legend":
        handles = [
            Line2D([], [], color=looks.colours[key], marker=looks.markers.get(key), label=name)
            for key, name in looks.names.items()
            if key not in (titles or {}) or unit is not None
        ]
        handles += [Line2D([], [], color=INK, linestyle=line, label=name) for name, line in dashes.values()]
        of_nulls = zip(nulls.values(), lines, strict=True)
        handles += [Line2D([], [], color=colour, linestyle=line, label=name) for name, (colour, line) in of_nulls]
        _legend(figure, handles)
    return figure


def with_twins(
    table: pd.DataFrame, record: pd.DataFrame, value: str, by: Sequence[str]
) -> tuple[pd.DataFrame, dict[str, str]]:
    """A table with a column for each kind of twin that a record has, and these columns' names in a picture.

    Args:
        table: rows of fine-tuned models.
        record: with `control`, of all examples.
        value: its column.
        by: the columns that a model and its twins share.
    """
    names = {}
    for control, (column, name) in TWIN_COLUMNS.items() if "control" in record.columns else ():
        twins = record.loc[record["control"] == control, [*by, value]]
        if len(twins):
            table, names[column] = table.merge(twins.rename(columns={value: column}), on=list(by), how="left"), name
    return table, names


def _null_lines(names: Collection[str]) -> list[tuple[str, str]]:
    """Colour and kind of line of each null: controls have their own, others take theirs in order."""
    others = [name for name in names if name not in CONTROL_LINES]
    if len(others) > len(NULL_LINES):
        raise ValueError(f"There are {len(NULL_LINES)} lines for nulls, and {len(others)} nulls.")
    known = CONTROL_LINES | dict(zip(others, NULL_LINES, strict=False))
    return [known[name] for name in names]


def _check_groups(table: pd.DataFrame, column: str, names: Mapping) -> None:
    for key, name in names.items():
        if not (table[column] == key).any():
            raise ValueError(f"There is nothing to draw for {name}: the table has no row with {column} = {key!r}.")
    for key in table[column].unique():
        if key not in names:
            raise ValueError(f"The table has rows with {column} = {key!r}, which would not be drawn: it has no name.")


def _draw_curves(axes: Axes, rows: pd.DataFrame, x: str, y: str, hue: str, looks: Looks, dash, dashes, unit) -> dict:
    """The curves of one panel; the names at their ends, with the ordinate there and the colour."""
    import seaborn as sns

    if rows.empty:
        return {}
    parts = [column for column in (unit or hue, dash) if column is not None]
    if unit is not None:
        rows = rows.groupby(list(dict.fromkeys([hue, *parts, x])), sort=False, as_index=False)[y].mean()
    if dash is not None:
        kinds = dict(style=dash, style_order=list(dashes), dashes=[DASHES[line] for _, line in dashes.values()])
    elif looks.markers:
        marked = dict(markers=dict(looks.markers), markersize=6.5, markeredgewidth=0.5)
        kinds = dict(style=hue, style_order=list(looks.names), dashes=False, **marked)
    else:
        kinds = dict(linewidth=1.4)
    coloured = dict(hue=hue, hue_order=list(looks.names), palette=dict(looks.colours), legend=False)
    pooled = dict(errorbar=RANGE, err_kws=dict(alpha=0.18, linewidth=0)) if unit is None else dict(estimator=None)
    sns.lineplot(rows, x=x, y=y, units=unit, ax=axes, **coloured, **pooled, **kinds)
    ends = {}
    for key, curve in rows.groupby(parts, sort=False):
        key, group = key[0], curve[hue].iloc[0]
        name = str(key) if unit is not None else looks.names[group]
        name += f", {dashes[curve[dash].iloc[0]][0]}" if dash not in (None, hue) else ""
        ends[name] = (curve.groupby(x)[y].mean().iloc[-1], looks.colours[group])
    return ends


def _legend(figure: Figure, handles: Sequence[Line2D]) -> None:
    """One legend above everything, in as few rows as there is room for."""
    widths = [0.085 * len(handle.get_label()) + 0.6 for handle in handles]  # inches
    room = figure.get_figwidth()
    rows = 1 if sum(widths) <= room else -(-len(handles) // max(1, int(room / max(widths))))
    figure.set_figheight(figure.get_figheight() + 0.25 * rows)
    figure.legend(handles=handles, loc="outside upper center", ncols=-(-len(handles) // rows))


def ends(table: pd.DataFrame, y: str, hue: str, x: str = "layer") -> str:
    """The first and last point of each curve, means over repetitions, for an alternative text.

    Example:
        >>> ends(pd.DataFrame({"task": ["rte", "rte"], "layer": [1, 6], "js": [0.1, 0.4]}), "js", "task")
        'rte: 0.100 at 1 and 0.400 at 6'
    """
    words = []
    for key, rows in table.groupby(hue, sort=False):
        means = rows.groupby(x)[y].mean()
        words.append(f"{key}: {means.iloc[0]:.3f} at {means.index[0]} and {means.iloc[-1]:.3f} at {means.index[-1]}")
    return "; ".join(words)


def dots(
    table: pd.DataFrame,
    value: str,
    row: str,
    titles: Mapping,
    value_label: str,
    hue: str,
    looks: Looks,
    *,
    open: Collection = (),
    marks: Mapping[str, str] | None = None,
    spread: bool = False,
    mean: bool = False,
    joined: bool = False,
    line: float | None = None,
    width: float = style.WIDTH,
    height: float | None = None,
) -> Figure:
    """Draw one dot per observation from left to right, one row per group, with the values of `hue` side by side in it.

    Args:
        table: tidy, with the columns named here; a row of dots without a value is an empty row.
        row, titles: the column that tells rows apart, and its values with the words on their left, from the top down.
        value_label: the quantity and its unit.
        looks: of the values of `hue`, or of those of `row`: then `hue` is told by filled and open dots.
        open: the values of `hue` whose dots are open.
        marks: column to name of what a row has once, such as baselines; NaN is not drawn.
        spread: a dot at the mean with a bar from the least to the greatest, instead of all dots.
        mean: a black bar at the mean of each row.
        joined: the values of `hue` at one height, their means joined by a line: before and after.
        line: where a dashed grey line stands.

    Raises:
        ValueError: a row without observations or without a title, or more marks than the house style has.

    Example:
        >>> table = pd.DataFrame({"task": "rte", "start": ["scratch", "tuned"], "score": [0.5, 0.7], "chance": 0.5})
        >>> looks, marked = looks_of_tasks(["rte"]), dict(open=["scratch"], marks={"chance": "majority"})
        >>> figure = dots(table, "score", "task", looks.names, "accuracy", "start", looks, **marked)
        >>> [text.get_text() for text in figure.legends[0].get_texts()]
        ['scratch', 'tuned', 'majority']
        >>> style.close(figure)
    """
    import seaborn as sns

    marks = dict(marks or {})
    if len(marks) > len(MARKS):
        raise ValueError(f"There are {len(MARKS)} markers, and {len(marks)} things to mark.")
    _check_groups(table, row, titles)
    by_hue = set(table[hue]) <= set(looks.names)
    values = list(looks.names) if by_hue else sorted(table[hue].unique(), key=lambda one: one not in open)
    figure, axes = plt.subplots(figsize=(width, height or 0.5 * len(titles) + 0.8), layout="constrained")
    named = table.assign(**{row: table[row].map(titles)})
    order, dodge = list(titles.values()), not joined and len(values) > 1
    if line is not None:
        axes.axvline(line, color=style.NULL_COLOUR, linestyle="--", linewidth=1.4)
    if joined:
        means = named.groupby([row, hue])[value].mean().groupby(row).agg(["min", "max"]).loc[order]
        axes.hlines(order, means["min"], means["max"], color=PALE, linewidth=2, zorder=1)
    keys = dict(zip(order, titles, strict=True))
    # Rows of one look at once, as each call takes as long as drawing all of them.
    for (one, *title), part in named.groupby([hue] if by_hue else [hue, row], sort=False):
        look = one if by_hue else keys[title[0]]
        colour, marker = looks.colours[look], looks.markers.get(look, "o") if by_hue else "o"
        face = "white" if one in open else colour
        placed = dict(x=value, y=row, order=order, hue=hue, hue_order=values, legend=False, ax=axes)
        if spread:
            kinds = dict(errorbar=RANGE, linestyle="none", err_kws=dict(linewidth=1.5), palette=[colour] * len(values))
            kinds |= dict(markers=marker, markerfacecolor=face, markersize=6)
            sns.pointplot(part, **placed, **kinds, dodge=dodge and 0.8 * (1 - 1 / len(values)))
        else:
            kinds = dict(palette=[face] * len(values), edgecolor=colour, linewidth=1.3, marker=marker, size=6)
            sns.stripplot(part, **placed, **kinds, dodge=dodge, jitter=False)
    if mean:
        bar = dict(marker="|", markersize=72 * 0.36, markeredgewidth=2.5, color="black", linestyle="none")
        sns.pointplot(named, x=value, y=row, order=order, errorbar=None, ax=axes, **bar)
    firsts = named.groupby(row, sort=False)[list(marks)].first() if marks else None
    handles = []
    for one in values:
        ink, marker = (looks.colours[one], looks.markers.get(one, "o")) if by_hue else (INK, "o")
        drawn = dict(linestyle="none", marker=marker, color=ink, mfc="white" if one in open else ink)
        handles.append(Line2D([], [], label=looks.names[one] if by_hue else str(one), **drawn))
    for (column, name), (marker, edge, face, size) in zip(marks.items(), MARKS, strict=False):
        drawn = dict(linestyle="none", marker=marker, color=edge, mfc=face, markersize=size)
        drawn["markeredgewidth"] = 2 if marker == "|" else 1
        axes.plot(firsts[column], firsts.index, zorder=2.5 if marker in "x|" else 1.9, **drawn)
        handles.append(Line2D([], [], label=name, **drawn | {"markersize": min(size, 12)}))
    for place in range(1, len(titles)):
        axes.axhline(place - 0.5, color="#E5E5E5", linewidth=0.8, zorder=0)
    axes.set(xlabel=value_label, ylabel="", ylim=(len(titles) - 0.5, -0.5))
    _legend(figure, handles)
    return figure
