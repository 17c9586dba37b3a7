"""What freezing or removing layers costs, as a share of what fine-tuning gains over the null rate.

With the score s of the whole model, s₀ of one that does not read, and s_k with layers frozen or removed, each a mean
over seeds,

    lost = (s − s_k) / (s − s₀).

A seed's part in this ratio of means is its linearisation, lost + ((sᵢ − sᵢₖ) − lost (sᵢ − s₀)) / (s − s₀), whose mean
over seeds is the ratio: one seed that hardly gains does not blow it up.
"""

import numpy as np
import pandas as pd

from fivelenses.records import FOLDS, WHOLE
from fivelenses.tasks.subsets import folds


def varied(models: pd.DataFrame, similarities: pd.DataFrame, encoder: str, position: str) -> pd.DataFrame:
    """The models of an encoder that differ from a whole one in the `position` `frozen` or `kept` (layers) alone, with
    `layers`, the depth; a task of which only the whole encoder was tuned has no curve, and no rows here.

    Args:
        models: of `checkpoints.tables.models`.
        similarities: of `similarity.similarities`, which has a row for every layer of the encoder.
    """
    table = models[models["encoder"] == encoder]
    layers = int(similarities.loc[similarities["pretrained"] == encoder, "layer"].max())
    table = table.assign(layers=layers, kept=table["truncated"].where(table["truncated"] != -1, layers))
    table = table[table["kept"] == layers] if position == "frozen" else table[table["frozen"] == -1]
    return table.groupby("task").filter(lambda rows: rows[position].nunique() > 1).reset_index(drop=True)


def losses(table: pd.DataFrame, predictions: pd.DataFrame | None, position: str) -> pd.DataFrame:
    """The share of the gain that each ablated model of `varied` lost, linearised; with folds where predictions by
    example are given.

    Returns:
        One row per ablated model and fold of examples left out (-1 none): `task`, `seed`, `layers`, the position,
        `fold`, `examples` (of all folds, 0 without predictions), `drop` and `gain` (s − s_k and s − s₀ of that seed),
        `lost` (missing where the mean model gains nothing).
    """
    rows = []
    for (task, seed), models in table.groupby(["task", "seed"], sort=False):
        rates = {row.address: _rates(row, predictions) for row in models.itertuples()}
        of_task = None if predictions is None else predictions[predictions["address"].isin(models["address"])]
        examples = 0 if of_task is None else of_task["example"].nunique()
        whole = models[models[position] == (-1 if position == "frozen" else models["layers"])]
        if len(whole) != 1:
            continue
        score, null = rates[whole["address"].iloc[0]]
        gain = score - null
        for row in models[~models["address"].isin(whole["address"])].to_dict("records"):
            named, drop = (task, seed, row["layers"], row[position]), score - rates[row["address"]][0]
            rows += [(*named, examples, fold, *pair) for fold, pair in enumerate(zip(drop, gain, strict=True), WHOLE)]
    lost = pd.DataFrame(rows, columns=["task", "seed", "layers", position, "examples", "fold", "drop", "gain"])
    means = lost[lost["fold"] == WHOLE].groupby(["task", position])[["drop", "gain"]].mean()
    mean_drop, mean_gain = lost[["task", position]].join(means, on=["task", position])[["drop", "gain"]].to_numpy().T
    mean_gain = np.where(mean_gain > 0, mean_gain, np.nan)
    share = mean_drop / mean_gain
    return lost.assign(lost=share + (lost["drop"] - share * lost["gain"]) / mean_gain)


def _rates(row, predictions: pd.DataFrame | None) -> tuple[np.ndarray, np.ndarray]:
    """Score and null rate of a model, of all examples and without each fold of them."""
    if predictions is None:
        return np.array([row.score]), np.array([row.null_rate])
    of_model = predictions[predictions["address"] == row.address]
    if of_model.empty or (of_model["metric"] == "matthews").any():
        raise ValueError(f"The model {row.address} of {row.task} has no scores of examples: measure its predictions.")
    of_model = of_model.sort_values("example")
    fold_of = folds(of_model["label"])
    kept = np.stack([np.ones(len(fold_of)), *(fold_of != fold for fold in range(FOLDS))], axis=-1)
    score, null, weight = of_model[["score", "null", "weight"]].to_numpy(float).T @ kept
    return score / weight, null / weight
