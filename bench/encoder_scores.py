"""What the encoders of the book reach on its tasks, from committed records: prints a table.

    python bench/encoder_scores.py > book/encoder-scores.csv

Chapter 7, whose trainings differ in length by design, is left out.
"""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from fivelenses import catalogue, judging, records


def of_runs(folders: Iterable[Path], name: str) -> pd.DataFrame:
    """The rows of all runs that have this record."""
    files = [folder / f"{name}.parquet" for folder in sorted(folders) if not folder.name.startswith("7")]
    return pd.concat([records.read(file).table for file in files if file.is_file()])


def scores(folders: Iterable[Path]) -> pd.DataFrame:
    """One row per task, training set and number of epochs, with a column per encoder: the mean score of its models
    that were fine-tuned as usual on the largest training set that it has of the task.
    """
    folders = list(folders)
    models, words = (of_runs(folders, name) for name in ("models", "words_by_example"))
    models = models[~models["encoder"].str.startswith("random:")].drop_duplicates("address")
    # One name for all pre-trainings of an encoder, and without its owner.
    names = models["encoder"].str.replace(r"/seed-\d+$", "", regex=True).str.rpartition("/")[2]
    models = judging.ordinary(models.assign(encoder=names))
    models = models[models["examples"] == models.groupby(["encoder", "task"])["examples"].transform("max")]
    table = models.pivot_table("score", ["task", "examples", "epochs"], "encoder").reset_index()
    words = words.drop_duplicates(["task", "examples", "seed", "example"]).groupby(["task", "examples"])
    of_words = {key: judging.score(rows).estimate for key, rows in words}
    table.insert(3, "bag of words", [of_words.get(key) for key in zip(table["task"], table["examples"], strict=True)])
    nulls = models.groupby("task")["null_rate"].first()
    known = [(catalogue.find(task), nulls[task]) for task in table["task"]]
    table["task"] = [task.title for task, _ in known]
    table.insert(1, "score (null rate)", [f"{task.score_name} ({null:.3f})" for task, null in known])
    return table.assign(examples=table["examples"].map("{:,}".format), epochs=table["epochs"].map("{:g}".format))


def printed(table: pd.DataFrame) -> str:
    """The table as the page includes it."""
    return table.to_csv(index=False, float_format=lambda score: f"{score:.3f}".replace("-", "−"), na_rep="–")


if __name__ == "__main__":
    print(printed(scores(records.committed_folder().glob("*/[0-9]-*"))), end="")
