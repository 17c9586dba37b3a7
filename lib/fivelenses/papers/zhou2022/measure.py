"""What DirectProbe measures in Zhou and Srikumar (2022), as records: the geometry of labels before, after and along
fine-tuning, and what tuning on one task does to the labels of another.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA

from fivelenses.checkpoints.store import Checkpoint, check_finite
from fivelenses.lenses import directprobe
from fivelenses.models.layers import layer_list
from fivelenses.papers.zhou2022.labelled import HELD_OUT, TRAINING, before_and_after, labelled_splits, pretrained
from fivelenses.tasks.examples import subset

CONTROL_SEED = 0

# (step, layer) to the centroids of the labels, (labels, width).
Centroids = Mapping[tuple[int, int], np.ndarray]


def geometry(
    checkpoints: Sequence[Checkpoint], points: int | None = None, min_examples: int = 3, device: str | None = None
) -> pd.DataFrame:
    """Tables 2, 3, 4 and 7: clusters of the last layer before and after, and how alike training and test set lie.

    Clusters are counted on at most `points` of the training points; whether planes separate the labels is asked of all
    of them, and of all of them with permuted labels.

    Args:
        checkpoints: fine-tuned models; one whose training diverged is left out.
        points: a stratified subset of so many training points.
        min_examples: labels with fewer points in either split are left out.

    Returns:
        One row per model and stage, with `encoder`, `task`, `seed`, `stage`, `points`, `dimensions`, `labels`,
        `clusters`, `all_points`, `separable`, `control_separable` (all points, and the same with permuted labels),
        `test_clusters`, and `similarity` of the distances between labels in training and test set, missing where one
        of the two is not separable.
    """
    rows = []
    for checkpoint in checkpoints:
        made = checkpoint.specification
        splits = labelled_splits(made, None, min_examples)
        whole, test_labels = splits[TRAINING].labels, splits[HELD_OUT].labels
        sample = np.arange(len(whole)) if points is None else subset(whole, points, seed=0)
        for stage, model in before_and_after(checkpoint).items():
            states, test_states = (splits[split].last_layer(model, device) for split in (TRAINING, HELD_OUT))
            training = directprobe.probe(states[sample], whole[sample])
            test = directprobe.probe(test_states, test_labels)
            both = training.linearly_separable and test.linearly_separable
            rows.append(
                {
                    "encoder": made.encoder,
                    "task": made.task,
                    "seed": made.seed,
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


def along_training(
    checkpoints: Sequence[Checkpoint],
    followed_points: int | None = None,
    min_examples: int = 3,
    device: str | None = None,
) -> dict[str, pd.DataFrame]:
    """Figures 2 to 10: how the labels move, at every state that was kept.

    Distances are taken on every other layer, the last included; each state's search for separating planes begins with
    those of the state before.

    Args:
        checkpoints: models with their states along training.
        followed_points, min_examples: as `points` and `min_examples` of `geometry`.

    Returns:
        Each with `task` and `seed`:
        distances: `step`, `layer`, `label`, `min_distance` to any other label, `separable`.
        similarities: `step`, `layer`, `similarity` of the labels' distances to those at step 0, missing where the
        labels are not separable.
        movements, paths: the columns of `movements` and `closest_paths`.

    Raises:
        ValueError: a training has diverged.
    """
    check_finite({(one.specification.task, one.specification.seed): one for one in checkpoints}, "followed")
    tables = {"distances": [], "similarities": [], "movements": [], "paths": []}
    for checkpoint in checkpoints:
        made = checkpoint.specification
        model = {"task": made.task, "seed": made.seed}
        part = labelled_splits(made, followed_points, min_examples)[TRAINING]
        centroids = {}
        first: dict[int, directprobe.DirectProbe] = {}
        before: dict[int, directprobe.DirectProbe] = {}
        for step in checkpoint.steps():
            state = checkpoint.model_at(step)
            depth = len(layer_list(state))
            for layer, points in part.points(state, range(1, depth + 1), device).items():
                names = np.unique(part.labels)
                centroids[step, layer] = np.stack([points[part.labels == name].mean(axis=0) for name in names])
                if (depth - layer) % 2:
                    continue
                probed = directprobe.probe(points, part.labels, start=before.get(layer))
                before[layer] = probed
                first.setdefault(layer, probed)
                row, separable = model | {"step": step, "layer": layer}, probed.linearly_separable
                nearest = pd.DataFrame({"label": probed.labels.astype(str), "min_distance": probed.min_distances})
                tables["distances"].append(nearest.assign(**row, separable=separable))
                both = separable and first[layer].linearly_separable
                similarity = directprobe.spatial_similarity(first[layer], probed) if both else np.nan
                tables["similarities"].append(pd.DataFrame([row | {"similarity": similarity}]))
        tables["movements"].append(movements(centroids, names).assign(**model))
        tables["paths"].append(closest_paths(centroids, names).assign(**model))
    return {name: pd.concat(parts, ignore_index=True) for name, parts in tables.items()}


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
    min_examples: int = 3,
    device: str | None = None,
) -> pd.DataFrame:
    """Table 5: the labels of one task in the last layer of models that were tuned on it and on others.

    Args:
        checkpoints: models of one encoder and seed.
        target: the task whose labels are measured.
        followed_points, min_examples: as `points` and `min_examples` of `geometry`.

    Returns:
        `tuned_on` (`nothing` for the pre-trained encoder), `seed`, `label`, `before` and `after` (least distance to any
        other label), `separable`.

    Raises:
        ValueError: a training has diverged.
    """
    check_finite({one.specification.task: one for one in checkpoints}, "tuned_on")
    made = checkpoints[0].specification
    part = labelled_splits(replace(made, task=target), followed_points, min_examples)[TRAINING]
    start = directprobe.probe(part.last_layer(pretrained(made), device), part.labels)
    probed = {"nothing": start}
    for one in checkpoints:
        points = part.last_layer(one.model(), device)
        probed[one.specification.task] = directprobe.probe(points, part.labels, start=start)
    parts = []
    for tuned_on, geometry_after in probed.items():
        distances = {"before": start.min_distances, "after": geometry_after.min_distances}
        table = pd.DataFrame({"tuned_on": tuned_on, "seed": made.seed, "label": start.labels.astype(str)} | distances)
        both = geometry_after.linearly_separable and start.linearly_separable
        parts.append(table.assign(separable=both))
    return pd.concat(parts, ignore_index=True)
