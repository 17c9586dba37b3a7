"""The seven claims of Zhou and Srikumar (2022) as predicates on its exhibits' tables.

Thresholds are ours, fixed before any run on real data and stated in each claim.
"""

import pandas as pd

from fivelenses.exhibits.claims import CannotTest, Claim, as_cases
from fivelenses.papers.zhou2022.tables import APPENDIX_E, PAPER_CHANGE_AFTER_POS, short, title

PAPER = "zhou2022"
NEARLY_ALWAYS = 0.8  # share of the tasks of an encoder
NEARLY_ALL = 0.9  # share of the labels of a task
SIMILAR = 0.5  # the paper's own: "more than 0.5"
LITTLE = 0.5  # movement of low layers against that of high ones, both relative to the layer's own scale


def _case_name(row) -> str:
    return f"{short(row.encoder)} on {title(row.task)}"


def improves(table: pd.DataFrame) -> pd.DataFrame:
    """Share of the tasks on which an encoder's probe accuracy rises, from Table 7."""
    rows = []
    for encoder, ours in table.groupby("encoder", sort=False):
        share = float((ours["accuracy_after"] > ours["accuracy_before"]).mean())
        rows.append((short(encoder), "all", share, share >= NEARLY_ALWAYS))
    return as_cases(rows)


def diverges(table: pd.DataFrame) -> pd.DataFrame:
    """Change of the similarity of training and test set, from Table 2."""
    known = table.dropna(subset=["similarity_before", "similarity_after"])
    if known.empty:
        raise CannotTest("in no case are the labels of both sets linearly separable before and after")
    changes = [(_case_name(row), row.similarity_after - row.similarity_before) for row in known.itertuples()]
    return as_cases([(name, "all", float(change), change < 0) for name, change in changes])


def simplifies(table: pd.DataFrame) -> pd.DataFrame:
    """Change of the number of clusters, in labels, where there were more clusters than labels.

    Where the points on which clusters were counted are separable and all points are not, there are more clusters than
    labels all the same; if all points are separable afterwards, there is at least one cluster fewer.
    """
    rows = []
    for row in table.itertuples():
        change = (row.clusters_after - row.clusters_before) / row.labels_before
        if row.clusters_before > row.labels_before:
            rows.append((_case_name(row), "all", float(change), change < 0))
        elif row.separable_before == 0 and row.separable_after == 1:
            rows.append((_case_name(row), "all", float(-1 / row.labels_before), True))
    if not rows:
        raise CannotTest("the labels are linearly separable before fine-tuning, or their clusters were not counted")
    return as_cases(rows)


def pushes_apart(distances: pd.DataFrame) -> pd.DataFrame:
    """Share of a task's labels whose least distance is greater at the last state than at the first, last layer."""
    rows = []
    for (task, seed), ours in distances.groupby(["task", "seed"], sort=False):
        curves = ours.pivot(index="step", columns="label", values="min_distance").sort_index()
        share = float((curves.iloc[-1] > curves.iloc[0]).mean())
        falls_somewhere = bool((curves.diff().iloc[1:] < 0).any(axis=None))
        rows.append((title(task), str(seed), share, share >= NEARLY_ALL and falls_somewhere))
    return as_cases(rows)


def cross_task(table: pd.DataFrame) -> pd.DataFrame:
    """Mean change of the least distances after tuning on the opposing task, and the order of changes and accuracies."""
    rows = []
    for seed, ours in table.groupby("seed", sort=False):
        ours = ours.assign(change=ours["after"] - ours["before"])
        by_task = ours.groupby("tuned_on")[["change", "accuracy"]].mean()
        order = ["ps-fxn", "ps-role", "pos"]
        lacking = [task for task in order if task not in by_task.index]
        if lacking:
            raise CannotTest(f"no model was tuned on {', '.join(map(title, lacking))}")
        change, accuracy = by_task.loc[order, "change"], by_task.loc[order, "accuracy"]
        falls = change.is_monotonic_decreasing and accuracy.is_monotonic_decreasing
        rows.append(("PS-fxn", str(seed), float(change["pos"]), bool(falls and change["pos"] < 0)))
    return as_cases(rows)


def keeps_order(similarities: pd.DataFrame) -> pd.DataFrame:
    """The least similarity of the last layer to itself before, along training."""
    last = similarities[similarities["layer"] == similarities["layer"].max()]
    known = last.groupby(["task", "seed"], sort=False).filter(lambda rows: rows["similarity"].notna().all())
    if known.empty:
        raise CannotTest("in no task are the labels linearly separable in the last layer at every state")
    least = known.groupby(["task", "seed"], sort=False)["similarity"].min()
    return as_cases([(title(task), str(seed), float(value), value > SIMILAR) for (task, seed), value in least.items()])


def low_moves_little(*tables: pd.DataFrame) -> pd.DataFrame:
    """Mean movement of the labels in the lower third of the layers over that in the upper third, each relative to the
    distance between the labels of its layer; the movement of low layers also has to lie in fewer directions."""
    rows, moved = [], pd.concat(tables, ignore_index=True)
    for (task, seed), ours in moved.groupby(["task", "seed"], sort=False):
        layers = ours.assign(relative=ours["length"] / ours["spread"]).groupby("layer")[["relative", "in_two"]].mean()
        depth = layers.index.max()
        low, high = layers[layers.index <= depth / 3], layers[layers.index > depth * 2 / 3]
        if low.empty:
            raise CannotTest(f"an encoder of {depth} layers has none in its lower third")
        ratio = float(low["relative"].mean() / high["relative"].mean())
        fewer = low["in_two"].mean() > high["in_two"].mean()
        rows.append((title(task), str(seed), ratio, bool(ratio <= LITTLE and fewer)))
    return as_cases(rows)


MOVEMENTS = tuple(f"zhou2022-figure-{number}" for number in APPENDIX_E.values())

CLAIMS = (
    Claim(
        "mostly-improves",
        PAPER,
        "Fine-tuning nearly always improves what a probe reads; there are exceptions.",
        "§4.1, Table 7",
        ("zhou2022-table-7",),
        "share of an encoder's tasks on which the probe's accuracy rises",
        f"at least {NEARLY_ALWAYS:g}",
        improves,
    ),
    Claim(
        "diverges",
        PAPER,
        "The geometry of training and test set become less alike.",
        "§4.1, Table 2",
        ("zhou2022-table-2",),
        "change of the similarity of training and test set",
        "below 0",
        diverges,
        "to 0.44 at the lowest (BERT-small on PS-fxn)",
    ),
    Claim(
        "simplifies",
        PAPER,
        "Where labels are not linearly separable, they fall into fewer clusters afterwards.",
        "§4.2, Tables 3 and 4",
        ("zhou2022-table-7",),
        "change of the number of clusters, in labels",
        "below 0",
        simplifies,
    ),
    Claim(
        "pushes-apart",
        PAPER,
        "Each label moves away from its nearest neighbour, though not at every step.",
        "§4.3, Figures 2 and 6",
        ("zhou2022-figure-6",),
        "share of the labels whose least distance has grown",
        f"at least {NEARLY_ALL:g}, and some label's distance falls between two states",
        pushes_apart,
    ),
    Claim(
        "cross-task",
        PAPER,
        "A related task pushes the labels apart less than the task itself, an opposing one together; accuracy agrees.",
        "§4.4, Table 5",
        ("zhou2022-table-5",),
        "mean change of the least distances of PS-fxn's labels after tuning on POS",
        "below 0, and changes and accuracies fall from PS-fxn over PS-role to POS",
        cross_task,
        f"{PAPER_CHANGE_AFTER_POS} on average after POS",
    ),
    Claim(
        "keeps-order",
        PAPER,
        "Even the last layer keeps the relative positions of the labels.",
        "§4.5, Figure 4",
        ("zhou2022-figure-4",),
        "least similarity of the last layer to itself before fine-tuning",
        f"above {SIMILAR:g}",
        keeps_order,
        "more than 0.5",
    ),
    Claim(
        "low-moves-little",
        PAPER,
        "In low layers the labels move little, and almost in the same directions.",
        "§4.5, Figures 3 and 5",
        MOVEMENTS,
        "movement of the labels in the lower third over that in the upper third, each relative to their distances",
        f"at most {LITTLE:g}, and more of it in two directions",
        low_moves_little,
    ),
)
