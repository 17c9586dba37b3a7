"""The house style of pictures: one colour and one marker per task in the whole book, safe for colour-blind readers,
on white.

Colours are Okabe and Ito's; a marker repeats what the colour says, for print in grey.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import matplotlib
import numpy as np
from matplotlib import colormaps
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from fivelenses import catalogue, tasks

TASK_COLOURS = {
    "mnli": "#0072B2",
    "rte": "#D55E00",
    "sst2": "#009E73",
    "mrpc": "#CC79A7",
    "qnli": "#E69F00",
    "cola": "#56B4E9",
    "squad": "#7F3C8D",
    "parsing": "#44AA99",
    "trec": "#80650D",
    "pos": "#332288",
    "dep": "#AA4499",
    "ps-role": "#117733",
    "ps-fxn": "#882255",
}
TASK_MARKERS = {"mnli": "o", "rte": "s", "sst2": "^", "mrpc": "D", "qnli": "v", "cola": "P", "squad": "X", "trec": "*"}
TASK_MARKERS |= {"parsing": "d", "pos": "p", "dep": "h", "ps-role": "<", "ps-fxn": ">"}
# For tasks of the reader's own, in the order in which the store came to know them.
OWN_COLOURS = ("#B22222", "#1F4E79", "#6B8E23", "#C71585", "#5F4B32", "#00868B", "#9932CC", "#B8860B")
OWN_MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # of another number, so that the pairs repeat late
# Colours for curves that are no task: pairs of data sets, parts of a model. Dark to light, so that order shows in
# grey too.
SEQUENCE = ("#332288", "#117733", "#CC6677", "#4499CC", "#B5922A")
SEQUENCE_MARKERS = ("o", "s", "^", "D", "v")
LIGHTEST = 0.67  # of the shades of groups in an order: a name in a lighter one is hard to read on white
NULL_COLOUR = "#777777"
WIDTH = 7.2  # inches: a page's text width
MAX_TICKS = 13  # for which an axis has room

matplotlib.rcParams.update(
    {
        "figure.dpi": 110,
        "savefig.dpi": 130,
        "figure.facecolor": "white",
        "savefig.facecolor": "white",
        "font.size": 11,
        "axes.titlesize": 11,
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#E5E5E5",
        "grid.linewidth": 0.8,
        "lines.linewidth": 1.8,
        "lines.markersize": 5,
        "legend.frameon": False,
        "svg.fonttype": "none",
        # Element names inside an SVG come from this salt, not from chance: equal figures are equal files.
        "svg.hashsalt": "fivelenses",
    }
)


@dataclass(frozen=True)
class Looks:
    """How the groups of a picture look, by their values in its table: names in drawing order, colours, markers (or
    none).
    """

    names: Mapping
    colours: Mapping
    markers: Mapping = field(default_factory=dict)


def task_colour(name: str) -> str:
    """The colour that a task has in the whole book, black for what is no task.

    Example:
        >>> task_colour("rte"), task_colour("base")
        ('#D55E00', '#000000')
    """
    return TASK_COLOURS.get(name) or _of_own(name, OWN_COLOURS, "#000000")


def task_marker(name: str) -> str:
    """The marker that a task has in the whole book."""
    return TASK_MARKERS.get(name) or _of_own(name, OWN_MARKERS, "o")


def _of_own(name: str, looks: Sequence[str], otherwise: str) -> str:
    own = catalogue.read_own(name)
    return otherwise if own is None else looks[own.place % len(looks)]


def looks_of_tasks(keys: Iterable[str], **names: str) -> Looks:
    """The colour and marker that each task has in the whole book; another model is black and needs a name.

    Example:
        >>> looks_of_tasks(["rte", "base"], base="pre-trained").names
        {'rte': 'RTE', 'base': 'pre-trained'}
    """
    keys = list(dict.fromkeys(keys))
    return Looks(
        {key: names.get(key) or tasks.find(key).title for key in keys},
        {key: task_colour(key) for key in keys},
        {key: task_marker(key) for key in keys},
    )


def looks_in_sequence(names: Mapping | Sequence) -> Looks:
    """Colours and markers for groups that are no tasks, dark to light; refused for more groups than there are colours.

    Example:
        >>> looks_in_sequence({500: "500 examples", 100: "100 examples"}).colours
        {500: '#332288', 100: '#117733'}
    """
    names = dict(names) if isinstance(names, Mapping) else {name: str(name) for name in names}
    if len(names) > len(SEQUENCE):
        raise ValueError(f"There are {len(SEQUENCE)} colours in sequence, and {len(names)} groups.")
    colours, markers = (dict(zip(names, looks, strict=False)) for looks in (SEQUENCE, SEQUENCE_MARKERS))
    return Looks(names, colours, markers)


def looks_in_order(names: Mapping | Sequence) -> Looks:
    """Shades from light to dark for any number of groups with an order, such as layers.

    Example:
        >>> len(set(looks_in_order(range(1, 13)).colours.values()))
        12
    """
    names = dict(names) if isinstance(names, Mapping) else {name: str(name) for name in names}
    shades = [tuple(shade) for shade in colormaps["viridis"](np.linspace(LIGHTEST, 0.0, len(names))).tolist()]
    markers = {key: "os^Dv<>ph*PX"[place % 12] for place, key in enumerate(names)}
    return Looks(names, dict(zip(names, shades, strict=True)), markers)


def label_line_ends(
    axes: Axes, x: float, ends: dict[str, tuple[float, str]], gap: float = 0.06, size: float = 10
) -> None:
    """Write a name beside the end of each curve, moved apart where they would touch.

    Args:
        axes: after the curves are drawn and its limits are final.
        x, ends: the curves' last abscissa; name to (ordinate of the curve's end, colour).
        gap, size: least distance between two names, as a fraction of the axis; of the letters, in points.
    """
    low, high = axes.get_ylim()
    least = gap * (high - low)
    placed: list[tuple[str, float]] = []
    for name, (y, _) in sorted(ends.items(), key=lambda item: item[1][0]):
        # The lowest stays clear of the axis, which would strike it through.
        placed.append((name, max(y, placed[-1][1] + least if placed else low + least / 2)))
    # Names pushed up by their neighbours move back down together, half of the way, to stay beside their curves, but not
    # into the axis.
    shift = (placed[-1][1] - ends[placed[-1][0]][0]) / 2 if placed else 0.0
    shift = max(shift, placed[-1][1] - high) if placed else 0.0
    shift = max(0.0, min(shift, placed[0][1] - low - least / 2)) if placed else 0.0
    for name, y in placed:
        axes.annotate(
            name,
            (x, y - shift),
            xytext=(9, 0),
            textcoords="offset points",
            color=ends[name][1],
            va="center",
            fontsize=size,
            fontweight="bold",
            annotation_clip=False,
        )


def layer_axis(axes: Axes, layers: Iterable[int]) -> None:
    """Whole layers on the horizontal axis, every one for a shallow encoder."""
    layers = sorted(set(layers))
    step = 1 if len(layers) <= MAX_TICKS else 2 if len(layers) <= 2 * MAX_TICKS else 4
    axes.set_xticks(layers[::step])
    axes.set_xlabel("layer")


def close(figure) -> None:
    """Free a figure that has been saved."""
    plt.close(figure)
