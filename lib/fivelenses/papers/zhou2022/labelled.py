"""The labelled points of Zhou and Srikumar (2022), and how many there are.

A point is a word, a pair of words or a sentence in one layer of one model; `before` is the pre-trained encoder, `after`
the fine-tuned one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from fivelenses.models.twins import moved_at_random
from fivelenses.records import AFTER, BEFORE, SHARED, SHUFFLED, TUNED, TWIN
from fivelenses.tasks.examples import encode, load
from fivelenses.tasks.subsets import subset

TRAINING, HELD_OUT = "train", "validation"
FEW = 3  # points that a label has at least in a sample, if it has as many at all
# In a record's column `control`, as `exhibits.claims` reads it: records are to know nothing of how claims are judged.


@dataclass(frozen=True)
class Labelled:
    """One split of a task as an encoder reads it.

    Attributes:
        examples: encoded sentences, those that hold a measured point.
        labels: (points,) the label of each point that is measured.
        rows: (points,) which of the points of these sentences are measured.
        sentences: (points,) the sentence that each of them is in.
        whole: how many points the split has.
    """

    examples: datasets.Dataset
    labels: np.ndarray
    rows: np.ndarray
    sentences: np.ndarray
    whole: int

    def points(self, model: nn.Module, layers: Iterable[int], device: str | None) -> dict[int, np.ndarray]:
        """The measured points in some layers of a model, (points, width) each."""
        states = represent(model, self.examples, layers, device=device)
        return {layer: of_layer[self.rows] for layer, of_layer in states.items()}

    def last_layer(self, model: nn.Module, device: str | None) -> np.ndarray:
        """(points, width) the measured points in a model's last layer."""
        last = len(layer_list(model))
        return self.points(model, [last], device)[last]


def labelled_splits(made: Specification, points: int | None) -> dict[str, Labelled]:
    """Both splits of a task with all their labels.

    A text that occurs more than once in a split is measured once: its points are equal in every model.

    Args:
        made: names encoder, task, source, and the tokens that a sequence is cut to.
        points: training points that are measured, or a few more: see `sample`.
    """
    data, reading = load(made.task, made.source), tokenizer(locate(made.encoder))
    splits = {}
    for split in (TRAINING, HELD_OUT):
        examples = encode(data, split, reading, made.schedule.max_length)
        examples = examples.select(first_occurrences(examples))
        labels = np.array(data.labels)[flat_labels(examples)]
        sentences = np.repeat(np.arange(len(examples)), [np.size(of_one) for of_one in examples["labels"]])
        rows = sample(labels, points if split == TRAINING else None)
        read = np.unique(sentences[rows])
        places = np.cumsum(np.isin(sentences, read)) - 1
        of_point = np.searchsorted(read, sentences[rows])
        splits[split] = Labelled(examples.select(read), labels[rows], places[rows], of_point, len(labels))
    return splits


def sample(labels: np.ndarray, points: int | None) -> np.ndarray:
    """Rows of a stratified subset, and the first rows of the labels that have fewer than FEW there: none is left out.

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


def common_labels(splits: Mapping[str, Labelled], min_examples: int) -> list[str]:
    """The labels with so many points in both splits: what their distances can be compared on."""
    counts = [dict(zip(*np.unique(part.labels, return_counts=True), strict=True)) for part in splits.values()]
    return [str(label) for label in counts[0] if all(of.get(label, 0) >= min_examples for of in counts)]


def first_occurrences(examples: datasets.Dataset) -> list[int]:
    """The rows of encoded examples without those whose tokens an earlier row has."""
    first: dict[tuple[int, ...], int] = {}
    for row, tokens in enumerate(examples["input_ids"]):
        first.setdefault(tuple(tokens), row)
    return list(first.values())


def pretrained(made: Specification) -> nn.Module:
    """The encoder before fine-tuning."""
    return load_weights(locate(made.encoder))


def tuned_and_controls(
    checkpoint: Checkpoint, original: nn.Module, step: int | None = None
) -> Iterator[tuple[str, nn.Module]]:
    """A fine-tuned model and its twin by what they are in a record's `control`; one on shuffled labels has no twin.

    Args:
        checkpoint: its training has not diverged.
        original: the encoder before fine-tuning.
        step: of a state along training, None for the end.
    """
    made = checkpoint.specification
    tuned = checkpoint.model() if step is None else checkpoint.model_at(step)
    if made.shuffled_labels:
        yield SHUFFLED, tuned
        return
    yield TUNED, tuned
    yield TWIN, moved_at_random(tuned, original, made.seed)


def before_and_after(checkpoints: Sequence[Checkpoint]) -> Iterator[tuple[dict, nn.Module]]:
    """The encoder before fine-tuning once, then each of its fine-tuned models that did not diverge with its controls.

    Args:
        checkpoints: of one encoder.

    Yields:
        `stage`, `seed` (-1 before) and `control`, and the model.
    """
    finished = [one for one in checkpoints if not one.manifest["diverged"]]
    if finished:
        yield {"stage": BEFORE, "seed": -1, "control": SHARED}, (original := pretrained(finished[0].specification))
    for one in finished:
        for control, model in tuned_and_controls(one, original):
            yield {"stage": AFTER, "seed": one.specification.seed, "control": control}, model


def tuned_on_each(checkpoints: Sequence[Checkpoint]) -> Iterator[tuple[dict, nn.Module]]:
    """The encoder before fine-tuning, then each model with its controls, by `tuned_on`, `seed` and `control`.

    Args:
        checkpoints: of one encoder and seed, one per task.
    """
    seed, original = checkpoints[0].specification.seed, pretrained(checkpoints[0].specification)
    yield {"tuned_on": "nothing", "seed": seed, "control": SHARED}, original
    for one in checkpoints:
        for control, model in tuned_and_controls(one, original):
            yield {"tuned_on": one.specification.task, "seed": seed, "control": control}, model


def for_each_seed(rows: list[dict]) -> list[dict]:
    """Rows with those of the encoder before fine-tuning, which have no seed of their own, under each of the seeds.

    Example:
        >>> rows = for_each_seed([{"seed": -1, "x": 0}, {"seed": 4, "x": 1}, {"seed": 5, "x": 2}])
        >>> [(row["seed"], row["x"]) for row in rows]
        [(4, 0), (5, 0), (4, 1), (5, 2)]
    """
    seeds = dict.fromkeys(row["seed"] for row in rows if row["seed"] != -1)
    return [row | {"seed": seed} for row in rows for seed in (seeds if row["seed"] == -1 else [row["seed"]])]


def by_encoder_and_task(checkpoints: Sequence[Checkpoint]) -> Iterator[tuple[dict, list[Checkpoint]]]:
    """The checkpoints of each `encoder` and `task`."""
    groups: dict[tuple[str, str], list[Checkpoint]] = {}
    for one in checkpoints:
        groups.setdefault((one.specification.encoder, one.specification.task), []).append(one)
    for (encoder, task), group in groups.items():
        yield {"encoder": encoder, "task": task}, group


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
