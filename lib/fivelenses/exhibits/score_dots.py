"""The one way to draw scores: a dot a seed, filled with pre-training and open from scratch, beside what needs no
reading.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from fivelenses.exhibits import style

PRETRAINED, SCRATCH = "pre-trained", "scratch"

PUBLISHED_MARKERS = ("D", "*", "P", "X")
PUBLISHED_COLOUR = "#F0E442"
INK = "#333333"


def beside_baselines(
    table: pd.DataFrame,
    line: str,
    titles: Mapping[str, str],
    axis_label: str,
    majority_name: str,
    published: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
) -> Figure:
    """Draw scores from left to right, one line a task (or a task's measure).

    Args:
        table: one row a line, start and seed, with `task`, `start` (`PRETRAINED` or `SCRATCH`), `score`, `majority`
            and `bag_of_words`; a line without a bag of words has NaN there.
        line: the column that tells lines apart.
        titles: line to the words on its left, from the top down.
        axis_label: the scores and their unit.
        majority_name: the words for always giving one answer.
        published: encoders of others to their scores by line; at most as many as there are markers.

    Returns:
        The figure.

    Raises:
        ValueError: a line without rows, or more published encoders than markers.
    """
    if len(published) > len(PUBLISHED_MARKERS):
        raise ValueError(f"There are {len(PUBLISHED_MARKERS)} markers, and {len(published)} published encoders.")
    markers = dict(zip(published, PUBLISHED_MARKERS, strict=False))
    height = 0.5 * len(titles) + (1.7 if published else 1.2)
    figure, axes = plt.subplots(figsize=(style.WIDTH, height), layout="constrained")
    for place, (key, title) in enumerate(titles.items()):
        rows = table[table[line] == key]
        if rows.empty:
            raise ValueError(f"There is nothing to draw for {title}: the table has no row with {line} = {key!r}.")
        colour = style.TASK_COLOURS[rows["task"].iloc[0]]
        for start, face, shift in ((SCRATCH, "white", -0.13), (PRETRAINED, colour, 0.13)):
            found = rows[rows["start"] == start]["score"]
            axes.plot(found, np.full(len(found), place + shift), "o", color=colour, mfc=face)
        axes.plot(rows["majority"].iloc[0], place, "x", color=style.NULL_COLOUR, markersize=7)
        axes.plot(rows["bag_of_words"].iloc[0], place, "|", color=INK, markersize=18, markeredgewidth=2)
        for name, known in published.items():
            if key in known:
                axes.plot(known[key], place, markers[name], color=INK, mfc=PUBLISHED_COLOUR, markersize=9, zorder=1.9)
    axes.set_yticks(range(len(titles)), list(titles.values()))
    axes.invert_yaxis()
    axes.set_xlabel(axis_label)
    marks = [
        axes.plot([], [], marker, color=colour, mfc=face, markersize=size, linestyle="none", label=label)[0]
        for marker, colour, face, size, label in (
            ("o", INK, INK, 6, PRETRAINED),
            ("o", INK, "white", 6, SCRATCH),
            ("|", INK, INK, 14, "bag of words"),
            ("x", style.NULL_COLOUR, style.NULL_COLOUR, 7, majority_name),
            *((markers[name], INK, PUBLISHED_COLOUR, 9, name) for name in published),
        )
    ]
    figure.legend(handles=marks, loc="outside upper left", ncols=3 if published else 4)
    return figure


def against_scratch(table: pd.DataFrame, line: str, titles: Mapping[str, str]) -> str:
    """The mean score of each line with pre-training and from scratch, for an alternative text.

    Example:
        >>> table = pd.DataFrame({"task": "rte", "start": [PRETRAINED, SCRATCH], "score": [0.71, 0.52]})
        >>> against_scratch(table, "task", {"rte": "RTE"})
        'Development scores with pre-training against from scratch: RTE 0.71 against 0.52.'
    """
    means = table.groupby([line, "start"])["score"].mean()
    ends = [f"{title} {means[key, PRETRAINED]:.2f} against {means[key, SCRATCH]:.2f}" for key, title in titles.items()]
    return f"Development scores with pre-training against from scratch: {'; '.join(ends)}."
