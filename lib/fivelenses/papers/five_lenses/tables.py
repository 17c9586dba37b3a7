"""The tables of chapter 6."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from fivelenses import tasks
from fivelenses.checkpoints import Checkpoint
from fivelenses.exhibits.exhibit import Exhibit
from fivelenses.papers.five_lenses import agreement
from fivelenses.papers.five_lenses.figures import models_in_words
from fivelenses.papers.five_lenses.instruments import BY_KEY, DISTINCTIONS, LENSES, name
from fivelenses.papers.five_lenses.rank_statistics import Estimate, mean_over_models, number
from fivelenses.papers.merchant2020 import tuned_scores

KINDS = {
    (True, False): "activations",
    (True, True): "activations, labels",
    (False, False): "parameters",
    (False, True): "parameters, labels",
}


def _range(values: pd.Series) -> str:
    return f"{number(values.min())} to {number(values.max())}"


def table_of_instruments(changes: pd.DataFrame) -> Exhibit:
    """The measures: what each of them reads, in which direction it says more change, and its null."""
    rows = []
    for key, group in changes.groupby("measure", sort=False):
        measure = BY_KEY[key]
        rows.append(
            {
                "measure": measure.name,
                "lens": LENSES[measure.lens],
                "reads": KINDS[measure.reads_activations, measure.knows_labels],
                "more is": measure.more,
                "here": _range(group["value"]),
                "null": measure.null,
                "null here": _range(group["null"]),
            }
        )
    caption = (
        "The measures of change. A larger value is more change in every one of them; below 0, fine-tuning went the "
        "other way."
    )
    return Exhibit("five-lenses-instruments", "The instruments", pd.DataFrame(rows), caption)


def table_of_models(checkpoints: Sequence[Checkpoint]) -> Exhibit:
    """The fine-tuned models that all lenses look at."""
    table, rows = tuned_scores(checkpoints), []
    for task, group in table.groupby("task", sort=False):
        rows.append(
            {
                "task": tasks.find(task).title,
                "trained on": group["data"].iloc[0],
                "examples": f"{group['examples'].iloc[0]:,}",
                "score of each seed": ", ".join(
                    "diverged" if row.diverged else f"{row.score:.3f}" for row in group.itertuples()
                ),
                "null rate": f"{group['null_rate'].iloc[0]:.3f}",
            }
        )
    caption = (
        "The fine-tuned models: development score (accuracy, or Matthews correlation where the null rate is 0) and the "
        "score of a constant answer. A model whose training diverged is not measured."
    )
    return Exhibit("five-lenses-models", "The models", table, caption, shown=pd.DataFrame(rows))


def table_of_lenses(changes: pd.DataFrame) -> Exhibit:
    """Each pair of lenses: their correlation, what chance would do, and what is left with depth held fixed."""
    table = agreement.between_lenses(changes)
    shown = table.sort_values("correlation", ascending=False, na_position="last")
    view = pd.DataFrame(
        {
            "lenses": [f"{LENSES[row.first]} / {LENSES[row.second]}" for row in shown.itertuples()],
            "rank correlation (95 % interval)": [
                str(Estimate(row.correlation, row.low, row.high, row.models)) for row in shown.itertuples()
            ],
            "models": shown["models"],
            "p": [_p(value) for value in shown["p"]],
            "p (Holm)": [_p(value) for value in shown["p_holm"]],
            "given depth (models)": [
                f"{number(row.given_depth)} ({row.given_depth_models})" for row in shown.itertuples()
            ],
        }
    )
    caption = (
        "Pairs of lenses, from the most to the least alike: mean rank correlation over layers of their measures "
        f"({models_in_words(changes)}), bootstrap interval over models, two-sided p-value from relabelling the layers "
        "of one lens in all models alike, adjusted by Holm for all pairs, and the partial correlation with the layer's "
        "number held fixed, over the models in which it is defined."
    )
    return Exhibit("five-lenses-lenses", "Pairs of lenses", table, caption, shown=view)


def _p(value: float) -> str:
    return "undefined" if np.isnan(value) else f"{value:.3f}"


def greatest_change(changes: pd.DataFrame) -> Exhibit:
    """Where each measure puts its greatest change, and its centre."""
    table = agreement.centres(changes)
    repeated = agreement.between_seeds(changes)
    layers, rows = sorted(changes["layer"].unique()), []
    for measure, group in table.groupby("measure", sort=False):
        counts = group["top"].value_counts()
        said = [f"{layer} ({counts[layer]})" for layer in layers if layer in counts.index]
        rows.append(
            {
                "measure": name(measure),
                "lens": LENSES[BY_KEY[measure].lens],
                "layer of greatest change (models)": ", ".join(said) or "undefined",
                "centre": _spread(group["centre"]),
                "with depth": _spread(group["rises"]),
                "between seeds": _spread(repeated[repeated["measure"] == measure]["correlation"]),
            }
        )
    caption = (
        "The layer at which each measure is greatest, with the number of models; its centre; and its rank correlation "
        "with depth, and with itself in another seed of the same task, mean ± standard deviation "
        f"({models_in_words(changes)})."
    )
    return Exhibit("five-lenses-greatest", "Greatest change", table, caption, shown=pd.DataFrame(rows))


def _spread(values: pd.Series) -> str:
    values = values.dropna()
    return number(values.mean()) + (f" ± {values.std():.2f}" if len(values) > 1 else "")


def what_sets_apart(changes: pd.DataFrame) -> Exhibit:
    """Whether measures agree more that are alike in what they read, or in whether they know the labels."""
    table, rows = agreement.apart(changes), []
    for distinction, group in table.groupby("distinction", sort=False):
        rows.append(
            {
                "measures differ in": DISTINCTIONS[distinction],
                "alike": str(mean_over_models(group["alike"])),
                "different": str(mean_over_models(group["different"])),
                "difference": str(mean_over_models(group["alike"] - group["different"])),
            }
        )
    caption = (
        "Mean rank correlation of two measures of different lenses that are alike, and of two that are not, with "
        f"bootstrap intervals over models ({models_in_words(changes)})."
    )
    return Exhibit("five-lenses-apart", "What sets measures apart", table, caption, shown=pd.DataFrame(rows))


def what_layers_add(changes: pd.DataFrame) -> Exhibit:
    """Whether what a layer adds to the change of features agrees better with its parameters than the whole does."""
    table, rows = agreement.added(changes), []
    for (measure, own), group in table.groupby(["measure", "own"], sort=False):
        difference = group["added"] - group["output"]
        found = {
            "of what it puts out": mean_over_models(group["output"]),
            "of what it adds": mean_over_models(group["added"]),
            "difference": mean_over_models(difference),
        }
        row = {"measure": name(measure), "beside": name(own)}
        rows.append(row | {title: str(estimate) for title, estimate in found.items()})
    caption = (
        "Rank correlation over layers with two measures of a layer's own parameters, of the change in what it puts out "
        "and of what it adds to the change in what enters it, with bootstrap intervals over models "
        f"({models_in_words(changes)})."
    )
    return Exhibit("five-lenses-added", "What a layer adds", table, caption, shown=pd.DataFrame(rows))
