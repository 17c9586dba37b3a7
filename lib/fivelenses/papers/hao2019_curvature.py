"""The curvature of the training loss at the end of a training: sharpness that depends on no direction."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from fivelenses.checkpoints.store import Checkpoint
from fivelenses.lenses import directions
from fivelenses.lenses.directions import layer_parameters
from fivelenses.lenses.hessian import curvatures
from fivelenses.models import thirds
from fivelenses.models.layers import layer_list
from fivelenses.papers.hao2019 import Models
from fivelenses.papers.models import encoded
from fivelenses.records import ALL

DRAWS = 5


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
        checkpoints: all models of the run.
        task, init, seed: the model that is measured.
        second: task to the task that gives the second direction of a surface.
        grid_examples: training examples, those of a cell of a grid; None for all.

    Returns:
        One row per `group` of layers (`all`, `low`, `middle`, `high`), with `task`, `init`, `seed`, `examples`, `top`
        and `trace` (nats per squared unit), `trace_standard_error` and `norm`, the length of the group's direction from
        start to end. Empty if a training diverged that is needed.
    """
    models = Models(checkpoints, second, device)
    if not models.converged(task, seed):
        return pd.DataFrame()
    plane, examples = models.plane(task, init, seed), encoded(models.ordinary(task, init, seed), "train")
    if grid_examples is not None:
        drawn = np.random.default_rng(0).permutation(examples.num_rows)[:grid_examples]
        examples = examples.select(np.sort(drawn))
    # All layers and the embeddings, as in a surface.
    layers = {ALL: plane.layers} | thirds(len(layer_list(plane.model)))
    names = {group: list(layer_parameters(plane.model, inside)) for group, inside in layers.items()}
    parameters = dict(plane.model.base_model.named_parameters())
    groups = {group: [parameters[name] for name in inside] for group, inside in names.items()}
    norms = {group: directions.norm({name: plane.first[name] for name in inside}) for group, inside in names.items()}
    model = plane.model
    del plane  # three vectors as long as the parameters, where Lanczos' method needs nine
    rows = [
        (group, one.top, one.trace, one.trace_standard_error, norms[group])
        for group, one in curvatures(model, examples, groups, DRAWS).items()
    ]
    table = pd.DataFrame(rows, columns=["group", "top", "trace", "trace_standard_error", "norm"])
    return table.assign(examples=examples.num_rows, task=task, init=init, seed=seed)
