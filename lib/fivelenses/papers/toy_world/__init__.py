"""The exhibits of the toy world's page: its tasks by example, its annotation, and what pre-training is worth on it."""

import json
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

import toyworld
from fivelenses import tasks
from fivelenses.checkpoints import Checkpoint
from fivelenses.exhibits import baselines, score_dots
from fivelenses.exhibits.claims import Claim, as_cases
from fivelenses.exhibits.exhibit import Exhibit
from fivelenses.exhibits.score_dots import PRETRAINED, SCRATCH
from fivelenses.models import encoders
from fivelenses.tasks.examples import TaskData


def examples_of_tasks(names: tuple[str, ...]) -> Exhibit:
    """Two development examples of each task, of different labels."""
    rows = []
    for name in names:
        data = tasks.load(name, "toyworld")
        table = data.splits["validation"].to_pandas()
        for label, shown in list(table.groupby(data.task.label))[:2]:
            inputs = " ‖ ".join(str(shown.iloc[0][column]) for column in data.task.inputs)
            rows.append({"task": data.task.title, "input": inputs, "label": data.labels[label]})
    caption = (
        "Development examples of the toy world's sentence tasks, the first of two labels each; ‖ stands between two "
        "inputs."
    )
    return Exhibit("toy-world-examples", "Tasks by example", pd.DataFrame(rows), caption)


def tokens_with_trees(sentence: int = 0) -> Exhibit:
    """One sentence of the toy treebank with its annotation."""
    row = toyworld.table("treebank")["validation"].iloc[sentence]
    table = pd.DataFrame(
        {
            "word": row["tokens"],
            "part of speech": row["upos"],
            "head": ["(root)" if head == 0 else row["tokens"][head - 1] for head in row["heads"]],
            "relation": row["deprels"],
        }
    )
    caption = (
        "A sentence of the toy treebank: parts of speech and dependencies come from its derivation, not from a parser."
    )
    return Exhibit("toy-world-sentence", "Annotation", table, caption)


def pretraining(names: tuple[str, ...]) -> Exhibit:
    """What each pre-trained encoder reached on held-out stories, from the record beside its weights."""
    rows = []
    for name in names:
        record = json.loads((Path(encoders.locate(name).place) / "pretraining.json").read_text(encoding="utf-8"))
        rows.append(
            {"encoder": name, **record["held_out"], "pieces_seen": record["pieces_seen"], "seconds": record["seconds"]}
        )
    table = pd.DataFrame(rows)
    shown = pd.DataFrame(
        {
            "encoder": table["encoder"],
            "masked words (nats)": table["masked_loss"].map("{:.2f}".format),
            "masked words right": table["masked_accuracy"].map("{:.2f}".format),
            "next sentence right": table["next_sentence_accuracy"].map("{:.2f}".format),
            "pieces read": (table["pieces_seen"] / 1e6).map("{:.1f} M".format),
            "minutes, one core": (table["seconds"] / 60).map("{:.1f}".format),
        }
    )
    caption = (
        "The toy BERTs on held-out stories: cross-entropy and accuracy at masked pieces, accuracy of next-sentence "
        f"prediction (chance 0.5), over {table['masked_pieces'].iloc[0]:,} masked pieces."
    )
    return Exhibit("toy-world-pretraining", "Pre-training", table, caption, shown=shown)


def worth(checkpoints: Mapping[tuple[str, str, int], Checkpoint], data: Mapping[str, TaskData]) -> pd.DataFrame:
    """Scores of all models beside the baselines.

    Args:
        checkpoints: (task, `pre-trained` or `scratch`, seed) to model.
        data: task to its splits.

    Returns:
        One row a task, kind of start and seed: `task`, `start`, `seed`, `score`, `majority`, `length`,
            `bag_of_words`, `metric`.
    """
    without_reading = {
        name: {
            "majority": baselines.majority(one) if one.task.metric == "accuracy" else 0.0,
            "length": baselines.length(one, one.task.metric),
            "bag_of_words": baselines.bag_of_words(one, one.task.metric),
            "metric": one.task.metric,
        }
        for name, one in data.items()
    }
    rows = [
        {"task": task, "start": start, "seed": seed, "score": checkpoint.score, **without_reading[task]}
        for (task, start, seed), checkpoint in checkpoints.items()
    ]
    return pd.DataFrame(rows)


def worth_table(table: pd.DataFrame) -> Exhibit:
    """The scores as a table."""
    spread = table.groupby(["task", "start"])["score"].agg(["mean", "min", "max"])
    firsts = table.groupby("task", sort=False).first()
    shown = pd.DataFrame({"task": [tasks.find(name).title for name in firsts.index]})
    shown["score"] = [tasks.find(name).score_name for name in firsts.index]
    for column, title in (("majority", "majority"), ("length", "length"), ("bag_of_words", "bag of words")):
        shown[title] = firsts[column].map("{:.3f}".format).to_list()
    for start in (SCRATCH, PRETRAINED):
        rows = [spread.loc[name, start] for name in firsts.index]
        shown[start] = [f"{row['mean']:.3f} ({row['min']:.3f}–{row['max']:.3f})" for row in rows]
    caption = (
        f"Development scores over {table['seed'].nunique()} seeds (mean, and range in brackets). Each seed has its "
        "own pre-training; "
        "scratch is the same network from random weights, trained for the same steps. Bag of words and length "
        "are logistic regressions."
    )
    return Exhibit("toy-world-worth", "What pre-training is worth", table, caption, shown=shown)


def worth_figure(table: pd.DataFrame) -> Exhibit:
    """The scores as a picture: a point a seed, baselines as marks."""
    titles = {name: tasks.find(name).title for name in dict.fromkeys(table["task"])}
    axis_label = "development score (accuracy; CoLA: Matthews correlation)"
    figure = score_dots.beside_baselines(table, "task", titles, axis_label, "majority")
    caption = "Each dot is one seed: filled with pre-training, open from scratch at equal steps."
    alt = score_dots.against_scratch(table, "task", titles)
    return Exhibit("toy-world-worth-figure", "Worth it", table, caption, alt, figure)


def pretraining_pays(table: pd.DataFrame) -> pd.DataFrame:
    """The worst pre-trained seed less the best one from scratch, per task."""
    rows = []
    for task, group in table.groupby("task", sort=False):
        ours, theirs = (group[group["start"] == start]["score"] for start in (PRETRAINED, SCRATCH))
        margin = float(ours.min() - theirs.max())
        rows.append((tasks.find(task).title, "all", margin, margin > 0))
    return as_cases(rows)


def structure_is_needed(table: pd.DataFrame) -> pd.DataFrame:
    """Each pre-trained seed less the bag of words; it must not reach 1 either, or there would be nothing left
    to see.
    """
    rows = []
    for (task, seed), group in table[table["start"] == PRETRAINED].groupby(["task", "seed"], sort=False):
        value = float(group["score"].iloc[0])
        margin = value - float(group["bag_of_words"].iloc[0])
        rows.append((tasks.find(task).title, seed, margin, margin > 0.03 and value < 0.995))
    return as_cases(rows)


CLAIMS = (
    Claim(
        "toy-pretraining-pays",
        "",
        "A pre-trained toy BERT beats the same network from scratch at equal steps.",
        "this project",
        ("toy-world-worth",),
        "the worst pre-trained seed less the best from scratch",
        "above 0",
        pretraining_pays,
    ),
    Claim(
        "toy-structure-needed",
        "",
        "A fine-tuned toy BERT is above the bag of words and below a perfect score.",
        "this project",
        ("toy-world-worth",),
        "each pre-trained seed less the bag of words",
        "above 0.03 with a score below 0.995",
        structure_is_needed,
    ),
)
