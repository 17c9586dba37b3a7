"""The exhibits of the toy world's page: its tasks by example, its annotation, and what pre-training is worth on it."""

import json
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from fivelenses import tasks
from fivelenses.checkpoints import Checkpoint
from fivelenses.exhibits import baselines
from fivelenses.exhibits.claims import Claim, as_cases
from fivelenses.exhibits.exhibit import Exhibit
from fivelenses.exhibits.plots import dots, looks_of_tasks
from fivelenses.models import encoders
from fivelenses.tasks.examples import TaskData
from toyworld import tables

PRETRAINED, SCRATCH = "pre-trained", "scratch"


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
    row = tables.table("treebank")["validation"].iloc[sentence]
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
    columns = {
        "encoder": "encoder",
        "masked_loss": "masked tokens (nats)",
        "masked_accuracy": "masked tokens right",
        "next_sentence_accuracy": "next sentence right",
        "pieces_seen": "tokens read",
        "seconds": "minutes, one core",
    }
    formats = dict.fromkeys(("masked_loss", "masked_accuracy", "next_sentence_accuracy"), "{:.2f}")
    formats |= {"pieces_seen": in_millions, "seconds": lambda seconds: f"{seconds / 60:.1f}"}
    caption = (
        "The toy BERTs on held-out stories: cross-entropy and accuracy at masked tokens, accuracy of next-sentence "
        f"prediction (chance 0.5), over {table['masked_pieces'].iloc[0]:,} masked tokens."
    )
    return Exhibit("toy-world-pretraining", "Pre-training", table, caption, columns=columns, formats=formats)


def in_millions(number: float) -> str:
    """A number of tokens, as a table prints it.

    Example:
        >>> in_millions(2_340_000)
        '2.3 M'
    """
    return f"{number / 1e6:.1f} M"


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
    looks = looks_of_tasks(table["task"])
    label, marks = (
        "development score (accuracy; CoLA: Matthews correlation)",
        {"majority": "majority", "bag_of_words": "bag of words"},
    )
    figure = dots(table, "score", "task", looks.names, label, "start", looks, open=[SCRATCH], marks=marks)
    caption = "Each dot is one seed: filled with pre-training, open from scratch at equal steps."
    alt = against_scratch(table, "task", looks.names)
    return Exhibit("toy-world-worth-figure", "Worth it", table, caption, alt, figure)


def against_scratch(table: pd.DataFrame, line: str, titles: Mapping) -> str:
    """The mean score of each task, or measure, with pre-training and from scratch, for an alternative text.

    Args:
        table: with `start`, `score` and the column `line`.
        titles: value of `line` to what it is called.

    Example:
        >>> table = pd.DataFrame({"task": "rte", "start": [PRETRAINED, SCRATCH], "score": [0.71, 0.52]})
        >>> against_scratch(table, "task", {"rte": "RTE"})
        'Development scores with pre-training against from scratch: RTE 0.71 against 0.52.'
    """
    means = table.groupby([line, "start"])["score"].mean()
    pairs = [f"{title} {means[key, PRETRAINED]:.2f} against {means[key, SCRATCH]:.2f}" for key, title in titles.items()]
    return f"Development scores with pre-training against from scratch: {'; '.join(pairs)}."


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
