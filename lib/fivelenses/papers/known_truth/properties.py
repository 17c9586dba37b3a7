"""Planted properties: a model is trained on one kind of annotation alone; what do probes, the geometry of labels and
structural probes read of it, and of the kinds that were not asked for?
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import datasets
import numpy as np
import pandas as pd
from torch import nn
from transformers import PreTrainedTokenizerBase

from fivelenses import tasks
from fivelenses.activations import represent
from fivelenses.checkpoints.predictions import flat_labels
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.models import encoders
from fivelenses.models.layers import layer_list
from fivelenses.papers.readings import label_distance, probe, separable, tree_correlations
from fivelenses.records import TREES
from fivelenses.tasks import TaskData
from fivelenses.tasks.examples import encode
from fivelenses.tasks.subsets import subset

PROBE_SEEDS, PROBE_EPOCHS = range(2), 60
MAX_LENGTH = 128
COLUMNS = ["trained_on", "seed", "property", "measure", "layer", "before", "after"]


class Words(NamedTuple):
    """Encoded sentences, the labels of all their words (or pairs of words), and which of these are read."""

    sentences: datasets.Dataset
    labels: np.ndarray
    rows: np.ndarray


def properties_read(
    checkpoints: Sequence[Checkpoint],
    planted: Sequence[str],
    probe_points: int = 300,
    structural_sentences: int = 60,
    device: str | None = None,
    log: Callable[[str], None] = print,
) -> pd.DataFrame:
    """What is read of each kind of annotation in the pre-trained encoder and in models that were trained on one kind.

    Args:
        checkpoints: models of one planted task, one per seed; one whose training diverged is left out.
        planted: the kinds of annotation that are read in each, as tasks on words.
        probe_points: words (or pairs) that a probe learns from, and that it is scored on, at most.
        structural_sentences: training sentences of the structural probes, at most.

    Returns:
        One row per model, property and layer: `trained_on` (a task), `seed`, `property` (a task, or `trees`), `measure`
        (`probe`: accuracy; `labels`: mean distance of a label to its nearest; `structure`: rank correlation), `layer`
        (1…L), `before` (pre-trained encoder), `after`.
    """
    made = checkpoints[0].specification
    located = encoders.locate(made.encoder)
    pretrained, tokenizer = encoders.load_weights(located), encoders.tokenizer(located)
    words = {task: _words(task, made.source, tokenizer, probe_points) for task in planted}
    trees = (tokenizer, made.source, structural_sentences, device)

    def read(model: nn.Module) -> pd.DataFrame:
        rows = [row for task, of_task in words.items() for row in _of_words(model, task, *of_task, device)]
        correlations = tree_correlations(model, *trees)
        rows += [(TREES, "structure", layer, value) for layer, value in enumerate(correlations, 1)]
        return pd.DataFrame(rows, columns=["property", "measure", "layer", "value"])

    before = read(pretrained).rename(columns={"value": "before"})
    tables = [
        before.assign(after=read(one.model())["value"], trained_on=made.task, seed=one.specification.seed)
        for one in checkpoints
        if not one.manifest["diverged"]
    ]
    log(f"{made.task}: {len(tables)} models read")
    return pd.concat(tables, ignore_index=True)[COLUMNS] if tables else pd.DataFrame(columns=COLUMNS)


def _words(task: str, source: str, tokenizer: PreTrainedTokenizerBase, points: int) -> tuple[Words, Words]:
    """The training and the development words of a task."""
    data = tasks.load(task, source, ("train", "validation"))
    splits = []
    for split in ("train", "validation"):
        table = data.splits[split]
        part = table.select(subset(np.zeros(table.num_rows), min(points, table.num_rows), seed=0))
        encoded = encode(TaskData(data.task, source, {split: part}, data.labels), split, tokenizer, MAX_LENGTH)
        labels = flat_labels(encoded)
        splits.append(Words(encoded, labels, subset(labels, points, seed=0)))
    return splits[0], splits[1]


def _of_words(model: nn.Module, task: str, training: Words, held_out: Words, device: str | None) -> list[tuple]:
    """Rows of (property, measure, layer, value): what probes and distances say of a task's words at each layer."""
    layers = range(1, len(layer_list(model)) + 1)
    x, y = (represent(model, words.sentences, layers, device=device) for words in (training, held_out))
    labels, gold = training.labels[training.rows], held_out.labels[held_out.rows]
    points = separable(gold, y[1].shape[1])
    rows = []
    for layer in layers:
        states = y[layer][held_out.rows]
        right = probe(x[layer][training.rows], labels, states, gold, PROBE_SEEDS, PROBE_EPOCHS)
        rows.append((task, "probe", layer, right.mean()))
        rows.append((task, "labels", layer, label_distance(states[points], gold[points])))
    return rows
