"""What classifier probes read from the last layer in Zhou and Srikumar (2022), as records."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from torch import nn

from fivelenses.checkpoints.store import Checkpoint, check_finite
from fivelenses.lenses import mlp_probe
from fivelenses.papers.zhou2022.labelled import (
    HELD_OUT,
    TRAINING,
    Labelled,
    before_and_after,
    by_encoder_and_task,
    for_each_seed,
    labelled_splits,
    tuned_on_each,
)


def probe_accuracy(
    checkpoints: Sequence[Checkpoint],
    probe_sizes: Sequence[int],
    probe_regularisers: Sequence[float],
    probe_points: int | None = None,
    probe_initialisations: int = 5,
    probe_epochs: int = 1000,
    device: str | None = None,
) -> dict[str, pd.DataFrame]:
    """Tables 2 and 7: what a classifier probe reads from the last layer, before and after.

    Args:
        checkpoints: fine-tuned models; one whose training diverged is left out.
        probe_sizes, probe_regularisers: the grid of the probes.
        probe_points: training points at most, a stratified subset.
        probe_initialisations: fits of the best of the grid.
        probe_epochs: at most, of every fit.

    Returns:
        Each with `encoder`, `task`, `seed`, `stage` and `control`; what is read before is the same for all seeds:
        fits: one row per model and stage, with the columns of `_best_probe`.
        sentences: one row per model, stage and held-out sentence, with those of `_by_sentence`.
    """
    grid = mlp_probe.grid(probe_sizes, probe_regularisers)
    fits, sentences = [], []
    for named, group in by_encoder_and_task(checkpoints):
        splits = labelled_splits(group[0].specification, probe_points)
        for row, model in before_and_after(group):
            fit, read = _best_probe(model, splits, grid, probe_initialisations, probe_epochs, device)
            fits.append(named | row | fit)
            sentences.append(named | row | {"read": read})
    parts = [row.pop("read").assign(**row) for row in for_each_seed(sentences)]
    return {"fits": pd.DataFrame(for_each_seed(fits)), "sentences": _joined(parts)}


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
    """Table 5: what a probe of one task reads from models that were tuned on it and on others.

    Args:
        checkpoints: models of one encoder and seed.
        target: the task that is read; the other arguments as in `probe_accuracy`.

    Returns:
        As `probe_accuracy`, with `tuned_on` (`nothing` for the pre-trained encoder), `seed` and `control`.

    Raises:
        ValueError: a training has diverged.
    """
    check_finite({one.specification.task: one for one in checkpoints}, "tuned_on")
    grid = mlp_probe.grid(probe_sizes, probe_regularisers)
    splits = labelled_splits(replace(checkpoints[0].specification, task=target), probe_points)
    fits, sentences = [], []
    for named, model in tuned_on_each(checkpoints):
        fit, read = _best_probe(model, splits, grid, probe_initialisations, probe_epochs, device)
        fits.append(named | fit)
        sentences.append(read.assign(**named))
    return {"fits": pd.DataFrame(fits), "sentences": _joined(sentences)}


def _joined(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _best_probe(
    model: nn.Module,
    splits: Mapping[str, Labelled],
    grid: Sequence[mlp_probe.Configuration],
    fits: int,
    epochs: int,
    device: str | None,
) -> tuple[dict, pd.DataFrame]:
    """The best probe of a grid: `hidden_1`, `hidden_2`, `regulariser`, the mean `accuracy` on the held-out split of so
    many `initialisations` and its standard `deviation`, and the training `points`; and `_by_sentence` of it.
    """
    training, test = (splits[split].last_layer(model, device) for split in (TRAINING, HELD_OUT))
    labelled = (training, splits[TRAINING].labels, test, splits[HELD_OUT].labels)
    best = mlp_probe.fit_grid(*labelled, grid, range(fits), max_epochs=epochs)
    scores = {
        "hidden_1": best.hidden[0],
        "hidden_2": best.hidden[1],
        "regulariser": best.alpha,
        "accuracy": best.mean,
        "deviation": best.deviation,
        "initialisations": fits,
        "points": len(training),
    }
    return scores, _by_sentence(best.right.mean(0), splits[HELD_OUT])


def _by_sentence(right: np.ndarray, part: Labelled) -> pd.DataFrame:
    """What an interval of accuracy needs: words of a sentence are right or wrong together, so sentences are examples.

    Args:
        right: (points,) the share of the initialisations that classify a point correctly.
        part: where the points are.

    Returns:
        `metric`, `example` (the sentence), `score` (points right, the mean over initialisations), `weight` (points) and
        `null` (points of the most frequent label), as `intervals.of_scores` reads them.
    """
    names, counts = np.unique(part.labels, return_counts=True)
    of_point = {"score": right, "weight": np.ones(len(right)), "null": part.labels == names[counts.argmax()]}
    table = pd.DataFrame(of_point).groupby(part.sentences).sum().astype(np.float32)
    return table.rename_axis("example").reset_index().astype({"example": np.int32}).assign(metric="accuracy")
