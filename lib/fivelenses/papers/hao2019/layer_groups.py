"""What Hao et al. (2019) measure of thirds of the layers: surfaces when one of them moves, and rolled-back accuracy.

The control of a third that is rolled back is the third moved as far in random directions.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from fivelenses.checkpoints.store import Checkpoint
from fivelenses.lenses import directions, landscape
from fivelenses.papers.hao2019.measure import RANDOM_SEED, Log, as_rows, loss_of, surface
from fivelenses.papers.hao2019.planes import Models, encoded
from fivelenses.records import FULL, PRETRAINED, SHARED, TWIN, WHOLE

RANDOM_DRAWS = 3


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
        are those of `measure.landscapes`.
    """
    models, positions = Models(checkpoints, second, device), landscape.grid(low, high, points)
    if not models.finite(task, seed):
        return pd.DataFrame()
    examples, parts = encoded(models.usual(task, PRETRAINED, seed), "train"), []
    for group, plane in models.planes_of_thirds(task, seed).items():
        evaluate, key = loss_of(plane.model, examples, plane.layers, grid_examples, bfloat16), {"group": group}
        cells = surface(plane, plane.end(), evaluate, positions, "loss", f"{task}, seed {seed}, {group} layers", log)
        cells = cells[(cells["fold"] == WHOLE) | (cells["beta"] == 0)]
        line = landscape.curve(evaluate, plane.end(), plane.random(RANDOM_SEED), positions)
        at_random = as_rows(line, "loss", {"alpha": positions, "beta": np.zeros_like(positions)}, evaluate.n_examples)
        parts += [cells.assign(**key, control=""), at_random.assign(**key, control=TWIN)]
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
    if not models.finite(task, seed):
        return pd.DataFrame()
    examples = encoded(models.usual(task, PRETRAINED, seed), "validation")
    for group, plane in models.planes_of_thirds(task, seed).items():
        evaluate, end = loss_of(plane.model, examples, plane.layers, None, bfloat16), plane.end()
        draws = [directions.moved(end, [plane.random(RANDOM_SEED + draw)], [1.0]) for draw in range(RANDOM_DRAWS)]
        lengths = {
            "norm": directions.norm(plane.first),
            "relative_norm": directions.norm(plane.first) / directions.norm(plane.start),
        }
        for control, points in (("", [plane.start]), (TWIN, draws)):
            right = np.mean([1 - evaluate.by_example(point)[1] for point in points], axis=0)
            parts.append(pd.DataFrame({"group": group, "control": control, "score": right} | lengths))
    right = 1 - evaluate.by_example(end)[1]
    parts.append(pd.DataFrame({"group": FULL, "control": SHARED, "score": right}))
    table = pd.concat([part.assign(example=np.arange(len(part), dtype=np.int32)) for part in parts], ignore_index=True)
    return table.astype({"score": np.float32}).assign(task=task, seed=seed)
