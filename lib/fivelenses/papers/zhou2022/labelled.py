"""The labelled points of Zhou and Srikumar (2022), and how many there are.

A point is a word, a pair of words or a sentence in one layer of one model; `before` is the pre-trained encoder, `after`
the fine-tuned one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import datasets
import numpy as np
import pandas as pd
from torch import nn

from fivelenses.activations import represent
from fivelenses.checkpoints.evaluation import flat_labels
from fivelenses.checkpoints.specification import Specification
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.models.encoders import load_weights, locate, tokenizer
from fivelenses.models.layers import layer_list
from fivelenses.tasks.examples import encode, load, subset

BEFORE, AFTER = "before", "after"
TRAINING, HELD_OUT = "train", "validation"


@dataclass(frozen=True)
class Labelled:
    """One split of a task as an encoder reads it.

    Attributes:
        examples: encoded sentences.
        labels: (points,) the label of each point.
        rows: which points are measured.
    """

    examples: datasets.Dataset
    labels: np.ndarray
    rows: np.ndarray

    def points(self, model: nn.Module, layers: Iterable[int], device: str | None) -> dict[int, np.ndarray]:
        """The measured points in some layers of a model, (points, width) each."""
        states = represent(model, self.examples, layers, device=device)
        return {layer: of_layer[self.rows] for layer, of_layer in states.items()}

    def last_layer(self, model: nn.Module, device: str | None) -> np.ndarray:
        """(points, width) the measured points in a model's last layer."""
        last = len(layer_list(model))
        return self.points(model, [last], device)[last]


def labelled_splits(made: Specification, points: int | None, min_examples: int = 1) -> dict[str, Labelled]:
    """Both splits of a task, without the labels that have fewer than `min_examples` points in either.

    A text that occurs more than once in a split is measured once: its points are equal in every model.

    Args:
        made: names encoder, task, source, and the tokens that a sequence is cut to.
        points: training points that are measured, at most: a stratified subset.
    """
    data, reading = load(made.task, made.source), tokenizer(locate(made.encoder))
    encoded = {split: encode(data, split, reading, made.schedule.max_length) for split in (TRAINING, HELD_OUT)}
    encoded = {split: examples.select(first_occurrences(examples)) for split, examples in encoded.items()}
    labels = {split: np.array(data.labels)[flat_labels(examples)] for split, examples in encoded.items()}
    kept = set(data.labels)
    for of_split in labels.values():
        names, counts = np.unique(of_split, return_counts=True)
        kept &= set(names[counts >= min_examples])
    splits = {}
    for split, examples in encoded.items():
        rows = np.flatnonzero(np.isin(labels[split], sorted(kept)))
        if split == TRAINING and points is not None:
            rows = rows[subset(labels[split][rows], points, seed=0)]
        splits[split] = Labelled(examples, labels[split][rows], rows)
    return splits


def first_occurrences(examples: datasets.Dataset) -> list[int]:
    """The rows of encoded examples without those whose tokens an earlier row has."""
    first: dict[tuple[int, ...], int] = {}
    for row, tokens in enumerate(examples["input_ids"]):
        first.setdefault(tuple(tokens), row)
    return list(first.values())


def pretrained(made: Specification) -> nn.Module:
    """The encoder before fine-tuning."""
    return load_weights(locate(made.encoder))


def before_and_after(checkpoint: Checkpoint) -> dict[str, nn.Module]:
    """The encoder and the fine-tuned model; none where the training diverged."""
    if checkpoint.manifest["diverged"]:
        return {}
    return {BEFORE: pretrained(checkpoint.specification), AFTER: checkpoint.model()}


def encoder_sizes(encoders: Sequence[str]) -> pd.DataFrame:
    """Table 1: `encoder`, `layers`, `hidden` and `parameters` (without the pooler, which nothing here reads)."""
    rows = []
    for name in encoders:
        model = load_weights(locate(name))
        counted = sum(weights.numel() for part, weights in model.named_parameters() if not part.startswith("pooler."))
        size = {"layers": len(layer_list(model)), "hidden": model.config.hidden_size, "parameters": counted}
        rows.append({"encoder": name} | size)
    return pd.DataFrame(rows)


def task_sizes(tasks: Sequence[str], source: str) -> pd.DataFrame:
    """Table 6, counted from the data: `task`, labelled points in `training` and `test`, and `labels`."""
    rows = []
    for name in tasks:
        data = load(name, source)
        # A row holds one label, or a list of those of its words.
        column = data.task.label
        labels = [pd.Series(list(data.splits[split][column])).explode().dropna() for split in (TRAINING, HELD_OUT)]
        sizes = {"training": len(labels[0]), "test": len(labels[1]), "labels": pd.concat(labels).nunique()}
        rows.append({"task": name} | sizes)
    return pd.DataFrame(rows)
