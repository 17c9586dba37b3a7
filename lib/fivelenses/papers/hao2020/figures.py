"""The exhibits of Hao et al. (2020), from the records of `measure`."""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from fivelenses import tasks
from fivelenses.exhibits.claims import controls_of, seen_as
from fivelenses.exhibits.exhibit import Absent, Exhibit, counted
from fivelenses.exhibits.intervals import whole
from fivelenses.exhibits.plots import AT_RANDOM, SHUFFLED_LABELS, curves, ends, looks_in_sequence, looks_of_tasks
from fivelenses.papers.hao2020.measure import PRETRAINED, UNTRAINED
from fivelenses.records import SHUFFLED, TWIN

# Table 1, page 2: learning rate, batch size, epochs.
PAPER_TABLE_1 = {"mnli": (3e-5, 64, 3), "rte": (1e-5, 32, 5), "sst2": (3e-5, 64, 4), "mrpc": (1e-5, 16, 5)}


def _title(task: str) -> str:
    return tasks.find(task).title


def _over(table: pd.DataFrame) -> str:
    """The tasks and models behind a figure, in words."""
    models = table.groupby("task").size().max() // table["layer"].nunique()
    return f"{', '.join(map(_title, table['task'].unique()))}; {counted(models, 'model')} a task"


def tuned_against_pretrained(changes: pd.DataFrame, control: str = "") -> pd.DataFrame:
    """The rows of `changes_by_layer` behind Figures 1 and 2, of all examples, with a column `seed`; of a control if
    one is named.
    """
    changes = seen_as(whole(changes), control)
    rows = changes[(changes["first"] == PRETRAINED) & (changes["second"] != UNTRAINED)]
    return rows.assign(seed=rows["second"].astype(int)).drop(columns=["first", "second"]).reset_index(drop=True)


def seed_against_seed(changes: pd.DataFrame, control: str = "") -> pd.DataFrame:
    """The rows of `changes_by_layer` behind Figures 4 and 5, likewise, with a column `seed` (`0–1`); none for a single
    seed.
    """
    changes = seen_as(whole(changes), control)
    rows = changes[~changes["first"].isin((PRETRAINED, UNTRAINED))]
    return (
        rows.assign(seed=rows["first"] + "–" + rows["second"]).drop(columns=["first", "second"]).reset_index(drop=True)
    )


def _all_examples(record: pd.DataFrame, control: str = "") -> pd.DataFrame:
    return seen_as(whole(record), control)


# Control to the suffix of its column, its name in a picture, and its description in a caption.
CONTROL_WORDS = {
    TWIN: ("twin", AT_RANDOM, "the models' twins, whose matrices moved as far in random directions"),
    SHUFFLED: ("shuffled", SHUFFLED_LABELS, "models that were trained on shuffled labels"),
}


def _with_controls(
    record: pd.DataFrame, value: str, rows_of: Callable[..., pd.DataFrame], group: str = "task"
) -> tuple[pd.DataFrame, Mapping[str, str], str, str]:
    """The rows of a figure with a column for each control that was measured (means over seeds); the columns' names in
    the picture, and what the caption and the alternative text say of them.
    """
    table, names, caption, alt = rows_of(record), {}, "", ""
    for control in controls_of([record]):
        suffix, name, words = CONTROL_WORDS[control]
        rows, column = rows_of(record, control), f"{value}_{suffix}"
        if rows.empty or table.empty:
            continue
        table = table.join(rows.groupby([group, "layer"])[value].mean().rename(column), on=[group, "layer"])
        of_tasks = [_title(one) for one in rows[group].unique()] if set(rows[group]) != set(table[group]) else []
        caption += f" “{name.capitalize()}”: {words}" + (f" ({' and '.join(of_tasks)})" if of_tasks else "") + "."
        means, names[column] = rows.groupby("layer")[value].mean(), name
        alt += f" {name.capitalize()}: {means.iloc[0]:.3f} to {means.iloc[-1]:.3f}."
    return table, names, caption, alt


def untrained_null(changes: pd.DataFrame, value: str) -> pd.Series:
    """By layer, the mean over tasks of a measure between the pre-trained and an untrained encoder."""
    changes = whole(changes)
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
    table["training_data"] = [
        data if f"{used:,} " in data else f"{used:,} of: {data}"
        for used, data in zip(table["training_examples"], table["training_data"], strict=True)
    ]
    columns = {
        "task": "task",
        "learning_rate": "learning rate (paper)",
        "batch_size": "batch (paper)",
        "epochs": "epochs (paper)",
        "training_data": "trained on",
        "score": "accuracy",
        "null_rate": "majority",
    }
    formats = {column: f"{{{column}:g}} ({{paper_{column}:g}})" for column in ("learning_rate", "batch_size", "epochs")}
    formats |= {"task": _title, "score": "{score:.3f} ± {score_spread:.3f}", "null_rate": "{:.3f}"}
    caption = (
        "Hyperparameters, the paper's in brackets, and the development accuracy that our models reach: mean over "
        "seeds and half the range. Majority is the accuracy of always answering the most frequent label."
    )
    return Exhibit("hao2020-table-1", "Table 1", table, caption, columns=columns, formats=formats)


def _by_task(table: pd.DataFrame, value: str, label: str, **options):
    return curves(table, value, "task", looks_of_tasks(table["task"].unique()), label, **options)


JS_LABEL = "JS divergence (nats)"
SVCCA_LABEL = "SVCCA distance"
DIVERGED = "a training diverged in each pair of data sets"
ONE_SEED = "it compares seeds and this run has one"


def figure_1(changes: pd.DataFrame) -> Exhibit:
    """Figure 1: JS divergence of attention per layer, pre-trained against fine-tuned."""
    table, controls, said, alt_said = _with_controls(changes, "js", tuned_against_pretrained)
    table["js_null"] = table["layer"].map(untrained_null(changes, "js"))
    null = table.groupby("layer")["js_null"].mean()
    caption = (
        "JS divergence of attention between the pre-trained and the fine-tuned encoder, per layer, on "
        f"development examples ({_over(table)}; bands from least to greatest seed). Dashed: the same between the "
        f"pre-trained and an untrained encoder, {null.min():.2f} to {null.max():.2f} nats; the maximum is "
        f"ln 2 = 0.69.{said}"
    )
    alt = f"Curves of JS divergence over layers. {ends(table, 'js', 'task')}. Untrained: {null.mean():.2f}.{alt_said}"
    figure = _by_task(table, "js", JS_LABEL, nulls={"js_null": "untrained"} | controls)
    return Exhibit("hao2020-figure-1", "Figure 1", table, caption, alt, figure)


def figure_2(changes: pd.DataFrame) -> Exhibit:
    """Figure 2: SVCCA distance per layer, pre-trained against fine-tuned."""
    table, controls, said, alt_said = _with_controls(changes, "svcca", tuned_against_pretrained)
    null = table.groupby("layer")["svcca_null"].mean()
    caption = (
        f"SVCCA distance between the pre-trained and the fine-tuned encoder, per layer ({_over(table)}; "
        f"{table['tokens'].min():,} to "
        f"{table['tokens'].max():,} tokens). Dashed: the distance when the tokens of one side are permuted, "
        f"{null.min():.2f} to {null.max():.2f}.{said}"
    )
    alt = (
        f"Curves of SVCCA distance over layers. {ends(table, 'svcca', 'task')}. Permuted: {null.mean():.2f}.{alt_said}"
    )
    figure = _by_task(table, "svcca", SVCCA_LABEL, nulls={"svcca_null": "permuted"} | controls)
    return Exhibit("hao2020-figure-2", "Figure 2", table, caption, alt, figure)


def figure_3(rollbacks: pd.DataFrame) -> Exhibit:
    """Figure 3: SVCCA distance of the last layer when one layer is rolled back."""
    table, controls, said, alt_said = _with_controls(rollbacks, "svcca", _all_examples)
    caption = (
        "SVCCA distance of the last layer between the fine-tuned encoder and the same with one layer rolled back to "
        "its pre-trained values, "
        f"by the layer rolled back ({_over(table)}).{said}"
    )
    alt = f"Curves over the layer that is rolled back. {ends(table, 'svcca', 'task')}.{alt_said}"
    figure = _by_task(table, "svcca", f"{SVCCA_LABEL} of last layer", x_label="layer rolled back", nulls=controls)
    return Exhibit("hao2020-figure-3", "Figure 3", table, caption, alt, figure)


def figure_4(changes: pd.DataFrame) -> Exhibit | Absent:
    """Figure 4: JS divergence between seeds of one task."""
    table, controls, said, alt_said = _with_controls(changes, "js", seed_against_seed)
    if table.empty:
        return Absent("hao2020-figure-4", "Figure 4", ONE_SEED)
    pairs = counted(table["seed"].nunique(), "pair")
    caption = f"JS divergence of attention between two seeds of one task, per layer ({pairs} of seeds per task).{said}"
    alt = f"Curves of JS divergence between seeds over layers. {ends(table, 'js', 'task')}.{alt_said}"
    return Exhibit("hao2020-figure-4", "Figure 4", table, caption, alt, _by_task(table, "js", JS_LABEL, nulls=controls))


def figure_5(changes: pd.DataFrame) -> Exhibit | Absent:
    """Figure 5: SVCCA distance between seeds of one task."""
    table, controls, said, alt_said = _with_controls(changes, "svcca", seed_against_seed)
    if table.empty:
        return Absent("hao2020-figure-5", "Figure 5", ONE_SEED)
    pairs = counted(table["seed"].nunique(), "pair")
    caption = f"SVCCA distance between two seeds of one task, per layer ({pairs} of seeds per task).{said}"
    alt = f"Curves of SVCCA distance between seeds over layers. {ends(table, 'svcca', 'task')}.{alt_said}"
    return Exhibit(
        "hao2020-figure-5", "Figure 5", table, caption, alt, _by_task(table, "svcca", SVCCA_LABEL, nulls=controls)
    )


def _by_pair(table: pd.DataFrame, value: str, label: str, **options):
    names = {pair: "–".join(map(_title, pair.split("–"))) for pair in table["pair"].unique()}
    return curves(table, value, "pair", looks_in_sequence(names), label, **options)


def figure_6(between: pd.DataFrame, each: int) -> Exhibit | Absent:
    """Figure 6: JS divergence between models of two data sets."""
    if between.empty:
        return Absent("hao2020-figure-6", "Figure 6", DIVERGED)
    table, controls, said, alt_said = _with_controls(between, "js", _all_examples, "pair")
    caption = (
        f"JS divergence of attention between models of two data sets, per layer, on {table['examples'].max()} "
        f"development examples, up to {each} "
        f"of each set ({counted(table['seed'].nunique(), 'seed')}, bands from least to greatest).{said}"
    )
    alt = f"Curves of JS divergence over layers. {ends(table, 'js', 'pair')}.{alt_said}"
    return Exhibit("hao2020-figure-6", "Figure 6", table, caption, alt, _by_pair(table, "js", JS_LABEL, nulls=controls))


def figure_7(between: pd.DataFrame, each: int) -> Exhibit | Absent:
    """Figure 7: SVCCA distance between models of two data sets."""
    if between.empty:
        return Absent("hao2020-figure-7", "Figure 7", DIVERGED)
    table, controls, said, alt_said = _with_controls(between, "svcca", _all_examples, "pair")
    caption = (
        "SVCCA distance between models of two data sets, per layer, on the examples of Figure 6 "
        f"({table['tokens'].min():,} to "
        f"{table['tokens'].max():,} tokens, up to {each} examples of each set).{said}"
    )
    alt = f"Curves of SVCCA distance over layers. {ends(table, 'svcca', 'pair')}.{alt_said}"
    return Exhibit(
        "hao2020-figure-7", "Figure 7", table, caption, alt, _by_pair(table, "svcca", SVCCA_LABEL, nulls=controls)
    )


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
        "The last layer, pre-trained against fine-tuned, under four measures of distance in [0, 1] (mean over seeds). "
        "The paper averages over the whole hidden size, which is the second column."
    )
    formats = dict.fromkeys(measures, "{:.3f}") | {"task": _title}
    columns = {"task": "task"} | measures
    return Exhibit("hao2020-measures", "Four measures", means, caption, columns=columns, formats=formats)
