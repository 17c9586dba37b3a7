"""The geometry of labels before, after and along fine-tuning, and what fine-tuning on one task does to the labels of
another, as DirectProbe measures them (Tables 2 to 5 and 7 and all figures of Zhou and Srikumar 2022).
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
from fivelenses.papers.models import pretrained
from fivelenses.papers.zhou2022 import TRAINING, Split, after_each_task, before_and_after, sample, splits, with_control
from fivelenses.records import FINE_TUNED, SHARED

COLUMNS = ["encoder", "task", "stage", "seed", "control", "labels", "clusters", "similarity"]  # of a table without rows

Points = tuple[np.ndarray, np.ndarray]  # (n, width), and their labels (n,)
Centroids = Mapping[tuple[int, int], np.ndarray]  # (step, layer) to (labels, width)


def geometry(
    checkpoints: Sequence[Checkpoint], points: int | None = None, min_examples: int = 3, device: str | None = None
) -> pd.DataFrame:
    """Tables 2, 3, 4 and 7: clusters of the last layer before and after, and how alike training and test set lie.

    Args:
        checkpoints: of one encoder and task; one whose training diverged is left out.
        points: of the training split, in which clusters are counted; all are asked whether planes separate them.
        min_examples: labels with fewer points in either split are left out of the comparison of both.

    Returns:
        One row per model: the columns of `before_and_after`; `points`, `dimensions`, `labels`, `clusters` (missing
        where two labels share a point, as in a functional twin whose noise has flattened its last layer);
        `all_points`, `separable`, `control_separable` (with permuted labels); the `similarity` of the distances of
        common labels in both splits, NaN where planes do not separate them in both.
    """
    parts, rows = splits(checkpoints[0].specification), []
    whole, held_out = (part.labels for part in parts.values())
    kept, common = sample(whole, points), common_labels(parts, min_examples)
    for places, model in before_and_after(checkpoints):
        states, test = (part.last_layer(model, device) for part in parts.values())
        training = _probe(states[kept], whole[kept])
        counted = {"points": len(kept), "dimensions": states.shape[1], "labels": len(np.unique(whole[kept]))}
        counted |= {"clusters": training.n_clusters if training else np.nan, "all_points": len(whole)}
        counted["separable"] = directprobe.linearly_separable(states, whole)
        counted["control_separable"] = directprobe.random_label_control(states, whole, seed=0)
        counted["similarity"] = _similarity((states[kept], whole[kept]), (test, held_out), common, training)
        rows += [place | counted for place in places]
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=COLUMNS)


def common_labels(parts: Mapping[str, Split], min_examples: int) -> list[str]:
    """The labels with at least so many points in both splits."""
    counts = pd.DataFrame({name: pd.Series(part.labels).value_counts() for name, part in parts.items()})
    return sorted(counts.index[(counts >= min_examples).all(axis=1)])


def _probe(points: np.ndarray, labels: np.ndarray) -> directprobe.DirectProbe | None:
    """The clusters of points (n, width), or None where two labels share a point, which no clusters tell apart."""
    _, places = np.unique(points, axis=0, return_inverse=True)
    shared = pd.Series(labels).groupby(places.ravel()).nunique().max() > 1
    return None if shared else directprobe.probe(points, labels)


def _similarity(training: Points, test: Points, common: Sequence[str], probed: directprobe.DirectProbe | None) -> float:
    """How alike the distances between common labels are in both splits; `probed` is of the training points."""
    if len(common) < 3 or probed is None:
        return np.nan
    (x, y), test = [(points[rows := np.isin(labels, common)], labels[rows]) for points, labels in (training, test)]
    separable = probed.linearly_separable or directprobe.linearly_separable(x, y)
    if not (separable and directprobe.linearly_separable(*test)):
        return np.nan
    first = probed if probed.linearly_separable else directprobe.probe(x, y)
    return directprobe.spatial_similarity(first, directprobe.probe(*test))


def along_training(
    checkpoints: Sequence[Checkpoint], followed_points: int | None = None, device: str | None = None
) -> dict[str, pd.DataFrame]:
    """Figures 2 to 10: how the labels move, at every state of a training that is kept.

    Args:
        checkpoints: of one task and seed, the one on shuffled labels among them.
        followed_points: of the training split, at most.

    Returns:
        Each with `task`, `seed` and, but for paths, `control`:
        distances: `step`, every other `layer`, `label`, `min_distance` to any other label, `separable`.
        similarities: `step`, `layer`, `similarity` of the labels' distances to those before training, NaN where planes
        do not separate them; `points` and `all_points`, those followed and all.
        movements: `layer`, `label`, `x` and `y` (its centroid's movement from the first state to the last, on the
        layer's two principal directions), `length` of the whole vector, `in_two` (share of the layer's squared lengths
        that lies in the two), `spread` (mean distance between the labels' centroids before, the scale of the layer).
        paths: `layer` (1 or the last), `label`, `step`, `x`, `y`, `z` (a centroid on three principal components), of
        the three labels whose centroids are nearest to one another before training, in the last layer.
    """
    check_finite({one.specification.describe(): one for one in checkpoints}, "followed")
    made = checkpoints[0].specification
    model = {"task": made.task, "seed": made.seed}
    part = splits(made, followed_points)[TRAINING]
    names, centroids = np.unique(part.labels), {}
    first, distances, similarities = {}, [], []
    for control, step, layer, of_labels, probed in _followed(part, checkpoints, device):
        centroids.setdefault(control, {})[step, layer] = of_labels
        if probed is None:
            continue
        row, separable = model | {"control": control, "step": step, "layer": layer}, probed.linearly_separable
        nearest = pd.DataFrame({"label": probed.labels.astype(str), "min_distance": probed.min_distances})
        distances.append(nearest.assign(**row, separable=separable))
        both = first.setdefault(layer, probed).linearly_separable and separable
        similarity = directprobe.spatial_similarity(first[layer], probed) if both else np.nan
        similarities.append(row | {"similarity": similarity, "points": len(part.labels), "all_points": part.size})
    before = centroids.pop(SHARED)
    moved = [movements(before | after, names).assign(**model, control=name) for name, after in centroids.items()]
    return {
        "distances": pd.concat(distances, ignore_index=True),
        "similarities": pd.DataFrame(similarities),
        "movements": pd.concat(moved, ignore_index=True),
        "paths": _closest_paths(before | centroids[FINE_TUNED], names).assign(**model),
    }


def _followed(part: Split, checkpoints: Sequence[Checkpoint], device: str | None) -> Iterator[tuple]:
    """`control`, `step`, `layer`, the labels' centroids and, on every other layer, their geometry, else None."""
    names = np.unique(part.labels)
    for control, step, model in _states(checkpoints):
        depth = len(layer_list(model))
        for layer, points in part.states(model, range(1, depth + 1), device).items():
            centroids = np.stack([points[part.labels == name].mean(axis=0) for name in names])
            probed = directprobe.probe(points, part.labels) if (depth - layer) % 2 == 0 else None
            yield control, step, layer, centroids, probed


def _states(checkpoints: Sequence[Checkpoint]) -> Iterator[tuple[str, int, nn.Module]]:
    """The state before training, which all controls share, then the others, by `control` and `step`."""
    original = pretrained(checkpoints[0])
    yield SHARED, checkpoints[0].steps()[0], original
    for checkpoint in checkpoints:
        for step in checkpoint.steps()[1:]:
            for control, state in with_control(checkpoint, original, step):
                yield control, step, state


def movements(centroids: Centroids, labels: Sequence[str]) -> pd.DataFrame:
    """Figures 5 and 7 to 10: how far each label's centroid has moved from the first state to the last."""
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


def _closest_paths(centroids: Centroids, labels: Sequence[str]) -> pd.DataFrame:
    """Figure 3: the paths of the three closest labels' centroids, in layer 1 and in the last."""
    steps, last = sorted({step for step, _ in centroids}), max(layer for _, layer in centroids)
    start = centroids[steps[0], last]
    apart = np.linalg.norm(start[:, None] - start[None], axis=-1)
    groups = np.argsort(apart, axis=1)[:, :3]  # each label and the two that are nearest to it
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
    checkpoints: Sequence[Checkpoint], target: str, followed_points: int | None = None, device: str | None = None
) -> pd.DataFrame:
    """Table 5: the labels of the task `target` in the last layer of models fine-tuned on it and on others.

    Args:
        checkpoints: of one encoder and seed.
        followed_points: of the training split, at most.

    Returns:
        The columns of `after_each_task`; `label`, its least distance to any other `before` and `after` (missing where
        two labels share a point), `separable` (before and after).
    """
    check_finite({one.specification.task: one for one in checkpoints}, "tuned_on")
    part = splits(replace(checkpoints[0].specification, task=target), followed_points)[TRAINING]
    parts, start = [], None
    for (place,), model in after_each_task(checkpoints):
        probed = (_probe if parts else directprobe.probe)(part.last_layer(model, device), part.labels)
        start = start or probed
        distances = {"before": start.min_distances, "after": probed.min_distances if probed else np.nan}
        table = pd.DataFrame(place | {"label": start.labels.astype(str)} | distances)
        both = probed is not None and start.linearly_separable and probed.linearly_separable
        parts.append(table.assign(separable=both))
    return pd.concat(parts, ignore_index=True)
