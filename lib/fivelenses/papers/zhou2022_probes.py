"""What classifier probes read from the last layer (Tables 2, 5 and 7 of Zhou and Srikumar 2022)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from torch import nn

from fivelenses.checkpoints.store import Checkpoint, check_finite
from fivelenses.lenses import mlp_probe
from fivelenses.papers.zhou2022 import HELD_OUT, TRAINING, Split, after_each_task, before_and_after, splits

FITS = ["encoder", "task", "stage", "seed", "control", "accuracy", "deviation"]
SENTENCES = [*FITS[:5], "example", "score", "weight", "null", "metric"]


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
        probe_sizes, probe_regularisers: the grid of the probes.
        probe_points: training points at most, a stratified subset.
        probe_initialisations: fits of the best of the grid.
        probe_epochs: at most, of every fit.

    Returns:
        fits: one row per model: the columns of `before_and_after`; `hidden_1` and `hidden_2` of the best probe, and its
        mean `accuracy` on the held-out split over its initialisations with the standard `deviation`.
        sentences: one row per model and held-out sentence: `score` (points that are right, the mean over
        initialisations), `weight` (points), `null` (those of the most frequent label).
    """
    parts = splits(checkpoints[0].specification, probe_points)
    grid = mlp_probe.grid(probe_sizes, probe_regularisers)
    return _accuracies(before_and_after(checkpoints), parts, grid, probe_initialisations, probe_epochs, device)


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
    """Table 5: what a probe of the task `target` reads from models that were fine-tuned on it and on others.

    Args:
        checkpoints: of one encoder and seed; the other arguments as in `probe_accuracy`.

    Returns:
        As `probe_accuracy`, with the columns of `after_each_task`.
    """
    check_finite({one.specification.task: one for one in checkpoints}, "tuned_on")
    parts = splits(replace(checkpoints[0].specification, task=target), probe_points)
    grid = mlp_probe.grid(probe_sizes, probe_regularisers)
    return _accuracies(after_each_task(checkpoints), parts, grid, probe_initialisations, probe_epochs, device)


def _accuracies(
    models: Iterable[tuple[list[dict], nn.Module]],
    parts: Mapping[str, Split],
    grid: Sequence[mlp_probe.Configuration],
    initialisations: int,
    epochs: int,
    device: str | None,
) -> dict[str, pd.DataFrame]:
    """`fits` and `sentences` of the best probe of each model."""
    fits, sentences = [], []
    for places, model in models:
        training, test = (parts[split].last_layer(model, device) for split in (TRAINING, HELD_OUT))
        points = (training, parts[TRAINING].labels, test, parts[HELD_OUT].labels)
        best = mlp_probe.fit_grid(*points, grid, range(initialisations), max_epochs=epochs)
        fit = dict(zip(("hidden_1", "hidden_2"), best.selected.hidden, strict=True))
        fit |= {"accuracy": best.mean, "deviation": best.deviation}
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
