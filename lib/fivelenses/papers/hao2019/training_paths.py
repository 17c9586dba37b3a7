"""Figures 3 and 4 of Hao et al. (2019): states of a training in its plane, and what a long training leads to.

The control of a trajectory is a random walk (`random_walk`), that of a way between two models a random direction.
"""

import copy
import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import datasets
import numpy as np
import pandas as pd
import torch
from transformers import PreTrainedModel

from fivelenses.checkpoints.store import Checkpoint
from fivelenses.lenses import directions, landscape
from fivelenses.lenses.directions import Parameters, layer_parameters
from fivelenses.papers.hao2019.planes import Models, Plane, encoded, loss_of
from fivelenses.papers.hao2019.surfaces import Log, at_point, surface
from fivelenses.records import BETWEEN, CELL, CONTINUED, INITS, PRETRAINED, SEPARATE, STATE, TWIN, WHOLE

POSITIONS_BETWEEN = 11


def trajectories(
    checkpoints: Sequence[Checkpoint], task: str, seed: int, second: Mapping[str, str], device: str | None = None
) -> pd.DataFrame:
    """Figure 3: the trajectories of both models of a task, as `trajectory` has them, with `task`, `init`, `seed`; empty
    if a training diverged.
    """
    models = Models(checkpoints, second, device)
    if not models.converged(task, seed):
        return pd.DataFrame()
    parts = [
        trajectory(models.ordinary(task, init, seed), models.plane(task, init, seed)).assign(init=init)
        for init in INITS
    ]
    return pd.concat(parts, ignore_index=True).assign(task=task, seed=seed)


def trajectory(checkpoint: Checkpoint, plane: Plane) -> pd.DataFrame:
    """Where the states of a training lie in a plane.

    Returns:
        One row per state with `step`, `epoch`, `share` (of all steps), `angle` (degrees, to the first direction; NaN at
        the start), `alpha` and `beta` (the paper's coordinates), `plane_alpha` and `plane_beta` (the nearest point of
        the plane), `in_plane` (share of the squared displacement that the plane holds; NaN at the start), `control`.
        The control is a `random_walk` with steps of the same lengths, of which only the first six columns are known.
    """
    steps, moves, before = checkpoint.steps(), [], plane.start

    def at(step: int) -> Parameters:
        if step == 0:
            return plane.start
        state = layer_parameters(checkpoint.model_at(step), plane.layers)
        return {name: tensor.to(plane.start[name].device) for name, tensor in state.items()}

    def states() -> Iterator[Parameters]:
        nonlocal before
        for step in steps:
            here = at(step)
            moves.append(directions.norm(directions.difference(here, before)))
            yield here
            before = here

    path = directions.project(states(), plane.start, plane.first, plane.second)
    share = np.array(steps) / checkpoint.manifest["steps"]
    when = {"step": steps, "epoch": share * checkpoint.specification.schedule.all_epochs, "share": share}
    training = {
        "angle": np.degrees(np.arccos(path.cosines)),
        "alpha": path.alphas,
        "beta": path.betas,
        "plane_alpha": path.plane[:, 0],
        "plane_beta": path.plane[:, 1],
        "in_plane": path.share,
        "control": "",
    }
    walk = random_walk(np.array(moves)) | {"control": TWIN}
    return pd.concat([pd.DataFrame(when | columns) for columns in (training, walk)], ignore_index=True)


def random_walk(moves: np.ndarray) -> dict[str, np.ndarray]:
    """Where a random walk in very many dimensions lies, whose steps are orthogonal.

    Args:
        moves: (t,) how far each point is from the one before it; 0 for the start.

    Returns:
        `angle` (degrees, to the end; NaN at the start), `alpha` and `beta` (equations 4 and 5, to the end).

    Example:
        >>> {name: values.round(3).tolist() for name, values in random_walk(np.array([0.0, 1.0, 1.0])).items()}
        {'angle': [nan, 45.0, 0.0], 'alpha': [0.0, 0.5, 1.0], 'beta': [0.0, 0.5, 0.0]}
    """
    walked = np.cumsum(np.square(moves))
    walked /= walked[-1]  # not their sum, which rounds in another order, so that the end could lie beyond 1
    angle = np.where(walked > 0, np.degrees(np.arccos(np.sqrt(walked))), np.nan)
    return {"angle": angle, "alpha": walked, "beta": np.sqrt(walked * (1 - walked))}


def long_training(
    checkpoints: Sequence[Checkpoint],
    long_task: str,
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
    """Figure 4: a training that is continued, in the plane of its first epochs, and a separate one as long.

    Args:
        long_task: that is trained for longer, too. The other arguments are those of `landscapes`.

    Returns:
        Rows of three kinds, which `kind` tells apart, with `task`, `seed` and `training`: `continued`, whose reference
        is its own state after the first epochs, or `separate`, whose reference is a finished training of fewer epochs.
        A `cell` is of the surface of the development examples and has the columns of `surface`, in the plane of the
        continued training alone. A `state` is of the long training and has the columns of `trajectory` and its `error`
        on all development examples. What is `between` lies on the straight way from the reference (`share` 0, at its
        `epoch`) to the end of the long training (1), heads included, so that both ends are the models themselves; it
        has the `error` on all development examples by `fold`. Its `control` leaves the reference in a random
        direction, as far, with its head. Empty if a training diverged that is needed.
    """
    models = Models(checkpoints, second, device)
    continued, (finished, long) = models.continued(long_task, seed), models.finished_and_long(long_task, seed)
    if not models.converged(long_task, seed) or any(one.manifest["diverged"] for one in (continued, finished, long)):
        return pd.DataFrame()
    schedule, development = continued.specification.schedule, encoded(finished, "validation")
    first = schedule.steps(continued.manifest["training_examples"], further=False)
    plane = models.plane(long_task, PRETRAINED, seed, model=continued.model_at(first))
    evaluate = loss_of(plane, development, grid_examples, bfloat16)
    name, positions = f"{long_task}, continued, seed {seed}, development examples", landscape.grid(low, high, points)
    cells = surface(plane, plane.start, evaluate, positions, "error", name, log)
    parts = [
        cells.assign(kind=CELL, control="", training=CONTINUED),
        errors_along(continued, plane, schedule.epochs, development, bfloat16).assign(training=CONTINUED),
    ]
    plane = models.plane(long_task, PRETRAINED, seed, model=finished.model())
    epochs = finished.specification.schedule.epochs
    parts.append(errors_along(long, plane, epochs, development, bfloat16).assign(training=SEPARATE))
    return pd.concat(parts, ignore_index=True).assign(task=long_task, seed=seed)


def errors_along(
    long: Checkpoint, plane: Plane, epochs: float, development: datasets.Dataset, bfloat16: bool
) -> pd.DataFrame:
    """The states of a long training, and the way to its end from a plane's model of so many epochs."""
    states = trajectory(long, plane)
    states = states[states["control"] == ""].assign(fold=WHOLE, kind=STATE)
    device = plane.model.device
    for row, step in enumerate(long.steps()):
        state = dataclasses.replace(plane, model=long.model_at(step).to(device))
        states.loc[row, "error"] = loss_of(state, development, None, bfloat16)(state.end()).error

    last, parts = long.model().to(device), [states]
    further = directions.difference(layer_parameters(last, plane.layers), plane.end())
    at_random = directions.rescaled(plane.random(), further)
    for share in np.linspace(0, 1, POSITIONS_BETWEEN):
        mixed = dataclasses.replace(plane, model=model_between(plane.model, last, share))
        for control, of_model, direction in (("", mixed, further), (TWIN, plane, at_random)):
            place = directions.moved(plane.end(), [direction], [share])
            errors = at_point(loss_of(of_model, development, None, bfloat16), place, "error")
            way = {"share": share, "control": control, "kind": BETWEEN, "epoch": epochs}
            parts.append(errors[["fold", "error", "examples"]].assign(**way))
    return pd.concat(parts, ignore_index=True)


def model_between(first: PreTrainedModel, second: PreTrainedModel, share: float) -> PreTrainedModel:
    """The first model with all its parameters on the straight way to the second, the head's among them."""
    mixed = copy.deepcopy(first)
    with torch.no_grad():
        for parameter, other in zip(mixed.parameters(), second.parameters(), strict=True):
            parameter.lerp_(other, share)
    return mixed
