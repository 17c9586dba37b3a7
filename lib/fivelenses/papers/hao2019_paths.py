"""Figures 3 and 4 of Hao et al. (2019): states of a training in its plane, and what a long training leads to; beyond
the paper, the curvature of the loss at a training's end, a sharpness that depends on no direction.

The control of a trajectory is a random walk (`turn_of_random_walk`), that of a way between two models a random
direction. Planes, grids and folds are those of `hao2019`.
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
from fivelenses.lenses import directions
from fivelenses.lenses.classifier_loss import curvatures
from fivelenses.lenses.directions import Parameters, layer_parameters
from fivelenses.models import thirds
from fivelenses.models.layers import layer_list
from fivelenses.papers.hao2019 import Grid, Models, Plane, as_rows, loss_of, surface
from fivelenses.papers.models import Log, encoded
from fivelenses.records import ALL, BETWEEN, CELL, CONTINUED, INITS, PRETRAINED, SEPARATE, STATE, TWIN, WHOLE

POSITIONS_BETWEEN = 11
CURVATURE_DRAWS = 5


def trajectories(
    checkpoints: Sequence[Checkpoint], task: str, seed: int, second: Mapping[str, str], device: str | None = None
) -> pd.DataFrame:
    """Figure 3: `trajectory` of both models of a task, with `task`, `init`, `seed`; empty if a training diverged."""
    models = Models(checkpoints, second, device)
    if not models.converged(task, seed):
        return pd.DataFrame()
    both = [(models.ordinary(task, init, seed), models.plane(task, init, seed)) for init in INITS]
    parts = [trajectory(*one).assign(init=init) for init, one in zip(INITS, both, strict=True)]
    return pd.concat(parts, ignore_index=True).assign(task=task, seed=seed)


def trajectory(checkpoint: Checkpoint, plane: Plane) -> pd.DataFrame:
    """Where the states of a training lie in a plane.

    Returns:
        One row per state with `step`, `epoch`, `share` (of all steps), `angle` (degrees, to the first direction; NaN at
        the start), `alpha` and `beta` (the paper's coordinates), `plane_alpha` and `plane_beta` (the nearest point of
        the plane), `in_plane` (share of the squared displacement that the plane holds; NaN at the start), `control`.
        Of the control, a random walk with steps of the same lengths, only the `angle` is known.
    """
    steps, moves, device = checkpoint.steps(), [], plane.model.device

    def states() -> Iterator[Parameters]:
        here = plane.start
        for step in steps:
            before = here
            if step > 0:
                here = layer_parameters(checkpoint.model_at(step).to(device), plane.layers)
            moves.append(directions.norm(directions.difference(here, before)))
            yield here

    path = directions.project(states(), plane.start, plane.first, plane.second)
    share = np.array(steps) / checkpoint.manifest["steps"]
    when = {"step": steps, "epoch": share * checkpoint.specification.schedule.all_epochs, "share": share}
    training = {"angle": np.degrees(np.arccos(path.cosines)), "alpha": path.alphas, "beta": path.betas}
    training |= {"plane_alpha": path.plane[:, 0], "plane_beta": path.plane[:, 1], "in_plane": path.share}
    walk = {"angle": turn_of_random_walk(np.array(moves))}
    parts = [pd.DataFrame(when | training).assign(control=""), pd.DataFrame(when | walk).assign(control=TWIN)]
    return pd.concat(parts, ignore_index=True)


def turn_of_random_walk(moves: np.ndarray) -> np.ndarray:
    r"""The angle to its end of each point of a random walk in very many dimensions, whose steps are orthogonal.

    A point at which the walk has made a share :math:`s` of its summed squared steps lies at
    :math:`\arccos \sqrt{s}`.

    Args:
        moves: (t,) how far each point is from the one before it; 0 for the start.

    Returns:
        (t,) degrees; NaN at the start.

    Example:
        >>> turn_of_random_walk(np.array([0.0, 1.0, 1.0])).round(3).tolist()
        [nan, 45.0, 0.0]
    """
    walked = np.cumsum(np.square(moves))
    walked /= walked[-1]  # not their sum, which rounds in another order, so that the end could lie beyond 1
    return np.where(walked > 0, np.degrees(np.arccos(np.sqrt(walked))), np.nan)


def long_training(
    checkpoints: Sequence[Checkpoint],
    long_task: str,
    seed: int,
    second: Mapping[str, str],
    grid: Grid,
    device: str | None = None,
    log: Log = print,
) -> pd.DataFrame:
    """Figure 4: a training that is continued, in the plane of its first epochs, and a separate one as long.

    Args:
        long_task: that is trained for longer, too. The other arguments are those of `hao2019.landscapes`.

    Returns:
        Rows with `task`, `seed` and `training`: `continued`, whose reference is its own state after the first epochs,
        or `separate`, whose reference is a finished training of fewer epochs. Their `kind` is

        - `cell`, of the surface of development examples in the plane of the continued training, with the columns of
          `surface`;
        - `state`, of the long training, with the columns of `trajectory` and its `error` on all development examples;
        - `between`, on the straight way from the reference (`share` 0, at its `epoch`) to the end of the long training
          (1), heads included, so that both ends are the models themselves, with the same `error` by `fold`. Its
          `control` leaves the reference in a random direction, as far, with its head.

        Empty if a training diverged that is needed.
    """
    models = Models(checkpoints, second, device)
    continued, (*_, finished, long) = models.continued[long_task, seed], models.trained[long_task, PRETRAINED, seed]
    if not models.converged(long_task, seed) or any(one.manifest["diverged"] for one in (continued, finished, long)):
        return pd.DataFrame()
    schedule, development = continued.specification.schedule, encoded(finished, "validation")
    first = schedule.steps(continued.manifest["training_examples"], further=False)
    plane = models.plane(long_task, PRETRAINED, seed, model=continued.model_at(first))
    lower = grid["bfloat16"]
    evaluate = loss_of(plane, development, grid["examples"], lower)
    name = f"{long_task}, continued, seed {seed}, development examples"
    cells = surface(plane, plane.start, evaluate, grid, "error", name, log).assign(kind=CELL, control="")
    along = _errors_along(continued, plane, schedule.epochs, development, lower)
    plane = models.plane(long_task, PRETRAINED, seed, model=finished.model())
    apart = _errors_along(long, plane, finished.specification.schedule.epochs, development, lower)
    parts = [cells.assign(training=CONTINUED), along.assign(training=CONTINUED), apart.assign(training=SEPARATE)]
    return pd.concat(parts, ignore_index=True).assign(task=long_task, seed=seed)


def _errors_along(
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
        mixed = dataclasses.replace(plane, model=_between(plane.model, last, share))
        for control, of_model, direction in (("", mixed, further), (TWIN, plane, at_random)):
            evaluate = loss_of(of_model, development, None, bfloat16)
            errors = as_rows(evaluate(directions.moved(plane.end(), direction, share)), "error", {}, evaluate)
            parts.append(errors.assign(share=share, control=control, kind=BETWEEN, epoch=epochs))
    return pd.concat(parts, ignore_index=True)


def _between(first: PreTrainedModel, second: PreTrainedModel, share: float) -> PreTrainedModel:
    """The first model with all its parameters on the straight way to the second, the head's among them."""
    mixed = copy.deepcopy(first)
    with torch.no_grad():
        for parameter, other in zip(mixed.parameters(), second.parameters(), strict=True):
            parameter.lerp_(other, share)
    return mixed


def end_curvature(
    checkpoints: Sequence[Checkpoint],
    task: str,
    init: str,
    seed: int,
    second: Mapping[str, str],
    grid_examples: int | None = None,
    device: str | None = None,
) -> pd.DataFrame:
    """The largest eigenvalue and the trace of the Hessian of one model's training loss, whole and per third of layers.

    Args:
        grid_examples: training examples, those of a cell of a grid; None for all. The other arguments are those of
            `hao2019.landscapes`.

    Returns:
        One row per `group` of layers (`all`, `low`, `middle`, `high`), with `task`, `init`, `seed`, `examples`, the
        columns of `Curvature` (nats per squared unit), and `norm`, the length of the group's direction from start to
        end. Empty if a training diverged that is needed.
    """
    models = Models(checkpoints, second, device)
    if not models.converged(task, seed):
        return pd.DataFrame()
    plane, examples = models.plane(task, init, seed), encoded(models.ordinary(task, init, seed), "train")
    rows = np.random.default_rng(0).permutation(examples.num_rows)[:grid_examples]
    examples = examples.select(np.sort(rows))
    # All layers and the embeddings, as in a surface.
    layers = {ALL: plane.layers} | thirds(len(layer_list(plane.model)))
    names = {group: list(layer_parameters(plane.model, inside)) for group, inside in layers.items()}
    parameters = dict(plane.model.base_model.named_parameters())
    groups = {group: [parameters[name] for name in inside] for group, inside in names.items()}
    norms = {group: directions.norm({name: plane.first[name] for name in inside}) for group, inside in names.items()}
    model = plane.model
    del plane  # three vectors as long as the parameters, where Lanczos' method needs nine
    found = curvatures(model, examples, groups, CURVATURE_DRAWS)
    table = pd.DataFrame({"group": group, **vars(one), "norm": norms[group]} for group, one in found.items())
    return table.assign(examples=examples.num_rows, task=task, init=init, seed=seed)
