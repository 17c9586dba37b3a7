"""The tables of Hao et al. (2019), and two of ours: the pictures in numbers."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from fivelenses.first_exhibits.exhibit import Absent, Exhibit, printed, title
from fivelenses.papers.hao2019 import RADIUS, basins
from fivelenses.papers.hao2019.basins import NEAR, RADII, RISE
from fivelenses.records import PRETRAINED, RANDOM_ENCODER, SCRATCH

# Table 1, page 9: accuracy tuned, and with the low, middle and high third rolled back, in percent.
PAPER_TABLE_1 = {
    "mnli": (86.54, 86.73, 84.71, 32.85),
    "rte": (75.45, 73.29, 70.04, 47.29),
    "sst2": (94.04, 93.69, 93.12, 59.29),
    "mrpc": (90.20, 87.99, 80.15, 78.17),
}
GROUPS = ("low", "middle", "high")
AT_LEAST = "≥\u202f"  # a narrow space at which no line breaks
DIVERGED = "a training diverged on each of its tasks and seeds"


def task_models(models: pd.DataFrame, second: Mapping[str, str]) -> pd.DataFrame:
    """Each task's models (`checkpoints.tables.models`) without its long training, from scratch first, with `init`, and
    `left_out`: a training diverged that the landscapes of the task and seed need. `second` gives for each task the
    one that gives its second direction.
    """
    scratch = models["encoder"].str.startswith(RANDOM_ENCODER)
    table = models.assign(init=scratch.map({True: SCRATCH, False: PRETRAINED}))
    table = table.sort_values("init", ascending=False, kind="stable")
    shortest = table.groupby(["task", "init", "seed"])["epochs"].transform("min")
    table = table[table["epochs"] == shortest].reset_index(drop=True)
    diverged = set(table.loc[table["diverged"], ["task", "seed"]].itertuples(index=False, name=None))
    needed = [{(row.task, row.seed), (second[row.task], row.seed)} for row in table.itertuples()]
    return table.assign(left_out=[not diverged.isdisjoint(pairs) for pairs in needed])


def fine_tuned(models: pd.DataFrame, second: Mapping[str, str]) -> pd.DataFrame:
    """The rows of the fine-tuned models of the tasks, not those from scratch or trained for longer."""
    return task_models(models, second).query("init == @PRETRAINED")


def gains(models: pd.DataFrame) -> dict[str, float]:
    """By how much the paper's fine-tuned models score above the null rate of a run's tasks, for the gate.

    Example:
        >>> gains(pd.DataFrame({"task": ["mrpc", "cola"], "null_rate": [0.684, 0.0]}))
        {'mrpc': 0.218}
    """
    null = models.groupby("task")["null_rate"].first()
    return {
        task: round(PAPER_TABLE_1[task][0] / 100 - float(null[task]), 6) for task in null.index if task in PAPER_TABLE_1
    }


def table_of_models(models: pd.DataFrame, second: Mapping[str, str]) -> Exhibit:
    """The setting: what was trained, from what, and what became of it; arguments as `task_models`."""
    table = task_models(models, second)
    left_out = [f"{title(row.task)} (seed {row.seed})" for row in table[table["left_out"]].itertuples()]
    caption = (
        "The models, and their scores on all development examples beside the null rate, that of the most frequent "
        "label (0 for a correlation)."
    )
    if left_out:
        caption += (
            " Left out of all that follows, because one of its trainings diverged or one of the task that gives its "
            f"second direction: {', '.join(dict.fromkeys(left_out))}."
        )
    table = table.sort_values(["task", "init"], kind="stable", ignore_index=True)
    columns = {
        "task": ("task", title),
        "init": "start",
        "seed": "seed",
        "examples": ("examples", "{:,}"),
        "epochs": ("epochs", "{:g}"),
        "steps": "steps",
        "metric": "metric",
        "score": ("score", "{:.3f}"),
        "null_rate": ("null rate", "{:.3f}"),
        "diverged": ("diverged", lambda diverged: "yes" if diverged else "no"),
    }
    return Exhibit("hao2019-models", "Models", table, caption, columns=columns)


def printed_falls() -> str:
    """What rolling back low and high layers costs in the paper's Table 1, in points, from least to most."""
    words = []
    for place, group in ((0, GROUPS[0]), (2, GROUPS[2])):
        least, *_, most = sorted(tuned - rolled_back[place] for tuned, *rolled_back in PAPER_TABLE_1.values())
        words.append(f"{group} layers {-least:+.1f} to {-most:+.1f} points")
    return "; ".join(words)


def table_1(rollbacks: pd.DataFrame) -> Exhibit | Absent:
    """Table 1: accuracy with a third of the layers rolled back, the paper's numbers beside ours."""
    if rollbacks.empty:
        return Absent("hao2019-table-1", "Table 1", DIVERGED)
    table = basins.rolled_back(rollbacks).merge(basins.rollback_errors(rollbacks), "left", ["task", "group"])
    numbers = ["accuracy", "tuned", "tuned_error", "change_error"]
    means, rows = table.groupby(["task", "group"])[numbers].mean(), []
    for task in dict.fromkeys([*table["task"], *PAPER_TABLE_1]):
        measured, paper = task in set(table["task"]), PAPER_TABLE_1.get(task)
        tuned, error = means.loc[(task, GROUPS[0]), ["tuned", "tuned_error"]] if measured else (None, np.nan)
        row = {"task": title(task), "tuned": _beside(tuned, None, ".1%", 100, error)}
        row["paper"] = _beside(paper and paper[0])
        for place, group in enumerate(GROUPS, start=1):
            left, error = means.loc[(task, group), ["accuracy", "change_error"]] if measured else (None, np.nan)
            row[f"{group} rolled back"] = _beside(left, tuned, ".1%", 100, error)
            row[f"paper, {group}"] = _beside(*(paper[place], paper[0]) if paper else (None, None))
        rows.append(row)
    seeds = rollbacks["seed"].nunique()
    caption = (
        "Accuracy on all development examples, fine-tuned and with the low, middle or high third of the layers as they "
        f"were before; differences in points.{f' Means over {seeds} seeds.' if seeds > 1 else ''}"
        f"{_of_errors(table['change_error'], seeds)} The paper's columns: "
        "BERT-large, on all its tasks. The paper prints −53.88 for the high layers on MNLI; its accuracies give −53.69."
    )
    return Exhibit("hao2019-table-1", "Table 1", table, caption, shown=pd.DataFrame(rows))


def _of_errors(errors: pd.Series, seeds: int) -> str:
    """What the ± of a table are, where it has any."""
    return f" ±: standard error, over {'seeds and ' if seeds > 1 else ''}examples." if errors.notna().any() else ""


def _beside(
    value: float | None, reference: float | None = None, form: str = ".2f", scale: float = 1, error: float = np.nan
) -> str:
    """A number, with its difference from a reference in points; a dash where there is none. The standard error is that
    of the difference, or of the number where there is no reference.
    """
    if value is None:
        return "–"
    error = f" ± {scale * error:.1f}" if np.isfinite(error) else ""
    if reference is None:
        return f"{printed(value, form)}{error}"
    return f"{printed(value, form)} ({printed(scale * (value - reference), '+.1f' if scale > 1 else '+.2f')}{error})"


def at_least(table: pd.DataFrame, extents: Mapping[str, str]) -> pd.DataFrame:
    """The table with extents (column to the column that says whether it is whole) as a page prints them."""
    printed = {
        extent: [
            None if pd.isna(value) else f"{'' if whole else AT_LEAST}{value:.2f}"
            for value, whole in zip(table[extent], table[is_whole], strict=True)
        ]
        for extent, is_whole in extents.items()
    }
    return table.assign(**printed)


def table_of_measures(landscapes: Mapping[str, pd.DataFrame]) -> Exhibit:
    """Beyond the paper: the landscapes in numbers."""
    table = basins.measures(landscapes).sort_values("task", kind="stable", ignore_index=True)
    extents = {name: f"{name}_whole" for name in ("width", "half_width", "second_width", "random_width")}
    columns = {
        "task": ("task", title),
        "init": "start",
        **({"seed": "seed"} if table["seed"].nunique() > 1 else {}),
        "start_loss": ("loss, start", "{:.2f}"),
        "train_loss": ("loss, end", "{:.2f}"),
        "climb": ("climb", "{:.3f}"),
        "width": "width along δ₁",
        "second_width": "along δ₂",
        "random_width": "random",
        "half_width": "along δ₁, at half",
        "share": "share of discs",
        "half_share": "share, at half",
        "angle": ("angle of δ₁, δ₂", "{:.0f}°"),
        "norm": ("‖δ₁‖", "{norm:.2f} ({relative_norm:.1%})"),
        "sharpness": ("sharpness", "{sharpness:.3f} ± {sharpness_standard_error:.3f}"),
        "correlation": ("ρ", "{:.2f}"),
        "near_correlation": ("ρ, near", "{:.2f}"),
    }
    caption = (
        f"Widths of the basin {RISE:g} nats above the end, and at half of the drop from start to end, in lengths of δ₁ "
        "(≥: it reaches the edge of the grid); random: in a random direction as long. Shares: how much of a disc of "
        f"radius {', '.join(map(str, RADII[:-1]))} and {RADII[-1]} around the end lies below these levels (–: it "
        "leaves the grid). The loss at the end is of all training examples. Climb: largest rise on the straight line "
        "(nats). ‖δ₁‖: also as a share of the start's length. Sharpness: mean rise (nats) when each filter (a row of a "
        f"weight matrix) moves at random by {RADIUS:g} of its length. ρ: rank correlation of training loss and "
        f"development error over the cells; near: over those at most {NEAR:g} lengths from (½, 0) on both axes."
    )
    shown = at_least(table, extents)
    for name in ("share", "half_share"):
        discs = table[[f"{name}_{radius}" for radius in RADII]].to_numpy()
        shown[name] = [" ".join("–" if np.isnan(share) else f"{share:.2f}" for share in of_model) for of_model in discs]
    return Exhibit("hao2019-measures", "Measures", table, caption, shown=shown, columns=columns)


def table_of_groups(surfaces: pd.DataFrame, rollbacks: pd.DataFrame) -> Exhibit | Absent:
    """Beyond the paper: Figure 7 and Table 1 in numbers, beside moves as far in random directions."""
    table = basins.group_measures(surfaces, rollbacks)
    if table.empty:
        return Absent("hao2019-groups", "The table of groups of layers", DIVERGED)
    shown = at_least(table, {"side": "side_whole", "area": "whole"})
    for name in ("accuracy", "random"):
        shown[name] = table[name] - table["tuned"]
    columns = {
        "task": ("task", title),
        **({"seed": "seed"} if table["seed"].nunique() > 1 else {}),
        "group": "layers",
        "side": "distance to the rim",
        "area": "area",
        "rise": ("loss rises, rolled back", "{:+.2f}"),
        "accuracy": ("accuracy, rolled back", "{:+.3f}"),
        "random": ("accuracy, random move", "{:+.3f}"),
        "norm": ("‖δ₁‖", "{norm:.2f} ({relative_norm:.1%})"),
    }
    caption = (
        "Distance, in lengths of δ₁, towards the pre-trained layers (at 1) and beyond, at which the loss has risen by "
        f"{RISE:g} nats, and area of that basin (≥: it reaches the edge of the grid); what rolling the third back does "
        "to training loss and accuracy, beside a random move as far; and how far fine-tuning had moved it."
    )
    return Exhibit("hao2019-groups", "Groups of layers", table, caption, shown=shown, columns=columns)
