"""The figures of Hao et al. (2019), from the tables of `measurements`."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from plotly import graph_objects
from plotly.subplots import make_subplots

from fivelenses import tasks
from fivelenses.exhibits import style
from fivelenses.exhibits.exhibit import Absent, Exhibit
from fivelenses.exhibits.interactive import folded
from fivelenses.lenses.basin import rank_correlation
from fivelenses.papers.hao2019 import drawing
from fivelenses.papers.hao2019.measure import BETWEEN, CELL, OPTIMISATION, STATE
from fivelenses.papers.hao2019.measures import BACK, END, RISE, START, as_surface
from fivelenses.papers.hao2019.planes import SCRATCH, TUNED, WAYS
from fivelenses.papers.hao2019.tables import DIVERGED

LEAST_FALL = 0.01  # nats; the loss of a model that learned nothing has no shape to be scaled
NAMES = {SCRATCH: "from scratch", TUNED: "fine-tuned"}
MARKS = (("start", drawing.START_MARK), ("end", drawing.END_MARK))
RIM_MARK = (f"{RISE:g} nats above the end", dict(color="white", linestyle="--", linewidth=1.6))
PATH = dict(color="#FF6B6B", linewidth=2, marker="o", markersize=4, markeredgecolor="black", markeredgewidth=0.4)
IN_PLANE = dict(color="white", linewidth=1.4, linestyle=":", marker="s", markersize=4, markeredgecolor="black")


def _title(task: str) -> str:
    return tasks.find(task).title


def _first_seed(table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The rows of the first seed, which are drawn, and words on the others."""
    seeds = sorted(table["seed"].unique())
    words = f" Seed {seeds[0]} of {len(seeds)}." if len(seeds) > 1 else ""
    return table[table["seed"] == seeds[0]], words


def _one(table: pd.DataFrame, **which) -> pd.DataFrame:
    for column, value in which.items():
        table = table[table[column] == value]
    return table


def _at(cells: pd.DataFrame, place: tuple[float, float], value: str) -> float:
    return float(cells[(cells["alpha"] == place[0]) & (cells["beta"] == place[1])][value].iloc[0])


def _both_ways(cells: pd.DataFrame, names: Sequence[str], value: str, levels: np.ndarray, rim: bool):
    """A row of two panels a task: from scratch and fine-tuned. The figure, its panels, and words on each panel."""
    figure, shown = drawing.panels(2 * len(names))
    said, places = [], [(task, way) for task in names for way in WAYS]
    for axes, (task, way) in zip(shown, places, strict=True):
        ours = _one(cells, task=task, way=way)
        surface, start, end = as_surface(ours), _at(ours, START, value), _at(ours, END, value)
        values = surface.losses if value == "loss" else surface.errors
        filled = drawing.draw(axes, surface, values, levels, end + RISE if rim and np.isfinite(end) else None)
        axes.plot(*START, **drawing.START_MARK)
        axes.plot(*END, **drawing.END_MARK)
        axes.set_title(f"{_title(task)}, {NAMES[way]}", fontsize=10)
        said.append(f"{_title(task)} {NAMES[way]}: {start:.2f} at the start, {end:.2f} at the end")
    return figure, shown, filled, "; ".join(said)


def figure_1(surfaces: pd.DataFrame) -> Exhibit:
    """Figure 1: training-loss surfaces of all tasks, both ways."""
    table = _one(surfaces, split="train").reset_index(drop=True)
    cells, seeds = _first_seed(table)
    names = list(cells["task"].unique())
    levels = drawing.loss_levels(cells["loss"].to_numpy())
    figure, shown, filled, said = _both_ways(cells, names, "loss", levels, rim=True)
    drawing.finish(figure, shown, filled, "training loss (nats)", (*MARKS, RIM_MARK))
    caption = (
        "Training loss around the way from the start (0, 0) to the end (1, 0), on the plane of the task's direction "
        "and that of the model trained on its second task, rescaled; both axes are in lengths of δ₁. All panels share "
        f"the colours, whose contours are in equal ratios. Dashed: {RISE:g} nats above the end.{seeds}"
    )
    alt = f"Surfaces of training loss, a row a task. {said}."
    turning = folded(
        _turning(cells, names[0]), "hao2019-figure-1", f"Turn it: {_title(names[0])}, both ways", f"{alt} Turnable."
    )
    return Exhibit("hao2019-figure-1", "Figure 1", table, caption, alt, figure, interactive=turning)


def _turning(cells: pd.DataFrame, task: str) -> graph_objects.Figure:
    """The surfaces of one task in three dimensions, on one scale; heights are logarithms of the loss."""
    figure = make_subplots(1, 2, specs=[[{"type": "scene"}] * 2], subplot_titles=[NAMES[way] for way in WAYS])
    heights = np.log10(_one(cells, task=task)["loss"].clip(lower=drawing.FLOOR))
    for column, way in enumerate(WAYS, start=1):
        ours = _one(cells, task=task, way=way)
        surface = as_surface(ours)
        losses = np.maximum(surface.losses, drawing.FLOOR)
        sheet = graph_objects.Surface(
            x=surface.alphas.round(3).tolist(),
            y=surface.betas.round(3).tolist(),
            z=np.log10(losses).round(3).tolist(),
            text=[[f"{value:.3g} nats" for value in row] for row in surface.losses],
            hoverinfo="x+y+text",
            colorscale=drawing.MAP.capitalize(),
            cmin=float(heights.min()),
            cmax=float(heights.max()),
            showscale=False,
        )
        marks = graph_objects.Scatter3d(
            x=[START[0], END[0]],
            y=[START[1], END[1]],
            z=[float(np.log10(max(_at(ours, place, "loss"), drawing.FLOOR))) + 0.05 for place in (START, END)],
            text=["start", "end"],
            hoverinfo="text",
            mode="markers+text",
            marker=dict(size=4, color=["white", "black"], line=dict(color="black", width=1)),
            showlegend=False,
        )
        figure.add_trace(sheet, row=1, col=column)
        figure.add_trace(marks, row=1, col=column)
    axes = {"xaxis": dict(title="α"), "yaxis": dict(title="β"), "zaxis": dict(title="log₁₀ loss")}
    figure.update_scenes(**axes, aspectmode="cube", camera_eye=dict(x=1.5, y=-1.7, z=1.2))
    return figure


def figure_2(history: pd.DataFrame) -> Exhibit:
    """Figure 2: training loss over steps, both ways."""
    drawn, seeds = _first_seed(history)
    names = list(drawn["task"].unique())
    rows = -(-len(names) // 2)
    figure, grid = plt.subplots(rows, 2, figsize=(style.WIDTH, 2.8 * rows), layout="constrained", squeeze=False)
    said = []
    for axes, task in zip(grid.flat, names, strict=False):
        for way, line in zip(WAYS, ("--", "-"), strict=True):
            ours = _one(drawn, task=task, way=way)
            axes.plot(ours["step"], ours["loss"], line, color=style.TASK_COLOURS[task], label=NAMES[way])
            said.append(f"{_title(task)} {NAMES[way]}: {ours['loss'].iloc[0]:.2f} to {ours['loss'].iloc[-1]:.2f}")
        axes.set_title(_title(task))
        axes.set_xlabel("step")
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=9)
    for axes in grid.flat[len(names) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel("training loss (nats)")
    caption = f"Training loss along training, as the optimiser sees it, with dropout.{seeds}"
    alt = f"Curves of training loss over steps, one panel a task. {'; '.join(said)}."
    return Exhibit("hao2019-figure-2", "Figure 2", history, caption, alt, figure)


def figure_3(surfaces: pd.DataFrame, paths: pd.DataFrame) -> Exhibit | Absent:
    """Figure 3: trajectories on the surfaces of Figure 1, both ways."""
    if paths.empty:
        return Absent("hao2019-figure-3", "Figure 3", DIVERGED)
    drawn, seeds = _first_seed(paths)
    cells, _ = _first_seed(_one(surfaces, split="train"))
    names = list(drawn["task"].unique())
    cells = cells[cells["task"].isin(names)]
    levels = drawing.loss_levels(cells["loss"].to_numpy())
    figure, shown, filled, _ = _both_ways(cells, names, "loss", levels, rim=False)
    said, places = [], [(task, way) for task in names for way in WAYS]
    for axes, (task, way) in zip(shown, places, strict=True):
        ours = _one(drawn, task=task, way=way).sort_values("step")
        _draw_path(axes, ours)
        angle, epoch = ours[["angle", "epoch"]].iloc[1]
        said.append(f"{_title(task)} {NAMES[way]}: {angle:.0f} degrees off after epoch {epoch:g}")
    marks = (*MARKS, ("equations 3–5", PATH), ("in the plane", IN_PLANE))
    drawing.finish(figure, shown, filled, "training loss (nats)", marks)
    held = drawn.groupby("way")["in_plane"].median()
    caption = (
        "States along training on the surfaces of Figure 1. Red: the paper's coordinates, whose second has no sign and "
        "is the distance from the first axis in any direction. White: the nearest point of the plane, which holds "
        f"{held[SCRATCH]:.0%} (scratch) and {held[TUNED]:.0%} (fine-tuned) of the squared displacement of a state "
        f"(median).{seeds}"
    )
    return Exhibit("hao2019-figure-3", "Figure 3", paths, caption, f"Paths on surfaces. {'; '.join(said)}.", figure)


def _draw_path(axes, states: pd.DataFrame) -> None:
    # A path that leaves the surface does not widen its axes.
    limits = axes.get_xlim(), axes.get_ylim()
    axes.plot(states["plane_alpha"], states["plane_beta"], **IN_PLANE)
    axes.plot(states["alpha"], states["beta"], **PATH)
    axes.set(xlim=limits[0], ylim=limits[1])


def figure_4(table: pd.DataFrame, epochs: int) -> Exhibit | Absent:
    """Figure 4: a long training on the surface of the development error.

    Args:
        epochs: after which the end of the first direction was reached.
    """
    if table.empty:
        return Absent("hao2019-figure-4", "Figure 4", DIVERGED)
    drawn, seeds = _first_seed(table)
    cells, states, between = (_one(drawn, kind=kind) for kind in (CELL, STATE, BETWEEN))
    title = _title(drawn["task"].iloc[0])
    figure, (axes, side) = plt.subplots(1, 2, figsize=(style.WIDTH, 4.9), layout="constrained", width_ratios=(1.25, 1))
    filled = drawing.draw(axes, as_surface(cells), as_surface(cells).errors, drawing.error_levels(cells["error"]))
    axes.plot(*START, **drawing.START_MARK)
    axes.plot(*END, **drawing.END_MARK)
    _draw_path(axes, states)
    marks = (
        MARKS[0],
        (f"after {epochs} epochs", drawing.END_MARK),
        ("equations 3–5", PATH),
        ("in the plane", IN_PLANE),
    )
    drawing.finish(figure, [axes], filled, "development error", marks)
    side.plot(states["epoch"], states["error"], color=style.TASK_COLOURS[drawn["task"].iloc[0]], marker="o")
    side.axvline(epochs, color=style.NULL_COLOUR, linestyle="--", linewidth=1.4)
    side.set(xlabel="epoch", ylabel="development error", ylim=(0, None))
    first = states.iloc[(states["epoch"] - epochs).abs().argmin()]
    last, climb = states.iloc[-1], float((between["loss"] - between["loss"].cummin()).max())
    caption = (
        f"{title}: {last['epoch']:g} epochs of one training on the surface of the development error, whose first "
        f"direction leads to the state after {epochs}. The development error goes from {first['error']:.3f} there to "
        f"{last['error']:.3f} at the end; on the straight way between the two the training loss climbs by at most "
        f"{climb:.2g} nats.{seeds}"
    )
    alt = (
        f"A surface of the development error with the path of a training, and its error over epochs: "
        f"{first['error']:.3f} after {epochs} epochs and {last['error']:.3f} after {last['epoch']:g}."
    )
    return Exhibit("hao2019-figure-4", "Figure 4", table, caption, alt, figure)


def figure_5(lines: pd.DataFrame) -> Exhibit:
    """Figure 5: training loss along the direction, both ways, axes normalised; and along a random direction."""
    drawn, seeds = _first_seed(lines)
    names = list(drawn["task"].unique())
    rows = -(-len(names) // 2)
    figure, grid = plt.subplots(
        rows, 2, figsize=(style.WIDTH, 2.9 * rows + 0.5), layout="constrained", squeeze=False, sharey=True
    )
    flat = []
    for axes, task in zip(grid.flat, names, strict=False):
        for way, line in zip(WAYS, ("--", "-"), strict=True):
            ours = _one(drawn, task=task, way=way)
            along = _one(ours, direction=OPTIMISATION)
            least = along["loss"].min()
            unit = along["loss"][along["alpha"] == START[0]].iloc[0] - least
            if unit < LEAST_FALL:
                flat.append(f"{_title(task)} {NAMES[way]}")
                continue
            for direction, of_direction in ours.groupby("direction"):
                optimised = direction == OPTIMISATION
                colour = style.TASK_COLOURS[task] if optimised else style.NULL_COLOUR
                label = NAMES[way] if optimised else f"{NAMES[way]}, random direction"
                height = (of_direction["loss"] - least) / unit
                axes.plot(
                    of_direction["alpha"], height, line, color=colour, label=label, linewidth=1.8 if optimised else 1.2
                )
        axes.set_title(_title(task))
        axes.set_xlabel(drawing.ALPHA)
        axes.set_ylim(0, 2)
    for axes in grid.flat[len(names) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel("loss, its start as 1")
    handles = [
        plt.Line2D([], [], color=colour, linestyle=line)
        for colour in ("black", style.NULL_COLOUR)
        for line in ("--", "-")
    ]
    labels = [f"{NAMES[way]}{ending}" for ending in ("", ", random direction") for way in WAYS]
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=9)
    caption = (
        "Training loss along the direction from start (0) to end (1), above its least value on the curve and in units "
        "of that of the start. Grey: the same around the end in a random direction of equal length, "
        f"filter-normalised and rescaled.{seeds}"
        + (f" Not drawn, since the loss falls by less than {LEAST_FALL} nats: {', '.join(flat)}." if flat else "")
    )
    alt = f"Curves of normalised training loss along a line, one panel a task: {', '.join(map(_title, names))}."
    return Exhibit("hao2019-figure-5", "Figure 5", lines, caption, alt, figure)


def figure_6(surfaces: pd.DataFrame) -> Exhibit:
    """Figure 6: surfaces of the development error of all tasks, both ways."""
    table = _one(surfaces, split="validation").reset_index(drop=True)
    cells, seeds = _first_seed(table)
    training, _ = _first_seed(_one(surfaces, split="train"))
    names = list(cells["task"].unique())
    figure, shown, filled, said = _both_ways(cells, names, "error", drawing.error_levels(cells["error"]), rim=False)
    drawing.finish(figure, shown, filled, "development error", MARKS)
    spread = cells["error_standard_error"].median()
    caption = (
        "Share of development examples that are classified wrongly, on the planes of Figure 1; all panels share the "
        f"colours. The standard error of a cell is {spread:.3f} (median).{seeds}"
    )
    agree = []
    for (task, way), ours in cells.groupby(["task", "way"], sort=False):
        of_loss = as_surface(_one(training, task=task, way=way)).losses
        agree.append(f"{_title(task)} {NAMES[way]} {rank_correlation(of_loss, as_surface(ours).errors):.2f}")
    alt = f"Surfaces of development error. {said}. Rank correlation with the training loss: {', '.join(agree)}."
    return Exhibit("hao2019-figure-6", "Figure 6", table, caption, alt, figure)


def figure_7(surfaces: pd.DataFrame) -> Exhibit | Absent:
    """Figure 7: training-loss surfaces around the fine-tuned point for thirds of the layers."""
    if surfaces.empty:
        return Absent("hao2019-figure-7", "Figure 7", DIVERGED)
    cells, seeds = _first_seed(surfaces)
    names, groups = list(cells["task"].unique()), list(cells["group"].unique())
    levels = drawing.loss_levels(cells["loss"].to_numpy())
    # Two tasks side by side, a row a group; a single task goes on from column to column.
    places = [(task, group) for group in groups for task in names]
    figure, shown = drawing.panels(len(places))
    said = []
    for axes, (task, group) in zip(shown, places, strict=True):
        ours = _one(cells, task=task, group=group)
        surface, end, back = as_surface(ours), _at(ours, START, "loss"), _at(ours, BACK, "loss")
        filled = drawing.draw(axes, surface, surface.losses, levels, end + RISE)
        axes.plot(*START, **drawing.END_MARK)
        axes.plot(*BACK, **drawing.PUT_BACK_MARK)
        axes.set_title(f"{_title(task)}, {group} layers", fontsize=10)
        said.append(f"{_title(task)} {group} layers: {end:.2f} tuned, {back:.2f} put back")
    marks = (("fine-tuned", drawing.END_MARK), ("group put back", drawing.PUT_BACK_MARK), RIM_MARK)
    drawing.finish(figure, shown, filled, "training loss (nats)", marks)
    caption = (
        "Training loss around the fine-tuned model (0, 0) when one third of its layers moves: at (−1, 0) these layers "
        f"are as they were pre-trained. Dashed: {RISE:g} nats above the fine-tuned model.{seeds}"
    )
    alt = f"Surfaces of training loss, one for each task and group of layers. {'; '.join(said)}."
    return Exhibit("hao2019-figure-7", "Figure 7", surfaces, caption, alt, figure)
