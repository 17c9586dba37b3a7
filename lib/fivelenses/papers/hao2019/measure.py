"""What Hao et al. (2019) measure, as records: surfaces, curves, trajectories, and what rolled-back layers cost."""

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
from fivelenses.lenses.basin import sharpness
from fivelenses.lenses.classifier_loss import ClassifierLoss
from fivelenses.lenses.directions import Parameters
from fivelenses.lenses.parameter_motion import layer_parameters
from fivelenses.papers.hao2019.planes import INITS, PRETRAINED, Models, Plane, encoded

OPTIMISATION, RANDOM = "optimisation", "random"
SPLITS = {"train": "training", "validation": "development"}
CELL, STATE, BETWEEN = "cell", "state", "between"
RANDOM_SEED, RANDOM_DRAWS = 0, 3
RADIUS, SHARPNESS_DRAWS = 0.1, 5  # the share of its length by which a filter moves, and random directions
POSITIONS_BETWEEN = 11

Log = Callable[[str], None]


def loss_of(
    model: PreTrainedModel,
    examples: datasets.Dataset,
    layers: Sequence[int],
    limit: int | None = None,
    bfloat16: bool = False,
) -> ClassifierLoss:
    """The loss of a model with moving layers on as many of these examples as `limit` says, drawn once."""
    return ClassifierLoss(model, examples, layers, limit=limit, autocast=torch.bfloat16 if bfloat16 else None)


def surface(
    plane: Plane, origin: Parameters, evaluate: ClassifierLoss, positions: np.ndarray, name: str, log: Log = print
) -> pd.DataFrame:
    """A surface on a plane's two directions, kept row by row: one that was interrupted goes on where it was.

    Args:
        positions: on both axes.
        name: what is measured, for a line of progress.

    Returns:
        One row per cell with `alpha`, `beta`, `loss`, `error`, `loss_standard_error`, `error_standard_error`.
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
        notify=log,
    )
    alphas, betas = np.meshgrid(cells.alphas, cells.betas)
    columns = {
        "alpha": alphas,
        "beta": betas,
        "loss": cells.losses,
        "error": cells.errors,
        "loss_standard_error": cells.loss_standard_errors,
        "error_standard_error": cells.error_standard_errors,
    }
    return pd.DataFrame({column: values.ravel() for column, values in columns.items()})


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
        line_points: of a curve, on the same range.
        grid_examples: of each split at a cell of a grid, drawn once; None for all.
        bfloat16: whether matrix products are made in that precision.

    Returns:
        Each with `task`, `init` and `seed`, and empty where a training diverged that is needed:

        - `surfaces`, one row per split and cell: `split`, and the columns of `surface`.
        - `lines`, the training loss along the optimisation direction and along a random one of its length through the
          end: `direction`, `alpha` (the end is at 1 on both), `loss`, `loss_standard_error`.
        - `models`, one row: `examples` (it was trained on), `null_loss` (entropy of their labels, nats), `norm` and
          `relative_norm` of its direction, `angle` (degrees) between the two directions, `sharpness` and
          `sharpness_standard_error` (nats).
    """
    models, key = Models(checkpoints, second, device), {"task": task, "init": init, "seed": seed}
    if not models.finite(task, seed):
        return {name: pd.DataFrame() for name in ("surfaces", "lines", "models")}
    checkpoint, plane = models.usual(task, init, seed), models.plane(task, init, seed)
    examples = {split: encoded(checkpoint, split) for split in SPLITS}
    losses = {
        split: loss_of(plane.model, read, plane.layers, grid_examples, bfloat16) for split, read in examples.items()
    }
    surfaces = []
    for split, evaluate in losses.items():
        name = f"{task}, {init}, seed {seed}, {SPLITS[split]} examples"
        cells = surface(plane, plane.start, evaluate, landscape.grid(low, high, points), name, log)
        surfaces.append(cells.assign(**key, split=split))

    positions = landscape.grid(low, high, line_points)
    lines = {
        OPTIMISATION: landscape.curve(losses["train"], plane.start, plane.first, positions),
        RANDOM: landscape.curve(losses["train"], plane.end(), plane.random(RANDOM_SEED), positions - 1),
    }
    lines = [
        pd.DataFrame({"alpha": positions, "loss": line.losses, "loss_standard_error": line.loss_standard_errors})
        .assign(**key)
        .assign(direction=direction)
        for direction, line in lines.items()
    ]

    shares = np.unique(examples["train"]["labels"], return_counts=True)[1] / examples["train"].num_rows
    sharp = sharpness(losses["train"], plane.end(), RADIUS, SHARPNESS_DRAWS, RANDOM_SEED)
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
        "models": pd.DataFrame([row]),
    }


def trajectory(checkpoint: Checkpoint, plane: Plane) -> pd.DataFrame:
    """Where the states of a training lie in a plane.

    Returns:
        One row per state with `step`, `epoch`, `share` (of all steps), `angle` (degrees, to the first direction; NaN at
        the start), `alpha` and `beta` (the paper's coordinates), `plane_alpha` and `plane_beta` (the nearest point of
        the plane), `in_plane` (share of the squared displacement that the plane holds; NaN at the start).
    """
    steps = checkpoint.steps()

    def at(step: int) -> Parameters:
        if step == 0:
            return plane.start
        state = layer_parameters(checkpoint.model_at(step), plane.layers)
        return {name: tensor.to(plane.start[name].device) for name, tensor in state.items()}

    path = landscape.project(map(at, steps), plane.start, plane.first, plane.second)
    share = np.array(steps) / checkpoint.manifest["steps"]
    return pd.DataFrame(
        {
            "step": steps,
            "epoch": share * checkpoint.specification.schedule.epochs,
            "share": share,
            "angle": np.degrees(np.arccos(path.cosines)),
            "alpha": path.alphas,
            "beta": path.betas,
            "plane_alpha": path.plane[:, 0],
            "plane_beta": path.plane[:, 1],
            "in_plane": path.share,
        }
    )


def trajectories(
    checkpoints: Sequence[Checkpoint], task: str, seed: int, second: Mapping[str, str], device: str | None = None
) -> pd.DataFrame:
    """Figure 3: the trajectories of both models of a task, as `trajectory` has them, with `task`, `init`, `seed`; empty
    if a training diverged.
    """
    models = Models(checkpoints, second, device)
    if not models.finite(task, seed):
        return pd.DataFrame()
    parts = [
        trajectory(models.usual(task, init, seed), models.plane(task, init, seed)).assign(init=init) for init in INITS
    ]
    return pd.concat(parts, ignore_index=True).assign(task=task, seed=seed)


def long_training(
    checkpoints: Sequence[Checkpoint],
    long_task: str,
    seed: int,
    long_epochs: tuple[int, int],
    second: Mapping[str, str],
    low: float,
    high: float,
    points: int,
    grid_examples: int | None = None,
    bfloat16: bool = False,
    device: str | None = None,
    log: Log = print,
) -> pd.DataFrame:
    """Figure 4: a training that goes on, in the plane of where it was after its first epochs.

    Args:
        long_task: that is trained for longer.
        long_epochs: the first ones, the state after which is the end of the first direction, with its head, and those
            that follow. The other arguments are those of `landscapes`.

    Returns:
        Rows of three kinds, which `kind` tells apart, with `task` and `seed`. A `cell` is of the surface of the
        development examples and has the columns of `surface`. A `state` is of the training and has the columns of
        `trajectory`, its `loss` on training examples and its `error` on all development examples. What is `between`
        lies on the straight way from the state after the first epochs (`share` 0) to the last (1) and has the same two,
        with the head of the former. Empty if a training diverged that is needed.
    """
    models = Models(checkpoints, second, device)
    checkpoint = models.long(long_task, seed)
    if not models.finite(long_task, seed) or checkpoint.manifest["diverged"]:
        return pd.DataFrame()
    steps, total = checkpoint.steps(), checkpoint.specification.schedule.epochs
    middle = min(steps, key=lambda step: abs(step - checkpoint.manifest["steps"] * long_epochs[0] / total))
    plane = models.plane(long_task, PRETRAINED, seed, model=checkpoint.model_at(middle))
    training, development = (encoded(checkpoint, split) for split in SPLITS)

    evaluate = loss_of(plane.model, development, plane.layers, grid_examples, bfloat16)
    name = f"{long_task}, {total:g} epochs, seed {seed}, development examples"
    cells = surface(plane, plane.start, evaluate, landscape.grid(low, high, points), name, log)

    states = trajectory(checkpoint, plane)
    for row, step in enumerate(steps):
        model = checkpoint.model_at(step).to(plane.model.device)
        point = layer_parameters(model, plane.layers)
        states.loc[row, "loss"] = loss_of(model, training, plane.layers, grid_examples, bfloat16)(point).loss
        states.loc[row, "error"] = loss_of(model, development, plane.layers, None, bfloat16)(point).error

    shares, further = np.linspace(0, 1, POSITIONS_BETWEEN), directions.difference(point, plane.end())
    losses, errors = (
        landscape.curve(loss_of(plane.model, examples, plane.layers, limit, bfloat16), plane.end(), further, shares)
        for examples, limit in ((training, grid_examples), (development, None))
    )
    between = pd.DataFrame({"share": shares, "loss": losses.losses, "error": errors.errors})
    parts = [cells.assign(kind=CELL), states.assign(kind=STATE), between.assign(kind=BETWEEN)]
    return pd.concat(parts, ignore_index=True).assign(task=long_task, seed=seed)


def group_surfaces(
    checkpoints: Sequence[Checkpoint],
    task: str,
    seed: int,
    second: Mapping[str, str],
    low: float,
    high: float,
    points: int,
    grid_examples: int | None = None,
    bfloat16: bool = False,
    device: str | None = None,
    log: Log = print,
) -> pd.DataFrame:
    """Figure 7: the training loss around a fine-tuned model when one third of the layers moves; -1 rolls it back.

    Returns:
        One row per cell with `task`, `seed`, `group`, and the columns of `surface`; empty if a training diverged.
        The arguments are those of `landscapes`.
    """
    models, positions = Models(checkpoints, second, device), landscape.grid(low, high, points)
    if not models.finite(task, seed):
        return pd.DataFrame()
    examples, parts = encoded(models.usual(task, PRETRAINED, seed), "train"), []
    for group, plane in models.planes_of_thirds(task, seed).items():
        evaluate = loss_of(plane.model, examples, plane.layers, grid_examples, bfloat16)
        cells = surface(plane, plane.end(), evaluate, positions, f"{task}, seed {seed}, {group} layers", log)
        parts.append(cells.assign(task=task, seed=seed, group=group))
    return pd.concat(parts, ignore_index=True)


def rollbacks(
    checkpoints: Sequence[Checkpoint],
    task: str,
    seed: int,
    second: Mapping[str, str],
    bfloat16: bool = False,
    device: str | None = None,
) -> pd.DataFrame:
    """Table 1: accuracy on all development examples with a third of the layers as they were before fine-tuning.

    Returns:
        One row per `group`, with `task` and `seed`, `tuned` and `accuracy` (without and with the group rolled back),
        `random` (the group moved as far in random directions, their mean), `norm` and `relative_norm` of the group's
        direction; empty if a training diverged.
    """
    models, rows = Models(checkpoints, second, device), []
    if not models.finite(task, seed):
        return pd.DataFrame()
    examples = encoded(models.usual(task, PRETRAINED, seed), "validation")
    for group, plane in models.planes_of_thirds(task, seed).items():
        evaluate, end = loss_of(plane.model, examples, plane.layers, None, bfloat16), plane.end()
        draws = [plane.random(RANDOM_SEED + draw) for draw in range(RANDOM_DRAWS)]
        rows.append(
            {
                "task": task,
                "seed": seed,
                "group": group,
                "tuned": 1 - evaluate(end).error,
                "accuracy": 1 - evaluate(plane.start).error,
                "random": float(np.mean([1 - evaluate(directions.moved(end, [draw], [1.0])).error for draw in draws])),
                "norm": directions.norm(plane.first),
                "relative_norm": directions.norm(plane.first) / directions.norm(plane.start),
            }
        )
    return pd.DataFrame(rows)
