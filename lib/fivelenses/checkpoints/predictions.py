"""What fine-tuned models predict on their development sets, example by example: what an interval of a score needs."""

from collections.abc import Sequence

import datasets
import numpy as np
import pandas as pd
import torch

from fivelenses import tasks
from fivelenses.checkpoints.evaluation import Predicted, flat_labels, predict
from fivelenses.checkpoints.specification import Specification
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.models import batches, encoders
from fivelenses.tasks.examples import TaskData, encode
from fivelenses.tasks.parsing import attachment_scores, chain_matches
from fivelenses.tasks.squad_scores import f1, first_sentence

FILE = "predictions.parquet"  # in a checkpoint's folder


def by_example(checkpoints: Sequence[Checkpoint], device: str | None = None) -> pd.DataFrame:
    """The score of each model on each development example, from what was kept at the end of its training.

    The metric is Σ score / Σ weight over the examples, but for Matthews correlation, which takes `label` and
    `predicted`.

    Args:
        checkpoints: fine-tuned models; one whose training diverged is scored like any other.
        device: where models run whose predictions were not kept, a GPU when there is one by default.

    Returns:
        One row per model and example, with `encoder`, `task`, `seed`, `address`, `metric`, `example` (its place in the
        development set), `score` (right or not; F1 of an answer; words right of a sentence), `weight` (1, or words),
        `null` (right by the most frequent label, an answer's first sentence, or a tree of every word on the next one,
        as `evaluation.scores` has them; Matthews correlation has none), `label`, `predicted` (-1 where
        an example has no label of its own).
    """
    kept = [checkpoint.folder / FILE for checkpoint in checkpoints]
    return pd.concat(
        [
            pd.read_parquet(file) if file.is_file() else predicted_anew(checkpoint, device)
            for file, checkpoint in zip(kept, checkpoints, strict=True)
        ],
        ignore_index=True,
    )


def predicted_anew(checkpoint: Checkpoint, device: str | None = None) -> pd.DataFrame:
    """The rows of `by_example` for one model, which reads its development set again."""
    made = checkpoint.specification
    tokenizer = encoders.tokenizer(encoders.locate(made.encoder))
    data = tasks.load(made.task, made.source, ("validation",))
    encoded = encode(data, "validation", tokenizer, made.schedule.max_length)
    model = checkpoint.model().to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    predicted = predict(model, data, "validation", encoded, batches.collator(data.task.head, tokenizer))
    return rows_of(made, data, encoded, predicted)


def rows_of(made: Specification, data: TaskData, encoded: datasets.Dataset, predicted: Predicted) -> pd.DataFrame:
    """The rows of `by_example` for one model.

    Args:
        made: what the model was made from.
        data: its task.
        encoded: the development examples.
        predicted: `evaluation.predict` of these.
    """
    table, labels = data.splits["validation"], None
    if data.task.head == "span":
        gold = [one["text"] for one in table["answers"]]
        guessed = [first_sentence(passage) for passage in table["context"]]
        score, null = ([f1(*pair) for pair in zip(texts, gold, strict=True)] for texts in (predicted, guessed))
        weight = np.ones(len(gold))
    elif data.task.head == "biaffine":
        gold = list(zip(table["heads"], table["names"], strict=True))
        weight, null = np.array([len(heads) for heads, _ in gold]), chain_matches(gold)
        score = [attachment_scores([tree], [other])[1] for tree, other in zip(predicted, gold, strict=True)] * weight
    else:
        labels = flat_labels(encoded)
        weight = np.array([np.size(of_example) for of_example in encoded["labels"]])
        example = np.repeat(np.arange(len(weight)), weight)
        guessed = np.bincount(labels).argmax()
        right = predicted == labels, labels == guessed
        score, null = (np.bincount(example[one], minlength=len(weight)) for one in right)
    one_label = data.task.head == "sequence"
    named = {"label": labels, "predicted": predicted} if one_label else {"label": None, "predicted": None}
    columns = {"score": score, "weight": weight, "null": null}
    return pd.DataFrame(
        {"encoder": made.encoder, "task": made.task, "seed": made.seed, "address": made.address}
        | {"metric": data.task.metric, "example": np.arange(len(weight), dtype=np.int32)}
        | {name: np.asarray(values, dtype=np.float32) for name, values in columns.items()}
        | {name: np.int16(-1) if of is None else of.astype(np.int16) for name, of in named.items()}
    )
