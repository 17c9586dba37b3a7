"""What training left behind, as tables: one row per model, the losses along each training, and the scores example by
example, which an interval needs; and what words without their order are worth on the same examples.

A fine-tuned model that is no better than logistic regression on counts of words has not shown that it reads.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from fivelenses import tasks
from fivelenses.checkpoints.store import PREDICTIONS, Checkpoint
from fivelenses.tasks.examples import TaskData, with_examples


def _name(checkpoint: Checkpoint) -> dict:
    specification = checkpoint.specification
    return {
        "encoder": specification.encoder,
        "task": specification.task,
        "seed": specification.seed,
        "examples": checkpoint.manifest["training_examples"],
        "frozen": max(specification.frozen, default=-1),
        "truncated": -1 if specification.truncated is None else specification.truncated,
        "reinitialised": len(specification.reinitialised),
        "shuffled_labels": specification.shuffled_labels,
        "epochs": specification.schedule.all_epochs,
        "address": specification.address,
    }


def models(checkpoints: Sequence[Checkpoint]) -> pd.DataFrame:
    """One row per model: what was trained, on what, how, and the score that it reached.

    Returns:
        `encoder`, `task`, `seed`, `examples` (training examples), `frozen` (the highest frozen layer, 0 the embeddings,
        -1 none), `truncated` (layers kept, -1 all), `reinitialised` (layers, counted from the top),
        `shuffled_labels` (trained on labels permuted among the examples), `epochs`, `address`; `learning_rate`,
        `batch_size`, `shape`, `max_length`, `steps`; `metric`, `score`, `null_rate` (the score without reading),
        `exact_match` and `uas` where the task has them; `evaluation_examples`, `training_data` (where they came from,
        in words), `diverged`, `seconds` (of training).
    """
    rows = []
    for checkpoint in checkpoints:
        manifest, schedule = checkpoint.manifest, checkpoint.specification.schedule
        row = _name(checkpoint) | {
            "learning_rate": schedule.learning_rate,
            "batch_size": schedule.batch_size,
            "shape": schedule.shape,
            "max_length": schedule.max_length,
            "training_data": manifest["provenance"]["train"],
        }
        measured = ("steps", "metric", "score", "null_rate", "evaluation_examples", "diverged", "seconds")
        row |= {name: manifest[name] for name in measured}
        rows.append(row | {name: manifest[name] for name in ("exact_match", "uas") if name in manifest})
    return pd.DataFrame(rows)


def histories(checkpoints: Sequence[Checkpoint]) -> pd.DataFrame:
    """The training loss along each training: the first columns of `models`, `steps` in all, `step`, `loss` (nats)."""
    return pd.DataFrame(
        [
            _name(checkpoint) | {"steps": checkpoint.manifest["steps"], "step": step, "loss": loss}
            for checkpoint in checkpoints
            for step, loss in checkpoint.manifest["history"]
        ]
    )


def by_example(checkpoints: Sequence[Checkpoint]) -> pd.DataFrame:
    """The score of each model on each development example, as it was at the end of its training.

    The metric is Σ score / Σ weight over the examples, but for Matthews correlation, which takes `label` and
    `predicted`.

    Returns:
        One row per model and example, with `encoder`, `task`, `seed`, `address`, `metric`, `example` (its place in the
        development set), `score` (right or not; F1 of an answer; words right of a sentence), `weight` (1, or words),
        `null` (right by the most frequent label, an answer's first sentence, or a tree of every word on the next one;
        Matthews correlation has none), `label`, `predicted` (-1 where an example has no label of its own).
    """
    return pd.concat([pd.read_parquet(one.folder / PREDICTIONS) for one in checkpoints], ignore_index=True)


def words_by_example(training_set: Mapping) -> pd.DataFrame:
    """The score of a bag of words on each development example.

    Args:
        training_set: `task` (of texts with one label each), `source`, `examples` (None for all) and `examples_seed` as
            in a specification; what else it has tells records apart.

    Returns:
        The columns of `by_example` but for `encoder` and `address`, with `seed` that of the training examples, and
        `examples`, how many these are.
    """
    task, source, examples, seed = (training_set[name] for name in ("task", "source", "examples", "examples_seed"))
    data = with_examples(tasks.load(task, source, ("train", "validation")), examples, seed)
    gold, predicted = np.array(data.splits["validation"][data.task.label]), words_predicted(data)
    guessed = np.bincount(gold).argmax()
    about = {"task": task, "seed": seed, "examples": data.splits["train"].num_rows, "metric": data.task.metric}
    columns = {"score": predicted == gold, "weight": np.ones(len(gold)), "null": gold == guessed}
    return pd.DataFrame(
        about
        | {"example": np.arange(len(gold), dtype=np.int32)}
        | {name: values.astype(np.float32) for name, values in columns.items()}
        | {"label": gold.astype(np.int16), "predicted": predicted.astype(np.int16)}
    )


def words_predicted(data: TaskData) -> np.ndarray:
    """(examples,) labels of the development examples by logistic regression on counts of words, of each input apart."""
    counters = {column: CountVectorizer(token_pattern=r"\S+") for column in data.task.inputs}
    for column, counter in counters.items():
        counter.fit(data.splits["train"][column])

    def counts(split: str) -> csr_matrix:
        return hstack([counter.transform(data.splits[split][column]) for column, counter in counters.items()]).tocsr()

    model = LogisticRegression(C=1.0, max_iter=2_000)
    return model.fit(counts("train"), np.array(data.splits["train"][data.task.label])).predict(counts("validation"))
