"""The book's page of this machine's sweeps, from their tables: scores and verdicts against every swept parameter."""

from pathlib import Path

import pandas as pd
import yaml

from fivelenses import project
from fivelenses.book.cards import render
from fivelenses.exhibits import Exhibit, dots, in_words, table_html
from fivelenses.judging import ORDINARY

PAGE = "here/sweeps.md"


def write_page(folder: Path) -> None:
    """Write the page into the folder that the book is built from; nothing where there is no sweep."""
    sweeps = [_content(file.parent) for file in sorted((project.runs_folder() / "sweeps").glob("*/sweep.parquet"))]
    if sweeps:
        (folder / PAGE).parent.mkdir(parents=True, exist_ok=True)
        (folder / PAGE).write_text(render("sweeps.md", sweeps=sweeps), encoding="utf-8")


def _content(sweep: Path) -> dict:
    content = yaml.safe_load((sweep / "sweep.yaml").read_text(encoding="utf-8"))
    table, verdicts = pd.read_parquet(sweep / "sweep.parquet"), pd.read_parquet(sweep / "claims.parquet")
    models, values = table[table["exhibit"] == "models"], {name: table[name].unique() for name in content["swept"]}
    varied = [name for name, several in values.items() if len(several) > 1]
    pictures = [score_against(models, name, sweep.name).html for name in varied if len(models)]
    claims = [verdicts_by(verdicts, name) for name in varied if len(verdicts)]
    of_sweep = {"name": sweep.name, "chapter": content["chapter"], "profile": content["profile"], "swept": values}
    return of_sweep | {"pictures": pictures, "claims": claims}


def verdicts_by(verdicts: pd.DataFrame, parameter: str) -> str:
    """The verdicts over one parameter: a row per claim, a column per value, and at how many points each."""
    counts = verdicts.drop_duplicates(["point", "claim"]).value_counts(["claim", parameter, "verdict"], sort=False)
    words = counts.reset_index().assign(text=lambda rows: rows["verdict"] + " (" + rows["count"].astype(str) + ")")
    wide = words.groupby(["claim", parameter], sort=False)["text"].agg(", ".join).unstack()
    wide.columns = [f"{parameter} {value}" for value in wide.columns]
    return table_html(wide.reset_index(), f"Verdicts by {parameter}, in brackets at how many points.")


def score_against(models: pd.DataFrame, parameter: str, sweep: str) -> Exhibit:
    """The scores of a sweep's models that were fine-tuned as usual, a dot each, by task and by a swept parameter.

    Args:
        models: the rows of the exhibit `models` of a sweep's table, see `checkpoints.tables.models`, where the model's
            own column is called ``table_<name>`` if it has the name of a swept parameter.
    """
    own = {name: models.get(f"table_{name}", models.get(name)) for name in ("task", "seed", *ORDINARY)}
    usual = [pd.to_numeric(own[name]) == value for name, value in ORDINARY.items()]
    drawn = pd.DataFrame({"task": own["task"], "seed": own["seed"], "score": pd.to_numeric(models["score"])})
    drawn = drawn.assign(value=f"{parameter} " + models[parameter].astype(str))[pd.concat(usual, axis=1).all(axis=1)]
    drawing = dots(drawn, "score", "task", "value", value_label="score")
    caption = f"Development score of the fine-tuned models against {parameter}: {in_words(drawn)}."
    return Exhibit(f"{sweep}-{parameter}", f"Score against {parameter}", caption, drawn, drawing)
