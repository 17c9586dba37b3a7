"""What DirectProbe measures in Zhou and Srikumar (2022), as records: the geometry of labels before, after and along
fine-tuning, and what tuning on one task does to the labels of another.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from torch import nn

from fivelenses.checkpoints.store import Checkpoint, check_finite
from fivelenses.lenses import directprobe
from fivelenses.models.layers import layer_list
from fivelenses.papers.zhou2022.labelled import (
    HELD_OUT,
    TRAINING,
    before_and_after,
    by_encoder_and_task,
    common_labels,
    for_each_seed,
    labelled_splits,
    pretrained,
    sample,
    tuned_and_controls,
    tuned_on_each,
)
from fivelenses.records import SHARED, SHUFFLED, TUNED

CONTROL_SEED = 0

# (step, layer) to the centroids of the labels, (labels, width).
Centroids = Mapping[tuple[int, int], np.ndarray]


def geometry(
    checkpoints: Sequence[Checkpoint], points: int | None = None, min_examples: int = 3, device: str | None = None
) -> pd.DataFrame:
    """Tables 2, 3, 4 and 7: clusters of the last layer before and after, and how alike training and test set lie.

    Clusters are counted on about `points` of the training points; whether planes separate the labels is asked of all
    of them, and of all of them with permuted labels. All labels count, but in the comparison of training and test set,
    which is of labels in both.

    Args:
        checkpoints: fine-tuned models; one whose training diverged is left out.
        points: a stratified subset of so many training points.
        min_examples: labels with fewer points in either split are left out of the comparison of both.

    Returns:
        One row per model and stage, with `encoder`, `task`, `seed`, `stage` and `control`; `points`, `dimensions`,
        `labels`, `clusters`, `all_points`, `separable`, `control_separable` (all points, and the same with permuted
        labels), `common_labels`, and `similarity` of the distances between these in training and test set, missing
        where planes do not separate them in both. What is measured before is the same for all seeds.
    """
    rows = []
    for named, group in by_encoder_and_task(checkpoints):
        splits, measured = labelled_splits(group[0].specification, None), []
        whole = splits[TRAINING].labels
        kept, common = sample(whole, points), common_labels(splits, min_examples)
        for row, model in before_and_after(group):
            states, test = (splits[split].last_layer(model, device) for split in (TRAINING, HELD_OUT))
            training = directprobe.probe(states[kept], whole[kept])
            counted = {
                "points": len(kept),
                "dimensions": states.shape[1],
                "labels": len(training.labels),
                "clusters": training.n_clusters,
                "all_points": len(whole),
                "separable": directprobe.linearly_separable(states, whole),
                "control_separable": directprobe.random_label_control(states, whole, CONTROL_SEED),
                "common_labels": len(common),
            }
            both = (states[kept], whole[kept]), (test, splits[HELD_OUT].labels)
            measured.append(named | row | counted | {"similarity": _similarity(*both, common, training)})
        rows += for_each_seed(measured)
    return pd.DataFrame(rows)


Points = tuple[np.ndarray, np.ndarray]  # (n, width) and their labels


def _similarity(training: Points, test: Points, common: Sequence[str], probed: directprobe.DirectProbe) -> float:
    """How alike the distances between common labels are in both splits; NaN where planes do not separate them in both.

    `probed` is of the training points with all labels, which knows the distances where planes separate all labels.
    """
    of_common = [(points[rows := np.isin(labels, common)], labels[rows]) for points, labels in (training, test)]
    apart = len(common) > 2 and (probed.linearly_separable or directprobe.linearly_separable(*of_common[0]))
    if not (apart and directprobe.linearly_separable(*of_common[1])):
        return np.nan
    first = probed if probed.linearly_separable else directprobe.probe(*of_common[0])
    return directprobe.spatial_similarity(first, directprobe.probe(*of_common[1]))


def along_training(
    checkpoints: Sequence[Checkpoint],
    followed_points: int | None = None,
    device: str | None = None,
) -> dict[str, pd.DataFrame]:
    """Figures 2 to 10: how the labels move, at every state that was kept.

    Distances are taken on every other layer, the last included; each state's search for separating planes begins with
    those of the state before.

    Args:
        checkpoints: models with their states along training.
        followed_points: as `points` of `geometry`.

    Returns:
        Each with `task` and `seed`:
        distances: `control`, `step`, `layer`, `label`, `min_distance` to any other label, `separable`.
        similarities: `control`, `step`, `layer`, `similarity` of the labels' distances to those at step 0, missing
        where the labels are not separable; `points` and `all_points`, those measured and all of the task.
        movements: `control` and the columns of `movements`.
        paths: those of `closest_paths`, of the fine-tuned models.

    Raises:
        ValueError: a training has diverged.
    """
    check_finite({_training(one): one for one in checkpoints}, "followed")
    tables = {"distances": [], "similarities": [], "movements": [], "paths": []}
    for checkpoint in checkpoints:
        made = checkpoint.specification
        model = {"task": made.task, "seed": made.seed}
        part = labelled_splits(made, followed_points)[TRAINING]
        names = np.unique(part.labels)
        sizes = {"points": len(part.labels), "all_points": part.whole}
        centroids: dict[str, dict[tuple[int, int], np.ndarray]] = {}
        first: dict[int, directprobe.DirectProbe] = {}
        latest: dict[tuple[str, int], directprobe.DirectProbe] = {}
        for control, step, state in _along(checkpoint):
            depth = len(layer_list(state))
            for layer, points in part.points(state, range(1, depth + 1), device).items():
                of_labels = np.stack([points[part.labels == name].mean(axis=0) for name in names])
                centroids.setdefault(control, {})[step, layer] = of_labels
                if (depth - layer) % 2:
                    continue
                probed = directprobe.probe(points, part.labels, start=latest.get((control, layer), first.get(layer)))
                latest[control, layer] = probed
                first.setdefault(layer, probed)
                row, separable = model | {"control": control, "step": step, "layer": layer}, probed.linearly_separable
                nearest = pd.DataFrame({"label": probed.labels.astype(str), "min_distance": probed.min_distances})
                tables["distances"].append(nearest.assign(**row, separable=separable))
                both = separable and first[layer].linearly_separable
                similarity = directprobe.spatial_similarity(first[layer], probed) if both else np.nan
                tables["similarities"].append(pd.DataFrame([row | {"similarity": similarity} | sizes]))
        start = centroids.pop(SHARED)
        for control, of_control in centroids.items():
            tables["movements"].append(movements(start | of_control, names).assign(**model, control=control))
            if control == TUNED:
                tables["paths"].append(closest_paths(start | of_control, names).assign(**model))
    joined = {name: pd.concat(parts, ignore_index=True) for name, parts in tables.items()}
    # Models on true and on shuffled labels have one state before training.
    keys = ["task", "seed", "control", "step", "layer"]
    joined["distances"] = joined["distances"].drop_duplicates([*keys, "label"], ignore_index=True)
    joined["similarities"] = joined["similarities"].drop_duplicates(keys, ignore_index=True)
    return joined


def _training(checkpoint: Checkpoint) -> tuple:
    made = checkpoint.specification
    return (made.task, made.seed) + ((SHUFFLED,) if made.shuffled_labels else ())


def _along(checkpoint: Checkpoint) -> Iterator[tuple[str, int, nn.Module]]:
    """The state before training, which all controls share, then the others with their controls."""
    steps, original = checkpoint.steps(), pretrained(checkpoint.specification)
    yield SHARED, steps[0], original
    for step in steps[1:]:
        for control, state in tuned_and_controls(checkpoint, original, step):
            yield control, step, state


def movements(centroids: Centroids, labels: Sequence[str]) -> pd.DataFrame:
    """Figures 5 and 7 to 10: how far each label's centroid has moved from the first state to the last.

    Returns:
        `layer`, `label`, `x` and `y` (the difference vectors of a layer on their two principal directions), `length` of
        the whole vector, `in_two` (share of the layer's squared lengths that lies in the two directions), `spread`
        (mean distance between the labels' centroids before, the scale of the layer).
    """
    parts, steps = [], [step for step, _ in centroids]
    for layer in sorted({layer for _, layer in centroids}):
        start, end = (centroids[step, layer].astype(np.float64) for step in (min(steps), max(steps)))
        moved = end - start
        # Not centred: a movement that all labels share is part of the picture.
        _, strengths, directions = np.linalg.svd(moved, full_matrices=False)
        squared = strengths**2
        between = np.linalg.norm(start[:, None] - start[None], axis=-1)
        x, y = (moved @ directions[:2].T).T
        of_layer = {"layer": layer, "label": labels, "x": x, "y": y, "length": np.linalg.norm(moved, axis=1)}
        of_layer["in_two"] = squared[:2].sum() / squared.sum() if squared.sum() else np.nan
        of_layer["spread"] = between[np.triu_indices(len(between), 1)].mean()
        parts.append(pd.DataFrame(of_layer))
    return pd.concat(parts, ignore_index=True)


def closest_paths(centroids: Centroids, labels: Sequence[str], count: int = 3) -> pd.DataFrame:
    """Figure 3: the paths of the `count` closest labels' centroids, in layer 1 and in the last.

    The closest are those whose centroids have the least mean distance to one another before training, in the last
    layer.

    Returns:
        `layer`, `label`, `step`, `x`, `y`, `z`: each layer's paths on their own three principal components.
    """
    steps, last = sorted({step for step, _ in centroids}), max(layer for _, layer in centroids)
    start = centroids[steps[0], last]
    apart = np.linalg.norm(start[:, None] - start[None], axis=-1)
    others = np.argsort(apart + np.diag(np.full(len(apart), np.inf)), axis=1)[:, : count - 1]
    groups = np.column_stack([np.arange(len(apart)), others])
    closest = min(groups, key=lambda group: apart[np.ix_(group, group)].sum())
    parts = []
    for layer in (1, last):
        paths = np.concatenate([centroids[step, layer][closest] for step in steps])
        x, y, z = PCA(3, svd_solver="full").fit_transform(paths.astype(np.float64)).T
        names = np.tile(np.asarray(labels, dtype=str)[closest], len(steps))
        table = {"layer": layer, "label": names, "step": np.repeat(steps, len(closest)), "x": x, "y": y, "z": z}
        parts.append(pd.DataFrame(table))
    return pd.concat(parts, ignore_index=True)


def target_distances(
    checkpoints: Sequence[Checkpoint],
    target: str,
    followed_points: int | None = None,
    device: str | None = None,
) -> pd.DataFrame:
    """Table 5: the labels of one task in the last layer of models that were tuned on it and on others.

    Args:
        checkpoints: models of one encoder and seed.
        target: the task whose labels are measured.
        followed_points: as `points` of `geometry`.

    Returns:
        `tuned_on` (`nothing` for the pre-trained encoder), `seed`, `control`, `label`, `before` and `after` (least
        distance to any other label), `separable` (before and after).

    Raises:
        ValueError: a training has diverged.
    """
    check_finite({one.specification.task: one for one in checkpoints}, "tuned_on")
    part = labelled_splits(replace(checkpoints[0].specification, task=target), followed_points)[TRAINING]
    parts, start = [], None
    for named, model in tuned_on_each(checkpoints):
        probed = directprobe.probe(part.last_layer(model, device), part.labels, start=start)
        start = start or probed
        distances = {"before": start.min_distances, "after": probed.min_distances}
        table = pd.DataFrame(named | {"label": start.labels.astype(str)} | distances)
        parts.append(table.assign(separable=start.linearly_separable and probed.linearly_separable))
    return pd.concat(parts, ignore_index=True)
