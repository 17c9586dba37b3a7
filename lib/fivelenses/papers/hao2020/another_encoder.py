"""Figures 1 and 2 of Hao et al. (2020) for an encoder beside the one that the chapter follows, and the claims that are
read from these figures.
"""

from collections.abc import Mapping

import pandas as pd
from matplotlib import pyplot as plt

from fivelenses import tasks
from fivelenses.checkpoints import Checkpoint
from fivelenses.exhibits import claims, curves, style
from fivelenses.exhibits.exhibit import Exhibit, counted
from fivelenses.papers.hao2020.claims import CLAIMS
from fivelenses.papers.hao2020.figures import (
    JS_LABEL,
    SVCCA_LABEL,
    tuned_against_pretrained,
    untrained_null,
)

FIGURES = ("hao2020-figure-1", "hao2020-figure-2")


def another_encoder(changes: pd.DataFrame, encoder: str, checkpoints: Mapping[tuple[str, int], Checkpoint]) -> Exhibit:
    """Both figures side by side, with the scores of the models and the verdicts in the caption.

    Args:
        changes: of `changes_by_layer` for this encoder.
        encoder: its name.
        checkpoints: (task, seed) to its fine-tuned models.
    """
    table = tuned_against_pretrained(changes)
    titles = {task: tasks.find(task).title for task in table["task"].unique()}
    figure, panels = plt.subplots(1, 2, figsize=(style.WIDTH, 3.6), layout="constrained")
    nulls = {"js": untrained_null(changes, "js"), "svcca": table.groupby("layer")["svcca_null"].mean()}
    for axes, (value, null), label in zip(panels, nulls.items(), (JS_LABEL, SVCCA_LABEL), strict=True):
        curves.draw(axes, table, value, "task", titles, style.TASK_COLOURS, style.TASK_MARKERS, null=null)
        axes.set_ylim(bottom=0)
        axes.set_ylabel(label)
        style.layer_axis(axes, table["layer"])
    curves.task_legend(figure, titles, len(titles) + 1)
    caption = (
        f"Figures 1 and 2 for {encoder}: JS divergence of attention and SVCCA distance between the pre-trained and the "
        f"fine-tuned encoder, per layer ({counted(table['seed'].nunique(), 'model')} a task, bands from least to "
        "greatest). Dashed: the same to an untrained encoder, and with the tokens of one side permuted. Development "
        f"scores (majority): {_scores(checkpoints)}. Of the claims that are read from these figures, "
        f"{claims.in_words(CLAIMS, dict.fromkeys(FIGURES, table))}."
    )
    alt = (
        f"Curves over layers. JS divergence: {curves.ends(table, 'js', 'task')}. SVCCA distance: "
        f"{curves.ends(table, 'svcca', 'task')}."
    )
    key = f"hao2020-figures-1-2-{encoder.replace('/', '-')}"
    return Exhibit(key, "Another encoder", table.assign(encoder=encoder), caption, alt, figure)


def _scores(checkpoints: Mapping[tuple[str, int], Checkpoint]) -> str:
    said = []
    for task in dict.fromkeys(task for task, _ in checkpoints):
        made = [checkpoint for (name, _), checkpoint in checkpoints.items() if name == task]
        mean = sum(checkpoint.score for checkpoint in made) / len(made)
        said.append(f"{tasks.find(task).title} {mean:.3f} ({made[0].manifest['null_rate']:.3f})")
    return ", ".join(said)
