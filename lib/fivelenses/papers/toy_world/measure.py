"""What chapter 0 shows of the toy world: tasks by example, annotation, pre-training, and what needs no reading."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import toyworld
from fivelenses.checkpoints.bag_of_words import words_predicted
from fivelenses.models import encoders
from fivelenses.tasks import baselines, load, score
from fivelenses.tasks.examples import with_examples
from pretraining import RECORD


def examples_of_tasks(tasks: Sequence[str]) -> pd.DataFrame:
    """Two development examples of each task, the first of two different labels.

    Returns:
        `task`, `input` (‖ stands between two inputs), `label`.
    """
    rows = []
    for name in tasks:
        data = load(name, "toyworld", ("validation",))
        table = data.splits["validation"].to_pandas()
        for label, shown in list(table.groupby(data.task.label))[:2]:
            inputs = " ‖ ".join(str(shown.iloc[0][column]) for column in data.task.inputs)
            rows.append({"task": name, "input": inputs, "label": data.labels[label]})
    return pd.DataFrame(rows)


def sentence_with_tree(sentence: int = 0) -> pd.DataFrame:
    """One sentence of the toy treebank with its annotation.

    Returns:
        One row per word, with `word`, `part of speech`, `head` (a word, or `(root)`), `relation`.
    """
    row = toyworld.table("treebank")["validation"].iloc[sentence]
    heads = ["(root)" if head == 0 else row["tokens"][head - 1] for head in row["heads"]]
    return pd.DataFrame(
        {"word": row["tokens"], "part of speech": row["upos"], "head": heads, "relation": row["deprels"]}
    )


def record(encoder: str) -> dict:
    """What pre-training wrote beside an encoder's weights.

    Raises:
        ValueError: the encoder was not made by `fivelenses pretrain`.

    Example:
        >>> record("toy-bert/seed-0")["identity"]["specification"]["layers"]
        6
    """
    file = Path(encoders.locate(encoder).place) / RECORD
    if not file.is_file():
        raise ValueError(f"{encoder} has no {RECORD}: name an encoder that `fivelenses pretrain` made.")
    return json.loads(file.read_text(encoding="utf-8"))


def pretraining(pretrained: Sequence[str]) -> pd.DataFrame:
    """What each pre-trained encoder reached on held-out stories.

    Returns:
        `encoder`, `masked_loss` (nats per token), `masked_accuracy`, `next_sentence_accuracy`, `masked_pieces`, `pairs`
        (on which these were measured), `pieces_seen` and `seconds` (of pre-training).

    Raises:
        ValueError: as `record`.
    """
    made = {name: record(name) for name in pretrained}
    return pd.DataFrame(
        {"encoder": name, **one["held_out"], "pieces_seen": one["pieces_seen"], "seconds": one["seconds"]}
        for name, one in made.items()
    )


def without_reading(tasks: Sequence[str], source: str, examples: int | None = None) -> pd.DataFrame:
    """The scores that need no reading, or none of the order of words.

    Args:
        tasks: of one or two texts.
        source: `toyworld` or `hub`.
        examples: of the training split, those that models see who are fine-tuned on so many; None for all.

    Returns:
        `task`, `metric`, `majority` (one answer always), `length`, `bag_of_words`.
    """
    rows = []
    for name in tasks:
        data = with_examples(load(name, source), examples, seed=0)
        metric = data.task.metric
        row = {"task": name, "metric": metric}
        row |= {"majority": baselines.majority(data) if metric == "accuracy" else 0.0}
        gold = np.array(data.splits["validation"][data.task.label])
        row |= {"length": baselines.length(data, metric), "bag_of_words": score(metric, words_predicted(data), gold)}
        rows.append(row)
    return pd.DataFrame(rows)
