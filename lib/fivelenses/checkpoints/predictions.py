"""What fine-tuned models predict on their development sets, example by example: what an interval of a score needs."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from fivelenses import tasks
from fivelenses.checkpoints.evaluation import answers, flat_labels, predictions, trees
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.models import batches, encoders
from fivelenses.tasks.examples import encode
from fivelenses.tasks.parsing import attachment_scores, chain_matches
from fivelenses.tasks.squad_scores import f1, first_sentence


def by_example(checkpoints: Sequence[Checkpoint], device: str | None = None) -> pd.DataFrame:
    """The score of each model on each development example.

    The metric is Σ score / Σ weight over the examples, but for Matthews correlation, which takes `label` and
    `predicted`.

    Args:
        checkpoints: fine-tuned models; one whose training diverged is scored like any other.
        device: where they run, a GPU when there is one by default.

    Returns:
        One row per model and example, with `encoder`, `task`, `seed`, `address`, `metric`, `example` (its place in the
        development set), `score` (right or not; F1 of an answer; words right of a sentence), `weight` (1, or words),
        `null` (right by the most frequent label, an answer's first sentence, or a tree of every word on the next one,
        as `evaluation.evaluate` has them; Matthews correlation has none), `label`, `predicted` (-1 where
        an example has no label of its own).
    """
    return pd.concat([_of(checkpoint, device) for checkpoint in checkpoints], ignore_index=True)


def _of(checkpoint: Checkpoint, device: str | None) -> pd.DataFrame:
    made = checkpoint.specification
    tokenizer = encoders.tokenizer(encoders.locate(made.encoder))
    data = tasks.load(made.task, made.source, ("validation",))
    encoded = encode(data, "validation", tokenizer, made.schedule.max_length)
    model = checkpoint.model().to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    collate, table = batches.collator(data.task.head, tokenizer), data.splits["validation"]
    labels = predicted = None
    if data.task.head == "span":
        said, gold = answers(model, data, "validation", encoded, collate), [one["text"] for one in table["answers"]]
        guessed = [first_sentence(passage) for passage in table["context"]]
        score, null = ([f1(*pair) for pair in zip(texts, gold, strict=True)] for texts in (said, guessed))
        weight = np.ones(len(gold))
    elif data.task.head == "biaffine":
        gold = list(zip(table["heads"], table["names"], strict=True))
        weight, null = np.array([len(heads) for heads, _ in gold]), chain_matches(gold)
        parsed = trees(model, data, "validation", encoded, collate)
        score = [attachment_scores([tree], [other])[1] for tree, other in zip(parsed, gold, strict=True)] * weight
    else:
        labels, predicted = flat_labels(encoded), predictions(model, encoded, collate)
        weight = np.array([np.size(of_example) for of_example in encoded["labels"]])
        example = np.repeat(np.arange(len(weight)), weight)
        guessed = np.bincount(labels).argmax()
        right = predicted == labels, labels == guessed
        score, null = (np.bincount(example[one], minlength=len(weight)) for one in right)
        if data.task.head != "sequence":
            labels = predicted = None
    named = {"label": labels, "predicted": predicted}
    columns = {"score": score, "weight": weight, "null": null}
    return pd.DataFrame(
        {"encoder": made.encoder, "task": made.task, "seed": made.seed, "address": made.address}
        | {"metric": data.task.metric, "example": np.arange(len(weight), dtype=np.int32)}
        | {name: np.asarray(values, dtype=np.float32) for name, values in columns.items()}
        | {name: np.int16(-1) if of is None else of.astype(np.int16) for name, of in named.items()}
    )
