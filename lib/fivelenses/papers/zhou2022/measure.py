"""What Zhou and Srikumar (2022) measure, as tidy tables: the geometry of labels before and after fine-tuning, what
classifier probes read, and what tuning on one task does to another. How both change on the way is in `along_training`.

A point is a word, a pair of words or a sentence in one layer of one model; `before` is the pre-trained encoder, `after`
the fine-tuned one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import datasets
import numpy as np
import pandas as pd
from torch import nn

from fivelenses import tasks
from fivelenses.activations import represent
from fivelenses.checkpoints import Checkpoint, check_finite, finite
from fivelenses.checkpoints.evaluation import flat_labels
from fivelenses.lenses import directprobe, mlp_probe
from fivelenses.models import encoders
from fivelenses.models.layers import layer_list
from fivelenses.tasks.examples import encode, subset

BEFORE, AFTER = "before", "after"
TRAINING, HELD_OUT = "train", "validation"
CONTROL_SEED = 0

# (encoder, task, seed) to fine-tuned model.
Checkpoints = Mapping[tuple[str, str, int], Checkpoint]


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
        return {
            layer: states[self.rows] for layer, states in represent(model, self.examples, layers, device=device).items()
        }


def labelled_splits(
    encoder: str, task: str, source: str, max_length: int, points: int | None, least: int = 1
) -> dict[str, Labelled]:
    """Both splits of a task, without the labels that have fewer than `least` points in either.

    A text that occurs more than once in a split is measured once: its points are equal in every model.

    Args:
        points: training points that are measured, at most: a stratified subset.
    """
    data, tokenizer = tasks.load(task, source), encoders.tokenizer(encoders.locate(encoder))
    encoded = {split: encode(data, split, tokenizer, max_length) for split in (TRAINING, HELD_OUT)}
    encoded = {split: examples.select(first_occurrences(examples)) for split, examples in encoded.items()}
    labels = {split: np.array(data.labels)[flat_labels(examples)] for split, examples in encoded.items()}
    kept = set(data.labels)
    for of_split in labels.values():
        names, counts = np.unique(of_split, return_counts=True)
        kept &= set(names[counts >= least])
    splits = {}
    for split, examples in encoded.items():
        rows = np.flatnonzero(np.isin(labels[split], sorted(kept)))
        if split == TRAINING and points is not None:
            rows = rows[subset(labels[split][rows], points, seed=0)]
        splits[split] = Labelled(examples, labels[split][rows], rows)
    return splits


def first_occurrences(examples: datasets.Dataset) -> list[int]:
    """The rows of encoded examples without those whose pieces an earlier row has."""
    first: dict[tuple[int, ...], int] = {}
    for row, pieces in enumerate(examples["input_ids"]):
        first.setdefault(tuple(pieces), row)
    return list(first.values())


def _stages(checkpoint: Checkpoint, encoder: str) -> dict[str, nn.Module]:
    return {BEFORE: encoders.load_weights(encoders.locate(encoder)), AFTER: checkpoint.model()}


def max_length(checkpoint: Checkpoint) -> int:
    """Pieces that a sequence was cut to in training."""
    return checkpoint.manifest["specification"]["schedule"]["max_length"]


def geometry(
    checkpoints: Checkpoints, source: str, points: int | None, least: int, device: str | None = None
) -> pd.DataFrame:
    """Tables 2, 3, 4 and 7: clusters of the last layer before and after, and how alike training and test set lie.

    Clusters are counted on at most `points` of the training points; whether planes separate the labels is asked of all
    of them, and of all of them with permuted labels.

    Returns:
        One row an encoder, task, seed and stage: `points`, `dimensions`, `labels`, `clusters`, `all_points`,
        `separable`, `control_separable` (all points, and the same with permuted labels), `test_clusters`, and
        `similarity` of the distances between labels in training and test set, missing where one of the two is not
        separable.
    """
    rows = []
    for (encoder, task, seed), checkpoint in finite(checkpoints).items():
        splits = labelled_splits(encoder, task, source, max_length(checkpoint), None, least)
        whole, test_labels = splits[TRAINING].labels, splits[HELD_OUT].labels
        sample = np.arange(len(whole)) if points is None else subset(whole, points, seed=0)
        for stage, model in _stages(checkpoint, encoder).items():
            last = len(layer_list(model))
            states, test_states = (splits[split].points(model, [last], device)[last] for split in (TRAINING, HELD_OUT))
            training = directprobe.probe(states[sample], whole[sample])
            test = directprobe.probe(test_states, test_labels)
            both = training.linearly_separable and test.linearly_separable
            rows.append(
                {
                    "encoder": encoder,
                    "task": task,
                    "seed": seed,
                    "stage": stage,
                    "points": len(sample),
                    "dimensions": states.shape[1],
                    "labels": len(training.labels),
                    "clusters": training.n_clusters,
                    "all_points": len(whole),
                    "separable": directprobe.linearly_separable(states, whole),
                    "control_separable": directprobe.random_label_control(states, whole, CONTROL_SEED),
                    "test_clusters": test.n_clusters,
                    "similarity": directprobe.spatial_similarity(training, test) if both else np.nan,
                }
            )
    return pd.DataFrame(rows)


def probe_accuracy(
    checkpoints: Checkpoints,
    source: str,
    points: int | None,
    grid: Sequence[mlp_probe.Configuration],
    initialisations: int,
    epochs: int,
    device: str | None = None,
) -> pd.DataFrame:
    """Tables 2 and 7: what a classifier probe reads from the last layer, before and after.

    Args:
        points: training points at most, a stratified subset.
        grid: configurations that are tried.
        initialisations: fits of the best configuration.
        epochs: at most, of every fit.

    Returns:
        One row an initialisation: encoder, task, seed, stage, `hidden_1`, `hidden_2`, `regulariser`,
        `initialisation`, `accuracy` on the held-out split.
    """
    parts = []
    for (encoder, task, seed), checkpoint in finite(checkpoints).items():
        splits = labelled_splits(encoder, task, source, max_length(checkpoint), points)
        for stage, model in _stages(checkpoint, encoder).items():
            fits = _best_probe(model, splits, (grid, initialisations, epochs), device)
            parts.append(fits.assign(encoder=encoder, task=task, seed=seed, stage=stage))
    return pd.concat(parts, ignore_index=True)


def _best_probe(model, splits: Mapping[str, Labelled], probing: tuple, device) -> pd.DataFrame:
    grid, initialisations, epochs = probing
    last = len(layer_list(model))
    training, test = (splits[split].points(model, [last], device)[last] for split in (TRAINING, HELD_OUT))
    labelled = (training, splits[TRAINING].labels, test, splits[HELD_OUT].labels)
    best = mlp_probe.fit_grid(*labelled, grid, range(initialisations), max_epochs=epochs, device=device)
    return pd.DataFrame(
        {
            "hidden_1": best.hidden[0],
            "hidden_2": best.hidden[1],
            "regulariser": best.alpha,
            "initialisation": range(initialisations),
            "accuracy": best.accuracies,
            "points": len(training),
        }
    )


def cross_task(
    checkpoints: Mapping[tuple[str, int], Checkpoint],
    encoder: str,
    target: str,
    source: str,
    points: int | None,
    least: int,
    probing: tuple[int | None, Sequence[mlp_probe.Configuration], int, int],
    device: str | None = None,
) -> pd.DataFrame:
    """Table 5: the labels of one task in the last layer of models tuned on it and on others.

    Args:
        checkpoints: (task tuned on, seed) to fine-tuned model.
        probing: training points, grid, initialisations and epochs of the classifier probe, as `probe_accuracy`.

    Returns:
        `tuned_on` (`nothing` for the pre-trained encoder), seed, label, `before` and `after` (least distance to any
        other label), `accuracy` and `deviation` of the probe, `separable`.
    """
    check_finite(checkpoints, "tuned_on")
    limit, *how = probing
    models = {("nothing", seed): None for _, seed in checkpoints} | dict(checkpoints)
    length = max_length(next(iter(checkpoints.values())))
    measured = labelled_splits(encoder, target, source, length, points, least)[TRAINING]
    probed = labelled_splits(encoder, target, source, length, limit)
    original = encoders.load_weights(encoders.locate(encoder))
    last = len(layer_list(original))
    start = directprobe.probe(measured.points(original, [last], device)[last], measured.labels)
    parts = []
    for (tuned_on, seed), checkpoint in models.items():
        model = original if checkpoint is None else checkpoint.model()
        found = directprobe.probe(measured.points(model, [last], device)[last], measured.labels, start=start)
        fits = _best_probe(model, probed, tuple(how), device)
        parts.append(
            pd.DataFrame(
                {
                    "tuned_on": tuned_on,
                    "seed": seed,
                    "label": [str(name) for name in found.labels],
                    "before": start.min_distances,
                    "after": found.min_distances,
                    "accuracy": fits["accuracy"].mean(),
                    "deviation": fits["accuracy"].std(),
                    "separable": found.linearly_separable and start.linearly_separable,
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def family(names: Iterable[str]) -> pd.DataFrame:
    """Table 1: layers, width and parameters of each encoder (the pooler, which nothing here reads, not counted)."""
    rows = []
    for name in names:
        model = encoders.load_weights(encoders.locate(name))
        counted = sum(weights.numel() for part, weights in model.named_parameters() if not part.startswith("pooler."))
        rows.append(
            {
                "encoder": name,
                "layers": len(layer_list(model)),
                "hidden": model.config.hidden_size,
                "parameters": counted,
            }
        )
    return pd.DataFrame(rows)


def task_sizes(names: Iterable[str], source: str) -> pd.DataFrame:
    """Table 6: labelled points of each split and labels, counted from the data."""
    rows = []
    for name in names:
        data = tasks.load(name, source)
        counts, labels = {}, set()
        for split in (TRAINING, HELD_OUT):
            column = data.splits[split][data.task.label]
            flat = [label for row in column for label in row] if isinstance(column[0], list) else list(column)
            counts[split] = len(flat)
            labels |= set(flat)
        rows.append({"task": name, "training": counts[TRAINING], "test": counts[HELD_OUT], "labels": len(labels)})
    return pd.DataFrame(rows)
