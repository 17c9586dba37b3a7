"""The figures of Zhou and Srikumar (2022), from records: `along` is what `measure.along_training` gives."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from scipy.spatial import ConvexHull

from fivelenses.first_exhibits import style
from fivelenses.first_exhibits.exhibit import Absent, Exhibit, counted, first_seed, title
from fivelenses.first_exhibits.plots import curves
from fivelenses.lenses import directprobe
from fivelenses.papers.zhou2022.tables import APPENDIX_E, CONTROLS, IN_WORDS, controlled, short
from fivelenses.records import SHARED, TUNED

SHOWN = 3  # labels whose distance grows most, and least
GREW = style.Looks(
    {"most": "grows most", "least": "grows least"}, {"most": "#0072B2", "least": "#D55E00"}, {"most": "o", "least": "s"}
)

Along = Mapping[str, pd.DataFrame]


def sketch_points() -> pd.DataFrame:
    """Two plane sets of points with two labels: one that a line separates, and one that none does."""
    generator = np.random.default_rng(3)

    def cloud(x: float, y: float, count: int) -> np.ndarray:
        return generator.normal((x, y), 0.45, (count, 2))

    straight = [(cloud(-1.3, -0.6, 14), "A"), (cloud(1.3, 0.7, 14), "B")]
    bent = [
        (cloud(-1.5, 0.0, 12), "A"),
        (cloud(1.6, 0.0, 12), "A"),
        (cloud(0.0, 1.4, 10), "B"),
        (cloud(0.0, -1.5, 10), "B"),
    ]
    parts = []
    for panel, clouds in (("separable", straight), ("not separable", bent)):
        for points, label in clouds:
            parts.append(pd.DataFrame({"panel": panel, "x": points[:, 0], "y": points[:, 1], "label": label}))
    return pd.concat(parts, ignore_index=True)


def figure_1() -> Exhibit:
    """Figure 1: what DirectProbe finds, drawn by the lens itself on points in a plane."""
    points, clustered = sketch_points(), []
    figure, panels = plt.subplots(1, 2, figsize=(style.WIDTH, 2.6), layout="constrained")
    colours, markers = {"A": style.SEQUENCE[0], "B": style.SEQUENCE[2]}, {"A": "o", "B": "s"}
    for axes, (panel, rows) in zip(panels, points.groupby("panel", sort=False), strict=True):
        plane = rows[["x", "y"]].to_numpy()
        result = directprobe.probe(plane, rows["label"].to_numpy())
        clustered.append(rows.assign(cluster=result.assignments))
        for cluster in range(result.n_clusters):
            members, label = plane[result.assignments == cluster], result.cluster_labels[cluster]
            axes.scatter(*members.T, color=colours[label], marker=markers[label], s=18, zorder=3)
            if len(members) > 2:
                corners = members[ConvexHull(members).vertices]
                axes.fill(*corners.T, facecolor=colours[label], edgecolor=colours[label], alpha=0.18, linewidth=1.5)
            axes.annotate(
                label, members.mean(axis=0), color=colours[label], fontsize=14, fontweight="bold", ha="center"
            )
        axes.set_title(f"{panel}: {result.n_clusters} clusters, {len(result.labels)} labels")
        axes.set(xticks=[], yticks=[], aspect="equal")
        axes.grid(False)
    table = pd.concat(clustered, ignore_index=True)
    caption = (
        "DirectProbe on synthetic points. Left: one cluster per label, a line separates them. Right: more clusters "
        "than labels, no line does."
    )
    alt = (
        "Two panels of points in a plane with convex hulls: left one of each label, right two of A, one on either side "
        "of B's."
    )
    return Exhibit("zhou2022-figure-1", "Figure 1", table, caption, alt, figure)


def _of_tuned(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the fine-tuned models, with the state before training."""
    table = controlled(table)
    return table[table["control"].isin([TUNED, SHARED])]


def _with_controls(rows: pd.DataFrame, table: pd.DataFrame, measure: str) -> tuple[pd.DataFrame, dict[str, str]]:
    """Rows of fine-tuned models with columns of what the controls in `table` show, a mean per task and step, and the
    names of these columns.
    """
    table, nulls = controlled(table), {}
    for control, column in CONTROLS.items():
        controls = table[table["control"].isin([control, SHARED])]
        controls = controls[controls["task"].isin(table.loc[table["control"] == control, "task"])]
        if len(controls):
            means = controls.groupby(["task", "step"])[measure].mean().rename(column)
            rows, nulls[column] = rows.join(means, on=["task", "step"]), IN_WORDS[column]
    return rows, nulls


def _of_nulls(nulls: Mapping[str, str], what: str) -> str:
    """What the lines of the controls are, for a caption; nothing without any."""
    names = {
        "twin": "dash-dotted in black, the same after moving each matrix as far in a random direction",
        "shuffled": "dash-dotted in grey, after training on shuffled labels",
    }
    words = "; ".join(names[name] for name in nulls)
    return f" {words[0].upper()}{words[1:]} ({what})." if words else ""


def _named_curves(rows: pd.DataFrame) -> pd.DataFrame:
    """One task's rows with `grows`: `most` or `least` for the labels that grow so from the first step to the last,
    empty for the others.
    """
    means = rows.pivot_table(index="step", columns="label", values="min_distance")
    order = (means.iloc[-1] - means.iloc[0]).sort_values().index
    count = min(SHOWN, len(order) // 2)
    grows = dict.fromkeys(order[-count:], "most") | dict.fromkeys(order[:count], "least")
    return rows.assign(grows=rows["label"].map(grows).fillna(""))


def _distance_figure(
    along: Along, tasks: Sequence[str], number: int, encoder: str, as_in: str = ""
) -> Exhibit | Absent:
    key, name, distances = f"zhou2022-figure-{number}", f"Figure {number}", along["distances"]
    every = distances[(distances["layer"] == distances["layer"].max()) & distances["task"].isin(tasks)]
    last = _of_tuned(every)
    tasks = [task for task in tasks if (last["task"] == task).any()]
    if not tasks:
        return Absent(key, name, "none of its tasks is followed along training")
    table = pd.concat([_named_curves(rows) for _, rows in last.groupby("task", sort=False)], ignore_index=True)
    table, nulls = _with_controls(table, every, "min_distance")
    drawn = table[table["grows"] != ""]
    titles = {task: title(task) for task in tasks}
    panels = dict(col="task", titles=titles, unit="label", label="ends", height=3.2, x="step", x_label="step")
    panels["nulls"] = nulls
    figure = curves(drawn, "min_distance", "grows", GREW, "least distance to another label", **panels)
    sentences = []
    for task in tasks:
        means = drawn[drawn["task"] == task].pivot_table(
            index="step", columns=["grows", "label"], values="min_distance"
        )
        change = means.iloc[-1] - means.iloc[0]
        ends = [f"{label[1]} from {means[label].iloc[0]:.2f} to {means[label].iloc[-1]:.2f}"
                for label in (change.idxmax(), change.idxmin())]  # fmt: skip
        sentences.append(f"{titles[task]}: {', '.join(ends)}")
    seeds = table["seed"].nunique()
    caption = as_in or (
        f"Least distance of a label to any other along fine-tuning, last layer of {short(encoder)} "
        f"({counted(seeds, 'seed')}{', their mean' if seeds > 1 else ''}): the three labels that grow most (blue, "
        "circles) and the three that grow least (orange, squares), in units of the hidden states."
    )
    caption += _of_nulls(nulls, "mean over all labels")
    return Exhibit(key, name, table, caption, f"Curves of distance over steps. {'; '.join(sentences)}.", figure)


def figure_2(along: Along, encoder: str) -> Exhibit | Absent:
    """Figure 2: least distances along training, PS-role and POS."""
    return _distance_figure(along, ("ps-role", "pos"), 2, encoder)


def figure_6(along: Along, encoder: str) -> Exhibit | Absent:
    """Figure 6 (Appendix D): as Figure 2, all followed tasks."""
    return _distance_figure(
        along, tuple(along["distances"]["task"].unique()), 6, encoder, "As Figure 2, for all tasks."
    )


def _first_task(table: pd.DataFrame) -> str:
    """The task that Figures 3 and 5 show: POS where it is followed."""
    return "pos" if (table["task"] == "pos").any() else table["task"].iloc[0]


def figure_3(along: Along, encoder: str) -> Exhibit:
    """Figure 3: the paths of three labels' centroids of the first seed, first layer against last."""
    paths, task = along["paths"], _first_task(along["paths"])
    paths, of_seeds = first_seed(paths[paths["task"] == task])
    paths = paths.reset_index(drop=True)
    layers = sorted(paths["layer"].unique())
    # The only layer of an encoder is its first and its last.
    shape = dict(figsize=(style.WIDTH, 3.6), layout="constrained", squeeze=False)
    figure, (panels,) = plt.subplots(1, len(layers), **shape)
    sentences = []
    for axes, layer in zip(panels, layers, strict=True):
        for place, (label, path) in enumerate(paths[paths["layer"] == layer].groupby("label", sort=False)):
            colour, marker = style.SEQUENCE[place], style.SEQUENCE_MARKERS[place]
            axes.plot(path["x"], path["y"], color=colour, linewidth=1.2, alpha=0.7)
            axes.scatter(
                path["x"], path["y"], color=colour, marker=marker, s=np.linspace(12, 60, len(path)), label=label
            )
            far = float(np.hypot(*(path[["x", "y"]].iloc[-1] - path[["x", "y"]].iloc[0])))
            sentences.append(f"{label} in layer {layer} moves {far:.2f}")
        axes.set_title(f"layer {layer}")
        axes.set_xlabel("first principal component")
        axes.set_aspect("equal", adjustable="datalim")
    panels[0].set_ylabel("second principal component")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    caption = (
        f"Paths of the centroids of the three closest labels of {title(task)} along fine-tuning, {short(encoder)}: "
        f"markers grow from the first state to the last. Each layer has its own components and scale.{of_seeds}"
    )
    alt = f"Paths in a plane. {'; '.join(sentences)}."
    return Exhibit("zhou2022-figure-3", "Figure 3", paths, caption, alt, figure)


def figure_4(along: Along, encoder: str) -> Exhibit:
    """Figure 4: similarity of every other layer to itself before training, along training."""
    every = along["similarities"]
    table, last = _of_tuned(every).reset_index(drop=True), every["layer"].max()
    table, nulls = _with_controls(table, every[every["layer"] == last], "similarity")
    titles = {task: title(task) for task in table["task"].unique()}
    looks = style.looks_in_order({layer: f"layer {layer}" for layer in sorted(table["layer"].unique())})
    panels = dict(col="task", titles=titles, sharey=True, label="ends", missing="not separable", height=3)
    panels["nulls"] = nulls
    figure = curves(
        table, "similarity", "layer", looks, "similarity to itself before", x="step", x_label="step", **panels
    )
    known = table.dropna(subset="similarity").groupby(["task", "layer", "step"], sort=False)["similarity"].mean()
    known = known.groupby(["task", "layer"], sort=False).last()
    sentences = [f"{titles[task]}, layer {layer}: {end:.2f} at the end" for (task, layer), end in known.items()]
    caption = (
        f"Similarity of every other layer of {short(encoder)} to itself before fine-tuning (Pearson correlation of the "
        "distances between labels). A layer is missing where planes do not separate its labels, before or at that "
        f"step. {_what_was_followed(table)}{_of_nulls(nulls, f'layer {last}')}"
    )
    return Exhibit("zhou2022-figure-4", "Figure 4", table, caption, f"Curves. {'; '.join(sentences)}.", figure)


def _what_was_followed(similarities: pd.DataFrame) -> str:
    """Of which points planes are said to separate the labels."""
    if "points" not in similarities.columns:
        return "We follow a sample of the training points, or all of them."
    sizes = similarities.groupby("task", sort=False)[["points", "all_points"]].first().itertuples()
    amounts: dict[str, list[str]] = {}
    for row in sizes:
        whole = row.points == row.all_points
        amount = f"all {row.points:,}" if whole else f"{row.points:,} of {row.all_points:,}"
        amounts.setdefault(amount, []).append(title(row.Index))
    followed = ", ".join(f"{amount} in {' and '.join(tasks)}" for amount, tasks in amounts.items())
    return f"Training points followed: {followed}."


def _name_farthest(axes: Axes, rows: pd.DataFrame, reach: float) -> None:
    """Name the labels that moved most, at the side of a panel that has fewer points, with lines to their points."""
    # Where names stand; of two sides as free there, the one with fewer points altogether.
    points = [[(sign * rows["x"] > beyond).sum() for beyond in (reach / 2, 0)] for sign in (-1, 1)]
    left = points[0] < points[1]
    farthest = rows.nlargest(SHOWN, "length").sort_values("y")
    # Names keep apart, and as near to the height of their points as that allows.
    heights, least = farthest["y"].clip(-0.85 * reach, 0.85 * reach).to_list(), 0.2 * reach
    for place in range(1, len(heights)):
        heights[place] = max(heights[place], heights[place - 1] + least)
    for place in range(len(heights) - 1, -1, -1):
        above = heights[place + 1] - least if place + 1 < len(heights) else 0.9 * reach
        heights[place] = min(heights[place], above)
    for row, height in zip(farthest.itertuples(), heights, strict=True):
        axes.annotate(
            row.label,
            (row.x, row.y),
            xytext=(-0.97 * reach if left else 0.97 * reach, height),
            ha="left" if left else "right",
            va="center",
            fontsize=8,
            arrowprops=dict(arrowstyle="-", color=style.NULL_COLOUR, linewidth=0.7, shrinkA=1, shrinkB=2),
        )


def _movement_figure(moved: pd.DataFrame, task: str, layers: Sequence[int], key: str, name: str, words: str) -> Exhibit:
    """Where each label's centroid of the first seed went, one panel per layer, one scale; `words` begin the caption."""
    moved = moved[moved["task"] == task]
    table, of_seeds = first_seed(_of_tuned(moved))
    table = table[table["layer"].isin(layers)].reset_index(drop=True)
    table["relative"] = table["length"] / table["spread"]
    reach = 1.15 * table[["x", "y"]].abs().to_numpy().max()
    columns = min(3, len(layers))
    rows = -(-len(layers) // columns)
    sized = dict(figsize=(style.WIDTH, 2.5 * rows + 0.3), layout="constrained", squeeze=False)
    figure, panels = plt.subplots(rows, columns, **sized, sharex=True, sharey=True)
    for axes, layer in zip(panels.flat, layers, strict=False):
        of_layer = table[table["layer"] == layer]
        axes.axhline(0, color="#CCCCCC", linewidth=0.8)
        axes.axvline(0, color="#CCCCCC", linewidth=0.8)
        axes.scatter(of_layer["x"], of_layer["y"], s=14, color=style.task_colour(task))
        _name_farthest(axes, of_layer, reach)
        axes.set_title(f"layer {layer} · {of_layer['in_two'].iloc[0]:.0%} in the plane", fontsize=9)
        axes.grid(False)
        axes.set_aspect("equal", adjustable="box")
    panels.flat[0].set(xlim=(-reach, reach), ylim=(-reach, reach))
    for axes in panels.flat[len(layers) :]:
        axes.set_visible(False)
    lengths = table.groupby("layer")["length"].mean()
    caption = f"{words}{of_seeds} {_low_against_high(moved)}"
    means = ", ".join(f"{value:.2f} in layer {layer}" for layer, value in lengths.items())
    alt = f"Scatter of label movements, one panel per layer. Mean length of a movement: {means}."
    return Exhibit(key, name, table, caption, alt, figure)


def _low_against_high(moved: pd.DataFrame) -> str:
    """How far a task's labels move in low layers against high ones: absolute, as in the paper, and relative."""
    depth = moved["layer"].max()
    low, high = moved["layer"] <= depth / 3, moved["layer"] > depth * 2 / 3
    if not low.any():
        return ""
    lengths = controlled(moved).assign(relative=moved["length"] / moved["spread"])
    lengths["control"] = lengths["control"].map(CONTROLS | {TUNED: ""})
    ratios = [lengths[third].groupby("control")[["length", "relative"]].mean() for third in (low, high)]
    ratios = ratios[0] / ratios[1]
    caption = (
        f"In the lower third of the layers labels move {ratios.loc['', 'length']:.2f} times as far as in the upper "
        f"third, relative to the distances between labels {ratios.loc['', 'relative']:.2f} times"
    )
    controls = [f"{IN_WORDS[name]} {row.length:.2f} and {row.relative:.2f}" for name, row in ratios.iterrows() if name]
    return caption + (f" ({'; '.join(controls)})" if controls else "") + "."


def figure_5(along: Along, encoder: str) -> Exhibit:
    """Figure 5: movement of the labels' centroids, every other layer."""
    moved = along["movements"]
    layers = list(range(int(moved["layer"].max()), 0, -2))[::-1]
    words = (
        f"Where fine-tuning on {title(_first_task(moved))} moves the centroid of each label in {short(encoder)}: the "
        "difference vectors of a layer on their two principal directions (not centred), all panels on one scale; the "
        "labels that move most are named. The percentage is the share of the squared movement that lies in the plane."
    )
    return _movement_figure(moved, _first_task(moved), layers, "zhou2022-figure-5", "Figure 5", words)


def figure_of_movements(along: Along, task: str, encoder: str) -> Exhibit:
    """Figures 7 to 10 (Appendix E): as Figure 5, all layers, one for each followed task; a task that the paper does not
    follow has a figure without a number.
    """
    number, moved = APPENDIX_E.get(task), along["movements"]
    key, name = (f"figure-{number}", f"Figure {number}") if number else (f"movements-{task}", title(task))
    layers = [int(layer) for layer in sorted(moved["layer"].unique())]
    words = f"As Figure 5, for {title(task)} and every layer of {short(encoder)}."
    return _movement_figure(moved, task, layers, f"zhou2022-{key}", name, words)
