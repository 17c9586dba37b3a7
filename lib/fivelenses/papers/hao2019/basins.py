"""The pictures of Hao et al. (2019) in numbers, from its records: one row per model or group of layers, and per fold.

A record without folds counts as one with the fold of all examples alone.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from fivelenses.first_exhibits import effects
from fivelenses.first_exhibits.claims import of_all
from fivelenses.lenses.basin import Surface, basin, half_widths, path, rank_correlation, share_below
from fivelenses.records import FULL, OPTIMISATION, RANDOM, TWIN, WHOLE

RISE = 0.1  # nats above the end
HALF = 0.5  # of the drop from start to end
RADII = (1, 2, 3)  # of discs around the end; the paper's grid holds no larger one
NEAR = 1.5  # from the middle of the way, on both axes, in lengths of the first direction: start and end are well within
START, END, BACK = (0.0, 0.0), (1.0, 0.0), (-1.0, 0.0)
FIELDS = ("loss", "error", "loss_standard_error", "error_standard_error")
MODEL = ["task", "init", "seed"]
GROUP = ["task", "seed", "group"]


def with_folds(table: pd.DataFrame) -> pd.DataFrame:
    """The table with columns `fold` and `examples`, 0 where it does not say how many were measured."""
    return table if "fold" in table.columns else table.assign(fold=WHOLE, examples=0)


def as_surface(table: pd.DataFrame) -> Surface:
    """The cells of one surface as a surface of the lens; refused if a cell is missing or there twice."""
    places = table[["beta", "alpha"]].to_numpy()
    betas, alphas = np.unique(places[:, 0]), np.unique(places[:, 1])
    if len(np.unique(places, axis=0)) != len(places) or len(places) != len(betas) * len(alphas):
        raise ValueError("The cells of the surface are not one for each place of a grid.")
    order = np.lexsort(places.T[::-1])
    values = (table[name].to_numpy(float)[order].reshape(len(betas), -1) for name in FIELDS)
    return Surface(alphas, betas, *values)


def width(sides: tuple[float, float], at: float, low: float, high: float) -> tuple[float, bool]:
    """The sum of two half widths, and whether the loss exceeded the rim on both sides; one that it did not reaches to
    the end of the grid, so the sum is at least this.

    Example:
        >>> width((0.5, float("inf")), at=1.0, low=-2.0, high=3.0)
        (2.5, False)
    """
    cut = [side if np.isfinite(side) else room for side, room in zip(sides, (at - low, high - at), strict=True)]
    return float(sum(cut)), bool(np.isfinite(sides).all())


def _split(surfaces: pd.DataFrame, split: str) -> pd.DataFrame:
    return with_folds(surfaces[surfaces["split"] == split])


def drops(surfaces: pd.DataFrame) -> pd.DataFrame:
    """One row per model and fold: `start_loss`, `end_loss`, `drop`, the training loss at start and end in nats."""
    cells, keys = _split(surfaces, "train"), [*MODEL, "fold"]
    at = {place: cells[(cells["alpha"] == place[0]) & (cells["beta"] == place[1])] for place in (START, END)}
    start, end = (at[place].set_index(keys)["loss"] for place in (START, END))
    return pd.DataFrame({"start_loss": start, "end_loss": end, "drop": start - end}).reset_index()


def areas(surfaces: pd.DataFrame) -> pd.DataFrame:
    """One row per model and fold of `measure.landscapes`' `surfaces`: the basin of the end on the training surface.

    Returns:
        `task`, `init`, `seed`, `fold`, `examples`, `start_loss`, `end_loss`, `drop`; `second_width` along the second
        direction at `RISE`, with `second_width_whole`, False if it is at least this; `share_1` to `share_3`, of a disc
        of that radius around the end, at `RISE`, and `half_share_1` to `half_share_3` at half of the drop. NaN where
        the end has no finite loss, there is no drop, or the grid does not hold the disc.
    """
    keys, rows, known = [*MODEL, "fold"], [], drops(surfaces)
    of_model = known.set_index(keys)[["end_loss", "drop"]]
    for key, cells in _split(surfaces, "train").groupby(keys, sort=False):
        surface, (end, drop) = as_surface(cells), of_model.loc[key]
        row = dict(zip(keys, key, strict=True)) | {"examples": cells["examples"].min()}
        row |= {"second_width": np.nan, "second_width_whole": False}
        if np.isfinite(end):
            sides = half_widths(surface.betas, surface.losses[:, surface.alphas == END[0]].ravel(), END[1], RISE)
            across = width(sides, END[1], surface.betas[0], surface.betas[-1])
            row |= dict(zip(("second_width", "second_width_whole"), across, strict=True))
        for name, rise in (("share", RISE), ("half_share", HALF * drop)):
            measured = np.isfinite(end) and rise > 0
            row |= {f"{name}_{r}": share_below(surface, END, rise, r) if measured else np.nan for r in RADII}
        rows.append(row)
    return known.merge(pd.DataFrame(rows), on=keys)


def correlations(surfaces: pd.DataFrame) -> pd.DataFrame:
    """One row per model and fold: `correlation`, the rank correlation of training loss and development error over the
    cells of its surfaces, and `near_correlation`, over those at most `NEAR` from the middle of the way, since far away
    both lie on plateaus where chance orders them; NaN where one of the two is constant.
    """
    keys = [*MODEL, "fold"]
    development = dict(list(_split(surfaces, "validation").groupby(keys)))
    rows = []
    for key, cells in _split(surfaces, "train").groupby(keys, sort=False):
        losses, errors = as_surface(cells), as_surface(development[key])
        near = np.ix_(np.abs(losses.betas) <= NEAR, np.abs(losses.alphas - END[0] / 2) <= NEAR)
        agreement = [rank_correlation(losses.losses[part], errors.errors[part]) for part in (..., near)]
        rows.append((*key, min(cells["examples"].min(), development[key]["examples"].min()), *agreement))
    return pd.DataFrame(rows, columns=[*keys, "examples", "correlation", "near_correlation"])


def ways(landscapes: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One row per model, fold and direction: the training loss on the line through start and end, or a random one.

    Returns:
        `task`, `init`, `seed`, `fold`, `direction`, `examples`; `falling` and `climb` (nats) from 0 to 1, at so many
        `steps`; `width` around the end at `RISE` and `half_width` at half of the model's drop, with `width_whole` and
        `half_width_whole`, as for `areas`.
    """
    keys, rows = [*MODEL, "fold"], []
    known = drops(landscapes["surfaces"]).set_index(keys)["drop"]
    for (*key, direction), line in with_folds(landscapes["lines"]).groupby([*keys, "direction"], sort=False):
        line = line.sort_values("alpha")
        positions, losses = line["alpha"].to_numpy(), line["loss"].to_numpy(float)
        way, drop = path(positions, losses), float(known[*key,])
        row = dict(zip([*keys, "direction"], (*key, direction), strict=True)) | {"examples": line["examples"].min()}
        steps = int(((positions > START[0]) & (positions <= END[0])).sum())
        row |= {"falling": way.falling, "climb": way.climb, "steps": steps}
        finite = np.isfinite(losses[positions == END[0]]).all()
        for name, rise in (("width", RISE), ("half_width", HALF * drop)):
            side = np.nan, False
            if finite and rise > 0:
                sides = half_widths(positions, losses, END[0], rise)
                side = width(sides, END[0], positions[0], positions[-1])
            row[name], row[f"{name}_whole"] = side
        rows.append(row)
    return pd.DataFrame(rows)


def ends(landscapes: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One row per model and fold: `loss` of the trained model on all training examples, and `below`, by how much it is
    below the entropy of their labels; a record without `ends` has that of the examples of a cell.
    """
    if "ends" in landscapes:
        table = _split(landscapes["ends"], "train")
    else:
        table = _split(landscapes["surfaces"], "train").query(f"alpha == {END[0]} and beta == {END[1]}")
    table = table[[*MODEL, "fold", "examples", "loss"]].merge(landscapes["models"][[*MODEL, "null_loss"]], on=MODEL)
    return table.assign(below=table["null_loss"] - table["loss"]).drop(columns="null_loss")


def measures(landscapes: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One row per model, of all examples: the columns of `models` of `measure.landscapes`, those of `areas`,
    `correlations` and, along the optimisation direction, `ways`, `random_width` along a random one, `train_loss` of the
    end on all training examples, and `error` at the end on the development surface.
    """
    seen = {name: of_all(table) for name, table in landscapes.items() if name != "lines"}
    lines = with_folds(landscapes["lines"])
    along = ways(seen | {"lines": lines[lines["fold"] == WHOLE]})
    at_random = along[along["direction"] == RANDOM].rename(columns=lambda name: name.replace("width", "random_width"))
    random_widths = at_random[[*MODEL, "random_width", "random_width_whole"]]
    development = seen["surfaces"].query(f"split == 'validation' and alpha == {END[0]} and beta == {END[1]}")
    parts = [
        along[along["direction"] == OPTIMISATION].drop(columns=["fold", "direction", "examples"]),
        random_widths,
        *(
            table.drop(columns=["fold", "examples"])
            for table in (areas(seen["surfaces"]), correlations(seen["surfaces"]))
        ),
        ends(seen)[[*MODEL, "loss"]].rename(columns={"loss": "train_loss"}),
        development[[*MODEL, "error"]],
    ]
    table = seen["models"]
    for part in parts:
        table = table.merge(part, on=MODEL)
    return table


def group_ways(surfaces: pd.DataFrame) -> pd.DataFrame:
    """One row per task, seed, group of layers and fold: the training loss on the way to the rolled-back group.

    Returns:
        `task`, `seed`, `group`, `fold`, `examples`; `side`, the distance from the fine-tuned model at which the loss
        has risen by `RISE` on the side of the rolled-back group, in lengths of the group's direction, with
        `side_whole`; `rise` of the loss at the rolled-back group (nats).
    """
    rows = []
    on_axis = with_folds(surfaces[surfaces["beta"] == 0])
    for key, line in on_axis.groupby([*GROUP, "fold"], sort=False):
        line = line.sort_values("alpha")
        positions, losses = line["alpha"].to_numpy(), line["loss"].to_numpy(float)
        here, back = (float(losses[positions == place[0]][0]) for place in (START, BACK))
        side = half_widths(positions, losses, START[0], RISE)[0] if np.isfinite(here) else np.nan
        cut = START[0] - positions[0] if np.isinf(side) else side
        rows.append((*key, line["examples"].min(), cut, np.isfinite(side), back - here))
    return pd.DataFrame(rows, columns=[*GROUP, "fold", "examples", "side", "side_whole", "rise"])


def rolled_back(rollbacks: pd.DataFrame) -> pd.DataFrame:
    """One row per task, seed and group of layers: `tuned` and `accuracy` (without and with the group rolled back),
    `random` (moved as far in random directions), `norm` and `relative_norm` of the group's direction; of
    `layer_groups.rollbacks`, or a record that has these columns already.
    """
    if "example" not in rollbacks.columns:
        return rollbacks
    means = rollbacks.groupby([*GROUP, "control"], sort=False)[["score", "norm", "relative_norm"]].mean().reset_index()
    table = means[means["control"] == ""].rename(columns={"score": "accuracy"}).drop(columns="control")
    at_random = means[means["control"] == TWIN][[*GROUP, "score"]].rename(columns={"score": "random"})
    tuned = means[means["group"] == FULL][["task", "seed", "score"]].rename(columns={"score": "tuned"})
    return table.merge(at_random, on=GROUP).merge(tuned, on=["task", "seed"])


def rollback_errors(rollbacks: pd.DataFrame) -> pd.DataFrame:
    """One row per task and group of layers: `tuned_error` and `change_error`, the standard errors, over models and
    examples, of the accuracy before and of what rolling the group back changes; empty of a record without examples.
    """
    rows = []
    if "example" in rollbacks.columns:
        for task, of_task in rollbacks[rollbacks["control"] != TWIN].groupby("task", sort=False):
            by_group = of_task.groupby("group", sort=False)
            scores = {name: rows.pivot(index="seed", columns="example", values="score") for name, rows in by_group}
            tuned = scores.pop(FULL)
            before = effects.interval(tuned).standard_error
            rows += [(task, name, before, effects.interval(of, tuned).standard_error) for name, of in scores.items()]
    table = pd.DataFrame(rows, columns=["task", "group", "tuned_error", "change_error"])
    return table.astype({"tuned_error": float, "change_error": float})


def group_measures(surfaces: pd.DataFrame, rollbacks: pd.DataFrame) -> pd.DataFrame:
    """One row per task, seed and group of layers that has a surface: the columns of `group_ways` and `rolled_back`, and
    `area` with `whole` at `RISE`; empty without surfaces.
    """
    if surfaces.empty:
        return pd.DataFrame()
    surfaces, rows = of_all(surfaces), []
    for key, cells in surfaces.groupby(GROUP, sort=False):
        at_rise = basin(as_surface(cells), START, RISE)
        rows.append((*key, at_rise.area, at_rise.whole))
    table = pd.DataFrame(rows, columns=[*GROUP, "area", "whole"])
    return (
        group_ways(surfaces)
        .drop(columns=["fold", "examples"])
        .merge(table, on=GROUP)
        .merge(rolled_back(rollbacks), on=GROUP)
    )
