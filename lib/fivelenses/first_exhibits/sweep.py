"""The score of fine-tuned models against a swept parameter: a curve where it is a quantity, dots where it is not."""

import pandas as pd
from matplotlib.figure import Figure

from fivelenses import tasks
from fivelenses.first_exhibits.exhibit import Exhibit, counted
from fivelenses.first_exhibits.gate import ORDINARY
from fivelenses.first_exhibits.plots import curves, dots, looks_in_order, looks_in_sequence, looks_of_tasks

NUMBERS = ("examples", "frozen", "truncated", "reinitialised", "score", "null_rate")
NAMES = ("seed", "seeds")  # numbers that are no quantities
MIN_RATIO = 20.0  # greatest over least value from which the axis is logarithmic
MAX_TICKS = 8  # values that have a tick each
MAX_COLOURS = 5  # of the house style's sequence; more values are shades
MAX_SCORES = 24  # in an alternative text


def fine_tuned(table: pd.DataFrame, parameter: str) -> pd.DataFrame:
    """The models of a sweep that were fine-tuned as a whole on all that their chapter gives them, and on true labels.

    None of their layers is frozen, removed or re-initialised; of one point's models of one task, those with the most
    examples; where a chapter trains from scratch too, those that were pre-trained.

    Args:
        table: the rows of the exhibit `models` of a sweep's table, see `checkpoints.tables.models`.
        parameter: a swept one, a column, whose values the result has in `value`; a name is that of the model's own
            column and not of a swept parameter.
    """
    models = table.assign(value=table[parameter])
    for column in [name for name in table.columns if name.startswith("table_")]:
        models[column.removeprefix("table_")] = models.pop(column)
    models = models.assign(**{name: pd.to_numeric(models[name]) for name in NUMBERS})
    for column, usual in ORDINARY.items():
        if column in models:
            models = models[pd.to_numeric(models[column]) == usual]
    scratch = models["encoder"].str.startswith("random:")
    models = models if scratch.all() else models[~scratch]
    most = models.groupby(["point", "task"])["examples"].transform("max")
    return models[models["examples"] == most].reset_index(drop=True)


def score_against(table: pd.DataFrame, parameter: str, title: str) -> Exhibit:
    """The picture of a sweep; its table is that of `fine_tuned`, a row per model.

    Args:
        parameter: a swept one, a column. A point where it has no value (each task's schedule has its own) is not drawn.
        title: what is swept, in words.

    Raises:
        ValueError: no model was fine-tuned as a whole.
    """
    models = fine_tuned(table, parameter).dropna(subset=["value"])
    if models.empty:
        raise ValueError(f"No model of {title} was fine-tuned as a whole: there is no score to draw.")
    metrics = models.groupby("task", sort=False)["metric"].first()
    label = f"score ({metrics.iloc[0]})" if metrics.nunique() == 1 else "score"
    quantity = pd.api.types.is_numeric_dtype(models["value"]) and parameter not in NAMES
    figure = (_curves if quantity else _dots)(models, parameter, label)
    scores = models.groupby(["task", "value"], sort=False)["score"].agg(["mean", "size"])
    fewest, most = scores["size"].min(), scores["size"].max()
    number = counted(most, "model") if fewest == most else f"{fewest} to {most} models"
    band = "; their mean, and a band from the least to the greatest" if quantity and most > 1 else ""
    names = ", ".join(f"{tasks.find(task).title} ({metric})" for task, metric in metrics.items())
    caption = (
        f"Development score of the fine-tuned models against {parameter}, {title}: {names}; {number} per task and "
        f"value{band}. {'Dashed line' if quantity else 'Cross'}: the null rate, the score of an answer without reading."
    )
    where = "" if _are_tasks(models) else " at {}"
    words = [f"{task}{where.format(value)} {mean:.3f}" for (task, value), mean in scores["mean"].items()]
    more = ["and more"] if len(words) > MAX_SCORES else []
    alt = f"Scores against {parameter}: {'; '.join(words[:MAX_SCORES] + more)}."
    return Exhibit(f"sweep-{parameter}", f"Score against {parameter}", models, caption, alt, figure)


def _are_tasks(models: pd.DataFrame) -> bool:
    return (models["task"] == models["value"].astype(str)).all()


def _curves(models: pd.DataFrame, parameter: str, label: str) -> Figure:
    """One panel per task: scores have their tasks' scales and null rates."""
    looks, values = looks_of_tasks(models["task"].unique()), sorted(models["value"].unique())
    panels = dict(col="task", titles=looks.names, col_wrap=2 if len(looks.names) <= 4 else 3, bottom=None)
    panels |= dict(x="value", x_label=parameter, log_x=values[0] > 0 and values[-1] / values[0] >= MIN_RATIO)
    figure = curves(models, "score", "task", looks, label, nulls={"null_rate": "null rate"}, **panels)
    for axes in figure.axes if len(values) <= MAX_TICKS else ():
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.minorticks_off()
    return figure


def _dots(models: pd.DataFrame, parameter: str, label: str) -> Figure:
    """One row per task; the values of the parameter side by side in it, unless they are the tasks."""
    looks, marks = looks_of_tasks(models["task"].unique()), {"null_rate": "null rate"}
    if _are_tasks(models):
        return dots(models.assign(of="model"), "score", "task", looks.names, label, "of", looks, marks=marks)
    names = {value: f"{parameter} {value}" for value in models["value"].unique()}
    of_values = (looks_in_sequence if len(names) <= MAX_COLOURS else looks_in_order)(names)
    height = max(0.5, 0.16 * len(names)) * len(looks.names) + 0.8
    return dots(models, "score", "task", looks.names, label, "value", of_values, marks=marks, height=height)
