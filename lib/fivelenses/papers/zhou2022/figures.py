"""The figures of Zhou and Srikumar (2022), from the tables of `measurements`."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from plotly import graph_objects
from plotly.subplots import make_subplots
from scipy.spatial import ConvexHull

from fivelenses.exhibits import style
from fivelenses.exhibits.exhibit import Exhibit
from fivelenses.exhibits.interactive import folded
from fivelenses.lenses import directprobe
from fivelenses.papers.zhou2022.tables import short, title

SHOWN = 3  # labels whose distance grows most, and least
GREW, SHRANK = "#0072B2", "#D55E00"


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
    points, found = sketch_points(), []
    figure, panels = plt.subplots(1, 2, figsize=(style.WIDTH, 3.4), layout="constrained")
    colours, markers = {"A": style.SEQUENCE[0], "B": style.SEQUENCE[2]}, {"A": "o", "B": "s"}
    for axes, (panel, rows) in zip(panels, points.groupby("panel", sort=False), strict=True):
        plane = rows[["x", "y"]].to_numpy()
        result = directprobe.probe(plane, rows["label"].to_numpy())
        found.append(rows.assign(cluster=result.assignments))
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
    table = pd.concat(found, ignore_index=True)
    caption = (
        "What DirectProbe finds, drawn by the lens itself on made points: clusters of one label whose convex hulls "
        "keep clear of those of the other. Left, one cluster a label: a line separates them. Right, more clusters than "
        "labels: no line does. A boundary has to pass between the hulls."
    )
    alt = "Two panels of points in a plane with convex hulls: left two hulls, right four, two of each label."
    return Exhibit("zhou2022-figure-1", "Figure 1", table, caption, alt, figure)


def _extreme_labels(curves: pd.DataFrame) -> tuple[list[str], list[str]]:
    """The labels whose least distance grows most, and least, from the first step to the last."""
    change = (curves.iloc[-1] - curves.iloc[0]).sort_values()
    count = min(SHOWN, len(change) // 2)
    return list(change.index[-count:][::-1]), list(change.index[:count])


def _last_layer(distances: pd.DataFrame, tasks: Sequence[str]) -> pd.DataFrame:
    table = distances[distances["task"].isin(tasks)]
    return table[table["layer"] == table["layer"].max()]


def _distance_panel(axes, rows: pd.DataFrame, task: str) -> str:
    """One task's curves; the sentence on them for the alternative text."""
    curves = rows.pivot_table(index="step", columns="label", values="min_distance", aggfunc="mean")
    most, least = _extreme_labels(curves)
    ends = {}
    for names, colour, line in ((most, GREW, "-"), (least, SHRANK, "--")):
        for name in names:
            axes.plot(curves.index, curves[name], color=colour, linestyle=line, marker="o", markersize=3)
            ends[name] = (curves[name].iloc[-1], colour)
    axes.set_title(title(task))
    axes.set_xlabel("step")
    axes.set_ylim(bottom=0)
    style.label_line_ends(axes, curves.index.max(), ends, gap=0.085)
    first, last = curves[most[0]].iloc[[0, -1]]
    low_first, low_last = curves[least[0]].iloc[[0, -1]]
    return f"{title(task)}: {most[0]} from {first:.2f} to {last:.2f}, {least[0]} from {low_first:.2f} to {low_last:.2f}"


def _distance_figure(distances: pd.DataFrame, tasks: Sequence[str], key: str, name: str, encoder: str) -> Exhibit:
    table = _last_layer(distances, tasks)
    tasks = [task for task in tasks if task in set(table["task"])]
    rows = (len(tasks) + 1) // 2
    figure, panels = plt.subplots(rows, 2, figsize=(style.WIDTH, 3.2 * rows), layout="constrained", squeeze=False)
    sentences = [
        _distance_panel(axes, table[table["task"] == task], task)
        for axes, task in zip(panels.flat, tasks, strict=False)
    ]
    for axes in panels.flat[len(tasks) :]:
        axes.set_visible(False)
    for axes in panels[:, 0]:
        axes.set_ylabel("least distance to another label")
    seeds = table["seed"].nunique()
    caption = (
        f"Least distance of a label to any other along fine-tuning, last layer of {short(encoder)} "
        f"({seeds} {'seed' if seeds == 1 else 'seeds, their mean'}): the three labels that grow most (blue, "
        "solid) and the three that grow least (orange, dashed), in units of the hidden states."
    )
    return Exhibit(key, name, table, caption, f"Curves of distance over steps. {'; '.join(sentences)}.", figure)


def figure_2(distances: pd.DataFrame, encoder: str) -> Exhibit:
    """Figure 2: least distances along training, PS-role and POS."""
    return _distance_figure(distances, ("ps-role", "pos"), "zhou2022-figure-2", "Figure 2", encoder)


def figure_6(distances: pd.DataFrame, encoder: str) -> Exhibit:
    """Figure 6 (Appendix D): as Figure 2, all followed tasks."""
    return _distance_figure(distances, tuple(distances["task"].unique()), "zhou2022-figure-6", "Figure 6", encoder)


def figure_3(paths: pd.DataFrame, task: str, encoder: str) -> Exhibit:
    """Figure 3: the paths of three labels' centroids, first layer against last."""
    layers = sorted(paths["layer"].unique())
    figure, panels = plt.subplots(1, 2, figsize=(style.WIDTH, 3.6), layout="constrained")
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
        "markers grow from the first state to the last. Each layer has its own components and scale."
    )
    alt = f"Paths in a plane. {'; '.join(sentences)}."
    summary = "Turn it: the paths in three components"
    turning = folded(_turning_paths(paths), "zhou2022-figure-3", summary, f"{alt} In three dimensions.")
    return Exhibit("zhou2022-figure-3", "Figure 3", paths, caption, alt, figure, interactive=turning)


def _turning_paths(paths: pd.DataFrame) -> graph_objects.Figure:
    """The paths of Figure 3 on three principal components, a scene a layer."""
    layers = sorted(paths["layer"].unique())
    figure = make_subplots(1, 2, specs=[[{"type": "scene"}] * 2], subplot_titles=[f"layer {layer}" for layer in layers])
    for column, layer in enumerate(layers, start=1):
        for place, (label, path) in enumerate(paths[paths["layer"] == layer].groupby("label", sort=False)):
            line = graph_objects.Scatter3d(
                x=path["x"].tolist(),
                y=path["y"].tolist(),
                z=path["z"].tolist(),
                name=label,
                text=[f"{label}, step {step}" for step in path["step"]],
                hoverinfo="text",
                mode="lines+markers",
                marker=dict(size=np.linspace(2, 7, len(path)).tolist(), color=style.SEQUENCE[place]),
                line=dict(color=style.SEQUENCE[place], width=4),
                showlegend=column == 1,
            )
            figure.add_trace(line, row=1, col=column)
    axes = {f"{axis}axis": dict(title=f"component {number}") for number, axis in enumerate("xyz", start=1)}
    figure.update_scenes(**axes, aspectmode="cube", camera_eye=dict(x=1.7, y=1.7, z=1.1))
    return figure.update_layout(legend=dict(orientation="h"))


def figure_4(similarities: pd.DataFrame, encoder: str) -> Exhibit:
    """Figure 4: similarity of every other layer to itself before training, along training."""
    names = list(similarities["task"].unique())
    rows = (len(names) + 1) // 2
    figure, panels = plt.subplots(
        rows, 2, figsize=(style.WIDTH, 3 * rows), layout="constrained", squeeze=False, sharey=True
    )
    sentences = []
    for axes, task in zip(panels.flat, names, strict=False):
        ours = similarities[similarities["task"] == task]
        layers = sorted(ours["layer"].unique())
        shades = colormaps["viridis"](np.linspace(0.85, 0.0, len(layers)))
        ends = {}
        for layer, shade, marker in zip(layers, shades, "os^Dv<>ph*PX", strict=False):
            curve = ours[ours["layer"] == layer].groupby("step")["similarity"].mean().dropna()
            if len(curve):
                axes.plot(curve.index, curve, color=shade, marker=marker, markersize=4)
                ends[f"layer {layer}"] = (curve.iloc[-1], shade)
                sentences.append(f"{title(task)}, layer {layer}: {curve.iloc[-1]:.2f} at the end")
        axes.set_title(title(task))
        axes.set_xlabel("step")
        axes.set_ylim(min(0, similarities["similarity"].min()) - 0.02, 1.05)
        if ends:
            style.label_line_ends(axes, ours["step"].max(), ends, gap=0.1)
        else:
            axes.annotate("not separable", (0.5, 0.5), xycoords="axes fraction", ha="center", color=style.NULL_COLOUR)
    for axes in panels.flat[len(names) :]:
        axes.set_visible(False)
    for axes in panels[:, 0]:
        axes.set_ylabel("similarity to itself before")
    caption = (
        f"Similarity of every other layer of {short(encoder)} to itself before fine-tuning (Pearson correlation of the "
        "distances between labels). A layer is missing where its labels are not linearly separable, before or at that "
        "step."
    )
    return Exhibit("zhou2022-figure-4", "Figure 4", similarities, caption, f"Curves. {'; '.join(sentences)}.", figure)


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


def _movement_figure(
    moved: pd.DataFrame, task: str, layers: Sequence[int], key: str, name: str, encoder: str
) -> Exhibit:
    """Where each label's centroid went, one panel a layer, one scale."""
    table = moved[(moved["task"] == task) & moved["layer"].isin(layers)]
    table = table[table["seed"] == table["seed"].min()].reset_index(drop=True)
    reach = 1.15 * table[["x", "y"]].abs().to_numpy().max()
    columns = min(3, len(layers))
    rows = -(-len(layers) // columns)
    figure, panels = plt.subplots(
        rows,
        columns,
        figsize=(style.WIDTH, 2.5 * rows + 0.3),
        layout="constrained",
        squeeze=False,
        sharex=True,
        sharey=True,
    )
    for axes, layer in zip(panels.flat, layers, strict=False):
        ours = table[table["layer"] == layer]
        axes.axhline(0, color="#CCCCCC", linewidth=0.8)
        axes.axvline(0, color="#CCCCCC", linewidth=0.8)
        axes.scatter(ours["x"], ours["y"], s=14, color=style.TASK_COLOURS[task])
        _name_farthest(axes, ours, reach)
        axes.set_title(f"layer {layer} · {ours['in_two'].iloc[0]:.0%} in the plane", fontsize=9)
        axes.grid(False)
        axes.set_aspect("equal", adjustable="box")
    panels.flat[0].set(xlim=(-reach, reach), ylim=(-reach, reach))
    for axes in panels.flat[len(layers) :]:
        axes.set_visible(False)
    lengths = table.groupby("layer")["length"].mean()
    caption = (
        f"Where fine-tuning on {title(task)} moves the centroid of each label in {short(encoder)}: the difference "
        "vectors of a layer on their two principal directions (not centred), all panels on one scale; those that move "
        "most are named. The percentage is the share of the squared movement that lies in the plane."
    )
    means = ", ".join(f"{value:.2f} in layer {layer}" for layer, value in lengths.items())
    alt = f"Scatter of label movements, one panel a layer. Mean length of a movement: {means}."
    return Exhibit(key, name, table, caption, alt, figure)


def figure_5(moved: pd.DataFrame, task: str, encoder: str) -> Exhibit:
    """Figure 5: movement of the labels' centroids, every other layer."""
    last = int(moved["layer"].max())
    layers = [layer for layer in range(1, last + 1) if (last - layer) % 2 == 0]
    return _movement_figure(moved, task, layers, "zhou2022-figure-5", "Figure 5", encoder)


def figures_7_to_10(moved: pd.DataFrame, encoder: str) -> list[Exhibit]:
    """Figures 7 to 10 (Appendix E): as Figure 5, all layers, one for each followed task."""
    layers = [int(layer) for layer in sorted(moved["layer"].unique()) if layer > 0]
    return [
        _movement_figure(moved, task, layers, f"zhou2022-figure-{number}", f"Figure {number}", encoder)
        for number, task in enumerate(moved["task"].unique(), start=7)
    ]
