"""The pictures of Hao et al. (2019) in numbers, from its records: one row per model, and one per group of layers."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from fivelenses.lenses.basin import basin, half_widths, path, rank_correlation
from fivelenses.lenses.landscape import Surface
from fivelenses.papers.hao2019.measure import OPTIMISATION, RANDOM

RISE = 0.1  # nats above the end
HALF = 0.5  # of the drop from start to end
START, END, BACK = (0.0, 0.0), (1.0, 0.0), (-1.0, 0.0)
FIELDS = ("loss", "error", "loss_standard_error", "error_standard_error")


def as_surface(table: pd.DataFrame) -> Surface:
    """The cells of one surface as a surface of the lens.

    Raises:
        ValueError: a cell is there twice.
    """
    wide = [table.pivot(index="beta", columns="alpha", values=name) for name in FIELDS]
    return Surface(wide[0].columns.to_numpy(), wide[0].index.to_numpy(), *(values.to_numpy() for values in wide))


def width(sides: tuple[float, float], at: float, low: float, high: float) -> tuple[float, bool]:
    """The sum of two half widths, and whether the loss exceeded the rim on both sides; one that it did not reaches to
    the end of the grid, so the sum is at least this.

    Example:
        >>> width((0.5, float("inf")), at=1.0, low=-2.0, high=3.0)
        (2.5, False)
    """
    cut = [side if np.isfinite(side) else room for side, room in zip(sides, (at - low, high - at), strict=True)]
    return float(sum(cut)), bool(np.isfinite(sides).all())


def _at(surface: Surface, values: np.ndarray, place: tuple[float, float]) -> float:
    return float(values[surface.betas == place[1], surface.alphas == place[0]][0])


def measures(landscapes: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One row per model.

    Args:
        landscapes: of `measure.landscapes`.

    Returns:
        The columns of its `models`, and beside them `start_loss`, `end_loss`, `learned` (the end is `RISE` below the
        entropy of the labels), `drop`, `falling` and `climb` of the straight way; `width` along the optimisation
        direction, `second_width` and `random_width` (a random direction), all at `RISE`, each with `…_whole`, False
        where it is at least this; `area` and `whole` at `RISE`, `half_area` and `half_whole` at half of the drop (NaN
        and False without one); `correlation` of training loss and development error over the cells; `error`
        (development, at the end). Widths are in lengths of the model's direction, areas in their squares; a loss that
        is not finite at the end leaves its row without them.
    """
    keys = ["task", "init", "seed"]
    surfaces = dict(list(landscapes["surfaces"].groupby([*keys, "split"])))
    lines = dict(list(landscapes["lines"].groupby([*keys, "direction"])))
    rows = []
    for model in landscapes["models"].to_dict("records"):
        key = tuple(model[name] for name in keys)
        training, development = (as_surface(surfaces[*key, split]) for split in ("train", "validation"))
        row = model | {
            "correlation": rank_correlation(training.losses, development.errors),
            "error": _at(development, development.errors, END),
        }
        rows.append(row | _basin(training, lines[*key, OPTIMISATION], lines[*key, RANDOM], model["null_loss"]))
    return pd.DataFrame(rows)


def _basin(training: Surface, along: pd.DataFrame, null: pd.DataFrame, null_loss: float) -> dict:
    positions, low, high = along["alpha"].to_numpy(), training.alphas[0], training.alphas[-1]
    straight = path(positions, along["loss"].to_numpy())
    start, end = (_at(training, training.losses, place) for place in (START, END))
    row = {
        "start_loss": start,
        "end_loss": end,
        "drop": start - end,
        "falling": straight.falling,
        "climb": straight.climb,
    }
    row["learned"] = bool(end <= null_loss - RISE)
    if not np.isfinite(end):
        return row
    at_rise = basin(training, END, RISE)
    for name, line in (("width", along), ("random_width", null)):
        sides = half_widths(positions, line["loss"].to_numpy(), END[0], RISE)
        row[name], row[f"{name}_whole"] = width(sides, END[0], low, high)
    row["second_width"], row["second_width_whole"] = width(at_rise.second, END[1], low, high)
    row |= {"area": at_rise.area, "whole": at_rise.whole, "half_area": np.nan, "half_whole": False}
    if start > end:
        at_half = basin(training, END, HALF * (start - end))
        row |= {"half_area": at_half.area, "half_whole": at_half.whole}
    return row


def group_measures(surfaces: pd.DataFrame, rollbacks: pd.DataFrame) -> pd.DataFrame:
    """One row per task, seed and group of layers that has a surface.

    Args:
        surfaces, rollbacks: of `measure.group_surfaces` and `measure.rollbacks`.

    Returns:
        `task`, `seed`, `group`, `width` along the group's optimisation direction around the fine-tuned point at `RISE`
        with `width_whole`, `area`, `whole`, `rise` (of the loss when the group is rolled back), and the group's
        columns of `rollbacks`; empty without surfaces.
    """
    if surfaces.empty:
        return pd.DataFrame()
    rows = []
    for (task, seed, group), cells in surfaces.groupby(["task", "seed", "group"], sort=False):
        surface = as_surface(cells)
        at_rise = basin(surface, START, RISE)
        across, whole = width(at_rise.first, START[0], surface.alphas[0], surface.alphas[-1])
        rise = _at(surface, surface.losses, BACK) - _at(surface, surface.losses, START)
        row = {"task": task, "seed": seed, "group": group, "width": across, "width_whole": whole}
        rows.append(row | {"area": at_rise.area, "whole": at_rise.whole, "rise": rise})
    return pd.DataFrame(rows).merge(rollbacks, on=["task", "seed", "group"])
