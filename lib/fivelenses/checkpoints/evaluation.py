"""Predictions of a fine-tuned model and their scores, by the kind of head.

The Trainer's own loop is not used: with batches by length it returns predictions in another order than the examples.
"""

from collections.abc import Callable, Iterator

import datasets
import numpy as np
import torch
from torch import nn
from transformers.utils import ModelOutput

from fivelenses import tasks
from fivelenses.models.biaffine import parse
from fivelenses.tasks.examples import TaskData
from fivelenses.tasks.parsing import attachment_scores, chain_score
from fivelenses.tasks.scores import majority_rate
from fivelenses.tasks.squad_scores import first_sentence, squad_scores
from fivelenses.tasks.windows import best_span

# What a model reads of an encoded example; the rest is for training and scoring.
INPUTS = ("input_ids", "attention_mask", "token_type_ids", "word_ids", "units")


# Labels of all units, one answer per question, or heads and relations per sentence.
Predicted = np.ndarray | list[str] | list[tuple[list[int], list[str]]]


def predict(model: nn.Module, data: TaskData, split: str, encoded: datasets.Dataset, collate: Callable) -> Predicted:
    """What a model predicts on a split: `predictions`, `answers` or `trees`, as the task's head has it.

    Args:
        model: with the head of the task; it is put in evaluation mode.
        data: the task.
        split: of that task.
        encoded: that split's examples.
        collate: lays them out as a batch.
    """
    if data.task.head == "span":
        return answers(model, data, split, encoded, collate)
    if data.task.head == "biaffine":
        return trees(model, data, split, encoded, collate)
    return predictions(model, encoded, collate)


def scores(predicted: Predicted, data: TaskData, split: str, encoded: datasets.Dataset) -> dict[str, float]:
    """The scores of what `predict` returned for a split.

    Answers and trees are compared with the task's table, whole, also where tokens were cut off.

    Returns:
        `score`, the task's metric, and `null_rate`, that of a model without information: the most frequent label for
        accuracy and 0 for Matthews; the passage's first sentence for answers, scored by F1 with `exact_match` beside
        it; for trees every word on the next one, scored by LAS with `uas` beside it.
    """
    if data.task.head == "span":
        return _of_answers(predicted, data.splits[split])
    if data.task.head == "biaffine":
        table = data.splits[split]
        gold = list(zip(table["heads"], table["names"], strict=True))
        uas, las = attachment_scores(predicted, gold)
        return {"score": las, "null_rate": chain_score(gold), "uas": uas}
    gold, metric = flat_labels(encoded), data.task.metric
    return {
        "score": tasks.score(metric, predicted, gold),
        "null_rate": majority_rate(gold) if metric == "accuracy" else 0.0,
    }


def _of_answers(predicted: list[str], table: datasets.Dataset) -> dict[str, float]:
    gold = [of_question["text"] for of_question in table["answers"]]
    exact, f1 = squad_scores(predicted, gold)
    _, null = squad_scores([first_sentence(passage) for passage in table["context"]], gold)
    return {"score": f1, "null_rate": null, "exact_match": exact}


def flat_labels(encoded: datasets.Dataset) -> np.ndarray:
    """The labels of all examples in order; those of all units where an example has several."""
    return np.concatenate([np.atleast_1d(labels) for labels in encoded["labels"]])


def predictions(model: nn.Module, encoded: datasets.Dataset, collate: Callable, batch_size: int = 64) -> np.ndarray:
    """Predicted labels in the order of `flat_labels`; a batch holds sequences of similar length."""
    sizes = np.array([np.size(labels) for labels in encoded["labels"]])
    first = np.concatenate([[0], np.cumsum(sizes)])
    predicted = np.empty(first[-1], dtype=np.int64)
    for rows, output in _outputs(model, encoded, collate, batch_size):
        places = np.concatenate([np.arange(first[row], first[row + 1]) for row in rows])
        predicted[places] = output.logits.argmax(-1).cpu().numpy()
    return predicted


def answers(
    model: nn.Module, data: TaskData, split: str, encoded: datasets.Dataset, collate: Callable, batch_size: int = 64
) -> list[str]:
    """The answer to each question of a split: of all its windows' spans the one with the highest sum of logits."""
    passages = list(data.splits[split]["context"])
    best: dict[int, tuple[float, int, int]] = {}
    for rows, output in _outputs(model, encoded, collate, batch_size):
        windows = encoded.select(rows)
        starts, ends = (logits.float().cpu().numpy() for logits in (output.start_logits, output.end_logits))
        for start, end, question, pairs in zip(starts, ends, windows["row"], windows["offsets"], strict=True):
            offsets = np.array(pairs)
            pieces = len(offsets)
            score, first, last = best_span(start[:pieces], end[:pieces], offsets[:, 0] >= 0)
            if question not in best or score > best[question][0]:
                best[question] = score, int(offsets[first, 0]), int(offsets[last, 1])
    return [passage[best[question][1] : best[question][2]] for question, passage in enumerate(passages)]


def trees(
    model: nn.Module, data: TaskData, split: str, encoded: datasets.Dataset, collate: Callable, batch_size: int = 64
) -> list[tuple[list[int], list[str]]]:
    """Heads and relations of each sentence of a split; a word without pieces has the head -1 and no relation."""
    parsed = [([-1] * len(tokens), [""] * len(tokens)) for tokens in data.splits[split]["tokens"]]
    for rows, output in _outputs(model, encoded, collate, batch_size):
        sentences = encoded.select(rows)
        arcs, relations = (scores.float().cpu().numpy() for scores in (output.arcs, output.relations))
        for place, (sentence, pieces) in enumerate(zip(sentences["row"], sentences["word_ids"], strict=True)):
            words = np.array(sorted(set(pieces) - {-1}))
            for word, head, relation in zip(words, *parse(arcs[place], relations[place], words), strict=True):
                parsed[sentence][0][word], parsed[sentence][1][word] = int(head), data.labels[relation]
    return parsed


@torch.no_grad()
def _outputs(
    model: nn.Module, encoded: datasets.Dataset, collate: Callable, batch_size: int
) -> Iterator[tuple[np.ndarray, ModelOutput]]:
    """Rows of the examples and what the model makes of them, batches of similar length, the shortest first."""
    order = np.argsort([len(pieces) for pieces in encoded["input_ids"]], kind="stable")
    model.eval()
    for begin in range(0, len(order), batch_size):
        rows = order[begin : begin + batch_size]
        inputs = collate([{name: row[name] for name in INPUTS if name in row} for row in encoded.select(rows)])
        yield rows, model(**inputs.to(model.device))
