"""The book's page of this machine's sweeps: scores against every swept parameter, and the verdicts on all claims.

Everything on it is read from the sweeps' tables.
"""

from pathlib import Path

import pandas as pd
import yaml

from fivelenses import project
from fivelenses.book.cards import render
from fivelenses.execution import RunError
from fivelenses.exhibits import Dots, Exhibit, Layout, curves, dots, in_words, table_html
from fivelenses.judging import ORDINARY

PAGE = "here/sweeps.md"
NAMES = ("seed", "seeds")  # numbers that are no quantities
MIN_RATIO = 20.0  # greatest over least value from which the axis is logarithmic


def write_page(folder: Path) -> None:
    """Write the page into the folder that the book is built from; nothing where there is no sweep.

    Raises:
        RunError: a sweep's files are damaged; the sentence says which.
    """
    sweeps = [_content(file.parent) for file in sorted((project.runs_folder() / "sweeps").glob("*/sweep.parquet"))]
    if sweeps:
        (folder / PAGE).parent.mkdir(parents=True, exist_ok=True)
        (folder / PAGE).write_text(render("sweeps.md", sweeps=sweeps), encoding="utf-8")


def _content(sweep: Path) -> dict:
    """What the page says of one sweep."""
    try:
        content = yaml.safe_load((sweep / "sweep.yaml").read_text(encoding="utf-8"))
        table, verdicts = pd.read_parquet(sweep / "sweep.parquet"), pd.read_parquet(sweep / "claims.parquet")
        swept = content["swept"]
        # The parameters that differ between points, seeds only where nothing else does.
        varied = [name for name in swept if table[name].nunique() > 1] or swept
        varied = [name for name in varied if name not in NAMES] or varied
        models = fine_tuned(table[table["exhibit"] == "models"])
        values = {name: table[name].drop_duplicates() for name in swept}
        pictures = [score_against(models, name, sweep.name).html for name in varied if len(models)]
        shown = {"pictures": pictures, "claims": [verdicts_by(verdicts, name) for name in varied if len(verdicts)]}
        return {"name": sweep.name, "swept": values} | {one: content[one] for one in ("chapter", "profile")} | shown
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise RunError(f"The sweep in {sweep} is damaged ({reason}): make it again, or remove the folder.") from error


def verdicts_by(verdicts: pd.DataFrame, parameter: str) -> str:
    """The verdicts over one parameter: a row per claim, a column per value, and at how many points each."""
    counts = verdicts.drop_duplicates(["point", "claim"]).value_counts(["claim", parameter, "verdict"], sort=False)
    words = counts.reset_index().assign(text=lambda rows: rows["verdict"] + " (" + rows["count"].astype(str) + ")")
    wide = words.groupby(["claim", parameter], sort=False)["text"].agg(", ".join).unstack()
    wide.columns = [f"{parameter} {value}" for value in wide.columns]
    return table_html(wide.reset_index(), f"Verdicts by {parameter}, in brackets at how many points.")


def fine_tuned(table: pd.DataFrame) -> pd.DataFrame:
    """The models of a sweep that were fine-tuned as usual on all that their chapter gives them: of one point's models
    of one task those with the most examples, and where a chapter trains from scratch too, those that were pre-trained.

    Args:
        table: the rows of the exhibit `models` of a sweep's table, see `checkpoints.tables.models`, where the model's
            own column is called ``table_<name>`` if it has the name of a swept parameter.

    Returns:
        With `of_task`, `of_seed` and `most` beside: the model's own task, seed and number of examples.
    """
    own = table.rename(columns=lambda name: f"swept_{name}" if f"table_{name}" in table else name)
    own = own.rename(columns=lambda name: name.removeprefix("table_"))
    models = table.assign(of_task=own["task"], of_seed=own["seed"], most=pd.to_numeric(own["examples"]))
    scratch = own["encoder"].str.startswith("random:")
    usual = scratch.all() | ~scratch
    for name, value in ORDINARY.items():
        usual &= pd.to_numeric(own[name]) == value
    models = models[usual]
    return models[models["most"] == models.groupby(["point", "of_task"])["most"].transform("max")]


def score_against(models: pd.DataFrame, parameter: str, sweep: str) -> Exhibit:
    """The picture of a sweep: `fine_tuned` models, a panel per task of curves over a quantity, and dots otherwise; a
    point where the parameter has no value (each task's schedule has its own) is not drawn.
    """
    drawn = pd.DataFrame({"task": models["of_task"], "seed": models["of_seed"], "value": models[parameter]})
    drawn = drawn.join(models[["score", "null_rate"]].apply(pd.to_numeric)).dropna(subset=["value"])
    values, nulls = drawn["value"], {"null_rate": "null rate"}
    if pd.api.types.is_numeric_dtype(values) and parameter not in NAMES:
        wide = values.min() > 0 and values.max() / values.min() >= MIN_RATIO
        layout = Layout(panels="task", bottom=None, log_x=bool(wide))
        drawing = curves(
            drawn, "score", "task", x="value", x_label=parameter, y_label="score", nulls=nulls, layout=layout
        )
    else:
        named = drawn.assign(value=f"{parameter} " + values.astype(str))
        drawing = dots(named, "score", "task", "value", value_label="score", style=Dots(null="null_rate"))
    caption = f"Development score of the fine-tuned models against {parameter}: {in_words(drawn)}."
    return Exhibit(f"{sweep}-{parameter}", f"Score against {parameter}", caption, drawn, drawing)
