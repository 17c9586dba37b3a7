"""The book's page of this machine's sweeps: scores against every swept parameter, and the verdicts on all claims.

Everything on it is read from the sweeps' tables.
"""

from pathlib import Path

import pandas as pd
import yaml
from matplotlib import pyplot as plt

from fivelenses.chapters import ParameterError
from fivelenses.execution import RunError
from fivelenses.exhibits import Dots, Drawing, Exhibit, Layout, counted, curves, dots, table_html
from fivelenses.judging import ORDINARY, OUTCOMES, title
from fivelenses.runs.side_by_side import render
from fivelenses.sweep import CLAIMS, MODELS, POINTS, TABLE, reason_to_run, sweeps_folder

PAGE = "here/sweeps.md"
NUMBERS = ("examples", "frozen", "truncated", "reinitialised", "score", "null_rate")
NAMES = ("seed", "seeds")  # numbers that are no quantities
MIN_RATIO = 20.0  # greatest over least value from which the axis is logarithmic
MAX_TICKS = 8  # values that have a tick each


def stage(folder: Path) -> None:
    """Write the page into the folder that the book is built from; nothing where there is no sweep.

    Raises:
        RunError: a sweep's files are damaged; the sentence says which.
    """
    page = folder / PAGE
    sweeps = sorted(file.parent for file in sweeps_folder().glob(f"*/{TABLE}"))
    if not sweeps:
        return
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(render("sweeps.md", sweeps=list(map(_content, sweeps))), encoding="utf-8")


def _content(sweep: Path) -> dict:
    """What the page says of one sweep."""
    try:
        content = yaml.safe_load((sweep / POINTS).read_text(encoding="utf-8"))
        table, verdicts = pd.read_parquet(sweep / TABLE), pd.read_parquet(sweep / CLAIMS)
        number, profile, swept, points = (content[name] for name in ("chapter", "profile", "swept", "points"))
        models = table[table["exhibit"] == MODELS]
        pictures = [
            score_against(models, parameter, f"chapter {number} on profile {profile}", sweep.name).html
            for parameter in _parameters_to_draw(models, swept)
        ]
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise RunError(f"The sweep in {sweep} is damaged ({reason}): make it again, or remove the folder.") from error
    return {
        "name": sweep.name,
        "chapter": number,
        "profile": profile,
        "swept": {name: table[name].drop_duplicates() for name in swept},
        "points": len(points),
        "outdated": sum(_is_outdated(number, profile, overrides) for overrides in points.values()),
        "pictures": pictures,
        "claims": [_claims(verdicts, name) for name in _varied(verdicts, swept)] if len(verdicts) else [],
    }


def _varied(table: pd.DataFrame, swept: list[str]) -> list[str]:
    """The parameters that differ between points; all that were swept where none does."""
    return [name for name in swept if table[name].nunique() > 1] or swept


def _claims(verdicts: pd.DataFrame, parameter: str) -> str:
    """The verdicts over one parameter: a row per claim, a column per value."""
    of_points = verdicts.drop_duplicates(["point", "claim"])
    grouped = of_points.groupby(["claim", parameter], sort=False)["verdict"]
    cells = {where: _verdicts(verdicts.tolist()) for where, verdicts in grouped}
    values, names = of_points[parameter].drop_duplicates(), of_points["claim"].drop_duplicates()
    rows = [{"claim": name} | {f"{parameter} {one}": cells.get((name, one)) for one in values} for name in names]
    caption = f"Verdicts by {parameter}, in brackets at how many points where there are several."
    return table_html(pd.DataFrame(rows), caption)


def _verdicts(outcomes: list[str]) -> str:
    """The verdicts of several points on one claim.

    Example:
        >>> _verdicts(["open"]), _verdicts(["open", "mixed", "open"])
        ('open', 'mixed (1), open (2)')
    """
    if len(outcomes) == 1:
        return outcomes[0]
    return ", ".join(f"{one} ({outcomes.count(one)})" for one in OUTCOMES if one in outcomes)


def _parameters_to_draw(models: pd.DataFrame, swept: list[str]) -> list[str]:
    """Each parameter that varies; seeds only where nothing else does."""
    if models.empty or fine_tuned(models, swept[0]).empty:
        return []
    varied = _varied(models, swept)
    return [name for name in varied if name not in NAMES] or varied


def _is_outdated(number: int, profile: str, overrides: dict) -> bool:
    try:
        return bool(reason_to_run(number, profile, overrides))
    except ParameterError:
        return True  # The chapter no longer takes what it took then.


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


def score_against(table: pd.DataFrame, parameter: str, name: str, sweep: str) -> Exhibit:
    """The picture of a sweep; its table is that of `fine_tuned`, a row per model.

    Args:
        parameter: a swept one, a column. A point where it has no value (each task's schedule has its own) is not drawn.
        name: what is swept, in words.
        sweep: the name of its folder.

    Raises:
        ValueError: no model was fine-tuned as a whole.
    """
    models = fine_tuned(table, parameter).dropna(subset=["value"])
    if models.empty:
        raise ValueError(f"No model of {name} was fine-tuned as a whole: there is no score to draw.")
    metrics = models.groupby("task", sort=False)["metric"].first()
    label = f"score ({metrics.iloc[0]})" if metrics.nunique() == 1 else "score"
    quantity = pd.api.types.is_numeric_dtype(models["value"]) and parameter not in NAMES
    drawing = (_curves if quantity else _dots)(models, parameter, label)
    plt.close(drawing.figure)
    scores = models.groupby(["task", "value"], sort=False)["score"].agg(["mean", "size"])
    fewest, most = scores["size"].min(), scores["size"].max()
    number = counted(most, "model") if fewest == most else f"{fewest} to {most} models"
    band = "; their mean, and a band from the least to the greatest" if quantity and most > 1 else ""
    names = ", ".join(f"{title(task)} ({metric})" for task, metric in metrics.items())
    caption = (
        f"Development score of the fine-tuned models against {parameter}, {name}: {names}; {number} per task and "
        f"value{band}. {'Dashed line' if quantity else 'Cross'}: the null rate, the score of an answer without reading."
    )
    return Exhibit(f"{sweep}-{parameter}", f"Score against {parameter}", caption, models, drawing)


def _curves(models: pd.DataFrame, parameter: str, label: str) -> Drawing:
    """One panel per task: scores have their tasks' scales and null rates."""
    values = sorted(models["value"].unique())
    columns, log = 2 if models["task"].nunique() <= 4 else 3, values[0] > 0 and values[-1] / values[0] >= MIN_RATIO
    layout = Layout(panels="task", columns=columns, log_x=log, bottom=None)
    drawn = dict(x="value", x_label=parameter, nulls={"null_rate": "null rate"}, layout=layout)
    drawing = curves(models, "score", "task", y_label=label, **drawn)
    for axes in drawing.figure.axes if len(values) <= MAX_TICKS else ():
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.minorticks_off()
    return drawing


def _dots(models: pd.DataFrame, parameter: str, label: str) -> Drawing:
    """One row per task; the values of the parameter side by side in it, unless they are the tasks."""
    groups = [f"{parameter} {value}" for value in models["value"]]
    named = models.assign(group="model" if (models["task"] == models["value"].astype(str)).all() else groups)
    height = max(0.5, 0.16 * named["group"].nunique()) * models["task"].nunique() + 0.8
    style = Dots(null="null_rate", height=height)
    return dots(named, "score", "task", "group", value_label=label, style=style)
