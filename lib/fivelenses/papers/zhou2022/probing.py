"""What classifier probes read from the last layer in Zhou and Srikumar (2022), as records."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
from torch import nn

from fivelenses.checkpoints.store import Checkpoint, check_finite
from fivelenses.lenses import mlp_probe
from fivelenses.papers.zhou2022.labelled import (
    HELD_OUT,
    TRAINING,
    Labelled,
    before_and_after,
    labelled_splits,
    pretrained,
)


def probe_accuracy(
    checkpoints: Sequence[Checkpoint],
    probe_sizes: Sequence[int],
    probe_regularisers: Sequence[float],
    probe_points: int | None = None,
    probe_initialisations: int = 5,
    probe_epochs: int = 1000,
    device: str | None = None,
) -> pd.DataFrame:
    """Tables 2 and 7: what a classifier probe reads from the last layer, before and after.

    Args:
        checkpoints: fine-tuned models; one whose training diverged is left out.
        probe_sizes, probe_regularisers: the grid of the probes.
        probe_points: training points at most, a stratified subset.
        probe_initialisations: fits of the best of the grid.
        probe_epochs: at most, of every fit.

    Returns:
        One row per model and stage, with `encoder`, `task`, `seed`, `stage`, and the columns of `_best_probe`.
    """
    grid, how = mlp_probe.grid(probe_sizes, probe_regularisers), dict(max_epochs=probe_epochs, device=device)
    rows = []
    for checkpoint in checkpoints:
        made = checkpoint.specification
        splits = labelled_splits(made, probe_points)
        for stage, model in before_and_after(checkpoint).items():
            row = {"encoder": made.encoder, "task": made.task, "seed": made.seed, "stage": stage}
            rows.append(row | _best_probe(model, splits, grid, probe_initialisations, **how))
    return pd.DataFrame(rows)


def target_accuracy(
    checkpoints: Sequence[Checkpoint],
    target: str,
    probe_sizes: Sequence[int],
    probe_regularisers: Sequence[float],
    probe_points: int | None = None,
    probe_initialisations: int = 5,
    probe_epochs: int = 1000,
    device: str | None = None,
) -> pd.DataFrame:
    """Table 5: what a probe of one task reads from models that were tuned on it and on others.

    Args:
        checkpoints: models of one encoder and seed.
        target: the task that is read; the other arguments as in `probe_accuracy`.

    Returns:
        One row per model, with `tuned_on` (`nothing` for the pre-trained encoder), `seed`, and the columns of
        `_best_probe`.

    Raises:
        ValueError: a training has diverged.
    """
    check_finite({one.specification.task: one for one in checkpoints}, "tuned_on")
    made = checkpoints[0].specification
    grid, how = mlp_probe.grid(probe_sizes, probe_regularisers), dict(max_epochs=probe_epochs, device=device)
    splits = labelled_splits(replace(made, task=target), probe_points)
    fits = {"nothing": _best_probe(pretrained(made), splits, grid, probe_initialisations, **how)}
    for one in checkpoints:
        fits[one.specification.task] = _best_probe(one.model(), splits, grid, probe_initialisations, **how)
    return pd.DataFrame([{"tuned_on": task, "seed": made.seed} | fit for task, fit in fits.items()])


def _best_probe(
    model: nn.Module, splits: Mapping[str, Labelled], grid: Sequence[mlp_probe.Configuration], fits: int, **how
) -> dict:
    """The best probe of a grid: `hidden_1`, `hidden_2`, `regulariser`, the mean `accuracy` on the held-out split of so
    many `initialisations` and its standard `deviation`, and the training `points`.
    """
    training, test = (splits[split].last_layer(model, how["device"]) for split in (TRAINING, HELD_OUT))
    labelled = (training, splits[TRAINING].labels, test, splits[HELD_OUT].labels)
    best = mlp_probe.fit_grid(*labelled, grid, range(fits), **how)
    return {
        "hidden_1": best.hidden[0],
        "hidden_2": best.hidden[1],
        "regulariser": best.alpha,
        "accuracy": best.mean,
        "deviation": best.deviation,
        "initialisations": fits,
        "points": len(training),
    }
