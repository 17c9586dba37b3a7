"""Figures 1 to 3 and 5 of Singh and Giovanardi (2020) for an encoder beside the one that the chapter follows, and the
claims that are read from them.
"""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from fivelenses import tasks
from fivelenses.exhibits import claims, curves, style
from fivelenses.exhibits.exhibit import Exhibit, counted
from fivelenses.papers.singh2020.claims import CLAIMS
from fivelenses.papers.singh2020.figures import (
    FROZEN,
    MOVED,
    REINITIALISED,
    figure_key,
    of_sizes,
    output_projections,
    size_looks,
)

# Of each kind: the column drawn, that of the horizontal axis, and the words on both axes; None: the task's metric.
PANELS = {
    REINITIALISED: ("score", "reinitialised", None, "layers re-initialised"),
    FROZEN: ("score", "removed", None, "layers removed"),
    MOVED: ("absolute", "layer", "weight distance (L2)", "layer"),
}


def another_encoder(
    scores: pd.DataFrame,
    probes: Mapping[str, pd.DataFrame],
    distances: pd.DataFrame,
    sizes: Mapping[str, Sequence[int]],
    encoder: str,
) -> Exhibit:
    """All curves of one encoder in one picture, with the verdicts in the caption.

    Args:
        scores: of `reinitialised_scores`, for this encoder.
        probes: task to the table of `frozen_probes`, for this encoder.
        distances: of `weight_distances`, for this encoder.
        sizes: task to the numbers of training examples at which its layers were re-initialised.
        encoder: its name.
    """
    tables = {
        REINITIALISED: {task: of_sizes(scores, task, used) for task, used in sizes.items()},
        FROZEN: {task: probes[task] for task in sizes},
        MOVED: {task: output_projections(distances, task) for task in sizes},
    }
    shape = {"figsize": (style.WIDTH, 2.5 * len(PANELS)), "layout": "constrained", "squeeze": False}
    figure, grid = plt.subplots(len(PANELS), len(sizes), **shape)
    alts = []
    for row, (kind, (value, position, label, under)) in zip(grid, PANELS.items(), strict=True):
        for axes, (task, table) in zip(row, tables[kind].items(), strict=True):
            quantity, title = label or tasks.find(task).score_name, tasks.find(task).title
            null = None
            if "null_rate" in table:
                null = pd.Series(table["null_rate"].iloc[0], index=sorted(table[position].unique()))
            curves.draw(axes, table, value, "examples", *size_looks(table), null=null, position=position)
            style.layer_axis(axes, table[position], under, most=8)
            axes.set_ylabel(quantity)
            axes.set_title(title, fontsize=10)
            alts.append(f"{title}, {quantity} by {under}: {curves.ends(table, value, 'examples', position)}")
    _legend(figure, list(sizes.values()))
    read = {figure_key(task, kind): table for kind, of_task in tables.items() for task, table in of_task.items()}
    caption = (
        f"Figures 1 to 3 and 5 for {encoder}, which has {counted(scores['layers'].max(), 'layer')}. Above: the score "
        "after fine-tuning with layers re-initialised from the top. Middle: that of a logistic regression on the "
        "frozen encoder with layers removed from the top. Below: how far each layer's output projection moved in "
        f"fine-tuning. Means of {counted(scores['seed'].nunique(), 'seed')}, bands from least to greatest; dashed: "
        f"null rate. Of the claims that are read from these figures, {claims.in_words(CLAIMS, read)}."
    )
    table = pd.concat([table.assign(figure=key) for key, table in read.items()], ignore_index=True)
    return Exhibit(
        f"singh2020-figures-1-5-{encoder.replace('/', '-')}",
        "Another encoder",
        table.assign(encoder=encoder),
        caption,
        f"Curves over layers, one for each number of training examples. {'. '.join(alts)}.",
        figure,
    )


def _legend(figure: Figure, sizes: Sequence[Sequence[int]]) -> None:
    """One legend above the panels: each rank of size with the numbers that the tasks have there, and the null."""
    handles = []
    for rank, (colour, marker) in enumerate(zip(style.SEQUENCE, style.SEQUENCE_MARKERS, strict=True)):
        of_rank = dict.fromkeys(used[rank] for used in sizes if rank < len(used))
        if of_rank:
            words = f"{' / '.join(f'{size:,}' for size in of_rank)} examples"
            handles.append(plt.Line2D([], [], color=colour, marker=marker, label=words))
    handles.append(plt.Line2D([], [], color=style.NULL_COLOUR, linestyle="--", label="null rate"))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
