"""The score of fine-tuned models against a swept parameter: a curve where it is a quantity, points where it is not."""

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fivelenses import tasks
from fivelenses.exhibits import style
from fivelenses.exhibits.exhibit import Exhibit

NUMBERS = ("training_examples", "frozen", "truncated", "reinitialised", "score", "null_rate")
NAMES = ("seed", "seeds")  # numbers that are no quantities
SPAN = 20.0  # greatest over least value from which the axis is logarithmic
TICKS = 8  # values that have a tick each


def fine_tuned(table: pd.DataFrame, parameter: str) -> pd.DataFrame:
    """The models of a sweep that were fine-tuned as a whole on all that their chapter gives them.

    No layer of theirs is frozen, removed or drawn anew; of one point's models of one task, those with the most
    examples; where a chapter trains from scratch too, those that were pre-trained.

    Args:
        table: of a sweep, the rows of its exhibit `models`.
        parameter: a swept one, a column.

    Returns:
        The rows, in which a name stands for the model's own column and not for a swept parameter; the parameter's
            values are in `value`.
    """
    models = table.assign(value=table[parameter])
    for column in [name for name in table.columns if name.startswith("table_")]:
        models[column.removeprefix("table_")] = models.pop(column)
    models = models.assign(**{name: pd.to_numeric(models[name]) for name in NUMBERS})
    models = models[(models["frozen"] == 0) & models["truncated"].isna() & (models["reinitialised"] == 0)]
    scratch = models["encoder"].str.startswith("random:")
    models = models if scratch.all() else models[~scratch]
    most = models.groupby(["point", "task"])["training_examples"].transform("max")
    return models[models["training_examples"] == most].reset_index(drop=True)


def score_against(table: pd.DataFrame, parameter: str, title: str) -> Exhibit:
    """The picture of a sweep.

    Args:
        table: of the sweep, the rows of its exhibit `models`.
        parameter: a swept one, a column. A point where it has no value (each task's schedule has its own) is not drawn.
        title: what is swept, in words.

    Returns:
        The exhibit. Its table has a row for each `task` and `value` of the parameter: `score` (mean), `least`,
            `greatest`, `null_rate`, and `models`, the number behind them.

    Raises:
        ValueError: no model was fine-tuned as a whole.
    """
    models = fine_tuned(table, parameter).dropna(subset=["value"])
    if models.empty:
        raise ValueError(f"No model of {title} was fine-tuned as a whole: there is no score to draw.")
    scores = (
        models.groupby(["task", "value"], sort=False)
        .agg(
            score=("score", "mean"),
            least=("score", "min"),
            greatest=("score", "max"),
            null_rate=("null_rate", "mean"),
            models=("score", "size"),
        )
        .reset_index()
    )
    quantity = pd.api.types.is_numeric_dtype(models["value"]) and parameter not in NAMES
    figure = _curves(scores) if quantity else _points(models, scores)
    metrics = models.drop_duplicates("task").set_index("task")["metric"]
    axes = figure.axes[0]
    axes.set_ylabel(f"score ({metrics.iloc[0]})" if metrics.nunique() == 1 else "score")
    axes.set_xlabel(parameter)
    shown = ", ".join(f"{tasks.find(task).title} ({metric})" for task, metric in metrics.items())
    least, most = scores["models"].min(), scores["models"].max()
    count = f"{least} to {most} models" if least < most else "one model" if most == 1 else f"{most} models"
    marks = "their mean, and a band from least to greatest" if quantity else "and their mean"
    caption = (
        f"Development score of the fine-tuned models against {parameter}, {title}: {shown}; {count} a task and value"
        f"{'' if most == 1 else f', {marks}'}. Dashed: what an answer without reading would score."
    )
    same = (scores["task"] == scores["value"].astype(str)).all()
    said = [
        f"{task}{'' if same else f' at {value}'} {score:.3f}"
        for task, value, score in zip(scores["task"], scores["value"], scores["score"], strict=True)
    ]
    alt = f"Scores against {parameter}: {'; '.join(said[:24])}{'; and more' if len(said) > 24 else ''}."
    return Exhibit(f"sweep-{parameter}", f"Score against {parameter}", scores, caption, alt, figure)


def _curves(scores: pd.DataFrame) -> Figure:
    figure, axes = plt.subplots(figsize=(style.WIDTH, 3.6), layout="constrained")
    values, ends = sorted(scores["value"].unique()), {}
    for task, of_task in scores.groupby("task", sort=False):
        curve, colour = of_task.sort_values("value"), style.TASK_COLOURS[task]
        axes.fill_between(curve["value"], curve["least"], curve["greatest"], color=colour, alpha=0.18, linewidth=0)
        axes.plot(curve["value"], curve["score"], color=colour, marker=style.TASK_MARKERS[task])
        axes.plot(curve["value"], curve["null_rate"], color=colour, linestyle="--", linewidth=1.2)
        ends[tasks.find(task).title] = (curve["score"].iloc[-1], colour)
    if values[0] > 0 and values[-1] / values[0] >= SPAN:
        axes.set_xscale("log")
    if len(values) <= TICKS:
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.minorticks_off()
    style.label_line_ends(axes, values[-1], ends)
    return figure


def _points(models: pd.DataFrame, scores: pd.DataFrame) -> Figure:
    figure, axes = plt.subplots(figsize=(style.WIDTH, 3.6), layout="constrained")
    values, names = list(dict.fromkeys(models["value"])), list(dict.fromkeys(models["task"]))
    # Tasks stand side by side at a value, unless each value has a task of its own.
    beside = scores["value"].duplicated().any()
    width = 0.6 / len(names) if beside else 0.6
    for number, task in enumerate(names):
        shift = (number - (len(names) - 1) / 2) * width if beside else 0.0
        colour, of_task, means = (
            style.TASK_COLOURS[task],
            models[models["task"] == task],
            scores[scores["task"] == task],
        )
        places = [values.index(value) + shift for value in of_task["value"]]
        axes.plot(places, of_task["score"], style.TASK_MARKERS[task], color=colour, label=tasks.find(task).title)
        middles = [values.index(value) + shift for value in means["value"]]
        axes.hlines(means["score"], *_around(middles, width), color=colour)
        axes.hlines(means["null_rate"], *_around(middles, width), color=colour, linestyle="--", linewidth=1.2)
    _name_values(axes, values)
    if beside:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _around(middles: list[float], width: float) -> tuple[list[float], list[float]]:
    return [middle - width / 3 for middle in middles], [middle + width / 3 for middle in middles]


def _name_values(axes: Axes, values: list) -> None:
    words = [str(value) for value in values]
    longest = max(map(len, words)) * len(words)
    axes.set_xticks(range(len(values)), words, rotation=20 if longest > 70 else 0)
    axes.set_xlim(-0.6, len(values) - 0.4)
