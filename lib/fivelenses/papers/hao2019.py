r"""What Hao, Dong, Wei and Xu (2019), "Visualizing and Understanding the Effectiveness of BERT", measure: losses and
errors on planes and lines, rolled-back layers (Figures 1, 5, 6, 7 and Table 1) and, beyond the paper, curvature.

A model has been trained on a task from a start :math:`\theta_0` to an end :math:`\theta_1`: from the *pre-trained*
encoder, or from *scratch*, where the start is random. All parameters of the encoder move, its embeddings too; the
pooler and the classifier keep the values that they learned. The first direction is :math:`\theta_1 - \theta_0`, the
second that of the model that was trained from the same start on another task, in the first one's length. The paper's
low, middle and high layers are the thirds of its 24; here they are the thirds of any encoder's.

Losses and errors are of all examples (`fold` −1) and without each of ten folds of them, the same examples at every
point, so that what is read from many points (a width, a correlation) has an interval. The control of a direction is a
random direction of its length. A `grid` has `low`, `high` and `points` of each axis of a surface, in lengths of the
first direction, and `line_points` of a curve, both with −1, 0 and 1; `examples` of each split, drawn once (None for
all); and `bfloat16`, whether matrix products are made in that precision.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import datasets
import numpy as np
import pandas as pd
import torch
from transformers import PreTrainedModel

from fivelenses import records
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.files import runs_folder
from fivelenses.lenses import directions, landscape
from fivelenses.lenses.classifier_loss import ClassifierLoss
from fivelenses.lenses.directions import Parameters, layer_parameters
from fivelenses.lenses.landscape import Measurement
from fivelenses.models import thirds
from fivelenses.models.layers import layer_list
from fivelenses.papers.models import Log, encoded, pretrained
from fivelenses.records import INITS, PRETRAINED, RANDOM_ENCODER, SCRATCH, SHARED, TWIN, WHOLE
from fivelenses.tasks import folds

RANDOM_SEED = 0  # of the first random direction
SPLITS = {"train": ("training", "loss"), "validation": ("development", "error")}  # with what is measured of each
WAY_POINTS = 41  # evenly from start to end, so that a ridge on the way is not stepped over
RADIUS = 0.1  # the share of its length by which a filter moves when sharpness is measured
SHARPNESS_DRAWS = 5  # random directions
ROLLBACK_DRAWS = 3  # the same, for each third of the layers

Grid = Mapping[str, float | None]


@dataclass(frozen=True, eq=False)
class Plane:
    """A trained model at its end, with its head; its start θ₀, and two directions of equal length: θ₁ − θ₀, and the one
    towards the model of the second task. `layers` are those that move, 0 for the embeddings.
    """

    model: PreTrainedModel
    layers: tuple[int, ...]
    start: Parameters
    first: Parameters
    second: Parameters

    def end(self) -> dict[str, torch.Tensor]:
        """θ₁."""
        return layer_parameters(self.model, self.layers)

    def random(self, seed: int = RANDOM_SEED) -> dict[str, torch.Tensor]:
        """A random direction of the first one's length, the null of the loss along it."""
        return directions.rescaled(directions.random_direction(self.end(), seed), self.first)


class Models:
    """The models of a run: `trained` by task, init and seed, the one of fewest epochs, the task's model, first, and a
    long training last; `continued` by task and seed. Refused where on every task a training diverged.
    """

    def __init__(self, checkpoints: Sequence[Checkpoint], second: Mapping[str, str], device: str | None = None) -> None:
        self._second = second
        self._device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.trained: dict[tuple[str, str, int], list[Checkpoint]] = {}
        self.continued: dict[tuple[str, int], Checkpoint] = {}
        for one in sorted(checkpoints, key=lambda one: one.specification.schedule.epochs):
            made = one.specification
            init = SCRATCH if made.encoder.startswith(RANDOM_ENCODER) else PRETRAINED
            if made.schedule.further_epochs:
                self.continued[made.task, made.seed] = one
            else:
                self.trained.setdefault((made.task, init, made.seed), []).append(one)
        if not any(self.converged(task, seed) for task, _, seed in self.trained):
            raise ValueError(
                "On every task a training diverged, or one of the task that gives the second direction, so that there "
                "is no landscape to look at: lower learning_rate."
            )

    def converged(self, task: str, seed: int) -> bool:
        """Whether no training diverged that a task's landscapes need: both inits of it and of its second task."""
        needed = [(name, init, seed) for name in (task, self._second[task]) for init in INITS]
        return not any(self.ordinary(*key).manifest["diverged"] for key in needed if key in self.trained)

    def ordinary(self, task: str, init: str, seed: int) -> Checkpoint:
        """The task's model."""
        return self.trained[task, init, seed][0]

    def plane(
        self, task: str, init: str, seed: int, layers: Sequence[int] | None = None, model: PreTrainedModel | None = None
    ) -> Plane:
        """The plane of the task's model, or of another `model`, and of the one trained from the same start on the
        second task; all layers and the embeddings move by default.
        """
        ordinary = self.ordinary(task, init, seed)
        model = model or ordinary.model()
        layers = tuple(range(len(layer_list(model)) + 1) if layers is None else layers)
        other = layer_parameters(self.ordinary(self._second[task], init, seed).model(), layers)
        # A random start was saved in half precision, which moves a parameter by at most 1/2048 of itself.
        start = layer_parameters(ordinary.model_at(0) if init == SCRATCH else pretrained(ordinary), layers)
        first = directions.difference(layer_parameters(model, layers), start)
        second = directions.rescaled(directions.difference(other, start), first)
        moved = ({name: part.to(self._device) for name, part in one.items()} for one in (start, first, second))
        return Plane(model.to(self._device), layers, *moved)

    def planes_of_thirds(self, task: str, seed: int) -> dict[str, Plane]:
        """The planes of the low, middle and high thirds of a fine-tuned model's layers, without its embeddings."""
        groups = thirds(len(layer_list(self.ordinary(task, PRETRAINED, seed).model())))
        return {name: self.plane(task, PRETRAINED, seed, layers) for name, layers in groups.items()}


def loss_of(plane: Plane, examples: datasets.Dataset, limit: int | None = None, bfloat16=False) -> ClassifierLoss:
    """The loss of a plane's model as its layers move, on at most `limit` examples, drawn once, with folds."""
    autocast = torch.bfloat16 if bfloat16 else None
    return ClassifierLoss(plane.model, examples, plane.layers, limit=limit, autocast=autocast, folds=folds)


def landscapes(
    checkpoints: Sequence[Checkpoint],
    task: str,
    init: str,
    seed: int,
    second: Mapping[str, str],
    grid: Grid,
    device: str | None = None,
    log: Log = print,
) -> dict[str, pd.DataFrame]:
    """Figures 1, 5 and 6: surfaces of loss and error, curves, lengths, angle and sharpness of one model.

    Args:
        checkpoints: all models of the run, of which `task`, `init` and `seed` name the one that is measured.
        second: task to the task that gives the second direction.
        grid: where; a curve has `WAY_POINTS` more from start to end.

    Returns:
        Each with `task`, `init` and `seed`, and empty where a training diverged that is needed:

        - `surfaces`, one row per split, cell and fold: `split`, and the columns of `surface` of the loss of training
          examples and of the error of development examples.
        - `lines`, the training loss along the optimisation direction and, as its `control`, along a random one of its
          length through the end: `direction`, `alpha` (the end is at 1 on both), `examples`, `fold`, `loss`,
          `loss_standard_error`.
        - `ends`, the trained model on all training examples: `split`, `examples`, `fold`, `loss`.
        - `models`, one row: `examples` (it was trained on), `null_loss` (entropy of their labels, nats), `norm` and
          `relative_norm` of its direction, `angle` (degrees) between the two directions, `sharpness` and
          `sharpness_standard_error` (nats).
    """
    models, key = Models(checkpoints, second, device), {"task": task, "init": init, "seed": seed}
    if not models.converged(task, seed):
        return {name: pd.DataFrame() for name in ("surfaces", "lines", "ends", "models")}
    plane, surfaces = models.plane(task, init, seed), []
    examples = {split: encoded(models.ordinary(task, init, seed), split) for split in SPLITS}
    losses = {split: loss_of(plane, read, grid["examples"], grid["bfloat16"]) for split, read in examples.items()}
    for split, (kind, value) in SPLITS.items():
        name = f"{task}, {init}, seed {seed}, {kind} examples"
        cells = surface(plane, plane.start, losses[split], grid, value, name, log)
        surfaces.append(cells.assign(split=split))
    everything = loss_of(plane, examples["train"], None, grid["bfloat16"])
    positions = landscape.grid(grid["low"], grid["high"], grid["line_points"])
    facts = _facts(plane, losses["train"], np.array(examples["train"]["labels"]))
    tables = {
        "surfaces": pd.concat(surfaces, ignore_index=True),
        "lines": _lines(plane, losses["train"], positions),
        "ends": as_rows(everything(plane.end()), "loss", {}, everything).assign(split="train"),
        "models": pd.DataFrame([facts]),
    }
    return {name: table.assign(**key) for name, table in tables.items()}


def _lines(plane: Plane, evaluate: ClassifierLoss, positions: np.ndarray) -> pd.DataFrame:
    """`lines` of `landscapes`."""
    alphas = np.union1d(positions.round(9), np.linspace(0, 1, WAY_POINTS).round(9))
    along = landscape.curve(evaluate, plane.start, plane.first, alphas)
    at_random = landscape.curve(evaluate, plane.end(), plane.random(), positions - 1)
    lines = [
        as_rows(along, "loss", {"alpha": alphas}, evaluate).assign(direction=records.OPTIMISATION, control=""),
        as_rows(at_random, "loss", {"alpha": positions}, evaluate).assign(direction=records.RANDOM, control=TWIN),
    ]
    return pd.concat(lines, ignore_index=True)


def _facts(plane: Plane, evaluate: ClassifierLoss, labels: np.ndarray) -> dict[str, float]:
    """`models` of `landscapes`."""
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    sharpness, error = landscape.sharpness(evaluate, plane.end(), RADIUS, SHARPNESS_DRAWS, RANDOM_SEED)
    norm, angle = directions.norm(plane.first), directions.angle(plane.first, plane.second)
    facts = {"examples": len(labels), "null_loss": -float(shares @ np.log(shares))}
    facts |= {"norm": norm, "relative_norm": norm / directions.norm(plane.start), "angle": angle}
    return facts | {"sharpness": sharpness, "sharpness_standard_error": error}


def group_surfaces(
    checkpoints: Sequence[Checkpoint],
    task: str,
    seed: int,
    second: Mapping[str, str],
    grid: Grid,
    device: str | None = None,
    log: Log = print,
) -> pd.DataFrame:
    """Figure 7: the training loss around a fine-tuned model when one third of the layers moves; -1 rolls it back.

    Returns:
        One row per cell with `task`, `seed`, `group`, `control`, and the columns of `surface`, with folds on the first
        axis alone; the control has that axis alone, in a random direction. Empty if a training diverged. The arguments
        are those of `landscapes`.
    """
    models, parts = Models(checkpoints, second, device), []
    if not models.converged(task, seed):
        return pd.DataFrame()
    positions = landscape.grid(grid["low"], grid["high"], grid["points"])
    examples = encoded(models.ordinary(task, PRETRAINED, seed), "train")
    for group, plane in models.planes_of_thirds(task, seed).items():
        evaluate = loss_of(plane, examples, grid["examples"], grid["bfloat16"])
        cells = surface(plane, plane.end(), evaluate, grid, "loss", f"{task}, seed {seed}, {group} layers", log)
        cells = cells[(cells["fold"] == WHOLE) | (cells["beta"] == 0)]
        line = landscape.curve(evaluate, plane.end(), plane.random(), positions)
        at_random = as_rows(line, "loss", {"alpha": positions}, evaluate).assign(beta=0.0)
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
        draws = [directions.moved(end, plane.random(RANDOM_SEED + draw)) for draw in range(ROLLBACK_DRAWS)]
        lengths = {"norm": norm, "relative_norm": norm / directions.norm(plane.start)}
        for control, places in (("", [plane.start]), (TWIN, draws)):
            right = np.mean([1 - evaluate.by_example(place)[1] for place in places], axis=0)
            parts.append(pd.DataFrame({"group": group, "control": control, "score": right} | lengths))
    right = 1 - evaluate.by_example(end)[1]
    parts.append(pd.DataFrame({"group": records.FULL, "control": SHARED, "score": right}))
    table = pd.concat([part.assign(example=np.arange(len(part), dtype=np.int32)) for part in parts], ignore_index=True)
    return table.astype({"score": np.float32}).assign(task=task, seed=seed)


def surface(
    plane: Plane, origin: Parameters, evaluate: ClassifierLoss, grid: Grid, value: str, name: str, log: Log
) -> pd.DataFrame:
    """A surface on a plane's two directions, stored row by row: one that was interrupted goes on where it was.

    `value` is `loss` or `error`, and `name` is in what is logged. Returns one row per cell and fold with `alpha`,
    `beta`, `examples`, `fold`, the value and its `_standard_error`.
    """

    def progress(done: int, rows: int) -> None:
        if done == rows or done % max(1, rows // 3) == 0:
            log(f"{name}: {done} of {rows} rows")

    positions = landscape.grid(grid["low"], grid["high"], grid["points"])
    kept = {"folder": runs_folder() / "surfaces", "identity": f"{records.measuring_code(__name__)} {evaluate.identity}"}
    axes = (plane.first, plane.second), positions, positions
    cells = landscape.surface(evaluate, origin, *axes, **kept, progress=progress)
    alphas, betas = np.meshgrid(positions, positions)
    return as_rows(cells, value, {"alpha": alphas.ravel(), "beta": betas.ravel()}, evaluate)


def as_rows(measured: Measurement, value: str, places: dict, evaluate: ClassifierLoss) -> pd.DataFrame:
    """A point, curve or surface as rows: its places, and loss or error (`value`) by `fold`, with the standard error of
    that of all `examples`.
    """
    columns = {name: np.ravel(getattr(measured, name)) for name in (value, f"{value}_standard_error")}
    left_out = enumerate(getattr(measured, f"left_out_{value}"))
    parts = [{"fold": WHOLE} | columns, *({"fold": fold, value: np.ravel(cells)} for fold, cells in left_out)]
    table = pd.concat([pd.DataFrame(places | part) for part in parts], ignore_index=True)
    types = {"fold": np.int8, value: np.float32, f"{value}_standard_error": np.float32}
    return table.astype(types).assign(examples=evaluate.n_examples)
