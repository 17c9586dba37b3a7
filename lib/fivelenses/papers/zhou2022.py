"""Zhou and Srikumar (2022), "A Closer Look at How Fine-tuning Changes BERT": labelled points, the models that they are
in, and the sizes of encoders and tasks (Tables 1 and 6).

A point is a word, a pair of words or a sentence in one layer of one model. Their geometry is measured in
`zhou2022_geometry`, and what classifiers read in `zhou2022_probes`: a change of one lens leaves the records of the
other.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import datasets
import numpy as np
import pandas as pd
from torch import nn

from fivelenses.activations import represent
from fivelenses.checkpoints.predictions import flat_labels
from fivelenses.checkpoints.specification import Specification
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.models.encoders import load_weights, locate, tokenizer
from fivelenses.models.layers import layer_list
from fivelenses.models.twins import moved_at_random
from fivelenses.papers.models import converged, pretrained
from fivelenses.records import AFTER, BEFORE, FINE_TUNED, SHARED, SHUFFLED, TWIN
from fivelenses.tasks import subset
from fivelenses.tasks.examples import encode, load

TRAINING, HELD_OUT = "train", "validation"
FEW = 3  # points that a label has at least in a sample, if it has as many at all


@dataclass(frozen=True)
class Split:
    """The points of one split of a task.

    Attributes:
        examples: encoded sentences, those that hold a measured point.
        labels: (points,) the label of each measured point.
        rows: (points,) its row among all points of these sentences.
        sentences: (points,) the sentence that it is in.
        size: how many points the split has, each text counted once.
    """

    examples: datasets.Dataset
    labels: np.ndarray
    rows: np.ndarray
    sentences: np.ndarray
    size: int

    def states(self, model: nn.Module, layers: Iterable[int], device: str | None = None) -> dict[int, np.ndarray]:
        """The points in some layers of a model: layer to (points, width)."""
        states = represent(model, self.examples, layers, device=device)
        return {layer: of_layer[self.rows] for layer, of_layer in states.items()}

    def last_layer(self, model: nn.Module, device: str | None = None) -> np.ndarray:
        """(points, width) the points in a model's last layer."""
        last = len(layer_list(model))
        return self.states(model, [last], device)[last]


def splits(made: Specification, points: int | None = None) -> dict[str, Split]:
    """Both splits of the task that a model is fine-tuned on.

    A text that occurs more than once in a split is measured once: its points are equal in every model.

    Args:
        made: names encoder, task, source, and the tokens that a sequence is cut to.
        points: training points that are measured, see `sample`; all when None.
    """
    data, reading = load(made.task, made.source), tokenizer(locate(made.encoder))
    parts = {}
    for split in (TRAINING, HELD_OUT):
        examples = encode(data, split, reading, made.schedule.max_length)
        first = {tuple(tokens): row for row, tokens in reversed(list(enumerate(examples["input_ids"])))}
        examples = examples.select(sorted(first.values()))
        labels = np.array(data.labels)[flat_labels(examples)]
        sentences = np.repeat(np.arange(len(examples)), [np.size(of_one) for of_one in examples["labels"]])
        rows = sample(labels, points if split == TRAINING else None)
        read = np.unique(sentences[rows])
        places = np.cumsum(np.isin(sentences, read)) - 1
        of_point = np.searchsorted(read, sentences[rows])
        parts[split] = Split(examples.select(read), labels[rows], places[rows], of_point, len(labels))
    return parts


def sample(labels: np.ndarray, points: int | None) -> np.ndarray:
    """Rows of a stratified subset, with the first rows of labels that have fewer than FEW there: none is left out.

    Example:
        >>> labels = np.array(["NOUN"] * 50 + ["SYM"])
        >>> rows = sample(labels, 10)
        >>> len(rows), "SYM" in labels[rows]
        (11, True)
    """
    if points is None:
        return np.arange(len(labels))
    rows = subset(labels, points, seed=0)
    names, counts = np.unique(labels[rows], return_counts=True)
    rare = pd.Series(labels)[~np.isin(labels, names[counts >= FEW])]
    return np.union1d(rows, rare.groupby(rare).head(FEW).index)


def with_control(
    checkpoint: Checkpoint, original: nn.Module, step: int | None = None
) -> Iterator[tuple[str, nn.Module]]:
    """A fine-tuned model and its twin, by `control`; a model of shuffled labels, which has no twin, is one itself.

    Args:
        original: the encoder before fine-tuning.
        step: of a state along training, None for the end.
    """
    made = checkpoint.specification
    model = checkpoint.model() if step is None else checkpoint.model_at(step)
    if made.shuffled_labels:
        yield SHUFFLED, model
    else:
        yield FINE_TUNED, model
        yield TWIN, moved_at_random(model, original, made.seed)


def before_and_after(checkpoints: Sequence[Checkpoint]) -> Iterator[tuple[list[dict], nn.Module]]:
    """The pre-trained encoder, then the fine-tuned models of one encoder and task that did not diverge, with controls;
    each with where it stands in a record (`encoder`, `task`, `stage`, `seed`, `control`), once for each seed before.
    """
    finished = converged(checkpoints)
    if not finished:
        return
    made, original = finished[0].specification, pretrained(finished[0])
    case = {"encoder": made.encoder, "task": made.task}
    seeds = dict.fromkeys(one.specification.seed for one in finished)
    yield [case | {"stage": BEFORE, "seed": seed, "control": SHARED} for seed in seeds], original
    for one in finished:
        for control, model in with_control(one, original):
            yield [case | {"stage": AFTER, "seed": one.specification.seed, "control": control}], model


def after_each_task(checkpoints: Sequence[Checkpoint]) -> Iterator[tuple[list[dict], nn.Module]]:
    """The pre-trained encoder, then models of one seed that were fine-tuned on different tasks, with their twins; each
    with where it stands in a record (`tuned_on`, `seed`, `control`).
    """
    seed, original = checkpoints[0].specification.seed, pretrained(checkpoints[0])
    yield [{"tuned_on": "nothing", "seed": seed, "control": SHARED}], original
    for one in checkpoints:
        for control, model in with_control(one, original):
            yield [{"tuned_on": one.specification.task, "seed": seed, "control": control}], model


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
        column = data.task.label  # a row holds one label, or a list of those of its words
        labels = [pd.Series(list(data.splits[split][column])).explode().dropna() for split in (TRAINING, HELD_OUT)]
        sizes = {"training": len(labels[0]), "test": len(labels[1]), "labels": pd.concat(labels).nunique()}
        rows.append({"task": name} | sizes)
    return pd.DataFrame(rows)
