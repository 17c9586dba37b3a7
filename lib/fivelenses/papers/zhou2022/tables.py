"""The tables of Zhou and Srikumar (2022), from records."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from fivelenses.first_exhibits.exhibit import ALL_DIVERGED, Absent, Exhibit, title
from fivelenses.first_exhibits.plots import AT_RANDOM, SHUFFLED_LABELS
from fivelenses.records import AFTER, BEFORE, SHUFFLED, TUNED, TWIN

# Table 6: training and test points, labels; the paper's POS counts its six and one empty nodes.
PAPER_TABLE_6 = {
    "pos": (16_860, 4_323, 17),
    "dep": (16_054, 4_122, 46),
    "ps-role": (4_282, 457, 47),
    "ps-fxn": (4_282, 457, 40),
    "trec": (5_452, 500, 50),
}
# Table 5: the mean change of the least distances of PS-fxn's labels after tuning on POS.
PAPER_CHANGE_AFTER_POS = -1.68
# Appendix E: the figure of each task.
APPENDIX_E = {"pos": 7, "dep": 8, "ps-role": 9, "ps-fxn": 10}
# The controls as columns and in words.
CONTROLS = {TWIN: "twin", SHUFFLED: "shuffled"}
IN_WORDS = {"twin": AT_RANDOM, "shuffled": SHUFFLED_LABELS}


def short(encoder: str) -> str:
    """An encoder's name without its owner."""
    return encoder.rpartition("/")[2] if not encoder.startswith(("toy-bert", "english-bert")) else encoder


def _yes(share: float) -> str:
    return "yes" if share == 1 else "no"


# The columns of `before_and_after`: how they are headed, and how printed.
COLUMNS = {"encoder": ("encoder", short), "task": ("task", title), "labels_before": ("labels", "{:.0f}")}
STAGES = {BEFORE: f" {BEFORE}", AFTER: f" {AFTER}"} | {name: f", {words}" for name, words in IN_WORDS.items()}
for stage, words in STAGES.items():
    COLUMNS |= {
        f"clusters_{stage}": (f"clusters{words}", "{:.3g}"),
        f"similarity_{stage}": (f"similarity{words}", "{:.2f}"),
        f"separable_{stage}": (f"separable{words}", _yes),
        f"control_separable_{stage}": (f"random labels{words}", _yes),
        f"accuracy_{stage}": (f"accuracy{words}", f"{{accuracy_{stage}:.3f}} ± {{deviation_{stage}:.3f}}"),
        f"hidden_1_{stage}": (f"probe{words}", f"{{hidden_1_{stage}}}, {{hidden_2_{stage}}}"),
    }
LINEARITY = ("labels_before", "clusters_before", "clusters_after", "separable_before", "separable_after")
LINEARITY += ("control_separable_before", "control_separable_after", "clusters_twin", "clusters_shuffled")


def table_1(sizes: pd.DataFrame) -> Exhibit:
    """Table 1: the encoders."""
    caption = "The encoders. Parameters include embeddings, not the pooler."
    columns = {"encoder": ("encoder", short), "layers": "layers", "hidden": "hidden"}
    columns |= {"parameters": ("parameters", "{:,}")}
    return Exhibit("zhou2022-table-1", "Table 1", sizes, caption, columns=columns)


def table_6(sizes: pd.DataFrame) -> Exhibit:
    """Table 6: the tasks, counted from the data."""
    paper = [PAPER_TABLE_6.get(task, (np.nan,) * 3) for task in sizes["task"]]
    table = sizes.join(pd.DataFrame(paper, sizes.index, ["paper_training", "paper_test", "paper_labels"]))
    caption = (
        "Labelled points of each task, counted from the data, with the paper's numbers in brackets. The paper's POS "
        "includes the treebank's seven empty nodes."
    )
    columns = {
        "task": ("task", title),
        "training": ("training points (paper)", "{training:,} ({paper_training:,.0f})"),
        "test": ("test points (paper)", "{test:,} ({paper_test:,.0f})"),
        "labels": ("labels (paper)", "{labels:,} ({paper_labels:,.0f})"),
    }
    return Exhibit("zhou2022-table-6", "Table 6", table, caption, columns=columns)


def controlled(table: pd.DataFrame) -> pd.DataFrame:
    """A record with its column `control`, which one that was made without controls lacks."""
    return table if "control" in table.columns else table.assign(control=TUNED)


def before_and_after(geometry: pd.DataFrame, probes: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One row per encoder and task: what `geometry` and `probe_accuracy` measure, before, after, and afterwards in the
    controls that were measured; means over seeds (for the probe's sizes, those of the first seed). Refused without
    any model.
    """
    if geometry.empty:
        raise ValueError(ALL_DIVERGED)
    keys = ["encoder", "task", "stage"]
    geometry, fits = (
        table.assign(stage=table["control"].map(CONTROLS).fillna(table["stage"])).drop(columns="control")
        for table in map(controlled, (geometry, probes["fits"]))
    )
    means = geometry.drop(columns="seed").groupby(keys, sort=False).mean()
    sizes = {name: (name, "first") for name in ("hidden_1", "hidden_2")}
    means = means.join(
        fits.groupby(keys, sort=False).agg(accuracy=("accuracy", "mean"), deviation=("deviation", "mean"), **sizes)
    )
    stages = [stage for stage in (BEFORE, AFTER, *CONTROLS.values()) if (geometry["stage"] == stage).any()]
    by_stage = [means.xs(stage, level="stage").add_suffix(f"_{stage}") for stage in stages]
    return pd.concat(by_stage, axis="columns").reset_index()


def _columns(table: pd.DataFrame, *names: str) -> dict[str, tuple]:
    """How columns are headed and printed; of the controls those that were measured on one of the rows."""
    return {name: COLUMNS[name] for name in names if name in table.columns and table[name].notna().any()}


def _points_counted(table: pd.DataFrame) -> tuple[str, str]:
    """The training points that were measured and those at hand, over tasks, in words: `4,282 to 6,007`."""
    least, greatest = (table[["points_before", "all_points_before"]].agg(which).astype(int) for which in ("min", "max"))
    return tuple(
        f"{low:,}" if low == high else f"{low:,} to {high:,}" for low, high in zip(least, greatest, strict=True)
    )


def _what_was_counted(table: pd.DataFrame) -> str:
    """The sentences on points and control under Table 3."""
    counted, whole = _points_counted(table)
    return (
        f"Clusters are counted on {counted} training points (mean over seeds), separability on all {whole}, each text "
        "once; so labels with one cluster each can still be inseparable. Random labels: whether planes separate the "
        "same points with permuted labels."
    )


def table_2(geometry: pd.DataFrame, probes: Mapping[str, pd.DataFrame]) -> Exhibit:
    """Table 2: accuracy of the probes, and the similarity of training and test set, before and after."""
    table = before_and_after(geometry, probes)
    counted, whole = _points_counted(table)
    caption = (
        "Accuracy of the classifier probe on the last layer (mean ± standard deviation over initialisations), and "
        f"similarity of the distances between labels in training and test set (on {counted} of {whole} training "
        "points). A dash: planes do not separate the labels in one of the two."
    )
    names = ("encoder", "task", "accuracy_before", "accuracy_after", "similarity_before", "similarity_after")
    columns = _columns(table, *names, "similarity_twin", "similarity_shuffled")
    return Exhibit("zhou2022-table-2", "Table 2", table, caption, columns=columns)


def table_3(geometry: pd.DataFrame, probes: Mapping[str, pd.DataFrame]) -> Exhibit:
    """Table 3: the smallest encoder: separable or not, and clusters before and after."""
    table = before_and_after(geometry, probes)
    table = table[table["encoder"] == table["encoder"].iloc[0]].reset_index(drop=True)
    caption = (
        f"The smallest encoder, {short(table['encoder'].iloc[0])}: the clusters of its labels in the last layer. "
        f"{_what_was_counted(table)}"
    )
    return Exhibit("zhou2022-table-3", "Table 3", table, caption, columns=_columns(table, "task", *LINEARITY))


def table_4(geometry: pd.DataFrame, probes: Mapping[str, pd.DataFrame], task: str = "trec") -> Exhibit | Absent:
    """Table 4: TREC-50 in all encoders."""
    table = before_and_after(geometry, probes)
    table = table[table["task"] == task].reset_index(drop=True)
    if table.empty:
        return Absent("zhou2022-table-4", "Table 4", f"it is about {title(task)}, which this run has not measured")
    caption = f"{title(task)} in all encoders, as Table 3."
    return Exhibit("zhou2022-table-4", "Table 4", table, caption, columns=_columns(table, "encoder", *LINEARITY))


def table_5(distances: pd.DataFrame, accuracies: Mapping[str, pd.DataFrame]) -> Exhibit:
    """Table 5: the labels of one task after tuning on it and on others."""
    keys = ["tuned_on", "control", "seed"]
    distances, fits = controlled(distances), controlled(accuracies["fits"])
    table = distances.merge(fits[[*keys, "accuracy", "deviation"]], on=keys, validate="many_to_one")
    change = table["after"] - table["before"]
    changes = table.assign(change=change, grew=change > 0, shrank=change < 0)
    changes = changes.groupby(["control", "tuned_on"], sort=False)
    counts = changes.agg({"grew": "sum", "shrank": "sum", "change": "mean", "before": "mean"}).astype(float)
    counts["relative"] = counts["change"] / counts["before"]
    seeds = changes["seed"].nunique()
    counts[["grew", "shrank"]] = counts[["grew", "shrank"]].div(seeds, axis="index")
    shown = counts.join(changes[["accuracy", "deviation"]].mean()).reset_index()
    shown = shown.sort_values("control", key=lambda names: names == TWIN, kind="stable", ignore_index=True)
    # Without tuning nothing changes, and there is nothing to count.
    shown.loc[shown["tuned_on"] == "nothing", ["grew", "shrank", "change", "relative"]] = np.nan
    moved = ", " + IN_WORDS["twin"]
    shown["tuned_on"] = [
        task if task == "nothing" else title(task) + moved * (control == TWIN)
        for task, control in zip(shown["tuned_on"], shown["control"], strict=True)
    ]
    columns = {
        "tuned_on": "tuned on",
        "grew": ("distance grew", "{:.3g}"),
        "shrank": ("shrank", "{:.3g}"),
        "change": ("mean change", "{:+.2f}"),
        "relative": ("relative", "{:+.0%}"),
        "accuracy": ("accuracy", "{accuracy:.3f} ± {deviation:.3f}"),
    }
    caption = (
        f"The {table['label'].nunique()} labels of PS-fxn in the last layer of models that were tuned on other tasks: "
        "for how many of them the least distance to any other label grew or shrank, the mean change, and the accuracy "
        f"of a probe (± standard deviation over initialisations){'; all means over seeds' if seeds.max() > 1 else ''}."
    )
    return Exhibit("zhou2022-table-5", "Table 5", table, caption, shown=shown, columns=columns)


def table_7(geometry: pd.DataFrame, probes: Mapping[str, pd.DataFrame]) -> Exhibit:
    """Table 7 (Appendix C): all tasks and encoders."""
    table = before_and_after(geometry, probes)
    names = ("task", "encoder", "hidden_1_before", "accuracy_before", "hidden_1_after", "accuracy_after")
    columns = _columns(table, *names, "labels_before", "clusters_before", "clusters_after")
    caption = (
        "All tasks and encoders: hidden sizes of the best probe, its accuracy (mean ± standard deviation over "
        f"{probes['fits']['initialisations'].iloc[0]} initialisations), and the number of clusters, before and after "
        "fine-tuning."
    )
    shown = table.sort_values("task", key=lambda names: names.map(title), kind="stable")
    return Exhibit("zhou2022-table-7", "Table 7", table, caption, shown=shown, columns=columns)
