"""What Zhou and Srikumar (2022), "A Closer Look at How Fine-tuning Changes BERT", measure: sizes of encoders and tasks
(Tables 1 and 6), and what classifier probes read (Tables 2, 5 and 7). The geometry is in `zhou2022_geometry`.

A point is a word, a pair of words or a sentence in one layer of one model.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import datasets
import numpy as np
import pandas as pd
from torch import nn

from fivelenses.activations import represent
from fivelenses.checkpoints.specification import Specification
from fivelenses.checkpoints.store import Checkpoint, check_finite
from fivelenses.checkpoints.tables import flat_labels
from fivelenses.lenses import mlp_probe
from fivelenses.models.controls import moved_at_random
from fivelenses.models.encoders import load_weights, locate, tokenizer
from fivelenses.models.layers import layer_list
from fivelenses.papers.models import converged, model_of, pretrained
from fivelenses.records import AFTER, BEFORE, FINE_TUNED, FUNCTIONAL_TWIN, SHARED, SHUFFLED, TWIN
from fivelenses.tasks import subset
from fivelenses.tasks.examples import encode, load

TRAINING, HELD_OUT = "train", "validation"
FEW = 3  # points that a label has at least in a sample, if it has as many at all
FITS = ["encoder", "task", "stage", "seed", "control", "accuracy", "deviation"]
SENTENCES = [*FITS[:5], "example", "score", "weight", "null", "metric"]


@dataclass(frozen=True)
class Split:
    """The points of one split of a task.

    Attributes:
        examples: encoded sentences, those that hold a measured point.
        labels, sentences: (points,) the label of each measured point, and the sentence that it is in.
        rows: (points,) its row among all points of these sentences.
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
    """Both splits of the task that a model is fine-tuned on, with a `sample` of so many training points.

    A text that occurs more than once in a split is measured once: its points are equal in every model.
    """
    data, reading = load(made.task, made.source), tokenizer(locate(made.encoder))
    parts = {}
    for split in (TRAINING, HELD_OUT):
        examples = encode(data, split, reading, made.schedule.max_length)
        examples = examples.select(pd.Series(list(map(tuple, examples["input_ids"]))).drop_duplicates().index)
        labels = np.array(data.labels)[flat_labels(examples)]
        sentences = np.repeat(np.arange(len(examples)), [np.size(of_one) for of_one in examples["labels"]])
        rows = sample(labels, points if split == TRAINING else None)
        read, of_point = np.unique(sentences[rows], return_inverse=True)
        places = np.cumsum(np.isin(sentences, read)) - 1
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
    rows = subset(labels, points, seed=0)
    names, counts = np.unique(labels[rows], return_counts=True)
    rare = pd.Series(labels)[~np.isin(labels, names[counts >= FEW])]
    return np.union1d(rows, rare.groupby(rare).head(FEW).index)


def with_control(
    checkpoint: Checkpoint, original: nn.Module, step: int | None = None
) -> Iterator[tuple[str, nn.Module]]:
    """A fine-tuned model and its twin, by `control`, at a step; at the end, with its functional twin, if it has one. Of
    shuffled labels the model alone.
    """
    made = checkpoint.specification
    model = checkpoint.model() if step is None else checkpoint.model_at(step)
    if made.shuffled_labels:
        yield SHUFFLED, model
    else:
        yield FINE_TUNED, model
        yield TWIN, moved_at_random(model, original, made.seed)
        if step is None and (functional := model_of(checkpoint, FUNCTIONAL_TWIN, original)) is not None:
            yield FUNCTIONAL_TWIN, functional


def before_and_after(checkpoints: Sequence[Checkpoint]) -> Iterator[tuple[list[dict], nn.Module]]:
    """The pre-trained encoder, then the fine-tuned models of one encoder and task that did not diverge, with controls;
    each with its places in a record (`encoder`, `task`, `stage`, `seed`, `control`), one for each seed before.
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
    with its place in a record (`tuned_on`, `seed`, `control`).
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


def probe_accuracy(
    checkpoints: Sequence[Checkpoint],
    probe_sizes: Sequence[int],
    probe_regularisers: Sequence[float],
    probe_points: int | None = None,
    probe_initialisations: int = 5,
    probe_epochs: int = 1000,
    device: str | None = None,
) -> dict[str, pd.DataFrame]:
    """Tables 2 and 7: what a probe reads before and after fine-tuning.

    Args:
        checkpoints: of one encoder and task; one whose training diverged is left out.
        probe_sizes, probe_regularisers: the grid of the probes, whose best is fitted `probe_initialisations` times.
        probe_points, probe_epochs: training points, a stratified subset, and epochs of every fit, at most.

    Returns:
        fits: one row per model: the columns of `before_and_after`; `hidden_1` and `hidden_2` of the best probe, and its
        mean `accuracy` on the held-out split over its initialisations with the standard `deviation`.
        sentences: one row per model and held-out sentence: `score` (points that are right, the mean over
        initialisations), `weight` (points), `null` (those of the most frequent label).
    """
    parts = splits(checkpoints[0].specification, probe_points)
    how = (mlp_probe.grid(probe_sizes, probe_regularisers), range(probe_initialisations), probe_epochs)
    return _accuracies(before_and_after(checkpoints), parts, how, device)


def target_accuracy(
    checkpoints: Sequence[Checkpoint],
    target: str,
    probe_sizes: Sequence[int],
    probe_regularisers: Sequence[float],
    probe_points: int | None = None,
    probe_initialisations: int = 5,
    probe_epochs: int = 1000,
    device: str | None = None,
) -> dict[str, pd.DataFrame]:
    """Table 5: as `probe_accuracy`, of the task `target` in models of one encoder and seed fine-tuned on this and
    other tasks, with the columns of `after_each_task`.
    """
    check_finite({one.specification.task: one for one in checkpoints}, "tuned_on")
    parts = splits(replace(checkpoints[0].specification, task=target), probe_points)
    how = (mlp_probe.grid(probe_sizes, probe_regularisers), range(probe_initialisations), probe_epochs)
    return _accuracies(after_each_task(checkpoints), parts, how, device)


def _accuracies(
    models: Iterable[tuple[list[dict], nn.Module]], parts: Mapping[str, Split], how: tuple, device: str | None
) -> dict[str, pd.DataFrame]:
    """`fits` and `sentences` of the best probe of each model; `how` it is found, as `mlp_probe.fit_grid` takes it."""
    fits, sentences = [], []
    for places, model in models:
        training, test = (parts[split].last_layer(model, device) for split in (TRAINING, HELD_OUT))
        points = (training, parts[TRAINING].labels, test, parts[HELD_OUT].labels)
        best = mlp_probe.fit_grid(*points, *how)
        first, second = best.selected.hidden
        fit = {"hidden_1": first, "hidden_2": second, "accuracy": best.mean, "deviation": best.deviation}
        fits += [place | fit for place in places]
        read = _by_sentence(best.right.mean(0), parts[HELD_OUT])
        sentences += [read.assign(**place) for place in places]
    if not fits:
        return {"fits": pd.DataFrame(columns=FITS), "sentences": pd.DataFrame(columns=SENTENCES)}
    return {"fits": pd.DataFrame(fits), "sentences": pd.concat(sentences, ignore_index=True)}


def _by_sentence(right: np.ndarray, part: Split) -> pd.DataFrame:
    """Words of a sentence are right or wrong together, so sentences are the examples of an interval."""
    names, counts = np.unique(part.labels, return_counts=True)
    of_point = {"score": right, "weight": np.ones(len(right)), "null": part.labels == names[counts.argmax()]}
    table = pd.DataFrame(of_point).groupby(part.sentences).sum().astype(np.float32)
    return table.rename_axis("example").reset_index().astype({"example": np.int32}).assign(metric="accuracy")
