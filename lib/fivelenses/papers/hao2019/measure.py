"""What Hao et al. (2019) measure, as tidy tables: surfaces, curves and trajectories."""

import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import datasets
import numpy as np
import pandas as pd
import torch
from transformers import PreTrainedModel

from fivelenses import project
from fivelenses.checkpoints import Checkpoint
from fivelenses.lenses import directions, landscape
from fivelenses.lenses.basin import sharpness
from fivelenses.lenses.classifier_loss import ClassifierLoss
from fivelenses.lenses.directions import Parameters
from fivelenses.lenses.parameter_motion import layer_parameters
from fivelenses.papers.hao2019.planes import TUNED, Models, Plane, encoded
from fivelenses.tasks import TaskData

OPTIMISATION, RANDOM = "optimisation", "random"
SPLITS = {"train": "training", "validation": "development"}
CELL, STATE, BETWEEN = "cell", "state", "between"
RANDOM_SEED = 0
RADIUS, SHARPNESS_DRAWS = 0.1, 5  # the share of its length by which a filter moves, and random directions
POSITIONS_BETWEEN = 11

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Sampling:
    """Where landscapes are measured, and on what.

    Attributes:
        low, high, points: of each axis of a surface, in lengths of the first direction; -1, 0 and 1 are added.
        line_points: of a curve, on the same range.
        examples: of each split at a cell of a grid, drawn once; None for all.
        bfloat16: whether matrix products are made in that precision.
    """

    low: float
    high: float
    points: int
    line_points: int
    examples: int | None = None
    bfloat16: bool = False

    def loss(self, model: PreTrainedModel, examples: datasets.Dataset, layers: Sequence[int]) -> ClassifierLoss:
        """The loss of a model on as many of these examples as a cell takes."""
        autocast = torch.bfloat16 if self.bfloat16 else None
        return ClassifierLoss(model, examples, layers, limit=self.examples, autocast=autocast)

    def on_all(self) -> "Sampling":
        """The same with all examples."""
        return dataclasses.replace(self, examples=None)


def surface(
    plane: Plane, origin: Parameters, evaluate: ClassifierLoss, sampling: Sampling, name: str, tell: Tell
) -> pd.DataFrame:
    """A surface on a plane's two directions, kept row by row: one that was interrupted goes on where it was.

    Args:
        name: what is measured, for a line of progress.
        tell: takes that line.

    Returns:
        A row for each cell with `alpha`, `beta`, `loss`, `error`, `loss_standard_error`, `error_standard_error`.
    """
    positions, identity = landscape.grid(sampling.low, sampling.high, sampling.points), evaluate.identity
    # Named by what is measured, where and on which grid, so that no other surface is overwritten.
    lengths = [directions.norm(vector) for vector in (origin, plane.first, plane.second)]
    address = hashlib.sha256(repr((identity, positions.tolist(), plane.layers, lengths)).encode()).hexdigest()[:20]

    def progress(done: int, rows: int) -> None:
        if done == rows or done % max(1, rows // 3) == 0:
            tell(f"{name}: {done} of {rows} rows")

    found = landscape.surface(
        evaluate,
        origin,
        (plane.first, plane.second),
        positions,
        positions,
        file=project.runs_folder() / "surfaces" / f"{address}.npz",
        identity=identity,
        progress=progress,
        notify=tell,
    )
    alphas, betas = np.meshgrid(found.alphas, found.betas)
    return pd.DataFrame(
        {
            "alpha": alphas.ravel(),
            "beta": betas.ravel(),
            "loss": found.losses.ravel(),
            "error": found.errors.ravel(),
            "loss_standard_error": found.loss_standard_errors.ravel(),
            "error_standard_error": found.error_standard_errors.ravel(),
        }
    )


@dataclass(frozen=True)
class Landscapes:
    """What is measured around each model of a run.

    Attributes:
        surfaces: one row a model, split and cell: `task`, `way`, `seed`, `split`, and the columns of `surface`.
        lines: the training loss along the optimisation direction and along a random one of its length through the end:
            `task`, `way`, `seed`, `direction`, `alpha` (the end is at 1 on both), `loss`, `loss_standard_error`.
        models: one row a model: `task`, `way`, `seed`, `examples` (it was trained on), `null_loss` (entropy of their
            labels, nats), `norm` and `relative_norm` of its direction, `angle` (degrees) between the two directions,
            `sharpness` and `sharpness_standard_error` (nats).
    """

    surfaces: pd.DataFrame
    lines: pd.DataFrame
    models: pd.DataFrame


def landscapes(models: Models, data: Mapping[str, TaskData], sampling: Sampling, tell: Tell = print) -> Landscapes:
    """Surfaces of training loss and development error, curves, lengths, angles and sharpness of all models."""
    surfaces, lines, rows = [], [], []
    for task, way, seed in models:
        which = {"task": task, "way": way, "seed": seed}
        checkpoint, plane = models.usual(task, way, seed), models.plane(task, way, seed)
        examples = {split: encoded(checkpoint, data[task], split) for split in SPLITS}
        losses = {split: sampling.loss(plane.model, read, plane.layers) for split, read in examples.items()}
        for split, evaluate in losses.items():
            name = f"{task}, {way}, seed {seed}, {SPLITS[split]} examples"
            found = surface(plane, plane.start, evaluate, sampling, name, tell)
            surfaces.append(found.assign(**which, split=split))
        lines += [line.assign(**which) for line in _lines(plane, losses["train"], sampling)]
        length = directions.norm(plane.first)
        shares = np.unique(examples["train"]["labels"], return_counts=True)[1] / examples["train"].num_rows
        sharp = sharpness(losses["train"], plane.end(), RADIUS, SHARPNESS_DRAWS, RANDOM_SEED)
        rows.append(
            {
                **which,
                "examples": examples["train"].num_rows,
                "null_loss": -float(shares @ np.log(shares)),
                "norm": length,
                "relative_norm": length / directions.norm(plane.start),
                "angle": directions.angle(plane.first, plane.second),
                "sharpness": sharp.mean,
                "sharpness_standard_error": sharp.standard_error,
            }
        )
    whole = (pd.concat(tables, ignore_index=True) for tables in (surfaces, lines))
    return Landscapes(*whole, pd.DataFrame(rows))


def _lines(plane: Plane, evaluate: ClassifierLoss, sampling: Sampling) -> list[pd.DataFrame]:
    positions = landscape.grid(sampling.low, sampling.high, sampling.line_points)
    along = landscape.curve(evaluate, plane.start, plane.first, positions)
    null = landscape.curve(evaluate, plane.end(), plane.random(RANDOM_SEED), positions - 1)
    return [
        pd.DataFrame(
            {
                "direction": name,
                "alpha": positions,
                "loss": found.losses,
                "loss_standard_error": found.loss_standard_errors,
            }
        )
        for name, found in ((OPTIMISATION, along), (RANDOM, null))
    ]


def histories(models: Models) -> pd.DataFrame:
    """Figure 2: the training loss that the optimiser saw, dropout on, each value a mean over the steps since the last.

    Returns:
        A row for each value with `task`, `way`, `seed`, `step`, `epoch`, `loss`.
    """
    rows = []
    for task, way, seed in models:
        manifest = models.usual(task, way, seed).manifest
        each = manifest["specification"]["schedule"]["epochs"] / manifest["steps"]
        for step, loss in manifest["history"]:
            rows.append({"task": task, "way": way, "seed": seed, "step": step, "epoch": step * each, "loss": loss})
    return pd.DataFrame(rows)


def trajectory(checkpoint: Checkpoint, plane: Plane) -> pd.DataFrame:
    """Where the states of a training lie in a plane.

    Returns:
        A row for each state with `step`, `epoch`, `share` (of all steps), `angle` (degrees, to the first direction;
        NaN at the start), `alpha` and `beta` (the paper's coordinates), `plane_alpha` and `plane_beta` (the nearest
        point of the plane), `in_plane` (share of the squared displacement that the plane holds; NaN at the start).
    """
    manifest, steps = checkpoint.manifest, checkpoint.steps()

    def at(step: int) -> Parameters:
        if step == 0:
            return plane.start
        kept = layer_parameters(checkpoint.model_at(step), plane.layers)
        return {name: tensor.to(plane.start[name].device) for name, tensor in kept.items()}

    found = landscape.project(map(at, steps), plane.start, plane.first, plane.second)
    share = np.array(steps) / manifest["steps"]
    return pd.DataFrame(
        {
            "step": steps,
            "epoch": share * manifest["specification"]["schedule"]["epochs"],
            "share": share,
            "angle": np.degrees(np.arccos(found.cosines)),
            "alpha": found.alphas,
            "beta": found.betas,
            "plane_alpha": found.plane[:, 0],
            "plane_beta": found.plane[:, 1],
            "in_plane": found.share,
        }
    )


def trajectories(models: Models, followed: Sequence[str]) -> pd.DataFrame:
    """Figure 3: the trajectories of the models of these tasks, as `trajectory` has them, with `task`, `way`, `seed`;
    empty if a training diverged on each of them.
    """
    tables = [
        trajectory(models.usual(task, way, seed), models.plane(task, way, seed)).assign(task=task, way=way, seed=seed)
        for task, way, seed in models
        if task in followed
    ]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def long_training(
    models: Models, data: TaskData, seeds: Sequence[int], epochs: int, sampling: Sampling, tell: Tell = print
) -> pd.DataFrame:
    """Figure 4: a training that goes on, in the plane of where it was after its first epochs.

    Args:
        epochs: the first ones; the state after them is the end of the first direction, with its head.

    Returns:
        Rows of three kinds, which `kind` tells apart, with `task` and `seed`. A `cell` is of the surface of the
        development examples and has the columns of `surface`. A `state` is of the training and has the columns of
        `trajectory`, its `loss` on training examples and its `error` on all development examples. What is `between`
        lies on the straight way from the state after the first epochs (`share` 0) to the last (1) and has the same two,
        with the head of the former. A seed whose training diverged has no row.
    """
    tables = [
        table.assign(task=data.task.name, seed=seed)
        for seed in seeds
        if models.long_finite(data.task.name, seed)
        for table in _long_training(models, data, seed, epochs, sampling, tell)
    ]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _long_training(
    models: Models, data: TaskData, seed: int, epochs: int, sampling: Sampling, tell: Tell
) -> list[pd.DataFrame]:
    checkpoint = models.long(data.task.name, seed)
    manifest, steps = checkpoint.manifest, checkpoint.steps()
    total = manifest["specification"]["schedule"]["epochs"]
    middle = min(steps, key=lambda step: abs(step - manifest["steps"] * epochs / total))
    plane = models.plane(data.task.name, TUNED, seed, model=checkpoint.model_at(middle))
    training, development = (encoded(checkpoint, data, split) for split in SPLITS)

    evaluate = sampling.loss(plane.model, development, plane.layers)
    name = f"{data.task.name}, {total:g} epochs, seed {seed}, development examples"
    cells = surface(plane, plane.start, evaluate, sampling, name, tell)

    states = trajectory(checkpoint, plane)
    for row, step in enumerate(steps):
        model = checkpoint.model_at(step).to(plane.model.device)
        point = layer_parameters(model, plane.layers)
        states.loc[row, "loss"] = sampling.loss(model, training, plane.layers)(point).loss
        states.loc[row, "error"] = sampling.on_all().loss(model, development, plane.layers)(point).error

    shares, further = np.linspace(0, 1, POSITIONS_BETWEEN), directions.difference(point, plane.end())
    losses, errors = (
        landscape.curve(chosen.loss(plane.model, examples, plane.layers), plane.end(), further, shares)
        for chosen, examples in ((sampling, training), (sampling.on_all(), development))
    )
    between = pd.DataFrame({"share": shares, "loss": losses.losses, "error": errors.errors})
    return [cells.assign(kind=CELL), states.assign(kind=STATE), between.assign(kind=BETWEEN)]
