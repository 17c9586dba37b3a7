"""What Hao et al. (2019) measure, as records: surfaces and curves.

Losses and errors are kept for all examples (`fold` −1) and without each of ten folds of them, the same examples at
every point, so that what is made of many points (a width, a correlation) has an interval. The control of a direction is
a random direction of its length.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence

import datasets
import numpy as np
import pandas as pd
import torch
from transformers import PreTrainedModel

from fivelenses import project
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.lenses import directions, landscape
from fivelenses.lenses.classifier_loss import ClassifierLoss
from fivelenses.lenses.directions import Parameters
from fivelenses.papers.hao2019 import RADIUS
from fivelenses.papers.hao2019.planes import Models, Plane, encoded
from fivelenses.records import OPTIMISATION, RANDOM, TWIN, WHOLE
from fivelenses.tasks.subsets import folds

SPLITS = {"train": "training", "validation": "development"}
FOLDED = {"train": "loss", "validation": "error"}  # what is said of a split, and has folds
RANDOM_SEED = 0
WAY_POINTS = 41  # evenly from start to end, so that a ridge on the way is not stepped over
SHARPNESS_DRAWS = 5  # random directions

Log = Callable[[str], None]


def loss_of(
    model: PreTrainedModel,
    examples: datasets.Dataset,
    layers: Sequence[int],
    limit: int | None = None,
    bfloat16: bool = False,
) -> ClassifierLoss:
    """The loss of a model with moving layers on as many of these examples as `limit` says, drawn once, with folds."""
    lower = torch.bfloat16 if bfloat16 else None
    return ClassifierLoss(model, examples, layers, limit=limit, autocast=lower, folds=folds)


def as_rows(
    landscape_of: landscape.Curve | landscape.Surface, value: str, places: Mapping[str, np.ndarray], examples: int
) -> pd.DataFrame:
    """Measurements as rows.

    Args:
        value: `loss` or `error`, of which the folds are kept.
        places: column to where each cell lies.
        examples: how many were measured.

    Returns:
        The places, `examples`, `fold`, `loss`, `error`, `loss_standard_error`, `error_standard_error` (NaN without a
        fold).
    """
    cells = {
        "loss": landscape_of.losses,
        "error": landscape_of.errors,
        "loss_standard_error": landscape_of.loss_standard_errors,
        "error_standard_error": landscape_of.error_standard_errors,
    }
    parts = [{"fold": WHOLE} | {name: values.ravel() for name, values in cells.items()}]
    left_out = {"loss": landscape_of.left_out_losses, "error": landscape_of.left_out_errors}[value]
    parts += [{"fold": fold, value: values.ravel()} for fold, values in enumerate(left_out)]
    table = pd.concat([pd.DataFrame(places | part) for part in parts], ignore_index=True)
    return table.astype(dict.fromkeys(cells, np.float32) | {"fold": np.int8}).assign(examples=examples)


def at_one(evaluate: ClassifierLoss, point: Parameters, value: str) -> pd.DataFrame:
    """The loss and error at one point, as `as_rows` has them."""
    measured = evaluate(point)
    fields = [measured.loss, measured.error, measured.loss_standard_error, measured.error_standard_error]
    left_out = [np.reshape(folds, (-1, 1)) for folds in (measured.left_out_losses, measured.left_out_errors)]
    at_point = landscape.Curve(np.zeros(1), *map(np.atleast_1d, fields), *left_out)
    return as_rows(at_point, value, {}, evaluate.n_examples)


def surface(
    plane: Plane,
    origin: Parameters,
    evaluate: ClassifierLoss,
    positions: np.ndarray,
    value: str,
    name: str,
    log: Log = print,
) -> pd.DataFrame:
    """A surface on a plane's two directions, kept row by row: one that was interrupted goes on where it was.

    Args:
        positions: on both axes.
        value: `loss` or `error`, of which the folds are kept.
        name: what is measured, for a line of progress.

    Returns:
        One row per cell and fold with `alpha`, `beta`, and the columns of `as_rows`.
    """
    # Named by what is measured, where and on which grid, so that no other surface is overwritten.
    lengths = [directions.norm(vector) for vector in (origin, plane.first, plane.second)]
    measured = repr((evaluate.identity, positions.tolist(), plane.layers, lengths))

    def progress(done: int, rows: int) -> None:
        if done == rows or done % max(1, rows // 3) == 0:
            log(f"{name}: {done} of {rows} rows")

    cells = landscape.surface(
        evaluate,
        origin,
        (plane.first, plane.second),
        positions,
        positions,
        file=project.runs_folder() / "surfaces" / f"{hashlib.sha256(measured.encode()).hexdigest()[:20]}.npz",
        identity=evaluate.identity,
        progress=progress,
    )
    alphas, betas = np.meshgrid(cells.alphas, cells.betas)
    return as_rows(cells, value, {"alpha": alphas.ravel(), "beta": betas.ravel()}, evaluate.n_examples)


def landscapes(
    checkpoints: Sequence[Checkpoint],
    task: str,
    init: str,
    seed: int,
    second: Mapping[str, str],
    low: float,
    high: float,
    points: int,
    line_points: int,
    grid_examples: int | None = None,
    bfloat16: bool = False,
    device: str | None = None,
    log: Log = print,
) -> dict[str, pd.DataFrame]:
    """Figures 1, 5 and 6: surfaces of loss and error, curves, lengths, angle and sharpness of one model.

    Args:
        checkpoints: all models of the run: the second direction is that of another task's.
        task, init, seed: which one is measured.
        second: task to the task that gives the second direction.
        low, high, points: of each axis of a surface, in lengths of the first direction; -1, 0 and 1 are added.
        line_points: of a curve, on the same range; from start to end `WAY_POINTS` more.
        grid_examples: of each split at a cell of a grid, drawn once; None for all.
        bfloat16: whether matrix products are made in that precision.

    Returns:
        Each with `task`, `init` and `seed`, and empty where a training diverged that is needed:

        - `surfaces`, one row per split, cell and fold: `split`, and the columns of `surface`, with folds of the loss of
          training examples and of the error of development examples.
        - `lines`, the training loss along the optimisation direction and, as its `control`, along a random one of its
          length through the end: `direction`, `alpha` (the end is at 1 on both), `examples`, `fold`, `loss`,
          `loss_standard_error`.
        - `ends`, the trained model on all examples: `split`, `examples`, `fold`, `loss`, `error`.
        - `models`, one row: `examples` (it was trained on), `null_loss` (entropy of their labels, nats), `norm` and
          `relative_norm` of its direction, `angle` (degrees) between the two directions, `sharpness` and
          `sharpness_standard_error` (nats).
    """
    models, key = Models(checkpoints, second, device), {"task": task, "init": init, "seed": seed}
    if not models.finite(task, seed):
        return {name: pd.DataFrame() for name in ("surfaces", "lines", "ends", "models")}
    checkpoint, plane = models.usual(task, init, seed), models.plane(task, init, seed)
    examples = {split: encoded(checkpoint, split) for split in SPLITS}
    losses = {
        split: loss_of(plane.model, read, plane.layers, grid_examples, bfloat16) for split, read in examples.items()
    }
    surfaces, ends = [], []
    for split, evaluate in losses.items():
        name, value = f"{task}, {init}, seed {seed}, {SPLITS[split]} examples", FOLDED[split]
        cells = surface(plane, plane.start, evaluate, landscape.grid(low, high, points), value, name, log)
        surfaces.append(cells.assign(**key, split=split))
        whole = loss_of(plane.model, examples[split], plane.layers, None, bfloat16)
        ends.append(at_one(whole, plane.end(), value)[["fold", "loss", "error", "examples"]].assign(**key, split=split))

    positions = landscape.grid(low, high, line_points)
    along = np.union1d(positions.round(9), np.linspace(0, 1, WAY_POINTS).round(9))
    lines = {
        OPTIMISATION: (along, landscape.curve(losses["train"], plane.start, plane.first, along)),
        RANDOM: (positions, landscape.curve(losses["train"], plane.end(), plane.random(RANDOM_SEED), positions - 1)),
    }
    lines = [
        as_rows(line, "loss", {"alpha": alphas}, losses["train"].n_examples)
        .drop(columns=["error", "error_standard_error"])
        .assign(**key, direction=direction, control=TWIN if direction == RANDOM else "")
        for direction, (alphas, line) in lines.items()
    ]

    shares = np.unique(examples["train"]["labels"], return_counts=True)[1] / examples["train"].num_rows
    sharp = landscape.sharpness(losses["train"], plane.end(), RADIUS, SHARPNESS_DRAWS, RANDOM_SEED)
    row = key | {
        "examples": examples["train"].num_rows,
        "null_loss": -float(shares @ np.log(shares)),
        "norm": directions.norm(plane.first),
        "relative_norm": directions.norm(plane.first) / directions.norm(plane.start),
        "angle": directions.angle(plane.first, plane.second),
        "sharpness": sharp.mean,
        "sharpness_standard_error": sharp.standard_error,
    }
    return {
        "surfaces": pd.concat(surfaces, ignore_index=True),
        "lines": pd.concat(lines, ignore_index=True),
        "ends": pd.concat(ends, ignore_index=True),
        "models": pd.DataFrame([row]),
    }
