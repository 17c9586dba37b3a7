"""The exhibits of Hao et al. (2020), from the tables of `measurements`."""

import numpy as np
import pandas as pd

from fivelenses import tasks
from fivelenses.exhibits import style
from fivelenses.exhibits.curves import per_layer
from fivelenses.exhibits.exhibit import Absent, Exhibit, counted
from fivelenses.papers.hao2020.measure import PRETRAINED, UNTRAINED

# Table 1, page 2: learning rate, batch size, epochs.
PAPER_TABLE_1 = {"mnli": (3e-5, 64, 3), "rte": (1e-5, 32, 5), "sst2": (3e-5, 64, 4), "mrpc": (1e-5, 16, 5)}


def _titles(names) -> dict[str, str]:
    return {name: tasks.find(name).title for name in names}


def _over(table: pd.DataFrame) -> str:
    """The tasks and models behind a figure, in words."""
    models = table.groupby("task").size().max() // table["layer"].nunique()
    return (
        f"{', '.join(_titles(table['task'].unique()).values())}; {models} {'models' if models > 1 else 'model'} a task"
    )


def tuned_against_pretrained(changes: pd.DataFrame) -> pd.DataFrame:
    """The rows of `changes_by_layer` behind Figures 1 and 2, with a column `seed`."""
    rows = changes[(changes["first"] == PRETRAINED) & (changes["second"] != UNTRAINED)]
    return rows.assign(seed=rows["second"].astype(int)).drop(columns=["first", "second"]).reset_index(drop=True)


def seed_against_seed(changes: pd.DataFrame) -> pd.DataFrame:
    """The rows of `changes_by_layer` behind Figures 4 and 5, with a column `seed` (`0–1`); none for a single seed."""
    rows = changes[~changes["first"].isin((PRETRAINED, UNTRAINED))]
    return (
        rows.assign(seed=rows["first"] + "–" + rows["second"]).drop(columns=["first", "second"]).reset_index(drop=True)
    )


def untrained_null(changes: pd.DataFrame, value: str) -> pd.Series:
    """By layer, the mean over tasks of a measure between the pre-trained and an untrained encoder."""
    return changes[changes["second"] == UNTRAINED].groupby("layer")[value].mean()


def table_1(models: pd.DataFrame) -> Exhibit:
    """Table 1: hyperparameters, the paper's in brackets, with the scores that ours reach.

    Args:
        models: of `checkpoints.tables.models`.
    """
    table = models.groupby("task", sort=False).agg(
        learning_rate=("learning_rate", "first"),
        batch_size=("batch_size", "first"),
        epochs=("epochs", "first"),
        training_examples=("examples", "first"),
        training_data=("training_data", "first"),
        score=("score", "mean"),
        score_spread=("score", lambda scores: np.ptp(scores) / 2),
        null_rate=("null_rate", "first"),
        diverged=("diverged", "sum"),
    )
    for place, name in enumerate(("learning_rate", "batch_size", "epochs")):
        table[f"paper_{name}"] = [PAPER_TABLE_1.get(task, (np.nan,) * 3)[place] for task in table.index]
    table = table.reset_index()
    shown = pd.DataFrame(
        {
            "task": table["task"].map(lambda name: tasks.find(name).title),
            "learning rate (paper)": [
                f"{ours:g} ({paper:g})"
                for ours, paper in zip(table["learning_rate"], table["paper_learning_rate"], strict=True)
            ],
            "batch (paper)": [
                f"{ours:g} ({paper:g})"
                for ours, paper in zip(table["batch_size"], table["paper_batch_size"], strict=True)
            ],
            "epochs (paper)": [
                f"{ours:g} ({paper:g})" for ours, paper in zip(table["epochs"], table["paper_epochs"], strict=True)
            ],
            "trained on": [
                data if f"{used:,} " in data else f"{used:,} of: {data}"
                for used, data in zip(table["training_examples"], table["training_data"], strict=True)
            ],
            "accuracy": [
                f"{score:.3f} ± {spread:.3f}"
                for score, spread in zip(table["score"], table["score_spread"], strict=True)
            ],
            "majority": table["null_rate"].map("{:.3f}".format),
        }
    )
    caption = (
        "Hyperparameters, the paper's in brackets, and the development accuracy that our models reach: mean over "
        "seeds and half the "
        "range. Majority is the accuracy of always answering the most frequent label."
    )
    return Exhibit("hao2020-table-1", "Table 1", table, caption, shown=shown)


def _by_task(table: pd.DataFrame, value: str, label: str, **more):
    names = _titles(table["task"].unique())
    return per_layer(table, value, "task", label, names, style.TASK_COLOURS, style.TASK_MARKERS, **more)


def _extremes(table: pd.DataFrame, value: str, group: str) -> str:
    """The first and last point of each curve, for the alternative text."""
    means = table.groupby([group, "layer"], sort=False)[value].mean()
    ends = []
    for name in table[group].unique():
        curve = means[name]
        ends.append(
            f"{name} {curve.iloc[0]:.3f} at layer {curve.index[0]} and {curve.iloc[-1]:.3f} at layer {curve.index[-1]}"
        )
    return "; ".join(ends)


JS_LABEL = "JS divergence (nats)"
SVCCA_LABEL = "SVCCA distance"
DIVERGED = "a training diverged in each pair of data sets"
ONE_SEED = "it compares seeds and this run has one"


def figure_1(changes: pd.DataFrame) -> Exhibit:
    """Figure 1: JS divergence of attention per layer, pre-trained against fine-tuned."""
    table, null = tuned_against_pretrained(changes), untrained_null(changes, "js")
    caption = (
        "JS divergence of attention between the pre-trained and the fine-tuned encoder, per layer, on "
        f"development examples ({_over(table)}; bands from least to greatest seed). Dashed: the same between the "
        f"pre-trained and an untrained encoder, {null.min():.2f} to {null.max():.2f} nats; the maximum is ln 2 = 0.69."
    )
    ends = _extremes(table, "js", "task")
    alt = f"Curves of JS divergence over layers. {ends}. An untrained encoder gives {null.mean():.2f}."
    figure = _by_task(table, "js", JS_LABEL, null=null, null_name="untrained")
    return Exhibit("hao2020-figure-1", "Figure 1", table, caption, alt, figure)


def figure_2(changes: pd.DataFrame) -> Exhibit:
    """Figure 2: SVCCA distance per layer, pre-trained against fine-tuned."""
    table = tuned_against_pretrained(changes)
    null = table.groupby("layer")["svcca_null"].mean()
    caption = (
        f"SVCCA distance between the pre-trained and the fine-tuned encoder, per layer ({_over(table)}; "
        f"{table['tokens'].min():,} to "
        f"{table['tokens'].max():,} tokens). Dashed: the distance when the tokens of one side are permuted, "
        f"{null.min():.2f} to {null.max():.2f}."
    )
    ends = _extremes(table, "svcca", "task")
    alt = f"Curves of SVCCA distance over layers. {ends}. Permuted tokens give {null.mean():.2f}."
    figure = _by_task(table, "svcca", SVCCA_LABEL, null=null, null_name="permuted")
    return Exhibit("hao2020-figure-2", "Figure 2", table, caption, alt, figure)


def figure_3(table: pd.DataFrame) -> Exhibit:
    """Figure 3: SVCCA distance of the last layer when one layer is put back."""
    caption = (
        "SVCCA distance of the last layer between the fine-tuned encoder and the same with one layer put back to "
        "its pre-trained values, "
        f"by the layer put back ({_over(table)})."
    )
    alt = f"Curves over the layer that is put back. {_extremes(table, 'svcca', 'task')}."
    figure = _by_task(table, "svcca", f"{SVCCA_LABEL} of last layer", layer_label="layer put back")
    return Exhibit("hao2020-figure-3", "Figure 3", table, caption, alt, figure)


def figure_4(changes: pd.DataFrame) -> Exhibit | Absent:
    """Figure 4: JS divergence between seeds of one task."""
    table = seed_against_seed(changes)
    if table.empty:
        return Absent("hao2020-figure-4", "Figure 4", ONE_SEED)
    pairs = counted(table["seed"].nunique(), "pair")
    caption = f"JS divergence of attention between two seeds of one task, per layer ({pairs} of seeds a task)."
    alt = f"Curves of JS divergence between seeds over layers. {_extremes(table, 'js', 'task')}."
    return Exhibit("hao2020-figure-4", "Figure 4", table, caption, alt, _by_task(table, "js", JS_LABEL))


def figure_5(changes: pd.DataFrame) -> Exhibit | Absent:
    """Figure 5: SVCCA distance between seeds of one task."""
    table = seed_against_seed(changes)
    if table.empty:
        return Absent("hao2020-figure-5", "Figure 5", ONE_SEED)
    pairs = counted(table["seed"].nunique(), "pair")
    caption = f"SVCCA distance between two seeds of one task, per layer ({pairs} of seeds a task)."
    alt = f"Curves of SVCCA distance between seeds over layers. {_extremes(table, 'svcca', 'task')}."
    return Exhibit("hao2020-figure-5", "Figure 5", table, caption, alt, _by_task(table, "svcca", SVCCA_LABEL))


def _by_pair(table: pd.DataFrame, value: str, label: str):
    pairs = table["pair"].unique()
    names = {pair: "–".join(_titles(pair.split("–")).values()) for pair in pairs}
    colours, markers = (
        dict(zip(pairs, style.SEQUENCE, strict=False)),
        dict(zip(pairs, style.SEQUENCE_MARKERS, strict=False)),
    )
    return per_layer(table, value, "pair", label, names, colours, markers)


def figure_6(table: pd.DataFrame, each: int) -> Exhibit | Absent:
    """Figure 6: JS divergence between models of two data sets."""
    if table.empty:
        return Absent("hao2020-figure-6", "Figure 6", DIVERGED)
    caption = (
        f"JS divergence of attention between models of two data sets, per layer, on {table['examples'].max()} "
        f"development examples, up to {each} "
        f"of each set ({counted(table['seed'].nunique(), 'seed')}, bands from least to greatest)."
    )
    alt = f"Curves of JS divergence over layers. {_extremes(table, 'js', 'pair')}."
    return Exhibit("hao2020-figure-6", "Figure 6", table, caption, alt, _by_pair(table, "js", JS_LABEL))


def figure_7(table: pd.DataFrame, each: int) -> Exhibit | Absent:
    """Figure 7: SVCCA distance between models of two data sets."""
    if table.empty:
        return Absent("hao2020-figure-7", "Figure 7", DIVERGED)
    caption = (
        "SVCCA distance between models of two data sets, per layer, on the examples of Figure 6 "
        f"({table['tokens'].min():,} to "
        f"{table['tokens'].max():,} tokens, up to {each} examples of each set)."
    )
    alt = f"Curves of SVCCA distance over layers. {_extremes(table, 'svcca', 'pair')}."
    return Exhibit("hao2020-figure-7", "Figure 7", table, caption, alt, _by_pair(table, "svcca", SVCCA_LABEL))


def table_of_measures(changes: pd.DataFrame, keep: float) -> Exhibit:
    """Beyond the paper: the last layer under SVCCA with and without truncation, PWCCA and linear CKA."""
    table = tuned_against_pretrained(changes)
    last = table[table["layer"] == table["layer"].max()].groupby("task", sort=False)
    measures = {
        f"SVCCA, {keep:.0%} of variance": "svcca",
        "SVCCA, all directions": "svcca_all",
        "PWCCA": "pwcca",
        "1 − linear CKA": "cka_distance",
        "SVCCA, permuted tokens": "svcca_null",
    }
    means = table.assign(cka_distance=1 - table["cka"]).loc[lambda rows: rows["layer"] == rows["layer"].max()]
    means = means.groupby("task", sort=False)[list(measures.values())].mean()
    shown = pd.DataFrame({"task": [tasks.find(name).title for name in last.groups]})
    for title, column in measures.items():
        shown[title] = [f"{means.loc[name, column]:.3f}" for name in last.groups]
    caption = (
        "The last layer, pre-trained against fine-tuned, under four measures of distance in [0, 1] (mean over "
        "seeds). The paper averages over the "
        "whole hidden size, which is the second column."
    )
    return Exhibit("hao2020-measures", "Four measures", means.reset_index(), caption, shown=shown)
