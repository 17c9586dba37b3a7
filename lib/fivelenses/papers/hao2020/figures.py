"""The exhibits of Hao et al. (2020), from the records of `measure`."""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from fivelenses.first_exhibits.claims import controls_of, of_all
from fivelenses.first_exhibits.exhibit import ALL_DIVERGED, Absent, Exhibit, counted, title, trained_on
from fivelenses.first_exhibits.intervals import whole
from fivelenses.first_exhibits.plots import (
    SHUFFLED_LABELS,
    TWIN_COLUMNS,
    curves,
    ends,
    looks_in_sequence,
    looks_of_tasks,
)
from fivelenses.records import PRETRAINED, SHUFFLED, UNTRAINED

# Table 1, page 2: learning rate, batch size, epochs.
PAPER_TABLE_1 = {"mnli": (3e-5, 64, 3), "rte": (1e-5, 32, 5), "sst2": (3e-5, 64, 4), "mrpc": (1e-5, 16, 5)}


def _over(table: pd.DataFrame) -> str:
    """The tasks and models behind a figure, in words. Refused without any model."""
    if table.empty:
        raise ValueError(ALL_DIVERGED)
    models = table.groupby("task").size().max() // table["layer"].nunique()
    return f"{', '.join(map(title, table['task'].unique()))}; {counted(models, 'model')} per task"


def tuned_against_pretrained(changes: pd.DataFrame, control: str = "") -> pd.DataFrame:
    """The rows of `changes_by_layer` behind Figures 1 and 2, of all examples, with `seed`; of a control if one is
    named.
    """
    changes = of_all(changes, control)
    rows = changes[(changes["first"] == PRETRAINED) & (changes["second"] != UNTRAINED)]
    return rows.assign(seed=rows["second"].astype(int)).drop(columns=["first", "second"]).reset_index(drop=True)


def seed_against_seed(changes: pd.DataFrame, control: str = "") -> pd.DataFrame:
    """The rows of `changes_by_layer` behind Figures 4 and 5, likewise, with `seed` (`0–1`); none for a single seed."""
    changes = of_all(changes, control)
    rows = changes[~changes["first"].isin((PRETRAINED, UNTRAINED))]
    return (
        rows.assign(seed=rows["first"] + "–" + rows["second"]).drop(columns=["first", "second"]).reset_index(drop=True)
    )


CONTROLS = TWIN_COLUMNS | {SHUFFLED: ("shuffled", SHUFFLED_LABELS)}  # suffix of a column, name in a picture


def _with_controls(
    record: pd.DataFrame, value: str, rows_of: Callable[..., pd.DataFrame], group: str = "task"
) -> tuple[pd.DataFrame, Mapping[str, str], str, str]:
    """The rows of a figure with a column for each control that was measured (means over seeds); the columns' names in
    the picture, and what the caption and the alternative text say of them.
    """
    table, names, controls, alt = rows_of(record), {}, [], ""
    for control in controls_of([record]):
        suffix, name = CONTROLS[control]
        rows, column = rows_of(record, control), f"{value}_{suffix}"
        if rows.empty or table.empty:
            continue
        table = table.join(rows.groupby([group, "layer"])[value].mean().rename(column), on=[group, "layer"])
        of_tasks = [title(one) for one in rows[group].unique()] if set(rows[group]) != set(table[group]) else []
        controls.append(name + (f" ({' and '.join(of_tasks)})" if of_tasks else ""))
        means, names[column] = rows.groupby("layer")[value].mean(), name
        alt += f" {name.capitalize()}: {means.iloc[0]:.3f} to {means.iloc[-1]:.3f}."
    return table, names, f" Controls: {', '.join(controls)}." if controls else "", alt


def table_1(models: pd.DataFrame) -> Exhibit:
    """Table 1: hyperparameters, the paper's in brackets, with the scores that ours reach."""
    hyperparameters = ("learning_rate", "batch_size", "epochs")
    table = models.groupby("task", sort=False).agg(
        **{name: (name, "first") for name in hyperparameters},
        training_examples=("examples", "first"),
        training_data=("training_data", "first"),
        score=("score", "mean"),
        score_spread=("score", lambda scores: np.ptp(scores) / 2),
        null_rate=("null_rate", "first"),
        diverged=("diverged", "sum"),
    )
    for place, name in enumerate(hyperparameters):
        table[f"paper_{name}"] = [PAPER_TABLE_1.get(task, (np.nan,) * 3)[place] for task in table.index]
    table = table.reset_index()
    sizes = zip(table["training_examples"], table["training_data"], strict=True)
    table["training_data"] = [trained_on(*size) for size in sizes]
    columns = {
        "task": ("task", title),
        "learning_rate": ("learning rate (paper)", "{learning_rate:g} ({paper_learning_rate:g})"),
        "batch_size": ("batch (paper)", "{batch_size:g} ({paper_batch_size:g})"),
        "epochs": ("epochs (paper)", "{epochs:g} ({paper_epochs:g})"),
        "training_data": "trained on",
        "score": ("accuracy", "{score:.3f} ± {score_spread:.3f}"),
        "null_rate": ("null rate", "{:.3f}"),
    }
    caption = (
        "Hyperparameters, the paper's in brackets, and the development accuracy that our models reach: mean over "
        "seeds and half the range. The null rate is the share of the most frequent label."
    )
    return Exhibit("hao2020-table-1", "Table 1", table, caption, columns=columns)


LABELS = {"js": "JS divergence (nats)", "svcca": "SVCCA distance"}
NO_PAIR = "this run has no pair of data sets whose trainings ended well"
ONE_SEED = "it compares seeds and this run has one"


def _figure(
    number: int,
    value: str,
    drawn: tuple[pd.DataFrame, Mapping[str, str], str, str],
    caption: str,
    alt: str,
    null: tuple[str, str] | None = None,
    by: str = "task",
    label: str = "",
    x_label: str = "layer",
) -> Exhibit:
    """Curves over layers, one per task (or pair of data sets).

    Args:
        drawn: of `_with_controls`.
        alt: what the curves are, for a reader who cannot see them.
        null: its column, and its name.
    """
    table, controls, _, alt_said = drawn
    keys = table[by].unique()
    looks = looks_of_tasks(keys) if by == "task" else looks_in_sequence({key: title(key) for key in keys})
    nulls = controls if null is None else {null[0]: null[1]} | controls
    figure = curves(table, value, by, looks, label or LABELS[value], nulls=nulls, x_label=x_label)
    alt = f"Curves {alt}. {ends(table, value, by)}."
    if null is not None:
        alt += f" {null[1].capitalize()}: {table.groupby('layer')[null[0]].mean().mean():.2f}."
    return Exhibit(f"hao2020-figure-{number}", f"Figure {number}", table, caption, alt + alt_said, figure)


def _tokens(table: pd.DataFrame) -> str:
    return f"{table['tokens'].min():,} to {table['tokens'].max():,} tokens"


def figure_1(changes: pd.DataFrame) -> Exhibit:
    """Figure 1: JS divergence of attention per layer, pre-trained against fine-tuned."""
    table, *controls = _with_controls(changes, "js", tuned_against_pretrained)
    every = whole(changes)
    null = every[every["second"] == UNTRAINED].groupby("layer")["js"].mean()
    table["js_null"] = table["layer"].map(null)
    caption = (
        "JS divergence of attention between the pre-trained and the fine-tuned encoder, per layer, on "
        f"development examples ({_over(table)}; bands from least to greatest seed). Dashed: the divergence between "
        f"the pre-trained and an untrained encoder, {null.min():.2f} to {null.max():.2f} nats."
    )
    null = ("js_null", "untrained")
    # The curves of all figures are labelled; of which tasks the controls are is said here alone.
    caption += controls[1]
    return _figure(1, "js", (table, *controls), caption, "of JS divergence over layers", null)


def figure_2(changes: pd.DataFrame) -> Exhibit:
    """Figure 2: SVCCA distance per layer, pre-trained against fine-tuned."""
    drawn = _with_controls(changes, "svcca", tuned_against_pretrained)
    null = drawn[0].groupby("layer")["svcca_null"].mean()
    caption = (
        f"SVCCA distance between the pre-trained and the fine-tuned encoder, per layer ({_over(drawn[0])}; "
        f"{_tokens(drawn[0])}). Dashed: the distance when the tokens of one side are permuted, {null.min():.2f} to "
        f"{null.max():.2f} (mean over tasks)."
    )
    return _figure(2, "svcca", drawn, caption, "of SVCCA distance over layers", ("svcca_null", "permuted"))


def figure_3(rollbacks: pd.DataFrame) -> Exhibit:
    """Figure 3: SVCCA distance of the last layer when one layer is rolled back."""
    drawn = _with_controls(rollbacks, "svcca", of_all)
    caption = (
        "SVCCA distance of the last layer between the fine-tuned encoder and the same with one layer rolled back to "
        f"its pre-trained values, by the layer rolled back ({_over(drawn[0])})."
    )
    axes = dict(label=f"{LABELS['svcca']} of last layer", x_label="layer rolled back")
    return _figure(3, "svcca", drawn, caption, "over the layer that is rolled back", **axes)


def _between_seeds(number: int, changes: pd.DataFrame, value: str, words: str, values: str) -> Exhibit | Absent:
    drawn = _with_controls(changes, value, seed_against_seed)
    if drawn[0].empty:
        return Absent(f"hao2020-figure-{number}", f"Figure {number}", ONE_SEED)
    pairs = counted(drawn[0]["seed"].nunique(), "pair")
    caption = f"{words} between two seeds of one task, per layer ({pairs} of seeds per task)."
    return _figure(number, value, drawn, caption, f"of {values} between seeds over layers")


def figure_4(changes: pd.DataFrame) -> Exhibit | Absent:
    """Figure 4: JS divergence between seeds of one task."""
    return _between_seeds(4, changes, "js", "JS divergence of attention", "JS divergence")


def figure_5(changes: pd.DataFrame) -> Exhibit | Absent:
    """Figure 5: SVCCA distance between seeds of one task."""
    return _between_seeds(5, changes, "svcca", "SVCCA distance", "SVCCA distance")


def figure_6(between: pd.DataFrame, each: int) -> Exhibit | Absent:
    """Figure 6: JS divergence between models of two data sets."""
    if between.empty:
        return Absent("hao2020-figure-6", "Figure 6", NO_PAIR)
    drawn = _with_controls(between, "js", of_all, "pair")
    caption = (
        "JS divergence of attention between models of two data sets, per layer, on "
        f"{drawn[0]['examples'].max()} development examples, up to {each} of each set "
        f"({counted(drawn[0]['seed'].nunique(), 'seed')}, bands from least to greatest)."
    )
    return _figure(6, "js", drawn, caption, "of JS divergence over layers", by="pair")


def figure_7(between: pd.DataFrame) -> Exhibit | Absent:
    """Figure 7: SVCCA distance between models of two data sets."""
    if between.empty:
        return Absent("hao2020-figure-7", "Figure 7", NO_PAIR)
    drawn = _with_controls(between, "svcca", of_all, "pair")
    caption = (
        f"SVCCA distance between models of two data sets, per layer, on the examples of Figure 6 ({_tokens(drawn[0])})."
    )
    return _figure(7, "svcca", drawn, caption, "of SVCCA distance over layers", by="pair")


def table_of_measures(changes: pd.DataFrame, keep: float) -> Exhibit:
    """Beyond the paper: the last layer under SVCCA with and without truncation, PWCCA and linear CKA."""
    table = tuned_against_pretrained(changes).assign(cka_distance=lambda rows: 1 - rows["cka"])
    measures = {
        "svcca": f"SVCCA, {keep:.0%} of variance",
        "svcca_all": "SVCCA, all directions",
        "pwcca": "PWCCA",
        "cka_distance": "1 − linear CKA",
        "svcca_null": "SVCCA, permuted tokens",
    }
    last = table[table["layer"] == table["layer"].max()]
    means = last.groupby("task", sort=False)[list(measures)].mean().reset_index()
    caption = (
        "The last layer, pre-trained against fine-tuned, under four measures of distance in [0, 1] (mean over seeds)."
    )
    columns = {"task": ("task", title)} | {name: (header, "{:.3f}") for name, header in measures.items()}
    return Exhibit("hao2020-measures", "Four measures", means, caption, columns=columns)
