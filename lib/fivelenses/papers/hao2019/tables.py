"""The tables of Hao et al. (2019), and two of ours: the pictures in numbers."""

import pandas as pd

from fivelenses import tasks
from fivelenses.exhibits.exhibit import Absent, Exhibit
from fivelenses.papers.hao2019.measure import RADIUS
from fivelenses.papers.hao2019.measures import RISE
from fivelenses.papers.hao2019.planes import Models

# Table 1, page 9: accuracy tuned, and with the low, middle and high third put back, in percent.
PAPER_TABLE_1 = {
    "mnli": (86.54, 86.73, 84.71, 32.85),
    "rte": (75.45, 73.29, 70.04, 47.29),
    "sst2": (94.04, 93.69, 93.12, 59.29),
    "mrpc": (90.20, 87.99, 80.15, 78.17),
}
GROUPS = ("low", "middle", "high")
DIVERGED = "a training diverged on each of its tasks and seeds"


def _title(task: str) -> str:
    return tasks.find(task).title


def _seeds(table: pd.DataFrame) -> str:
    count = table["seed"].nunique()
    return f" Means over {count} seeds." if count > 1 else ""


def _at_least(values: pd.Series, whole: pd.Series) -> list[str]:
    return [
        "–" if pd.isna(value) else f"{'' if all_of_it else '≥ '}{value:.2f}"
        for value, all_of_it in zip(values, whole, strict=True)
    ]


def _shown(values: pd.Series, form: str) -> list[str]:
    return ["–" if pd.isna(value) else form.format(value) for value in values]


def table_of_models(models: Models) -> Exhibit:
    """The setting: what was trained, from what, and what became of it."""
    rows = []
    for task, way, seed in models.trained():
        manifest = models.usual(task, way, seed).manifest
        schedule = manifest["specification"]["schedule"]
        rows.append(
            {
                "task": _title(task),
                "start": "random" if way == "scratch" else "pre-trained",
                "seed": seed,
                "examples": manifest["training_examples"],
                "epochs": schedule["epochs"],
                "steps": manifest["steps"],
                "metric": manifest["metric"],
                "score": manifest["score"],
                "null rate": manifest["null_rate"],
                "diverged": manifest["diverged"],
            }
        )
    table = pd.DataFrame(rows).sort_values(["task", "start"], kind="stable", ignore_index=True)
    view = table.assign(
        examples=_shown(table["examples"], "{:,}"),
        epochs=_shown(table["epochs"], "{:g}"),
        score=_shown(table["score"], "{:.3f}"),
        diverged=["yes" if diverged else "no" for diverged in table["diverged"]],
        **{"null rate": _shown(table["null rate"], "{:.3f}")},
    )
    caption = (
        "The models, and their scores on all development examples beside that of always saying the most frequent "
        "label (0 for a correlation)."
    )
    looked_at = set(models)
    unseen = [which for which in models.trained() if which not in looked_at]
    left_out = dict.fromkeys(f"{_title(task)} (seed {seed})" for task, _, seed in unseen)
    if left_out:
        caption += (
            " Left out of all that follows, because one of its trainings diverged or one of the task that gives its "
            f"second direction: {', '.join(left_out)}."
        )
    return Exhibit("hao2019-models", "Models", table, caption, shown=view)


def put_back(rolled_back: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Table 1 without the paper's columns, a row a task, and what it shows in words.

    Args:
        rolled_back: of `rollbacks`.
    """
    rows = []
    for task, ours in rolled_back.groupby("task", sort=False):
        means = ours.groupby("group")[["accuracy", "tuned"]].mean()
        tuned = means["tuned"].iloc[0]
        row = {"task": _title(task), "tuned": f"{tuned:.1%}"}
        for group, left in means.loc[list(GROUPS), "accuracy"].items():
            row[f"{group} put back"] = f"{left:.1%} ({100 * (left - tuned):+.1f})"
        rows.append(row)
    words = (
        "Accuracy on all development examples, fine-tuned and with the low, middle or high third of the layers as they "
        f"were before; differences in points.{_seeds(rolled_back)}"
    )
    return pd.DataFrame(rows), words


def table_1(rolled_back: pd.DataFrame) -> Exhibit:
    """Table 1: accuracy with a third of the layers put back, the paper's numbers beside ours."""
    view, words = put_back(rolled_back)
    papers = [PAPER_TABLE_1.get(task) for task in rolled_back["task"].unique()]
    view.insert(2, "paper", ["–" if paper is None else f"{paper[0]:.2f}" for paper in papers])
    for place, group in enumerate(GROUPS, start=1):
        printed = ["–" if paper is None else f"{paper[place]:.2f} ({paper[place] - paper[0]:+.2f})" for paper in papers]
        view.insert(view.columns.get_loc(f"{group} put back") + 1, f"paper, {group}", printed)
    caption = f"{words} The paper's columns: BERT-large."
    return Exhibit("hao2019-table-1", "Table 1", rolled_back, caption, shown=view)


def table_of_measures(measures: pd.DataFrame) -> Exhibit:
    """Beyond the paper: the landscapes in numbers."""
    table = measures.sort_values(["task", "way"], kind="stable", ignore_index=True)
    view = pd.DataFrame(
        {
            "task": [_title(task) for task in table["task"]],
            "way": table["way"],
            "loss, start → end": [
                f"{start:.2f} → {end:.3f}" for start, end in zip(table["start_loss"], table["end_loss"], strict=True)
            ],
            "climb": _shown(table["climb"], "{:.2f}"),
            "width along δ₁": _at_least(table["width"], table["width_whole"]),
            "along δ₂": _at_least(table["second_width"], table["second_width_whole"]),
            "random": _at_least(table["random_width"], table["random_width_whole"]),
            "area": _at_least(table["area"], table["whole"]),
            "angle of δ₁, δ₂": _shown(table["angle"], "{:.0f}°"),
            "‖δ₁‖": [
                f"{length:.3g} ({share:.0%})"
                for length, share in zip(table["norm"], table["relative_norm"], strict=True)
            ],
            "sharpness": [
                "–" if pd.isna(mean) else f"{mean:.2f} ± {error:.1g}"
                for mean, error in zip(table["sharpness"], table["sharpness_standard_error"], strict=True)
            ],
            "rank correlation": _shown(table["correlation"], "{:.2f}"),
        }
    )
    caption = (
        f"The landscapes in numbers. Widths and area of the basin at {RISE:g} nats above the end, in lengths of δ₁ and "
        "their squares (≥: it reaches the edge of the grid); a random direction of equal length is the null. Climb is "
        "the largest rise on the straight way (nats). The length of δ₁ is also given as a share of the start's. "
        "Sharpness, which does not depend on that length, is the mean rise (nats) when each filter moves by "
        f"{RADIUS:g} of its own length at random. The rank correlation is that of training loss and development error "
        "over the cells."
    )
    return Exhibit("hao2019-measures", "Measures", table, caption, shown=view)


def table_of_groups(groups: pd.DataFrame) -> Exhibit | Absent:
    """Beyond the paper: Figure 7 and Table 1 in numbers, beside moves as far in random directions."""
    if groups.empty:
        return Absent("hao2019-groups", "The table of groups of layers", DIVERGED)
    view = pd.DataFrame(
        {
            "task": [_title(task) for task in groups["task"]],
            "layers": groups["group"],
            "width along δ₁": _at_least(groups["width"], groups["width_whole"]),
            "area": _at_least(groups["area"], groups["whole"]),
            "loss rises, put back": _shown(groups["rise"], "{:+.2f}"),
            "accuracy, put back": _shown(groups["accuracy"] - groups["tuned"], "{:+.3f}"),
            "accuracy, random move": _shown(groups["random"] - groups["tuned"], "{:+.3f}"),
            "‖δ₁‖": [
                f"{length:.3g} ({share:.0%})"
                for length, share in zip(groups["norm"], groups["relative_norm"], strict=True)
            ],
        }
    )
    caption = (
        f"The thirds of the layers in numbers: width and area at {RISE:g} nats, the rise of the training loss and the "
        "change of accuracy when a third is put back, the latter beside that of moving it as far at random, and how "
        "far fine-tuning had moved it, also as a share of its parameters' length."
    )
    return Exhibit("hao2019-groups", "Groups of layers", groups, caption, shown=view)
