"""What fine-tuned models predict on their development sets, their scores, and these example by example, which an
interval of a score needs.

The Trainer's own loop is not used: with batches by length it returns predictions in another order than the examples.
"""

from collections.abc import Callable, Iterator, Sequence

import datasets
import numpy as np
import pandas as pd
import torch
from torch import nn
from transformers.utils import ModelOutput

from fivelenses.checkpoints.specification import Specification
from fivelenses.models.biaffine import parse
from fivelenses.tasks.encoding import best_span
from fivelenses.tasks.examples import TaskData
from fivelenses.tasks.scores import attached, chain_matches, exact_match, f1, first_sentence, score

# What a model reads of an encoded example; the rest is for training and scoring.
INPUTS = ("input_ids", "attention_mask", "token_type_ids", "word_ids", "units")
BATCH_SIZE = 64

# Labels of all units, one answer per question, or heads and relations per sentence.
Predicted = np.ndarray | list[str] | list[tuple[list[int], list[str]]]


def predict(model: nn.Module, data: TaskData, encoded: datasets.Dataset, collate: Callable) -> Predicted:
    """What a model predicts on a task's development set: labels, answers or trees, as its head has it.

    Args:
        model: it is put in evaluation mode.
        encoded: the development examples, which `collate` lays out as a batch.
    """
    outputs, table = _outputs(model, encoded, collate), data.splits["validation"]
    if data.task.head == "span":
        return _answers(outputs, encoded, list(table["context"]))
    if data.task.head == "biaffine":
        return _trees(outputs, encoded, table["tokens"], data.labels)
    return _labels(outputs, encoded)


@torch.no_grad()
def _outputs(
    model: nn.Module, encoded: datasets.Dataset, collate: Callable
) -> Iterator[tuple[np.ndarray, ModelOutput]]:
    """Rows of the examples and what the model makes of them, batches of similar length, the shortest first."""
    order = np.argsort([len(tokens) for tokens in encoded["input_ids"]], kind="stable")
    model.eval()
    for begin in range(0, len(order), BATCH_SIZE):
        rows = order[begin : begin + BATCH_SIZE]
        inputs = collate([{name: row[name] for name in INPUTS if name in row} for row in encoded.select(rows)])
        yield rows, model(**inputs.to(model.device))


def _labels(outputs: Iterator, encoded: datasets.Dataset) -> np.ndarray:
    """Predicted labels in the order of `flat_labels`."""
    sizes = np.array([np.size(labels) for labels in encoded["labels"]])
    first = np.concatenate([[0], np.cumsum(sizes)])
    predicted = np.empty(first[-1], dtype=np.int64)
    for rows, output in outputs:
        places = np.concatenate([np.arange(first[row], first[row + 1]) for row in rows])
        predicted[places] = output.logits.argmax(-1).cpu().numpy()
    return predicted


def _answers(outputs: Iterator, encoded: datasets.Dataset, passages: list[str]) -> list[str]:
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
    outputs: Iterator, encoded: datasets.Dataset, sentences: Sequence[list[str]], labels: Sequence[str]
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
    """The scores of what the model of a specification predicted; answers and trees are compared with the task's table,
    whole, also where tokens were cut off.

    Returns:
        `score`, the task's metric, and `null_rate`, that of a model without information: the most frequent label for
        accuracy and 0 for Matthews; the passage's first sentence for answers, scored by F1 with `exact_match` beside
        it; for trees every word on the next one, scored by LAS with `uas` beside it. And the rows of
        `tables.by_example`.
    """
    table, head = data.splits["validation"], data.task.head
    named, others = {"label": np.int16(-1), "predicted": np.int16(-1)}, {}
    if head == "span":
        gold = [one["text"] for one in table["answers"]]
        guessed = [first_sentence(passage) for passage in table["context"]]
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
            named = {"label": labels.astype(np.int16), "predicted": predicted.astype(np.int16)}
    scores = {
        name: float(sum(of_examples) / weight.sum()) for name, of_examples in (("score", right), ("null_rate", null))
    }
    if data.task.metric == "matthews":
        scores = {"score": score("matthews", predicted, labels), "null_rate": 0.0}
    columns = {"score": right, "weight": weight, "null": null}
    rows = pd.DataFrame(
        {"encoder": made.encoder, "task": made.task, "seed": made.seed, "address": made.address}
        | {"metric": data.task.metric, "example": np.arange(len(weight), dtype=np.int32)}
        | {name: np.asarray(values, dtype=np.float32) for name, values in columns.items()}
        | named
    )
    return scores | others, rows
