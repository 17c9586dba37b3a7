"""The tables of Zhou and Srikumar (2022), from the tables of `measurements`."""

import numpy as np
import pandas as pd

from fivelenses import tasks
from fivelenses.exhibits.exhibit import Exhibit
from fivelenses.papers.zhou2022.measure import AFTER, BEFORE

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


def title(task: str) -> str:
    """How the field writes a task."""
    return tasks.find(task).title


def short(encoder: str) -> str:
    """An encoder's name without its owner."""
    return encoder.rpartition("/")[2] if not encoder.startswith(("toy-bert", "english-bert")) else encoder


def _number(value: float, digits: int = 2) -> str:
    return "–" if pd.isna(value) else f"{value:.{digits}f}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def table_1(family: pd.DataFrame) -> Exhibit:
    """Table 1: the encoders."""
    shown = family.assign(encoder=family["encoder"].map(short), parameters=family["parameters"].map("{:,}".format))
    caption = "The encoders, with their embeddings and without pooler. The paper has five BERTs, 2 × 128 to 12 × 768."
    return Exhibit("zhou2022-table-1", "Table 1", family, caption, shown=shown)


def table_6(sizes: pd.DataFrame) -> Exhibit:
    """Table 6: the tasks, counted from the data."""
    paper = sizes["task"].map(lambda task: PAPER_TABLE_6.get(task, (np.nan,) * 3))
    table = sizes.assign(
        **{f"paper_{name}": [row[place] for row in paper] for place, name in enumerate(("training", "test", "labels"))}
    )
    shown = pd.DataFrame({"task": table["task"].map(title)})
    for name, heading in (("training", "training points"), ("test", "test points"), ("labels", "labels")):
        shown[f"{heading} (paper)"] = [
            f"{ours:,} ({theirs:,.0f})" if pd.notna(theirs) else f"{ours:,}"
            for ours, theirs in zip(table[name], table[f"paper_{name}"], strict=True)
        ]
    caption = (
        "Labelled points of each task, counted from the data, with the paper's numbers in brackets. The paper's POS "
        "counts the seven empty nodes of its treebank as words; no word of a text stands there."
    )
    return Exhibit("zhou2022-table-6", "Table 6", table, caption, shown=shown)


def _means(geometry: pd.DataFrame, probes: pd.DataFrame) -> pd.DataFrame:
    """One row an encoder and task: accuracies, similarities and clusters before and after, means over seeds."""
    keys = ["encoder", "task"]
    wide = geometry.pivot_table(
        index=keys,
        columns="stage",
        values=[
            *(
                "similarity",
                "clusters",
                "separable",
                "control_separable",
                "labels",
                "points",
                "all_points",
                "dimensions",
            )
        ],
        sort=False,
        dropna=False,
        aggfunc="mean",
    )
    wide.columns = [f"{value}_{stage}" for value, stage in wide.columns]
    by_stage = probes.groupby([*keys, "stage"], sort=False)["accuracy"]
    for stage in (BEFORE, AFTER):
        wide[f"accuracy_{stage}"] = by_stage.mean().xs(stage, level="stage")
        wide[f"deviation_{stage}"] = by_stage.std().xs(stage, level="stage")
        best = probes[probes["stage"] == stage].groupby(keys, sort=False)[["hidden_1", "hidden_2"]].first()
        wide[f"sizes_{stage}"] = [
            f"{one}, {two}" for one, two in best.reindex(wide.index).itertuples(index=False, name=None)
        ]
    return wide.reset_index()


def _accuracy(row, stage: str) -> str:
    return f"{row[f'accuracy_{stage}']:.3f} ± {row[f'deviation_{stage}']:.3f}"


def table_2(geometry: pd.DataFrame, probes: pd.DataFrame) -> Exhibit:
    """Table 2: accuracy of the probes, and the similarity of training and test set, before and after."""
    table = _means(geometry, probes)
    shown = pd.DataFrame(
        {
            "encoder": table["encoder"].map(short),
            "task": table["task"].map(title),
            "accuracy before": table.apply(_accuracy, axis=1, stage=BEFORE),
            "accuracy after": table.apply(_accuracy, axis=1, stage=AFTER),
            "similarity before": table["similarity_before"].map(_number),
            "similarity after": table["similarity_after"].map(_number),
        }
    )
    caption = (
        "Accuracy of the classifier probe on the last layer before and after fine-tuning, and the similarity of "
        "training and test set (Pearson correlation of the distances between labels); – where the labels of one of "
        "them are not linearly separable and have no such distances. In the paper similarity falls in every row, and "
        "BERT-small on PS-fxn, with the lowest (0.44), is the one whose accuracy does not improve."
    )
    return Exhibit("zhou2022-table-2", "Table 2", table, caption, shown=shown)


def _linearity(table: pd.DataFrame, first: str, naming) -> pd.DataFrame:
    return pd.DataFrame(
        {
            first: table[first].map(naming),
            "labels": table["labels_before"].astype(int),
            "clusters before": table["clusters_before"].map("{:.4g}".format),
            "clusters after": table["clusters_after"].map("{:.4g}".format),
            "separable before, after": _before_and_after(table, "separable"),
            "random labels": _before_and_after(table, "control_separable"),
        }
    )


def _before_and_after(table: pd.DataFrame, column: str) -> list[str]:
    pairs = zip(table[f"{column}_{BEFORE}"], table[f"{column}_{AFTER}"], strict=True)
    return [f"{_yes(before == 1)}, {_yes(after == 1)}" for before, after in pairs]


def _what_was_counted(table: pd.DataFrame) -> str:
    """The sentence on points and control under Tables 3 and 4."""
    counted, whole = (
        sorted({int(value) for value in table[column]}) for column in ("points_before", "all_points_before")
    )

    def span(values: list[int]) -> str:
        return f"{values[0]:,}" if len(values) == 1 else f"{values[0]:,} to {values[-1]:,}"

    return (
        f"Clusters are counted on {span(counted)} training points; whether planes separate the labels is asked of all "
        f"{span(whole)}. Random labels: all points with their labels permuted; where these are separable too, being "
        "separable says nothing about the encoder."
    )


def table_3(geometry: pd.DataFrame, probes: pd.DataFrame) -> Exhibit:
    """Table 3: the smallest encoder: separable or not, and clusters before and after."""
    table = _means(geometry, probes)
    table = table[table["encoder"] == table["encoder"].iloc[0]].reset_index(drop=True)
    caption = (
        f"The smallest encoder, {short(table['encoder'].iloc[0])}: the clusters of its labels in the last layer. "
        f"{_what_was_counted(table)}"
    )
    return Exhibit("zhou2022-table-3", "Table 3", table, caption, shown=_linearity(table, "task", title))


def table_4(geometry: pd.DataFrame, probes: pd.DataFrame, task: str = "trec") -> Exhibit:
    """Table 4: TREC-50 in all encoders.

    Raises:
        ValueError: that task was not measured.
    """
    table = _means(geometry, probes)
    table = table[table["task"] == task].reset_index(drop=True)
    if table.empty:
        raise ValueError(f"Table 4 is about {title(task)}, which this run has not measured.")
    caption = (
        f"{title(task)} in all encoders, as Table 3. In the paper it is not separable even after fine-tuning, with "
        f"fewer clusters than before. {_what_was_counted(table)}"
    )
    return Exhibit("zhou2022-table-4", "Table 4", table, caption, shown=_linearity(table, "encoder", short))


def table_5(measured: pd.DataFrame) -> Exhibit:
    """Table 5: the labels of one task after tuning on it and on others."""
    rows = []
    for tuned_on, ours in measured.groupby("tuned_on", sort=False):
        change = ours["after"] - ours["before"]
        rows.append(
            {
                "tuned on": tuned_on if tuned_on == "nothing" else title(tuned_on),
                "distance grew": int((change > 0).sum()) if tuned_on != "nothing" else "–",
                "shrank": int((change < 0).sum()) if tuned_on != "nothing" else "–",
                "mean change": f"{change.mean():+.2f}" if tuned_on != "nothing" else "–",
                "relative": f"{change.mean() / ours['before'].mean():+.0%}" if tuned_on != "nothing" else "–",
                "accuracy": f"{ours['accuracy'].mean():.3f} ± {ours['deviation'].mean():.3f}",
            }
        )
    caption = (
        f"The {measured['label'].nunique()} labels of PS-fxn in the last layer of models that were tuned on other "
        "tasks: for how many of them the least distance to any other label grew or shrank, the mean change, and the "
        f"accuracy of a probe. In the paper tuning on POS changes it by {PAPER_CHANGE_AFTER_POS}."
    )
    return Exhibit("zhou2022-table-5", "Table 5", measured, caption, shown=pd.DataFrame(rows))


def table_7(geometry: pd.DataFrame, probes: pd.DataFrame) -> Exhibit:
    """Table 7 (Appendix C): all tasks and encoders."""
    table = _means(geometry, probes)
    shown = pd.DataFrame(
        {
            "task": table["task"].map(title),
            "encoder": table["encoder"].map(short),
            "probe before": table["sizes_before"],
            "accuracy before": table.apply(_accuracy, axis=1, stage=BEFORE),
            "probe after": table["sizes_after"],
            "accuracy after": table.apply(_accuracy, axis=1, stage=AFTER),
            "labels": table["labels_before"].astype(int),
            "clusters before": table["clusters_before"].map("{:.4g}".format),
            "clusters after": table["clusters_after"].map("{:.4g}".format),
        }
    ).sort_values("task", kind="stable")
    caption = (
        "All tasks and encoders: hidden sizes of the best probe, its accuracy (mean ± standard deviation over "
        f"{probes['initialisation'].nunique()} initialisations), and the number of clusters, before and after "
        "fine-tuning."
    )
    return Exhibit("zhou2022-table-7", "Table 7", table, caption, shown=shown)
