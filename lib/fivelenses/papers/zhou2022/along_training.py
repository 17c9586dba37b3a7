"""How the labels of Zhou and Srikumar (2022) move along training, as tidy tables."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA

from fivelenses.checkpoints import Checkpoint, check_finite
from fivelenses.lenses import directprobe
from fivelenses.models.layers import layer_list
from fivelenses.papers.zhou2022.measure import TRAINING, labelled_splits, max_length


@dataclass(frozen=True)
class Dynamics:
    """How the labels move along training.

    Attributes:
        distances: task, seed, step, layer, label, `min_distance` to any other label, `separable`.
        similarities: task, seed, step, layer, `similarity` of the labels' distances to those at step 0, missing where
            the labels are not separable.
        centroids: (task, seed, step, layer) to the labels' centroids, (labels, width).
        labels: task to the names of its labels, in the order of the centroids.
    """

    distances: pd.DataFrame
    similarities: pd.DataFrame
    centroids: dict[tuple[str, int, int, int], np.ndarray]
    labels: dict[str, np.ndarray]


def dynamics(
    checkpoints: Mapping[tuple[str, int], Checkpoint],
    encoder: str,
    source: str,
    points: int | None,
    least: int,
    device: str | None = None,
) -> Dynamics:
    """Figures 2 to 10: distances, similarity to the start, and centroids, at every state that was kept.

    Distances are taken on every other layer, the last included; each state's search for separating planes begins with
    those of the state before.

    Args:
        checkpoints: (task, seed) to a fine-tuned model with its states along training.
    """
    check_finite(checkpoints, "followed")
    distances, similarities, centroids, names = [], [], {}, {}
    for (task, seed), checkpoint in checkpoints.items():
        split = labelled_splits(encoder, task, source, max_length(checkpoint), points, least)[TRAINING]
        names[task] = np.unique(split.labels)
        first: dict[int, directprobe.DirectProbe] = {}
        before: dict[int, directprobe.DirectProbe] = {}
        for step in checkpoint.steps():
            model = checkpoint.model_at(step)
            depth = len(layer_list(model))
            for layer, states in split.points(model, range(depth + 1), device).items():
                centroids[task, seed, step, layer] = np.stack(
                    [states[split.labels == name].mean(axis=0) for name in names[task]]
                )
                if layer == 0 or (depth - layer) % 2:
                    continue
                found = directprobe.probe(states, split.labels, start=before.get(layer))
                before[layer] = found
                first.setdefault(layer, found)
                place = {"task": task, "seed": seed, "step": step, "layer": layer}
                nearest = zip(found.labels, found.min_distances, strict=True)
                distances += [
                    place | {"label": str(name), "min_distance": distance, "separable": found.linearly_separable}
                    for name, distance in nearest
                ]
                both = found.linearly_separable and first[layer].linearly_separable
                similarity = directprobe.spatial_similarity(first[layer], found) if both else np.nan
                similarities.append(place | {"similarity": similarity})
    return Dynamics(pd.DataFrame(distances), pd.DataFrame(similarities), centroids, names)


def movements(measured: Dynamics) -> pd.DataFrame:
    """Figures 5 and 7 to 10: how far each label's centroid has moved from the first state to the last.

    Returns:
        task, seed, layer, label, `x` and `y` (the difference vectors of a layer on their two principal directions),
        `length` of the whole vector, `in_two` (share of the layer's squared lengths that lies in the two directions),
        `spread` (mean distance between the labels' centroids before, the scale of the layer).
    """
    parts = []
    for task, seed in dict.fromkeys((task, seed) for task, seed, _, _ in measured.centroids):
        ours = [key for key in measured.centroids if key[:2] == (task, seed)]
        last = max(step for _, _, step, _ in ours)
        for layer in sorted({layer for *_, layer in ours}):
            start, end = (measured.centroids[task, seed, step, layer].astype(np.float64) for step in (0, last))
            moved = end - start
            # Not centred: a movement that all labels share is part of the picture.
            _, strengths, directions = np.linalg.svd(moved, full_matrices=False)
            squared = strengths**2
            between = np.linalg.norm(start[:, None] - start[None], axis=-1)
            x, y = (moved @ directions[:2].T).T
            parts.append(
                pd.DataFrame(
                    {
                        "task": task,
                        "seed": seed,
                        "layer": layer,
                        "label": measured.labels[task],
                        "x": x,
                        "y": y,
                        "length": np.linalg.norm(moved, axis=1),
                        "in_two": squared[:2].sum() / squared.sum() if squared.sum() else np.nan,
                        "spread": between[np.triu_indices(len(between), 1)].mean(),
                    }
                )
            )
    return pd.concat(parts, ignore_index=True)


def centroid_paths(measured: Dynamics, task: str, seed: int, count: int = 3) -> pd.DataFrame:
    """Figure 3: the paths of the `count` closest labels' centroids, in layer 1 and in the last.

    The closest are those whose centroids have the least mean distance to one another before training, in the last
    layer.

    Returns:
        layer, label, step, `x`, `y`, `z`: each layer's paths on their own three principal components.
    """
    ours = sorted(key for key in measured.centroids if key[:2] == (task, seed))
    steps, layers = sorted({key[2] for key in ours}), sorted({key[3] for key in ours})
    start = measured.centroids[task, seed, steps[0], layers[-1]]
    apart = np.linalg.norm(start[:, None] - start[None], axis=-1)
    chosen = min(
        (
            [label, *np.argsort(np.where(np.arange(len(apart)) == label, np.inf, apart[label]))[: count - 1]]
            for label in range(len(apart))
        ),
        key=lambda group: apart[np.ix_(group, group)].sum(),
    )
    parts = []
    for layer in (1, layers[-1]):
        paths = np.stack([measured.centroids[task, seed, step, layer][chosen] for step in steps])
        flat = PCA(3, svd_solver="full").fit_transform(paths.reshape(len(steps) * count, -1).astype(np.float64))
        for place, (step, label) in enumerate((step, label) for step in steps for label in chosen):
            name = str(measured.labels[task][label])
            parts.append({"layer": layer, "label": name, "step": step, **dict(zip("xyz", flat[place], strict=True))})
    return pd.DataFrame(parts)
