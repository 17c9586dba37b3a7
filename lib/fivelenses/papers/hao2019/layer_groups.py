"""Thirds of the layers of tuned models, moved and put back: Figure 7 and Table 1 of Hao et al. (2019)."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from fivelenses.lenses import directions
from fivelenses.papers.hao2019.measure import RANDOM_SEED, Sampling, Tell, surface
from fivelenses.papers.hao2019.planes import TUNED, Models, encoded
from fivelenses.tasks import TaskData

RANDOM_DRAWS = 3


def group_surfaces(
    models: Models,
    data: Mapping[str, TaskData],
    grouped: Sequence[str],
    seeds: Sequence[int],
    sampling: Sampling,
    tell: Tell = print,
) -> pd.DataFrame:
    """Figure 7: the training loss around tuned models when one third of the layers moves; -1 puts the third back.

    Returns:
        A row for each cell with `task`, `seed`, `group`, and the columns of `surface`; none where a training diverged.
    """
    tables = []
    for task in grouped:
        for seed in filter(partial(models.finite, task), seeds):
            examples = encoded(models.usual(task, TUNED, seed), data[task], "train")
            for group, plane in models.planes_of_thirds(task, seed).items():
                evaluate = sampling.loss(plane.model, examples, plane.layers)
                name = f"{task}, seed {seed}, {group} layers"
                found = surface(plane, plane.end(), evaluate, sampling, name, tell)
                tables.append(found.assign(task=task, seed=seed, group=group))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def rollbacks(models: Models, data: Mapping[str, TaskData], seeds: Sequence[int], sampling: Sampling) -> pd.DataFrame:
    """Table 1: accuracy on all development examples with a third of the layers as they were before fine-tuning.

    Returns:
        A row for each `task`, `seed` and `group` with `tuned` and `accuracy` (without and with the group put back),
        `random` (the group moved as far in random directions, their mean), `norm` and `relative_norm` of the group's
        direction; none where a training diverged.
    """
    rows = []
    for task, of_task in data.items():
        for seed in filter(partial(models.finite, task), seeds):
            examples = encoded(models.usual(task, TUNED, seed), of_task, "validation")
            for group, plane in models.planes_of_thirds(task, seed).items():
                evaluate = sampling.on_all().loss(plane.model, examples, plane.layers)
                end, length = plane.end(), directions.norm(plane.first)
                moved = [
                    directions.moved(end, [plane.random(RANDOM_SEED + draw)], [1.0]) for draw in range(RANDOM_DRAWS)
                ]
                rows.append(
                    {
                        "task": task,
                        "seed": seed,
                        "group": group,
                        "tuned": 1 - evaluate(end).error,
                        "accuracy": 1 - evaluate(plane.start).error,
                        "random": float(np.mean([1 - evaluate(point).error for point in moved])),
                        "norm": length,
                        "relative_norm": length / directions.norm(plane.start),
                    }
                )
    return pd.DataFrame(rows)
