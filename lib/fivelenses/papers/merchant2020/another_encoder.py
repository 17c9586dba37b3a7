"""Table 1 and Figures 1 to 4 of Merchant et al. (2020) for an encoder beside the one that the chapter follows, and the
claims that are read from them.
"""

import dataclasses
import math

import pandas as pd
from matplotlib import pyplot as plt

from fivelenses import tasks
from fivelenses.exhibits import claims, curves, style
from fivelenses.exhibits.exhibit import Exhibit
from fivelenses.papers.merchant2020.claims import CLAIMS
from fivelenses.papers.merchant2020.figures import edge_table_exhibit, looks, varied, whole_encoders
from fivelenses.papers.merchant2020.measure import BASE

TEXT = "wikipedia"


def _key(name: str, encoder: str) -> str:
    return f"merchant2020-{name}-{encoder.replace('/', '-')}"


def table_of_another_encoder(probes: pd.DataFrame, encoder: str, source: str) -> Exhibit:
    """Table 1 for another encoder, with the verdicts in the caption.

    Args:
        probes: the scores of `edge_probing` for this encoder.
        encoder: its name.
        source: of the data.
    """
    usual = edge_table_exhibit(probes, "mix", source)
    verdicts = claims.in_words(CLAIMS, {usual.key: usual.table})
    return dataclasses.replace(
        usual,
        key=_key("table-1", encoder),
        title="Table 1, another encoder",
        table=usual.table.assign(encoder=encoder),
        caption=f"{usual.caption} This is Table 1 for {encoder}, where {verdicts}.",
    )


def figures_of_another_encoder(
    structure: pd.DataFrame, similarities: pd.DataFrame, scores: pd.DataFrame, encoder: str
) -> Exhibit:
    """Figures 1 to 4 in one picture, with the scores of the models and the verdicts in the caption.

    Args:
        structure: of `structural_probes` for this encoder.
        similarities: of `similarities` for this encoder.
        scores: of `tuned_scores`; a panel of frozen or truncated encoders is drawn where there are some.
        encoder: its name.
    """
    on_text = similarities[similarities["input"] == TEXT]
    distance, depth = (structure[structure["kind"] == kind] for kind in ("distance", "depth"))
    frozen, kept = (varied(scores, position) for position in ("frozen", "kept"))
    # What each panel shows: its table, the columns of values, curves and positions, and the words on its axes.
    panels = {
        "merchant2020-figure-2": (on_text, "similarity", "model", "layer", "RSA to pre-trained", "layer"),
        "merchant2020-figure-1a": (distance, "spearman", "model", "layer", "Spearman, distance", "layer"),
        "merchant2020-figure-1b": (depth, "spearman", "model", "layer", "Spearman, depth", "layer"),
        "merchant2020-figure-3": (frozen, "score", "task", "frozen", "score", "highest frozen layer (−1: none)"),
        "merchant2020-figure-4": (kept, "score", "task", "kept", "score", "layers kept"),
    }
    panels = {key: panel for key, panel in panels.items() if not panel[0].empty}
    titles, colours, markers = looks([BASE, *on_text["model"].unique()])
    rows = math.ceil(len(panels) / 2)
    figure, grid = plt.subplots(rows, 2, figsize=(style.WIDTH, 2.9 * rows), layout="constrained", squeeze=False)
    alts = []
    for axes, (table, value, group, position, label, under) in zip(grid.flat, panels.values(), strict=False):
        names = {name: titles[name] for name in table[group].unique()}
        null = table.groupby("layer")["null"].mean() if value == "similarity" else None
        curves.draw(axes, table, value, group, names, colours, markers, null=null, position=position)
        axes.set_ylabel(label)
        style.layer_axis(axes, table[position], under)
        alts.append(f"{label} by {under}: {curves.ends(table, value, group, position)}")
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    curves.task_legend(figure, titles, len(titles) + 1, colours, markers)
    of_input = {f"merchant2020-figure-5-{name}": rows for name, rows in similarities.groupby("model")}
    verdicts = claims.in_words(CLAIMS, {key: panel[0] for key, panel in panels.items()} | of_input)
    caption = (
        f"Figures 1 to 4 for {encoder}, by layer (0: embeddings): RSA to the encoder before fine-tuning on running "
        "text (dashed: with tokens permuted), structural probes, and scores of encoders whose bottom layers were "
        f"frozen or whose top layers were removed. Scores of whole encoders (null): {_whole_scores(scores)}. Of the "
        f"claims that are read from these figures, {verdicts}."
    )
    table = pd.concat([panel[0].assign(figure=key) for key, panel in panels.items()], ignore_index=True)
    return Exhibit(
        _key("figures-1-4", encoder),
        "Figures 1 to 4, another encoder",
        table.assign(encoder=encoder),
        caption,
        f"Curves over layers. {'. '.join(alts)}.",
        figure,
    )


def _whole_scores(scores: pd.DataFrame) -> str:
    said = [
        f"{tasks.find(task).title} {rows['score'].mean():.3f} ({rows['null_rate'].iloc[0]:.3f})"
        for task, rows in whole_encoders(scores).groupby("task", sort=False)
    ]
    return ", ".join(said)
