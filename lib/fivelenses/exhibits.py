"""Exhibits: a picture or a table with its caption, each from one tidy table, in the house style.

What a picture draws, nulls and controls included, is a column of its table, so that the table saved beside it says all
that can be seen, and its alternative text is written from the same numbers. Several rows of one group at one position
are repetitions (seeds): a curve is their mean, its band goes from the least to the greatest.

>>> table = pd.DataFrame({"task": "rte", "layer": [1, 2, 1, 2], "js": [0.1, 0.4, 0.2, 0.6], "untrained": 0.7})
>>> drawing = curves(table, "js", by="task", y_label="JS divergence (nats)", nulls={"untrained": "untrained"})
>>> drawing.alt
'Curves of JS divergence (nats) over layer. RTE: 0.150 at 1, 0.500 at 2. Untrained: 0.700 at 1, 0.700 at 2.'
"""

import base64
import functools
import io
import itertools
import json
import numbers
import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import BoundaryNorm, to_hex
from matplotlib.ticker import LogLocator, MaxNLocator
from PIL import Image
from scipy.optimize import isotonic_regression

from fivelenses.judging import listed, title
from fivelenses.records import CONTROLS, FUNCTIONAL_TWIN, SHUFFLED, TWIN, Missing

# --- the house style --------------------------------------------------------------------------------------------------

# A task has one colour and one marker in the whole book: Okabe and Ito's colours, and a marker for print in grey.
TASKS = {
    "mnli": ("#0072B2", "o"),
    "rte": ("#D55E00", "s"),
    "sst2": ("#009E73", "^"),
    "mrpc": ("#CC79A7", "D"),
    "qnli": ("#E69F00", "v"),
    "cola": ("#56B4E9", "P"),
    "squad": ("#7F3C8D", "X"),
    "trec": ("#80650D", "*"),
    "parsing": ("#44AA99", "d"),
    "pos": ("#332288", "p"),
    "dep": ("#AA4499", "h"),
    "ps-role": ("#117733", "<"),
    "ps-fxn": ("#882255", ">"),
}
# Other groups, in the order in which they come: dark to light, so that the order shows in grey, too.
OTHERS = (("#332288", "o"), ("#117733", "s"), ("#CC6677", "^"), ("#4499CC", "D"), ("#B5922A", "v"))
ORDERED_MARKERS = "os^Dv<>ph*PX"
INK, GREY, PALE = "#333333", "#777777", "#BBBBBB"
DOUBLE_DOTTED = (0, (6, 1.5, 1, 1.5, 1, 1.5))
NULL_LINES = ((GREY, "--"), (INK, ":"), (GREY, DOUBLE_DOTTED), (GREY, ":"))
CONTROL_LINES = {
    TWIN: ("moved at random", INK, "-."),
    FUNCTIONAL_TWIN: ("functional twin", INK, DOUBLE_DOTTED),
    SHUFFLED: ("shuffled labels", GREY, "-."),
}
KINDS = ("", (4, 2), (1, 1.5))  # of lines: whole, dashed, dotted
WIDTH = 5.4  # inches; a phone shows such a picture whole, with letters of 10 pixels
MAX_LAYERS = 24  # of an axis with a tick per layer, or per two
MISSING = "–"
NUMBER = re.compile(rf"{MISSING}|[−+≥(]?\s*\d")  # how a cell with one begins, or without its value
SHADES, SIGNED, SURFACE = "YlGnBu", "PuOr_r", "viridis"  # they read the same in grey and to colour-blind readers

plt.rc("figure", dpi=130, facecolor="white")
plt.rc("font", size=11)
plt.rc("axes", titlesize=11, titlelocation="left", grid=True, axisbelow=True)
plt.rc("axes.spines", top=False, right=False)
plt.rc("grid", color="#E5E5E5", linewidth=0.8)
plt.rc("lines", linewidth=1.8, markersize=5)
plt.rc("legend", frameon=False)


def looks(keys: Iterable) -> dict[object, tuple[str, str]]:
    """Colour and marker of each group: those of a task, black for one other thing among tasks, shades from light to
    dark for numbers and for more groups than there are colours, colours in order otherwise.

    >>> looks(["rte", "pre-trained"]), looks(["low layers"])
    ({'rte': ('#D55E00', 's'), 'pre-trained': ('#000000', 'o')}, {'low layers': ('#332288', 'o')})
    """
    keys = list(dict.fromkeys(keys))
    others = [key for key in keys if key not in TASKS]
    if len(others) == 1 and len(keys) > 1:
        found = {others[0]: ("#000000", "o")}
    elif len(others) > len(OTHERS) or all(isinstance(key, numbers.Number) for key in others):
        # A name in a lighter shade is hard to read on white.
        shades = map(tuple, plt.get_cmap("viridis")(np.linspace(0.67, 0.0, len(others))).tolist())
        found = dict(zip(others, zip(shades, itertools.cycle(ORDERED_MARKERS), strict=False), strict=True))
    else:
        found = dict(zip(others, OTHERS, strict=False))
    return {key: (TASKS | found)[key] for key in keys}


# --- pictures ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawing:
    """A picture, the table that it draws, its words for a reader who cannot see it, and HTML that follows it."""

    figure: plt.Figure
    table: pd.DataFrame
    alt: str
    after: str = ""

    @functools.cached_property
    def png(self) -> bytes:
        """With at most 256 colours, a third of the size and no difference to the eye."""
        packed, canvas = io.BytesIO(), FigureCanvasAgg(self.figure)
        canvas.draw()  # `savefig` would draw it twice, once for the layout
        drawn = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
        drawn.quantize(256).save(packed, format="png")
        return packed.getvalue()

    @property
    def html(self) -> str:
        """An image whose class says whether it is drawn in lines, which a dark page inverts, or in shades."""
        shaded = self.figure.findobj(lambda one: isinstance(one, plt.cm.ScalarMappable) and one.get_array() is not None)
        width, height = Image.open(io.BytesIO(self.png)).size
        kind = "shades" if shaded else "lines"
        source = f"data:image/png;base64,{base64.b64encode(self.png).decode()}"
        about = f'alt="{escape(self.alt)}" width="{width}" height="{height}" loading="lazy"'
        return f'<div class="picture {kind}"><img src="{source}" {about}></div>'


@dataclass(frozen=True)
class Layout:
    """The panels and axes of curves.

    Attributes:
        panels, dashes: columns that are told apart by panels, and by kinds of lines.
        height: of a panel, in inches.
        shared: whether panels have one vertical axis.
        bottom: where the vertical axis begins unless something lies below; as the data ask when None.
        each: a column with several curves per group, each named at its end.
        ends: names at the ends of curves, as a single panel has them; a legend above all panels otherwise.
        missing: words in a panel without any value; None refuses missing values.
        far: a null so many times above the greatest value is written above its panel, not drawn.
    """

    panels: str = ""
    height: float | None = None
    shared: bool = False
    bottom: float | None = 0.0
    dashes: str = ""
    each: str = ""
    ends: bool = False
    missing: str | None = None
    far: float | None = None


def curves(
    table: pd.DataFrame,
    y: str,
    by: str,
    *,
    y_label: str,
    x: str = "layer",
    x_label: str = "",
    nulls: Mapping[str, str] = {},
    layout: Layout = Layout(),  # noqa: B008 (it is frozen)
) -> Drawing | Missing | pd.DataFrame:
    """One curve per group with a band over seeds, and what would be seen without any effect.

    Args:
        table: tidy, with the columns named here; one that is missing or empty is given back.
        nulls: columns whose means over all groups are drawn dashed, and their names; controls
            (`records.with_controls`) are drawn without being asked for.
    """
    if not len(table):
        return table
    if layout.missing is None and table[y].isna().any():
        raise ValueError(f"The column {y!r} has a missing value: a curve would hide it.")
    lines, found, ends, said = null_lines(table, y, nulls), looks(table[by]), {}, []
    kinds = list(dict.fromkeys(table[layout.dashes])) if layout.dashes else []
    height = layout.height or (2.3 if layout.panels else 3.6)
    panels = dict(list(table.groupby(layout.panels, sort=False))) if layout.panels else {"": table}
    figure, grid = panel_grid(len(panels), height, columns=1 if layout.ends else 2, sharey=layout.shared)
    for (panel, rows), axes in zip(panels.items(), grid, strict=True):
        axes.set_title(title(panel))
        said += [f"{title(panel)}:"] if layout.panels else []
        names, words = draw_curves(axes, rows, x, y, by, found, layout, kinds)
        names_of_nulls, words_of_nulls = draw_nulls(axes, rows, x, y, lines, layout.far)
        said += words + words_of_nulls
        if rows[x].max() <= MAX_LAYERS and (rows[x] % 1 == 0).all():
            axes.xaxis.set_major_locator(MaxNLocator(12, integer=True))
        axes.set(xlabel="", ylabel=y_label if axes.get_subplotspec().is_first_col() else "")
        ends[axes] = rows[x].max(), names | names_of_nulls
    figure.supxlabel(x_label or x.replace("_", " "), fontsize="medium")
    named_at_ends = layout.ends or not layout.panels
    for axes, (last, names) in ends.items():  # when all is drawn, as panels may have one vertical axis
        if layout.bottom is not None and axes.dataLim.y0 >= layout.bottom:
            axes.set_ylim(bottom=layout.bottom)
        if names and named_at_ends:
            label_ends(axes, last, names, height)
    if not named_at_ends:  # what has a panel of its own is named above it
        legend(figure, curves_in_legend({} if layout.panels == by else found, kinds, lines))
    return Drawing(figure, table, " ".join([f"Curves of {y_label or y} over {x_label or x}.", *said]))


def panel_grid(count: int, height: float, columns: int = 2, above: float = 0.0, **shared: bool):
    """So many empty panels, each of this height in inches, with room `above` them for a bar."""
    columns = min(columns, count)
    rows = -(-count // columns)
    sized = dict(figsize=(WIDTH, height * rows + above), layout="constrained", squeeze=False)
    figure, grid = plt.subplots(rows, columns, **sized, **shared)
    for empty in grid.flat[count:]:
        empty.remove()
    return figure, list(grid.flat[:count])


def draw_curves(
    axes: plt.Axes, rows: pd.DataFrame, x: str, y: str, by: str, found: Mapping, layout: Layout, kinds: Sequence
):
    """The curves of one panel, in the figure's kinds of lines: names at their ends, ordinate and colour; in words."""
    import seaborn as sns

    rows = rows.dropna(subset=[y])
    if rows.empty:
        axes.annotate(layout.missing, (0.5, 0.5), xycoords="axes fraction", ha="center", color=GREY)
        return {}, []
    parts = [column for column in (layout.each or by, layout.dashes) if column]
    colours, markers = ({key: look[one] for key, look in found.items()} for one in (0, 1))
    drawn = dict(hue=by, hue_order=list(found), palette=colours, legend=False)
    if layout.each:
        rows = rows.groupby(list(dict.fromkeys([by, *parts, x])), sort=False, as_index=False)[y].mean()
        drawn |= dict(units=layout.each, estimator=None, linewidth=1.4)
    else:
        drawn |= dict(errorbar=("pi", 100), err_kws=dict(alpha=0.18, linewidth=0))
    if layout.dashes:
        drawn |= dict(style=layout.dashes, style_order=kinds, dashes=list(KINDS[: len(kinds)]))
    elif not layout.each:
        drawn |= dict(style=by, style_order=list(found), dashes=False, markers=markers, markersize=6.5)
    sns.lineplot(rows, x=x, y=y, ax=axes, **drawn)
    ends, said = {}, []
    for key, curve in rows.groupby(parts, sort=False):
        # A label may be called as a task is.
        name = (str(key[0]) if layout.each else title(key[0])) + "".join(f", {kind}" for kind in key[1:])
        means = curve.groupby(x)[y].mean()
        ends[name] = means.iloc[-1], found[curve[by].iloc[0]][0]
        said.append(f"{name}: {ends_in_words(means)}.")
    return ends, said


def draw_nulls(axes: plt.Axes, rows: pd.DataFrame, x: str, y: str, lines: Mapping, far: float | None):
    """Nulls and controls of one panel, as `draw_curves`."""
    ends, said, notes = {}, [], []
    for column, (name, colour, line) in lines.items():
        null = rows.groupby(x)[column].mean().dropna()
        if null.empty:
            continue
        said.append(f"{name.capitalize()}: {ends_in_words(null)}.")
        if far is not None and null.min() > far * rows[y].max():
            notes.append(f"{name}: {null.min():.2f} to {null.max():.2f}")
        else:
            axes.plot(null.index, null, color=colour, linestyle=line, linewidth=1.4, zorder=1.9)
            ends[name] = float(null.iloc[-1]), colour
    if notes:  # below the panel's title: both side by side are wider than a narrow panel
        axes.set_title("\n".join(notes), loc="right", color=GREY, fontsize=9)
        axes.set_title(axes.get_title("left") + "\n" * len(notes), loc="left")
    return ends, said


def null_lines(table: pd.DataFrame, y: str, nulls: Mapping[str, str]) -> dict[str, tuple]:
    """Name, colour and kind of line of each null, and of each control that the table has, by its column."""
    named = {column: (name, *line) for (column, name), line in zip(nulls.items(), NULL_LINES, strict=False)}
    controls = {f"{y}_{suffix}": CONTROL_LINES[control] for control, suffix in CONTROLS.items()}
    return named | {column: line for column, line in controls.items() if column in table}


def ends_in_words(curve: pd.Series) -> str:
    """The first and the last point of a curve, in words."""
    places = dict.fromkeys((0, len(curve) - 1))
    return ", ".join(f"{curve.iloc[one]:.3f} at {curve.index[one]:g}" for one in places).replace("-", "−")


def label_ends(axes: plt.Axes, x: float, ends: Mapping[str, tuple[float, str]], height: float) -> None:
    """Names at the ends of curves; those that would touch are moved apart, with lines to their curves, or smaller."""
    low, high = axes.get_ylim()
    room = 0.17 / max(height - 0.9, 0.5)  # a line of text
    least = min(room, 1 / len(ends)) * (high - low)
    size = 10 * least / (room * (high - low))
    names, apart = sorted(ends, key=lambda name: ends[name][0]), least * np.arange(len(ends))
    # As near to their curves as they can be, apart from each other, and neither into the axis nor above it.
    nearest = isotonic_regression([ends[name][0] for name in names] - apart).x
    places = apart + nearest.clip(low + least / 2, high - apart[-1])
    for name, y in zip(names, places, strict=True):
        end, colour = ends[name]
        look = dict(color=colour, fontsize=size, fontweight="bold", va="center", annotation_clip=False)
        if abs(y - end) > least / 3:
            line = dict(arrowstyle="-", color=colour, linewidth=0.8, relpos=(0, 0.5), patchA=None, shrinkA=4, shrinkB=3)
            look |= dict(arrowprops=line)
        axes.annotate(name, (x, end), xytext=(16, y), textcoords=("offset points", "data"), **look)


def curves_in_legend(found: Mapping, kinds: Iterable[str], lines: Mapping) -> list[tuple[str, dict]]:
    """What the legend of curves explains: groups, kinds of lines, and nulls."""
    drawn = [(title(key), dict(color=ink, marker=None if kinds else mark)) for key, (ink, mark) in found.items()]
    drawn += [(str(kind), dict(color=INK, linestyle=one)) for kind, one in zip(kinds, ("-", "--", ":"), strict=False)]
    return drawn + [(name, dict(color=ink, linestyle=line)) for name, ink, line in lines.values()]


def legend(figure: plt.Figure, drawn: Sequence[tuple[str, Mapping]], **box: object) -> None:
    """One legend above all, of names and looks, in as few rows as there is room for, and in a box if one is given."""
    if not drawn:
        return
    widths = [0.085 * len(name) + 0.75 for name, _ in drawn]  # inches
    room = figure.get_figwidth()
    rows = 1 if sum(widths) <= room else -(-len(drawn) // max(1, int(room / max(widths))))
    figure.set_figheight(figure.get_figheight() + 0.25 * rows)
    handles = [plt.Line2D([], [], label=name, **look) for name, look in drawn]
    figure.legend(handles=handles, loc="outside upper center", ncols=-(-len(drawn) // rows), **box)


def in_words(table: pd.DataFrame, by: str = "task") -> str:
    """The groups behind a picture and how many seeds each has, for its caption: "RTE; 2 seeds per task"."""
    if not len(table):
        return MISSING
    seeds = int(table.groupby(by)["seed"].nunique().max())
    return f"{listed(map(title, table[by].unique()))}; {counted(seeds, 'seed')} per {by}"


def controls_in_words(table: pd.DataFrame, y: str, by: str = "task") -> str:
    """The controls beside curves, as the end of a caption: " Controls: moved at random, shuffled labels (RTE)."."""
    said = []
    for column, (name, *_) in null_lines(table, y, {}).items():
        groups = table.loc[table[column].notna(), by].unique()
        some = len(groups) < table[by].nunique()
        said.append(name + f" ({listed(map(title, groups))})" * some)
    return f" Controls: {', '.join(said)}." if said else ""


def table_of_models(models: pd.DataFrame, by: Sequence[str] = ("task",)) -> pd.DataFrame:
    """Of `checkpoints.tables.models`, one row per task, or whatever models are told apart by: hyperparameters, the
    training data in words, mean score, half of its range over seeds (`score_spread`), null rate, and how many diverged.
    """
    firsts = ("learning_rate", "batch_size", "epochs", "examples", "training_data", "null_rate")
    of_models = models.groupby(list(by), sort=False)
    columns = {name: (name, "first") for name in firsts} | {"diverged": ("diverged", "sum"), "score": ("score", "mean")}
    table = of_models.agg(**columns)
    table["score_spread"] = (of_models["score"].max() - of_models["score"].min()) / 2
    table["training_data"] = list(map(_trained_on, table["examples"], table["training_data"]))
    return table.rename(columns={"examples": "training_examples"}).reset_index()


def _trained_on(examples: int, at_hand: str) -> str:
    """How many examples a model was trained on, of those at hand: "toy world, 1,500 of 4,000 examples"."""
    if f" {examples:,} " in f" {at_hand}":
        return at_hand
    source, _, size = at_hand.partition(", ")
    of_all = f"{examples:,} of {size.split(' of ')[-1]}"
    return of_all if source in ("whole", "sample") else f"{source}, {of_all}"


def counted(number: int, noun: str) -> str:
    """A number of things, in words: "3 pairs", "one seed"."""
    return f"one {noun}" if number == 1 else f"{number:,} {noun}s"


def dots(
    table: pd.DataFrame, value: str, row: str, by: str, *, label: str, line: float | None = None, mean: bool = False
) -> Drawing | Missing | pd.DataFrame:
    """One dot per observation, one row per group from the top down, with the values of `by` side by side in it, a
    dashed grey `line`, and a black bar at the `mean` of each row. A table that is missing or empty is given back.
    """
    import seaborn as sns

    if not len(table):
        return table
    groups, named = list(dict.fromkeys(table[by])), table.assign(**{row: table[row].map(title)})
    found, rows = looks(groups), list(dict.fromkeys(named[row]))
    figure, axes = plt.subplots(figsize=(WIDTH, 0.5 * len(rows) + 0.8), layout="constrained")
    if line is not None:
        axes.axvline(line, color=GREY, linestyle="--", linewidth=1.4)
    placed, drawn = dict(x=value, y=row, order=rows, ax=axes), []
    for key, part in named.groupby(by, sort=False):
        colour, marker = found[key]
        look = dict(palette=[colour] * len(groups), edgecolor=colour, linewidth=1.3, marker=marker, size=6)
        aside = dict(hue=by, hue_order=groups, dodge=len(groups) > 1, jitter=False, legend=False)
        sns.stripplot(part, **placed, **look, **aside)
        drawn.append((title(key), dict(color=colour, marker=marker, linestyle="none")))
    if mean:
        bar = dict(marker="|", markersize=26, markeredgewidth=2.5, color="black", linestyle="none")
        sns.pointplot(named, errorbar=None, **placed, **bar)
    legend(figure, drawn)
    for place in range(1, len(rows)):
        axes.axhline(place - 0.5, color="#E5E5E5", linewidth=0.8, zorder=0)
    axes.set(xlabel=label, ylabel="", ylim=(len(rows) - 0.5, -0.5))
    said = [f"Dots of {label}."]
    for name, of_row in named.groupby(row, sort=False):
        means = of_row.groupby(by, sort=False)[value].mean().dropna()
        words = [f"{title(key)} {printed(mean, '.3f')}" for key, mean in means.items()]
        said.append(f"{name}: {', '.join(words)}.")
    return Drawing(figure, table, " ".join(said))


@dataclass(frozen=True)
class Cells:
    """How the cells of heat maps are drawn.

    Attributes:
        written: the format of the number in each cell; a missing value is a dash, or blank in an empty upper triangle.
        bold, framed: which numbers are bold, which cells framed; in one matrix.
        peaks: a white dot with a dark rim in the one greatest cell of each row without missing values.
        ticks: of the bar, with their words.
    """

    written: str = ""
    bold: pd.DataFrame | None = None
    framed: pd.DataFrame | None = None
    peaks: bool = False
    ticks: Mapping[float, str] = field(default_factory=dict)


def heat_maps(
    matrices: Mapping[str, pd.DataFrame],
    table: pd.DataFrame,
    *,
    label: str,
    x_label: str = "",
    limits: tuple[float, float] = (0.0, 1.0),
    cells: Cells = Cells(),  # noqa: B008
) -> Drawing | Missing | pd.DataFrame:
    """One shaded table per matrix, all with the same shades, which the bar above explains.

    Args:
        matrices: title to values, with the names of rows and columns that are drawn, and the same rows in all.
        limits: of the shades; below zero, they are light in the middle and dark at both ends.
    """
    if not len(table) or not matrices:
        return table[:0]
    height = 0.33 * len(next(iter(matrices.values()))) + 0.6
    figure, grid = panel_grid(len(matrices), height, above=0.8, sharey=True)
    said = [f"Shaded tables of {label}." if len(matrices) > 1 else f"A shaded table of {label}."]
    for axes, (name, matrix) in zip(grid, matrices.items(), strict=True):
        draw_cells(axes, matrix.astype(float), limits, cells)
        axes.set_title(name, fontweight="bold")
        known = matrix.astype(float).dropna(how="all")
        most = zip(known.index, known.idxmax(axis=1), known.max(axis=1), strict=True)
        words = "; ".join(f"{row} most at {where} ({printed(value, '.2f')})" for row, where, value in most)
        said.append(f"{name}: {words}." if name else f"{words}.")
    figure.supxlabel(x_label, fontsize="medium")
    values = np.concatenate([matrix.to_numpy(float).ravel() for matrix in matrices.values()])
    draw_bar(figure, grid, label, limits, cells.ticks, values)
    return Drawing(figure, table, " ".join(said))


def draw_bar(figure: plt.Figure, axes: list, label: str, limits: tuple, ticks: Mapping, values: np.ndarray) -> None:
    """The bar of shades, with a tip and ≤ or ≥ at an end beyond which values lie."""
    below, above = np.nanmin(values) < limits[0] - 1e-9, np.nanmax(values) > limits[1] + 1e-9
    extend = ("neither", "min", "max", "both")[below + 2 * above]
    placed = dict(location="top", shrink=0.6, aspect=30, label=label, extend=extend)
    bar = figure.colorbar(axes[0].collections[0], ax=axes, **placed)
    ticks = dict(ticks) or {place: printed(place, ".3g") for place in np.linspace(*limits, 3)}
    names = list(ticks.values())
    names[0], names[-1] = ("≤ " if below else "") + names[0], ("≥ " if above else "") + names[-1]
    bar.set_ticks(list(ticks), labels=names)
    bar.minorticks_off()
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)


def draw_cells(axes: plt.Axes, matrix: pd.DataFrame, limits: tuple[float, float], cells: Cells) -> None:
    """One shaded table."""
    import seaborn as sns

    texts = matrix.map(lambda value: cells.written.format(value).replace("-", "−")) if cells.written else None
    shades = dict(vmin=limits[0], vmax=limits[1], cmap=SIGNED if limits[0] < 0 else SHADES, cbar=False)
    drawn = dict(annot=texts, fmt="", annot_kws=dict(fontsize=10), linewidths=0.8, linecolor="white")
    axes.set_facecolor("white" if cells.written else PALE)
    sns.heatmap(matrix, ax=axes, **shades, **drawn)
    missing, above = matrix.isna().to_numpy(), np.triu(np.ones(matrix.shape, dtype=bool), 1)
    blank = above & missing[above].all()
    for row, column in np.argwhere(missing & ~blank) if cells.written else ():
        axes.text(column + 0.5, row + 0.5, MISSING, ha="center", va="center", fontsize=10)
    for text in axes.texts if cells.bold is not None else ():
        column, row = map(int, text.get_position())
        text.set_fontweight("bold" if cells.bold.iloc[row, column] else "normal")
    for row, column in np.argwhere(cells.framed.to_numpy()) if cells.framed is not None else ():
        axes.add_patch(plt.Rectangle((column + 0.06, row + 0.06), 0.88, 0.88, fill=False, color="black"))
    if cells.peaks:
        peaks = np.isclose(matrix, matrix.max(axis=1).to_numpy()[:, None]) & ~missing.any(axis=1, keepdims=True)
        whole = np.flatnonzero(peaks.sum(axis=1) == 1)
        places = peaks[whole].argmax(axis=1) + 0.5
        axes.plot(places, whole + 0.5, "o", color="white", markeredgecolor=INK, markeredgewidth=0.8, markersize=5.5)
    axes.set(xlabel="", ylabel="")
    axes.grid(False)
    axes.tick_params(length=0, labelrotation=0)
    if not pd.api.types.is_numeric_dtype(matrix.columns):
        plt.setp(axes.get_xticklabels(), rotation=45, ha="right", rotation_mode="anchor")


# --- surfaces ---------------------------------------------------------------------------------------------------------

FLOOR, CONTOURS = 0.0125, 15  # a lower loss has the colour of this one; at most so many contours
DISC = dict(marker="o", color="white", markeredgecolor="black", markersize=8, linestyle="none", zorder=5)
STAR = DISC | dict(marker="*", markersize=13)
RIM = dict(color="white", linestyle="--", linewidth=1.6)
WALK = dict(color="#B8BEC9", linewidth=1.6, linestyle="--")
IN_PLANE = dict(color="white", linewidth=1.4, linestyle=":", marker="s", markersize=4, markeredgecolor="black")
PATH = dict(color="#FF6B6B", linewidth=2, marker="o", markersize=4, markeredgecolor="black", markeredgewidth=0.4)
# Folded, and drawn by `_static/surface.js`; a bare notebook has the still picture above.
TURNABLE = """<details class="turnable"><summary>Turn it: each surface in three dimensions</summary>
<label>Show <select>{options}</select></label>
<canvas class="shades" width="640" height="420" tabindex="0" role="img" aria-label="{label}"></canvas>
<script type="application/json">{content}</script></details>"""


@dataclass(frozen=True)
class Contours:
    """What surfaces have beside their shades.

    Attributes:
        marks: name to the place (α, β) of a disc, and of a star.
        rims: dashed, where the loss is by so many nats above that at a mark, by the mark's name.
        paths: states of trainings by panel: `alpha`, `beta`, `plane_alpha`, `plane_beta`, and `control`, a random walk.
        inset: those of these states that are enlarged in a corner.
        turnable: whether a reader can turn the surfaces, too.
    """

    marks: Mapping[str, tuple[float, float]]
    rims: Mapping[str, float] = field(default_factory=dict)
    paths: pd.DataFrame | None = None
    inset: pd.DataFrame | None = None
    turnable: bool = False


def surfaces(
    cells: pd.DataFrame, value: str, panels: str, *, label: str, table: pd.DataFrame, contours: Contours
) -> Drawing | Missing | pd.DataFrame:
    """One shaded plane per panel, all with the same shades, which the bar above explains.

    Args:
        cells: one row per cell and panel: `alpha`, `beta`, the value and its `<value>_standard_error`; a value that is
            not finite is a cross.
        label: of the value, with its unit.
    """
    if not len(cells):
        return cells
    of_panels = cells.groupby(panels, sort=False)
    grids = {name: rows.pivot(index="beta", columns="alpha", values=value) for name, rows in of_panels}
    levels = contour_levels(cells[value].to_numpy(float), cells[f"{value}_standard_error"].to_numpy(float))
    figure, axes = panel_grid(len(grids), 2.55 if len(grids) > 1 else 4.2, above=1.45, sharex=True, sharey=True)
    said = []
    for place, (name, grid) in zip(axes, grids.items(), strict=True):
        place.set_title(name, fontsize=10)
        states = None if contours.paths is None else contours.paths[contours.paths[panels] == name]
        draw_surface(place, grid, levels, contours, states)
        if contours.inset is not None:
            draw_inset(place, grid, levels, contours, states)
        heights = (f"{mark} {grid.loc[beta, alpha]:.2f}" for mark, (alpha, beta) in contours.marks.items())
        said.append(f"{name}: {', '.join(heights)}")
    finish_surfaces(figure, axes, levels, label, contours)
    alt = f"Surfaces of {label}. {'; '.join(said)}."
    after = turnable(grids, contours.marks, alt) if contours.turnable else ""
    return Drawing(figure, table, alt, after)


def contour_levels(values: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Contours that hold all finite values, in equal ratios from `FLOOR` on, no closer than a cell's standard error."""
    finite = np.isfinite(values)
    values, errors = values[finite], np.nan_to_num(errors[finite])
    low = max(values.min(), FLOOR)
    high = max(values.max(), 1.05 * low)
    closest = np.log1p(np.median(errors / values.clip(FLOOR)))
    steps = min(CONTOURS - 1, np.log(high / low) // max(closest, 1e-9))
    return np.geomspace(low, high, int(max(steps, 1)) + 1)


def draw_surface(axes: plt.Axes, grid: pd.DataFrame, levels: np.ndarray, contours: Contours, states) -> None:
    """Shades between contours, thin lines on them, the rim of a basin, marks and paths of one plane."""
    values, places = grid.to_numpy(float), (grid.columns, grid.index)
    shown = np.ma.masked_invalid(values.clip(levels[0], levels[-1]))
    axes.contourf(*places, shown, levels, norm=BoundaryNorm(levels, plt.get_cmap(SURFACE).N), cmap=SURFACE)
    axes.contour(*places, shown, levels, colors="white", linewidths=0.4, alpha=0.5)
    for mark, rise in contours.rims.items():
        alpha, beta = contours.marks[mark]
        height = grid.loc[beta, alpha]
        if np.isfinite(height):
            axes.contour(*places, shown, [height + rise], colors="white", linestyles="--", linewidths=1.6)
    rows, columns = np.nonzero(~np.isfinite(values))
    axes.plot(grid.columns[columns], grid.index[rows], "x", color="#444444", markersize=4)
    limits = axes.get_xlim(), axes.get_ylim()  # a path that leaves the surface does not widen its axes
    for place, mark in zip(contours.marks.values(), (DISC, STAR), strict=False):
        axes.plot(*place, **mark)
    if states is not None:
        draw_paths(axes, states)
    axes.set(xlim=limits[0], ylim=limits[1], aspect="equal")
    axes.grid(False)
    axes.tick_params(labelsize=9)


def draw_paths(axes: plt.Axes, states: pd.DataFrame) -> None:
    """The states of a training, where they lie in the plane, and a random walk with steps of the same lengths."""
    if (states["control"] == TWIN).any():
        shares = np.linspace(0, 1, 101)  # between its states it goes on along the same arc
        axes.plot(shares, np.sqrt(shares * (1 - shares)), **WALK)
    states = states[states["control"] == ""]
    axes.plot(states["plane_alpha"], states["plane_beta"], **IN_PLANE)
    axes.plot(states["alpha"], states["beta"], **PATH)


def draw_inset(axes: plt.Axes, grid: pd.DataFrame, levels: np.ndarray, contours: Contours, states) -> None:
    """The neighbourhood of some states, enlarged in the lower left corner."""
    inset = axes.inset_axes([0.03, 0.03, 0.44, 0.44])
    draw_surface(inset, grid, levels, contours, states)
    places = contours.inset[["alpha", "beta"]]
    middle, reach = (places.min() + places.max()) / 2, 0.6 * float((places.max() - places.min()).max() or 0.1)
    inset.set(xlim=middle["alpha"] + np.array([-reach, reach]), ylim=middle["beta"] + np.array([-reach, reach]))
    inset.set(xticks=[], yticks=[])
    for spine in inset.spines.values():
        spine.set(visible=True, color="white", linewidth=1.2)
    axes.indicate_inset_zoom(inset, edgecolor="white", alpha=1)


def finish_surfaces(figure: plt.Figure, axes: list, levels: np.ndarray, label: str, contours: Contours) -> None:
    """Names of the axes, one bar of shades, and one legend of what is drawn on the panels."""
    figure.supxlabel("α, along δ₁", fontsize="medium")
    figure.supylabel("β, along δ₂", fontsize="medium")
    low, high = levels[0], levels[-1]
    locator = MaxNLocator(4) if high < 5 * low else LogLocator(subs=(1, 2, 5))
    ticks = {tick: f"{tick:.3g}" for tick in locator.tick_values(low, high) if low <= tick <= high}
    draw_bar(figure, axes, label, (low, high), ticks, levels)
    drawn = dict(zip(contours.marks, (DISC, STAR), strict=False))
    drawn |= {f"{rise:g} nats above the {mark}": RIM for mark, rise in contours.rims.items()}
    if contours.paths is not None:
        drawn |= {r"the paper's $(d^\alpha, d^\beta)$": PATH, "in the plane": IN_PLANE}
        drawn |= {"random walk": WALK} if (contours.paths["control"] == TWIN).any() else {}
    # White marks would not be seen on white.
    box = dict(facecolor="#4A5468", edgecolor="none", framealpha=1, labelcolor="white", frameon=True)
    legend(figure, list(drawn.items()), fontsize=10, **box)


def turnable(grids: Mapping[str, pd.DataFrame], marks: Mapping[str, tuple[float, float]], label: str) -> str:
    """A piece of a page in which a reader turns surfaces of the logarithm of the value, all on one scale."""
    logs = {name: np.log10(grid.where(np.isfinite).clip(FLOOR).to_numpy(float)) for name, grid in grids.items()}
    low = min(np.nanmin(log) for log in logs.values())
    reach = max(np.nanmax(log) for log in logs.values()) - low or 1.0
    drawn = []
    for name, grid in grids.items():
        heights = ((logs[name] - low) / reach).round(3).astype(object)
        heights[np.isnan(logs[name])] = None
        rows, columns = grid.index, grid.columns
        places = {mark: (rows.get_loc(beta), columns.get_loc(alpha)) for mark, (alpha, beta) in marks.items()}
        axes = {"alphas": columns.to_numpy().round(3).tolist(), "betas": rows.to_numpy().round(3).tolist()}
        drawn.append(axes | {"heights": heights.tolist(), "marks": places})
    content = {"surfaces": drawn, "shades": [to_hex(shade) for shade in plt.get_cmap(SURFACE)(np.linspace(0, 1, 40))]}
    options = "".join(f"<option>{escape(name)}</option>" for name in grids)
    written = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return TURNABLE.format(options=options, label=escape(label), content=written)


def first_seed(table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The rows of the first seed, for a figure of one model, and words on the others for its caption."""
    first, count = table["seed"].min(), table["seed"].nunique()
    return table[table["seed"] == first], f" Seed {first}, the first of {count}." if count > 1 else ""


# --- exhibits ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exhibit:
    """A picture, or a table, with its caption.

    Attributes:
        key, title: paper and number, `hao2020-figure-1`, and `Figure 1`.
        table: tidy, one observation per row.
        columns, formats: of a table, see `table_html`.
        shown: what the page prints for a table of another shape than the tidy one.
    """

    key: str
    title: str
    caption: str
    table: pd.DataFrame
    drawing: Drawing | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[str, str | Callable] = field(default_factory=dict)
    shown: pd.DataFrame | None = None

    @functools.cached_property
    def html(self) -> str:
        """The element of a page, with the key as its address."""
        if self.drawing is None:
            table = self.table if self.shown is None else self.shown
            body = table_html(table, f"{self.title}. {self.caption}", self.columns, self.formats)
            return f'<div class="exhibit" id="{self.key}">{body}</div>'
        caption = f"<figcaption><b>{escape(self.title)}.</b> {escape(self.caption, quote=False)}</figcaption>"
        return f'<figure class="exhibit" id="{self.key}">{self.drawing.html}{caption}</figure>{self.drawing.after}'

    def save(self, folder: Path) -> None:
        """Write ``<key>.parquet``, and of a picture ``.png``."""
        self.table.to_parquet(folder / f"{self.key}.parquet", index=False)
        if self.drawing is not None:
            (folder / f"{self.key}.png").write_bytes(self.drawing.png)
            plt.close(self.drawing.figure)


def table_html(table: pd.DataFrame, caption: str, columns: Mapping = {}, formats: Mapping = {}) -> str:
    """A table with its caption; it scrolls in its own box where the page is narrow. What the first column says in
    several rows in turn is printed once, beside all of them. Numbers stand to the right, text to the left.

    Args:
        columns: those printed, in this order, each with its header; all when empty.
        formats: by column, how it is printed: a format of its values (`"{:.3f}"`), filled from the row by the names of
            its columns (`"{score:.3f} ± {spread:.3f}"`), or a function of a value that is not missing.
    """
    shown = columns or {name: str(name) for name in table.columns}
    space = "\N{NO-BREAK SPACE}" if len(shown) < 12 else " "  # a spread stays on its number's line where there is room
    head, by_column, lines, records = "", [], [], table.to_dict("records")
    for name, header in shown.items():
        cells = [_cell(formats.get(name), row[name], row) for row in records]
        side = ' class="number"' if all(map(NUMBER.match, cells)) else ""
        head += f'<th{side} scope="col">{escape(header)}</th>'
        by_column.append([f"<td{side}>{escape(cell).replace(' ± ', f'{space}±{space}')}</td>" for cell in cells])
    for first, rows in itertools.groupby(zip(*by_column, strict=True), key=lambda row: row[0]):
        rest = ["".join(row[1:]) for row in rows]
        if len(rest) > 1:
            first = first.replace("<td", f'<th scope="rowgroup" rowspan="{len(rest)}"').replace("</td>", "</th>")
        lines += [first + rest[0], *rest[1:]]
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return (
        '<div class="exhibit-table" tabindex="0"><table class="table exhibit">'
        f"<caption>{escape(caption, quote=False)}</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


class Typographic(string.Formatter):
    """Formats numbers with minus signs, and missing values as dashes."""

    def format_field(self, value: object, format_spec: str) -> str:
        if pd.api.types.is_scalar(value) and pd.isna(value):
            return MISSING
        return printed(value, format_spec) if isinstance(value, numbers.Number) else format(value, format_spec)


def _cell(form: str | Callable | None, value: object, row: Mapping) -> str:
    """A value as a page prints it, with what else its format takes from its row."""
    missing = pd.api.types.is_scalar(value) and pd.isna(value)
    if callable(form):
        return MISSING if missing else str(form(value))
    usual = "{:.6f}" if isinstance(value, float) else "{}"
    text = Typographic().vformat(form or usual, (value,), row)
    # Not "– (– to –)"; what the row has beside, such as a paper's number, is printed.
    return MISSING if missing and not any(map(str.isdigit, text)) else text


def printed(value: float, form: str = "g") -> str:
    """A number with a minus sign that is one: "−0.30"."""
    return f"{value:{form}}".replace("-", "−")
