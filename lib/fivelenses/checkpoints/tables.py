"""What fine-tuned models predict on their development sets, their scores, and what training left behind as tables: one
row per model, the losses along each training, and the scores example by example, which an interval of a score needs.

A fine-tuned model that is no better than logistic regression on counts of words has not shown that it reads; the same
examples are scored by that, too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import datasets
import numpy as np
import pandas as pd
import torch
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from torch import nn
from transformers.utils import ModelOutput

from fivelenses import tasks
from fivelenses.checkpoints.specification import Specification
from fivelenses.checkpoints.store import PREDICTIONS, Checkpoint
from fivelenses.models.biaffine import parse
from fivelenses.tasks.encoding import best_span
from fivelenses.tasks.examples import SENTENCE_END, TaskData, with_examples
from fivelenses.tasks.scores import attached, chain_matches, exact_match, f1, score

# What a model reads of an encoded example; the rest is for training and scoring.
INPUTS = ("input_ids", "attention_mask", "token_type_ids", "word_ids", "units")
BATCH_SIZE = 64
# Of a schedule and of a manifest, in the table of models.
OF_SCHEDULE = ("learning_rate", "batch_size", "shape", "max_length")
MEASURED = ("steps", "metric", "score", "null_rate", "evaluation_examples", "diverged", "seconds", "exact_match", "uas")

Outputs = Iterator[tuple[np.ndarray, ModelOutput]]  # rows of the examples, and what the model makes of them
# Labels of all units, one answer per question, or heads and relations per sentence.
Predicted = np.ndarray | list[str] | list[tuple[list[int], list[str]]]


def predict(model: nn.Module, data: TaskData, encoded: datasets.Dataset, collate: Callable) -> Predicted:
    """What a model predicts on the encoded development set of a task: labels, answers or trees, as its head has it."""
    outputs, table = _outputs(model, encoded, collate), data.splits["validation"]
    if data.task.head == "span":
        return _answers(outputs, encoded, list(table["context"]))
    if data.task.head == "biaffine":
        return _trees(outputs, encoded, table["tokens"], data.labels)
    return _labels(outputs, encoded)


@torch.no_grad()
def _outputs(model: nn.Module, encoded: datasets.Dataset, collate: Callable) -> Outputs:
    """Batches of similar length, the shortest first."""
    # With batches by length, the Trainer's own loop returns predictions in another order than that of the examples.
    order = np.argsort([len(tokens) for tokens in encoded["input_ids"]], kind="stable")
    model.eval()
    for begin in range(0, len(order), BATCH_SIZE):
        rows = order[begin : begin + BATCH_SIZE]
        inputs = collate([{name: row[name] for name in INPUTS if name in row} for row in encoded.select(rows)])
        yield rows, model(**inputs.to(model.device))


def _labels(outputs: Outputs, encoded: datasets.Dataset) -> np.ndarray:
    """Predicted labels in the order of `flat_labels`."""
    ends = np.cumsum([np.size(labels) for labels in encoded["labels"]])
    places, predicted = np.split(np.arange(ends[-1]), ends[:-1]), np.empty(ends[-1], dtype=np.int64)
    for rows, output in outputs:
        predicted[np.concatenate([places[row] for row in rows])] = output.logits.argmax(-1).cpu().numpy()
    return predicted


def _answers(outputs: Outputs, encoded: datasets.Dataset, passages: list[str]) -> list[str]:
    """The answer to each question: of all its windows' spans the one with the highest sum of logits."""
    best: dict[int, tuple[float, int, int]] = {}
    for rows, output in outputs:
        windows = encoded.select(rows)
        starts, ends = (logits.float().cpu().numpy() for logits in (output.start_logits, output.end_logits))
        for start, end, question, pairs in zip(starts, ends, windows["row"], windows["offsets"], strict=True):
            offsets = np.array(pairs)
            tokens = len(offsets)
            logit, first, last = best_span(start[:tokens], end[:tokens], offsets[:, 0] >= 0)
            if question not in best or logit > best[question][0]:
                best[question] = logit, int(offsets[first, 0]), int(offsets[last, 1])
    return [passage[best[question][1] : best[question][2]] for question, passage in enumerate(passages)]


def _trees(
    outputs: Outputs, encoded: datasets.Dataset, sentences: Sequence[list[str]], labels: Sequence[str]
) -> list[tuple[list[int], list[str]]]:
    """Heads and relations of each sentence; a word without tokens has the head -1 and no relation."""
    parsed = [([-1] * len(words), [""] * len(words)) for words in sentences]
    for rows, output in outputs:
        batch = encoded.select(rows)
        arcs, relations = (logits.float().cpu().numpy() for logits in (output.arcs, output.relations))
        for place, (sentence, word_ids) in enumerate(zip(batch["row"], batch["word_ids"], strict=True)):
            words = np.array(sorted(set(word_ids) - {-1}))
            for word, head, relation in zip(words, *parse(arcs[place], relations[place], words), strict=True):
                parsed[sentence][0][word], parsed[sentence][1][word] = int(head), labels[relation]
    return parsed


def flat_labels(encoded: datasets.Dataset) -> np.ndarray:
    """The labels of all examples in order; those of all units where an example has several."""
    return np.concatenate([np.atleast_1d(labels) for labels in encoded["labels"]])


def scored(
    made: Specification, data: TaskData, encoded: datasets.Dataset, predicted: Predicted
) -> tuple[dict[str, float], pd.DataFrame]:
    """The scores of what the model of a specification predicted, and its rows of `by_example`; answers and trees are
    compared with the task's table, whole, also where tokens were cut off.

    `score` is the task's metric, and `null_rate` that of a model without information: the most frequent label for
    accuracy and 0 for Matthews; the passage's first sentence for answers, scored by F1 with `exact_match` beside it;
    for trees every word on the next one, scored by LAS with `uas` beside it.
    """
    table, head = data.splits["validation"], data.task.head
    named, others = {"label": -1, "predicted": -1}, {}
    if head == "span":
        gold = [one["text"] for one in table["answers"]]
        guessed = [SENTENCE_END.split(passage.strip(), maxsplit=1)[0] for passage in table["context"]]
        right, null = ([f1(*pair) for pair in zip(texts, gold, strict=True)] for texts in (predicted, guessed))
        weight = np.ones(len(gold))
        others = {"exact_match": sum(map(exact_match, predicted, gold)) / len(gold)}
    elif head == "biaffine":
        gold = list(zip(table["heads"], table["names"], strict=True))
        weight, null = np.array([len(heads) for heads, _ in gold]), chain_matches(gold)
        heads, right = zip(*map(attached, predicted, gold), strict=True)
        others = {"uas": float(sum(heads) / weight.sum())}
    else:
        labels = flat_labels(encoded)
        weight = np.array([np.size(of_example) for of_example in encoded["labels"]])
        example = np.repeat(np.arange(len(weight)), weight)
        equal = predicted == labels, labels == np.bincount(labels).argmax()
        right, null = (np.bincount(example[one], minlength=len(weight)) for one in equal)
        if head == "sequence":
            named = {"label": labels, "predicted": predicted}
    scores = {"score": float(sum(right) / weight.sum()), "null_rate": float(sum(null) / weight.sum())}
    if data.task.metric == "matthews":
        scores = {"score": score("matthews", predicted, labels), "null_rate": 0.0}
    about = {"encoder": made.encoder, "task": made.task, "seed": made.seed, "address": made.address}
    return scores | others, example_rows(about | {"metric": data.task.metric}, right, weight, null, **named)


def example_rows(about: Mapping, score, weight, null, label, predicted) -> pd.DataFrame:
    """The rows of `by_example` of one model."""
    columns = {"score": score, "weight": weight, "null": null, "label": label, "predicted": predicted}
    kinds = {"example": np.int32, **dict.fromkeys(("score", "weight", "null"), np.float32)}
    rows = pd.DataFrame({**about, "example": np.arange(len(weight)), **columns})
    return rows.astype(kinds | {"label": np.int16, "predicted": np.int16})


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
        row = _name(checkpoint) | {name: getattr(schedule, name) for name in OF_SCHEDULE}
        row["training_data"] = manifest["provenance"]["train"]
        rows.append(row | {name: manifest[name] for name in MEASURED if name in manifest})
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
    """The score of a bag of words on each development example, in the columns of `by_example` but for `encoder` and
    `address`, with `seed` that of the training examples, and `examples`, how many these are.

    The training set has `task` (of texts with one label each), `source`, `examples` (None for all) and `examples_seed`
    as in a specification; what else it has tells records apart.
    """
    task, source, examples, seed = (training_set[name] for name in ("task", "source", "examples", "examples_seed"))
    data = with_examples(tasks.load(task, source, ("train", "validation")), examples, seed)
    gold, predicted = np.array(data.splits["validation"][data.task.label]), words_predicted(data)
    about = {"task": task, "seed": seed, "examples": data.splits["train"].num_rows, "metric": data.task.metric}
    null = gold == np.bincount(gold).argmax()
    return example_rows(about, predicted == gold, np.ones(len(gold)), null, gold, predicted)


def words_predicted(data: TaskData) -> np.ndarray:
    """(examples,) labels of the development examples by logistic regression on counts of words, of each input apart."""
    training, development = (data.splits[split].to_pandas() for split in ("train", "validation"))
    counts = make_column_transformer(*((CountVectorizer(token_pattern=r"\S+"), one) for one in data.task.inputs))
    model = make_pipeline(counts, LogisticRegression(C=1.0, max_iter=2_000))
    return model.fit(training, training[data.task.label]).predict(development)
