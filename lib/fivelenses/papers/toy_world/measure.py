"""What chapter 0 shows of the toy world: tasks by example, annotation, pre-training, and what needs no reading."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import toyworld
from fivelenses.models import encoders
from fivelenses.tasks import TaskData, baselines, load
from fivelenses.tasks.subsets import subset
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
        data = training_part(name, source, examples)
        metric = data.task.metric
        row = {"task": name, "metric": metric}
        row |= {"majority": baselines.majority(data) if metric == "accuracy" else 0.0}
        row |= {"length": baselines.length(data, metric), "bag_of_words": baselines.bag_of_words(data, metric)}
        rows.append(row)
    return pd.DataFrame(rows)


def words_by_example(tasks: Sequence[str], source: str, examples: int | None = None) -> pd.DataFrame:
    """What the bag of words says of each development example; arguments as `without_reading`.

    Returns:
        The columns of `checkpoints.predictions.by_example`, but for `encoder` and `address`; `seed` is 0.
    """
    parts = []
    for name in tasks:
        data = training_part(name, source, examples)
        gold, predicted = np.array(data.splits["validation"][data.task.label]), baselines.words_predicted(data)
        columns = {"score": predicted == gold, "weight": 1, "null": gold == np.bincount(gold).argmax()}
        columns = {column: np.broadcast_to(values, gold.shape).astype(np.float32) for column, values in columns.items()}
        columns |= {"label": gold.astype(np.int16), "predicted": predicted.astype(np.int16)}
        about = {"task": name, "seed": 0, "metric": data.task.metric, "example": np.arange(len(gold), dtype=np.int32)}
        parts.append(pd.DataFrame(about | columns))
    return pd.concat(parts, ignore_index=True)


def training_part(task: str, source: str, examples: int | None) -> TaskData:
    """A task whose training split is what models were fine-tuned on, for baselines that see no more than they.

    Args:
        task: a task of one or two texts.
        source: `toyworld` or `hub`.
        examples: the specification's; None for all.
    """
    data = load(task, source)
    if examples is None:
        return data
    table = data.splits["train"]
    kept = table.select(subset(np.array(table[data.task.label]), examples, seed=0))
    return TaskData(data.task, source, {**data.splits, "train": kept}, data.labels)
