"""Figures 1, 5, 6, 7 and Table 1 of Hao et al. (2019): losses and errors on planes and lines, and rolled-back layers.

Losses and errors are of all examples (`fold` −1) and without each of ten folds of them, the same examples at every
point, so that what is read from many points (a width, a correlation) has an interval. The control of a direction is a
random direction of its length.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from fivelenses import project
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.lenses import directions, landscape
from fivelenses.lenses.classifier_loss import ClassifierLoss
from fivelenses.lenses.directions import Parameters
from fivelenses.papers.hao2019.planes import RANDOM_SEED, Models, Plane, encoded, loss_of
from fivelenses.records import FULL, OPTIMISATION, PRETRAINED, RANDOM, SHARED, TWIN, WHOLE

SPLITS = {"train": ("training", "loss"), "validation": ("development", "error")}  # with what has folds
WAY_POINTS = 41  # evenly from start to end, so that a ridge on the way is not stepped over
RADIUS = 0.1  # the share of its length by which a filter moves when sharpness is measured
SHARPNESS_DRAWS = 5  # random directions
ROLLBACK_DRAWS = 3  # the same, for each third of the layers

Log = Callable[[str], None]


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
        task, init, seed: the model that is measured.
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
    if not models.converged(task, seed):
        return {name: pd.DataFrame() for name in ("surfaces", "lines", "ends", "models")}
    checkpoint, plane = models.ordinary(task, init, seed), models.plane(task, init, seed)
    examples = {split: encoded(checkpoint, split) for split in SPLITS}
    losses = {split: loss_of(plane, read, grid_examples, bfloat16) for split, read in examples.items()}
    surfaces, ends = [], []
    for split, (kind, value) in SPLITS.items():
        name = f"{task}, {init}, seed {seed}, {kind} examples"
        cells = surface(plane, plane.start, losses[split], landscape.grid(low, high, points), value, name, log)
        surfaces.append(cells.assign(**key, split=split))
        end = at_point(loss_of(plane, examples[split], None, bfloat16), plane.end(), value)
        ends.append(end.assign(**key, split=split))
    lines = lines_through(plane, losses["train"], landscape.grid(low, high, line_points))
    facts = facts_of(plane, losses["train"], np.array(examples["train"]["labels"]))
    return {
        "surfaces": pd.concat(surfaces, ignore_index=True),
        "lines": lines.assign(**key),
        "ends": pd.concat(ends, ignore_index=True),
        "models": pd.DataFrame([key | facts]),
    }


def lines_through(plane: Plane, evaluate: ClassifierLoss, positions: np.ndarray) -> pd.DataFrame:
    """`lines` of `landscapes`: from start to end and beyond, and in a random direction through the end, which is at 1
    on both.
    """
    along = np.union1d(positions.round(9), np.linspace(0, 1, WAY_POINTS).round(9))
    curves = {
        OPTIMISATION: (along, landscape.curve(evaluate, plane.start, plane.first, along)),
        RANDOM: (positions, landscape.curve(evaluate, plane.end(), plane.random(), positions - 1)),
    }
    lines = [
        as_rows(curve, "loss", {"alpha": alphas}, evaluate.n_examples)
        .drop(columns=["error", "error_standard_error"])
        .assign(direction=direction, control=TWIN if direction == RANDOM else "")
        for direction, (alphas, curve) in curves.items()
    ]
    return pd.concat(lines, ignore_index=True)


def facts_of(plane: Plane, evaluate: ClassifierLoss, labels: np.ndarray) -> dict[str, float]:
    """`models` of `landscapes`: the labels of the training examples, lengths and angle of the directions, sharpness."""
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    sharpness, error = landscape.sharpness(evaluate, plane.end(), RADIUS, SHARPNESS_DRAWS, RANDOM_SEED)
    return {
        "examples": len(labels),
        "null_loss": -float(shares @ np.log(shares)),
        "norm": directions.norm(plane.first),
        "relative_norm": directions.norm(plane.first) / directions.norm(plane.start),
        "angle": directions.angle(plane.first, plane.second),
        "sharpness": sharpness,
        "sharpness_standard_error": error,
    }


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
        One row per cell with `task`, `seed`, `group`, `control`, and the columns of `surface`, with folds on the first
        axis alone; the control has that axis alone, in a random direction. Empty if a training diverged. The arguments
        are those of `landscapes`.
    """
    models, positions = Models(checkpoints, second, device), landscape.grid(low, high, points)
    if not models.converged(task, seed):
        return pd.DataFrame()
    examples, parts = encoded(models.ordinary(task, PRETRAINED, seed), "train"), []
    for group, plane in models.planes_of_thirds(task, seed).items():
        evaluate = loss_of(plane, examples, grid_examples, bfloat16)
        cells = surface(plane, plane.end(), evaluate, positions, "loss", f"{task}, seed {seed}, {group} layers", log)
        cells = cells[(cells["fold"] == WHOLE) | (cells["beta"] == 0)]
        line = landscape.curve(evaluate, plane.end(), plane.random(), positions)
        at_random = as_rows(line, "loss", {"alpha": positions, "beta": np.zeros_like(positions)}, evaluate.n_examples)
        parts += [cells.assign(group=group, control=""), at_random.assign(group=group, control=TWIN)]
    return pd.concat(parts, ignore_index=True).assign(task=task, seed=seed)


def rollbacks(
    checkpoints: Sequence[Checkpoint],
    task: str,
    seed: int,
    second: Mapping[str, str],
    bfloat16: bool = False,
    device: str | None = None,
) -> pd.DataFrame:
    """Table 1: which development examples are right with a third of the layers as they were before fine-tuning.

    Returns:
        One row per development example and `group`, with `task` and `seed`, `example`, `score` (1 if right) and
        `control`: the group `tuned` is the model itself (`all`), any other is rolled back or, as its control, moved as
        far in random directions (the mean over their draws); `norm` and `relative_norm` of the group's direction.
        Empty if a training diverged.
    """
    models, parts = Models(checkpoints, second, device), []
    if not models.converged(task, seed):
        return pd.DataFrame()
    examples = encoded(models.ordinary(task, PRETRAINED, seed), "validation")
    for group, plane in models.planes_of_thirds(task, seed).items():
        evaluate, end, norm = loss_of(plane, examples, None, bfloat16), plane.end(), directions.norm(plane.first)
        draws = [directions.moved(end, [plane.random(RANDOM_SEED + draw)], [1.0]) for draw in range(ROLLBACK_DRAWS)]
        lengths = {"norm": norm, "relative_norm": norm / directions.norm(plane.start)}
        for control, places in (("", [plane.start]), (TWIN, draws)):
            right = np.mean([1 - evaluate.by_example(place)[1] for place in places], axis=0)
            parts.append(pd.DataFrame({"group": group, "control": control, "score": right} | lengths))
    right = 1 - evaluate.by_example(end)[1]
    parts.append(pd.DataFrame({"group": FULL, "control": SHARED, "score": right}))
    table = pd.concat([part.assign(example=np.arange(len(part), dtype=np.int32)) for part in parts], ignore_index=True)
    return table.astype({"score": np.float32}).assign(task=task, seed=seed)


# --- a measurement as rows --------------------------------------------------------------------------------------------


def surface(
    plane: Plane,
    origin: Parameters,
    evaluate: ClassifierLoss,
    positions: np.ndarray,
    value: str,
    name: str,
    log: Log = print,
) -> pd.DataFrame:
    """A surface on a plane's two directions, stored row by row: one that was interrupted goes on where it was.

    Args:
        positions: on both axes.
        value: `loss` or `error`, which has folds.
        name: of what is measured, for a line of progress.

    Returns:
        One row per cell and fold with `alpha`, `beta`, and the columns of `as_rows`.
    """

    def progress(done: int, rows: int) -> None:
        if done == rows or done % max(1, rows // 3) == 0:
            log(f"{name}: {done} of {rows} rows")

    cells = landscape.surface(
        evaluate,
        origin,
        (plane.first, plane.second),
        positions,
        positions,
        folder=project.runs_folder() / "surfaces",
        identity=evaluate.identity,
        progress=progress,
    )
    alphas, betas = np.meshgrid(positions, positions)
    return as_rows(cells, value, {"alpha": alphas.ravel(), "beta": betas.ravel()}, evaluate.n_examples)


def as_rows(measured: landscape.Landscape, value: str, places: Mapping[str, np.ndarray], examples: int) -> pd.DataFrame:
    """A curve or surface as rows: its `places`, `examples`, `fold`, `loss`, `error`, `loss_standard_error`,
    `error_standard_error`; without a fold, `value` (`loss` or `error`) alone.
    """
    cells = {
        "loss": measured.losses,
        "error": measured.errors,
        "loss_standard_error": measured.loss_standard_errors,
        "error_standard_error": measured.error_standard_errors,
    }
    left_out = measured.left_out_losses if value == "loss" else measured.left_out_errors
    parts = [{"fold": WHOLE} | {name: values.ravel() for name, values in cells.items()}]
    parts += [{"fold": fold, value: values.ravel()} for fold, values in enumerate(left_out)]
    table = pd.concat([pd.DataFrame(places | part) for part in parts], ignore_index=True)
    return table.astype(dict.fromkeys(cells, np.float32) | {"fold": np.int8}).assign(examples=examples)


def at_point(evaluate: ClassifierLoss, point: Parameters, value: str) -> pd.DataFrame:
    """The same of one point: `fold`, `loss`, `error`, `examples`."""
    measured = evaluate(point)
    left_out = measured.left_out_losses if value == "loss" else measured.left_out_errors
    rows = [{"fold": WHOLE, "loss": measured.loss, "error": measured.error}]
    rows += [{"fold": fold, value: one} for fold, one in enumerate(left_out)]
    types = {"fold": np.int8, "loss": np.float32, "error": np.float32}
    return pd.DataFrame(rows).astype(types).assign(examples=evaluate.n_examples)
