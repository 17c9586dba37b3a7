"""The figures of Hao et al. (2019), from the records of `measure`."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from fivelenses.first_exhibits import plots, style
from fivelenses.first_exhibits.claims import of_all
from fivelenses.first_exhibits.exhibit import Absent, Exhibit, first_seed, title
from fivelenses.lenses.basin import rank_correlation
from fivelenses.papers.hao2019 import drawing
from fivelenses.papers.hao2019.basins import BACK, END, RISE, START, as_surface
from fivelenses.papers.hao2019.tables import DIVERGED, task_models
from fivelenses.records import (
    BETWEEN,
    CELL,
    CONTINUED,
    INITS,
    OPTIMISATION,
    PRETRAINED,
    RANDOM,
    SCRATCH,
    SEPARATE,
    STATE,
    TWIN,
    WHOLE,
)

LINES = {CONTINUED: "o-", SEPARATE: "s--"}
REFERENCES = {CONTINUED: "end of the first part", SEPARATE: "end of a finished training"}
MIN_FALL = 0.01  # nats; the loss of a model that learned nothing has no shape to be scaled
NAMES = {SCRATCH: "from scratch", PRETRAINED: "fine-tuned"}
DASHES = {SCRATCH: (NAMES[SCRATCH], "--"), PRETRAINED: (NAMES[PRETRAINED], "-")}
WAY = {"start": (START, drawing.START_MARK), "end": (END, drawing.END_MARK)}
ROLLED_BACK = {"fine-tuned": (START, drawing.START_MARK), "group rolled back": (BACK, drawing.END_MARK)}
LABELS = {"loss": "training loss (nats)", "error": "development error"}
LEVELS = {"loss": drawing.loss_levels, "error": drawing.error_levels}
RIM_MARK = (f"{RISE:g} nats above the end", dict(color="white", linestyle="--", linewidth=1.6))
PATH = dict(color="#FF6B6B", linewidth=2, marker="o", markersize=4, markeredgecolor="black", markeredgewidth=0.4)
IN_PLANE = dict(color="white", linewidth=1.4, linestyle=":", marker="s", markersize=4, markeredgecolor="black")
WALK = dict(color="#B8BEC9", linewidth=1.6, linestyle="--")
PATH_MARKS = (("equations 3–5", PATH), ("in the plane", IN_PLANE))
WALK_MARK = ("random walk", WALK)


def _one(table: pd.DataFrame, **which) -> pd.DataFrame:
    for column, value in which.items():
        table = table[table[column] == value]
    return table


def _at(cells: pd.DataFrame, place: tuple[float, float], value: str) -> float:
    return float(cells[(cells["alpha"] == place[0]) & (cells["beta"] == place[1])][value].iloc[0])


def _panels_of_both(cells: pd.DataFrame) -> dict[str, dict]:
    """One row of two panels per task, from scratch and fine-tuned: their titles, and what tells their cells apart."""
    places = [(task, init) for task in cells["task"].unique() for init in INITS]
    return {f"{title(task)}, {NAMES[init]}": {"task": task, "init": init} for task, init in places}


def _surfaces(
    cells: pd.DataFrame,
    panels: Mapping[str, Mapping],
    value: str,
    marks: Mapping[str, tuple],
    rim: str | None = None,
    paths: pd.DataFrame | None = None,
) -> tuple[Figure, str]:
    """One panel per surface, all with the same colours, and words on what lies at the marks.

    Args:
        panels: title to what tells a surface's cells apart.
        value: `loss` or `error`.
        marks: words to a place and its mark.
        rim: the words of the place around which the rim of the basin is drawn.
        paths: states that are drawn on the surfaces.
    """
    figure, shown = drawing.panels(len(panels))
    levels, words = LEVELS[value](cells[value].to_numpy()), []
    for axes, (name, which) in zip(shown, panels.items(), strict=True):
        surface = _one(cells, **which)
        at = {mark: _at(surface, place, value) for mark, (place, _) in marks.items()}
        level = at[rim] + RISE if rim is not None and np.isfinite(at[rim]) else None
        filled = drawing.draw(axes, as_surface(surface), value, levels, level)
        for place, mark in marks.values():
            axes.plot(*place, **mark)
        if paths is not None:
            _draw_path(axes, _one(paths, **which).sort_values("step"))
        axes.set_title(name, fontsize=10)
        words.append(f"{name}: {', '.join(f'{mark} {height:.2f}' for mark, height in at.items())}")
    legend = [(words, mark) for words, (_, mark) in marks.items()]
    legend += [] if rim is None else [RIM_MARK]
    legend += [] if paths is None else PATH_MARKS
    legend += [WALK_MARK] if paths is not None and (paths["control"] == TWIN).any() else []
    drawing.finish(figure, shown, filled, LABELS[value], legend)
    return figure, "; ".join(words)


def figure_1(landscapes: Mapping[str, pd.DataFrame]) -> Exhibit:
    """Figure 1: training-loss surfaces of all tasks, from scratch and fine-tuned."""
    table = _one(of_all(landscapes["surfaces"]), split="train").reset_index(drop=True)
    cells, seeds = first_seed(table)
    panels = _panels_of_both(cells)
    figure, words = _surfaces(cells, panels, "loss", WAY, rim="end")
    caption = (
        "Training loss on the plane of the task's direction (start (0, 0), end (1, 0)) and its second task's, both in "
        f"lengths of δ₁; {_mean_over(cells)}. All panels share the colours, in equal ratios. Dashed: {RISE:g} nats "
        f"above the end.{seeds}"
    )
    key, alt = "hao2019-figure-1", f"Surfaces of training loss, one row per task. {words}."
    turnable = drawing.turnable({name: as_surface(_one(cells, **which)) for name, which in panels.items()}, alt)
    return Exhibit(key, "Figure 1", table, caption, alt, figure, turnable=turnable)


def _mean_over(cells: pd.DataFrame) -> str:
    return f"each cell is a mean over {cells['examples'].max():,.0f} examples"


def figure_2(histories: pd.DataFrame, models: pd.DataFrame, second: Mapping[str, str]) -> Exhibit:
    """Figure 2: training loss over steps, from scratch and fine-tuned; arguments as `tables.task_models`."""
    table = task_models(models, second).query("not left_out")[["init", "task", "seed", "epochs", "address"]]
    table = table.merge(histories[["address", "steps", "step", "loss"]], on="address")
    table["epoch"] = table["step"] * (table["epochs"] / table["steps"])
    table = table[["task", "init", "seed", "step", "epoch", "loss"]]
    drawn, seeds = first_seed(table)
    looks = plots.looks_of_tasks(drawn["task"])
    panels = dict(x="step", x_label="step", col="task", titles=looks.names, dash="init", dashes=DASHES, height=2.8)
    figure = plots.curves(drawn, "loss", "task", looks, LABELS["loss"], **panels)
    words = [
        f"{title(task)} {NAMES[init]}: {curve['loss'].iloc[0]:.2f} to {curve['loss'].iloc[-1]:.2f}"
        for (task, init), curve in drawn.groupby(["task", "init"], sort=False)
    ]
    caption = f"Training loss along training, as the optimiser sees it, with dropout.{seeds}"
    alt = f"Curves of training loss over steps, one panel per task. {'; '.join(words)}."
    return Exhibit("hao2019-figure-2", "Figure 2", table, caption, alt, figure)


def figure_3(landscapes: Mapping[str, pd.DataFrame], paths: pd.DataFrame) -> Exhibit | Absent:
    """Figure 3: trajectories on the surfaces of Figure 1, from scratch and fine-tuned."""
    if paths.empty:
        return Absent("hao2019-figure-3", "Figure 3", DIVERGED)
    drawn, seeds = first_seed(paths if "control" in paths.columns else paths.assign(control=""))
    cells, _ = first_seed(_one(of_all(landscapes["surfaces"]), split="train"))
    cells = cells[cells["task"].isin(drawn["task"])]
    panels = _panels_of_both(cells)
    figure, _ = _surfaces(cells, panels, "loss", WAY, paths=drawn)
    walked = (drawn["control"] == TWIN).any()
    drawn, words = drawn[drawn["control"] == ""], []
    for name, which in panels.items():
        angle, epoch = _one(drawn, **which).sort_values("step")[["angle", "epoch"]].iloc[1]
        words.append(f"{name}: {angle:.0f} degrees off after epoch {epoch:g}")
    # The end lies in the plane by construction.
    held = drawn[drawn["share"] < 1].groupby("init")["in_plane"].median()
    caption = (
        "States along training on the surfaces of Figure 1. Red: the paper's coordinates. White: the nearest point of "
        f"the plane, which holds {held[SCRATCH]:.0%} (scratch) and {held[PRETRAINED]:.0%} (fine-tuned) of the squared "
        "displacement of a state before the end (median)."
        + (" Grey: a random walk whose steps have the same lengths." if walked else "")
        + seeds
    )
    return Exhibit("hao2019-figure-3", "Figure 3", paths, caption, f"Paths on surfaces. {'; '.join(words)}.", figure)


def _draw_path(axes, states: pd.DataFrame) -> None:
    # A path that leaves the surface does not widen its axes.
    limits = axes.get_xlim(), axes.get_ylim()
    walk, states = (_one(states, control=control) for control in (TWIN, ""))
    if len(walk):
        # Between its states it goes on along the same arc.
        shares = np.linspace(0, 1, 101)
        axes.plot(shares, np.sqrt(shares * (1 - shares)), **WALK)
    axes.plot(states["plane_alpha"], states["plane_beta"], **IN_PLANE)
    axes.plot(states["alpha"], states["beta"], **PATH)
    axes.set(xlim=limits[0], ylim=limits[1])


def figure_4(table: pd.DataFrame) -> Exhibit | Absent:
    """Figure 4: a long training on the surface of the development error, and the error along it and along a separate
    one; records without `training` have the separate one alone.
    """
    if table.empty:
        return Absent("hao2019-figure-4", "Figure 4", DIVERGED)
    table = of_all(table if "training" in table.columns else table.assign(training=SEPARATE))
    drawn, seeds = first_seed(table)
    cells, states, between = (_one(drawn, kind=kind) for kind in (CELL, STATE, BETWEEN))
    (shown,), task, words = cells["training"].unique(), drawn["task"].iloc[0], []
    figure, (axes, side) = plt.subplots(1, 2, figsize=(style.WIDTH, 4.9), layout="constrained", width_ratios=(1.25, 1))
    filled = drawing.draw(axes, as_surface(cells), "error", drawing.error_levels(cells["error"].to_numpy()))
    axes.plot(*START, **drawing.START_MARK)
    axes.plot(*END, **drawing.END_MARK)
    _draw_path(axes, _one(states, training=shown).assign(control=""))
    for training, along in states.groupby("training"):
        way, last = _one(between, training=training).sort_values("share"), along.sort_values("step").iloc[-1]
        epochs, first = way[["epoch", "error"]].iloc[0]
        side.plot(along["epoch"], along["error"], LINES[training], color=style.task_colour(task), label=training)
        side.plot(epochs, first, **drawing.END_MARK)
        words.append(
            f"{training}, {first:.3f} at the {REFERENCES[training]} ({epochs:g} epochs) and {last['error']:.3f} after "
            f"{last['epoch']:g}, at most {way['error'].max():.3f} on the straight line between"
        )
    side.set(xlabel="epoch", ylabel=LABELS["error"], ylim=(0, None))
    side.legend(fontsize=10)
    marks = (("start", drawing.START_MARK), (REFERENCES[shown], drawing.END_MARK), *PATH_MARKS)
    drawing.finish(figure, [axes], filled, LABELS["error"], marks)
    caption = (
        f"{title(task)}: the {shown} training on the surface of the development error ({_mean_over(cells)}), whose "
        f"first direction leads to the {REFERENCES[shown]}. Development error: {'; '.join(words)}.{seeds}"
    )
    alt = f"A surface of the development error with the path of a training, and errors over epochs: {'; '.join(words)}."
    return Exhibit("hao2019-figure-4", "Figure 4", table, caption, alt, figure)


def figure_5(landscapes: Mapping[str, pd.DataFrame]) -> Exhibit:
    """Figure 5: training loss along the direction from start to end and along a random one, axes normalised."""
    keys, lines = ["task", "init", "seed"], landscapes["lines"]
    lines = lines[lines["fold"] == WHOLE].drop(columns=["fold", "control"]) if "fold" in lines.columns else lines
    along = _one(lines, direction=OPTIMISATION)
    least = along.groupby(keys)["loss"].min().rename("least")
    unit = (_one(along, alpha=START[0]).set_index(keys)["loss"] - least).rename("unit")
    table = lines.join(least, on=keys).join(unit.where(unit >= MIN_FALL), on=keys)
    table["height"] = (table["loss"] - table["least"]) / table["unit"]
    drawn, seeds = first_seed(table)
    drawn = drawn.assign(line=drawn["task"].where(drawn["direction"] == OPTIMISATION, RANDOM))
    looks = plots.looks_of_tasks(drawn["task"])
    names = looks.names | {RANDOM: "in a random direction"}
    with_null = plots.Looks(names, looks.colours | {RANDOM: style.NULL_COLOUR})
    panels = dict(
        x="alpha", x_label=drawing.ALPHA, col="task", titles=looks.names, dash="init", dashes=DASHES, height=2.8
    )
    panels |= dict(sharey=True, missing=f"falls by less than {MIN_FALL} nats")
    figure = plots.curves(drawn, "height", "line", with_null, "loss, its start as 1", **panels)
    # In a random direction the loss can fall below the least of the line from start to end.
    figure.axes[0].set_ylim(1.05 * min(0.0, drawn["height"].min()), 2)
    flat = drawn[drawn["unit"].isna()].drop_duplicates(["task", "init"])
    flat = [f"{title(row.task)} {NAMES[row.init]}" for row in flat.itertuples()]
    caption = (
        "Training loss from start (0) to end (1), scaled so that its least value is 0 and its start is 1. Grey: the "
        "same around the end in a random direction of equal length, filter-normalised and rescaled. Above 2 curves "
        f"are cut off.{seeds}"
        + (f" Not drawn, since the loss falls by less than {MIN_FALL} nats: {', '.join(flat)}." if flat else "")
    )
    tasks = ", ".join(looks.names.values())
    alt = f"Curves of normalised training loss along a line, one panel per task: {tasks}."
    return Exhibit("hao2019-figure-5", "Figure 5", table, caption, alt, figure)


def figure_6(landscapes: Mapping[str, pd.DataFrame]) -> Exhibit:
    """Figure 6: surfaces of the development error of all tasks, from scratch and fine-tuned."""
    table = _one(of_all(landscapes["surfaces"]), split="validation").reset_index(drop=True)
    cells, seeds = first_seed(table)
    training, _ = first_seed(_one(of_all(landscapes["surfaces"]), split="train"))
    panels = _panels_of_both(cells)
    figure, words = _surfaces(cells, panels, "error", WAY)
    spread = cells["error_standard_error"].median()
    caption = (
        f"Share of development examples that are classified wrongly, on the planes of Figure 1; {_mean_over(cells)}, "
        f"with a standard error of {spread:.3f} (median). All panels share the colours.{seeds}"
    )
    pairs = {name: [as_surface(_one(table, **which)) for table in (training, cells)] for name, which in panels.items()}
    agree = [f"{name} {rank_correlation(one.losses, other.errors):.2f}" for name, (one, other) in pairs.items()]
    alt = f"Surfaces of development error. {words}. Rank correlation with the training loss: {'; '.join(agree)}."
    return Exhibit("hao2019-figure-6", "Figure 6", table, caption, alt, figure)


def figure_7(surfaces: pd.DataFrame) -> Exhibit | Absent:
    """Figure 7: training-loss surfaces around the fine-tuned point for thirds of the layers."""
    if surfaces.empty:
        return Absent("hao2019-figure-7", "Figure 7", DIVERGED)
    surfaces = of_all(surfaces)
    cells, seeds = first_seed(surfaces)
    # Two tasks side by side, one row per group; a single task goes on from column to column.
    places = [(task, group) for group in cells["group"].unique() for task in cells["task"].unique()]
    panels = {f"{title(task)}, {group} layers": {"task": task, "group": group} for task, group in places}
    figure, words = _surfaces(cells, panels, "loss", ROLLED_BACK, rim="fine-tuned")
    caption = (
        "Training loss around the fine-tuned model (0, 0) when one third of its layers moves: at (−1, 0) these layers "
        f"are as they were pre-trained; {_mean_over(cells)}. Dashed: {RISE:g} nats above the fine-tuned "
        f"model.{seeds}"
    )
    alt = f"Surfaces of training loss, one for each task and group of layers. {words}."
    return Exhibit("hao2019-figure-7", "Figure 7", surfaces, caption, alt, figure)
