"""The exhibits of Singh and Giovanardi (2020), from the tables of `measurements`."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.patches import FancyBboxPatch

from fivelenses import tasks
from fivelenses.exhibits import style
from fivelenses.exhibits.curves import ends, per_layer
from fivelenses.exhibits.exhibit import Exhibit
from fivelenses.papers.singh2020.claims import LEAST_DROP, mean_concavity, mean_drop
from fivelenses.papers.singh2020.shapes import fit_shape
from fivelenses.tasks import TaskData

REINITIALISED, FROZEN, MOVED = KINDS = ("re-initialised", "frozen-probing", "weight-distance")
# The paper's figures of each task, one a kind.
FIGURES = {"sst2": ("1a", "2a", "3a"), "qnli": ("1b", "2b", "3b"), "cola": ("1d", "5a", "5b")}
# Table 1, page 4: training and test examples.
PAPER_TABLE_1 = {"sst2": ("67k", "1.8k"), "qnli": ("105k", "5.4k"), "cola": ("8.5k", "1k")}
SHAPE_COLUMNS = ["task", "examples", "drop", "kept", "none", "null_rate", "concavity", "line_r2", "curvature"]
SHAPE_COLUMNS += ["curvature_p", "step_centre", "best"]


def _title(table: pd.DataFrame) -> str:
    return tasks.find(table["task"].iloc[0]).title


def _metric(table: pd.DataFrame) -> str:
    return tasks.find(table["task"].iloc[0]).score_name


def size_looks(table: pd.DataFrame) -> tuple[dict[int, str], dict[int, str], dict[int, str]]:
    """Names, colours and markers of the numbers of training examples, the greatest first."""
    sizes = sorted((int(size) for size in table["examples"].unique()), reverse=True)
    names = {size: f"{size:,} examples" for size in sizes}
    return (
        names,
        dict(zip(sizes, style.SEQUENCE, strict=False)),
        dict(zip(sizes, style.SEQUENCE_MARKERS, strict=False)),
    )


def _spread(table: pd.DataFrame) -> str:
    return f"mean of {table['seed'].nunique()} seeds, band from least to greatest"


def figure_key(task: str, kind: str) -> str:
    """The key of a figure of one task; a task that the paper does not have is named by what is shown."""
    return f"singh2020-figure-{_number(task, kind)}" if task in FIGURES else f"singh2020-{kind}-{task}"


def _number(task: str, kind: str) -> str:
    return FIGURES[task][KINDS.index(kind)]


def _named(task: str, kind: str) -> tuple[str, str]:
    """The key and title of a figure of one task."""
    title = (
        f"Figure {_number(task, kind)}" if task in FIGURES else f"{tasks.find(task).title}, {kind.replace('-', ' ')}"
    )
    return figure_key(task, kind), title


def of_sizes(scores: pd.DataFrame, task: str, sizes: Sequence[int]) -> pd.DataFrame:
    """The scores of one task at these numbers of training examples."""
    return scores[(scores["task"] == task) & scores["examples"].isin(sizes)].reset_index(drop=True)


def output_projections(distances: pd.DataFrame, task: str) -> pd.DataFrame:
    """The distances of the output projections of one task, which the paper shows."""
    return distances[(distances["part"] == "output") & (distances["task"] == task)].reset_index(drop=True)


def _by_size(table: pd.DataFrame, value: str, label: str, position: str, layer_label: str, **more):
    names, colours, markers = size_looks(table)
    return per_layer(
        table, value, "examples", label, names, colours, markers, position=position, layer_label=layer_label, **more
    )


def table_1(data: Mapping[str, TaskData], used: Mapping[str, Sequence[int]]) -> Exhibit:
    """Table 1: the tasks, the paper's sizes beside ours."""
    rows = []
    for name, of_task in data.items():
        task, (training, evaluation) = of_task.task, PAPER_TABLE_1.get(name, ("–", "–"))
        rows.append(
            {
                "task": task.title,
                "training examples (paper)": f"{of_task.provenance('train')} ({training})",
                "sizes used": ", ".join(f"{size:,}" for size in used[name]),
                "evaluated on (paper)": f"{of_task.provenance('validation')} ({evaluation})",
                "inputs": " and ".join(task.inputs),
                "labels": ", ".join(of_task.labels),
                "metric": task.score_name,
            }
        )
    table = pd.DataFrame(rows)
    caption = (
        "Tasks, with the paper's sizes in brackets. We evaluate on the development examples, as the labels of the test "
        "sets are not public; the smaller sizes are stratified parts of the larger, drawn anew for each seed."
    )
    return Exhibit("singh2020-table-1", "Table 1", table, caption)


def reinitialisation(scores: pd.DataFrame, task: str, sizes: Sequence[int]) -> Exhibit:
    """Figures 1a, 1b and 1d: score against the number of re-initialised layers of one task, one curve a data size."""
    table = of_sizes(scores, task, sizes)
    key, title = _named(task, REINITIALISED)
    null = pd.Series(table["null_rate"].iloc[0], index=sorted(table["reinitialised"].unique()))
    zero = "a constant answer" if _metric(table) != "accuracy" else "always the most frequent label"
    caption = (
        f"{_title(table)}: {_metric(table)} on the development examples after fine-tuning with the top layers "
        f"re-initialised, by their number and by the number of training examples ({_spread(table)}). Dashed: {zero}, "
        f"{null.iloc[0]:.2f}."
    )
    alt = (
        f"Curves of {_metric(table)} on {_title(table)} over the number of re-initialised layers, one for each number "
        f"of training examples. {ends(table, 'score', 'examples', 'reinitialised')}. Null rate {null.iloc[0]:.2f}."
    )
    figure = _by_size(
        table,
        "score",
        _metric(table),
        "reinitialised",
        "layers re-initialised, from the top",
        null=null,
        bottom=None,
        null_name="null rate",
    )
    return Exhibit(key, title, table, caption, alt, figure)


def figure_1c(scores: pd.DataFrame, matched: Sequence[str], examples: int) -> Exhibit:
    """Figure 1c: two tasks at one number of training examples."""
    table = scores[scores["task"].isin(matched) & (scores["examples"] == examples)].reset_index(drop=True)
    names = {name: tasks.find(name).title for name in table["task"].unique()}
    share = table.assign(rise=table["score"] - table["null_rate"])
    caption = (
        f"{' and '.join(names.values())} with {table['examples'].iloc[0]:,} training examples each: accuracy above the "
        f"null rate of the task, by the number of re-initialised layers ({_spread(table)})."
    )
    alt = (
        "Curves of accuracy above the null rate over the number of re-initialised layers, one for each task. "
        f"{ends(share, 'rise', 'task', 'reinitialised')}."
    )
    null = pd.Series(0.0, index=sorted(table["reinitialised"].unique()))
    figure = per_layer(
        share,
        "rise",
        "task",
        "accuracy above null rate",
        names,
        style.TASK_COLOURS,
        style.TASK_MARKERS,
        null=null,
        null_name="null rate",
        position="reinitialised",
        layer_label="layers re-initialised, from the top",
        bottom=None,
    )
    return Exhibit("singh2020-figure-1c", "Figure 1c", share, caption, alt, figure)


def probing(table: pd.DataFrame) -> Exhibit:
    """Figures 2a, 2b and 5a: score of frozen probes against the number of layers removed."""
    key, title = _named(table["task"].iloc[0], FROZEN)
    null = pd.Series(table["null_rate"].iloc[0], index=sorted(table["removed"].unique()))
    caption = (
        f"{_title(table)}: {_metric(table)} of a logistic regression on [CLS] of the frozen encoder without its top "
        f"layers, by their number and by the number of training examples ({_spread(table)}). Dashed: null rate, "
        f"{null.iloc[0]:.2f}."
    )
    alt = (
        f"Curves of the {_metric(table)} of frozen probes on {_title(table)} over the number of layers removed, one "
        f"for each number of training examples. {ends(table, 'score', 'examples', 'removed')}."
    )
    figure = _by_size(
        table,
        "score",
        _metric(table),
        "removed",
        "layers removed, from the top",
        null=null,
        null_name="null rate",
        bottom=None,
    )
    return Exhibit(key, title, table, caption, alt, figure)


def weight_distance(distances: pd.DataFrame, task: str) -> Exhibit:
    """Figures 3a, 3b and 5b: distance of the output projection per layer, one curve a data size."""
    table = output_projections(distances, task)
    key, title = _named(task, MOVED)
    steps = ", ".join(
        f"{int(rows['steps'].iloc[0])} steps with {size:,}" for size, rows in table.groupby("examples", sort=False)
    )
    caption = (
        f"{_title(table)}: Frobenius norm of the change of each layer's output projection in fine-tuning, by the "
        f"number of training examples ({_spread(table)}; {steps})."
    )
    alt = (
        f"Curves of weight distance over layers on {_title(table)}, one for each number of training examples. "
        f"{ends(table, 'absolute', 'examples', 'layer')}."
    )
    figure = _by_size(table, "absolute", "weight distance (L2)", "layer", "layer")
    return Exhibit(key, title, table, caption, alt, figure)


def table_of_shapes(scores: pd.DataFrame) -> Exhibit:
    """Beyond the paper: the shapes of all curves of Figure 1, in numbers."""
    rows = []
    for (task, examples), part in scores.groupby(["task", "examples"], sort=False):
        if part["reinitialised"].nunique() < 4:
            continue
        row = {"task": task, "examples": examples, "drop": mean_drop(part)}
        ends = [part[part["reinitialised"] == count]["score"].mean() for count in (0, part["reinitialised"].max())]
        row |= {"kept": ends[0], "none": ends[1], "null_rate": part["null_rate"].iloc[0]}
        if row["drop"] >= LEAST_DROP:
            shape = fit_shape(part["reinitialised"].to_numpy() / part["layers"].iloc[0], part["score"].to_numpy())
            row |= {"concavity": mean_concavity(part), "line_r2": shape.line_r2, "curvature": shape.curvature}
            row |= {"curvature_p": shape.curvature_p, "step_centre": shape.step_centre, "best": shape.best}
        rows.append(row)
    table = pd.DataFrame(rows, columns=SHAPE_COLUMNS)

    def shown(column: str, form: str) -> list[str]:
        return ["–" if pd.isna(value) else form.format(value) for value in table[column]]

    view = pd.DataFrame(
        {
            "task": [tasks.find(name).title for name in table["task"]],
            "examples": shown("examples", "{:,}"),
            "all layers kept": shown("kept", "{:.3f}"),
            "all re-initialised": shown("none", "{:.3f}"),
            "null rate": shown("null_rate", "{:.2f}"),
            "concavity": shown("concavity", "{:+.2f}"),
            "line explains": shown("line_r2", "{:.0%}"),
            "curvature (p)": [
                "–" if pd.isna(value) else f"{value:+.2f} ({p:.2g})"
                for value, p in zip(table["curvature"], table["curvature_p"], strict=True)
            ],
            "step at": shown("step_centre", "{:.0%}"),
            "best form": shown("best", "{}"),
        }
    )
    caption = (
        "The shapes of the curves of Figure 1. Concavity is the area between the mean curve and the straight line "
        "between its ends, over its drop: positive falls late, negative early. Line, parabola and logistic step are "
        "fitted to all seeds' points; the curvature's p is of an F-test against the line, and the best form has the "
        f"least corrected Akaike criterion. A dash: the curve falls by less than {LEAST_DROP:g}."
    )
    return Exhibit("singh2020-shapes", "Shapes", table, caption, shown=view)


def table_of_sublayers(distances: pd.DataFrame) -> Exhibit:
    """Beyond the paper: relative distance of all six projections, lower and upper half of the layers."""
    largest = distances[distances["examples"] == distances.groupby("task")["examples"].transform("max")]
    half = largest["layer"] <= largest["layer"].max() / 2
    table = (
        largest.assign(half=np.where(half, "lower", "upper"))
        .groupby(["part", "task", "half"], sort=False)["relative"]
        .mean()
        .reset_index()
    )
    wide = table.pivot(index="part", columns=["task", "half"], values="relative").loc[largest["part"].unique()]
    view = pd.DataFrame({"projection": wide.index})
    for task, part in wide.columns:
        view[f"{tasks.find(task).title}, {part} half"] = [f"{value:.1%}" for value in wide[task, part]]
    caption = (
        "How far every projection moves, relative to the norm that it had before: mean over the layers of either half "
        "of the encoder and over seeds, with the most data. The paper measures the output projection alone."
    )
    return Exhibit("singh2020-sublayers", "All six projections", table, caption, shown=view)


def figure_4(layers: int, reinitialised: int) -> Exhibit:
    """Figure 4: what is trained from what, for the three ways of using a pre-trained encoder."""
    figure, panels = plt.subplots(1, 3, figsize=(style.WIDTH, 3.8), layout="constrained")
    trained, fresh, frozen = style.SEQUENCE[3], style.SEQUENCE[2], "#D0D0D0"
    kept = layers - reinitialised
    stacks = {
        "fine-tuning": [trained] * layers,
        f"top {reinitialised} re-initialised": [trained] * kept + [fresh] * reinitialised,
        f"frozen, top {reinitialised} removed": [frozen] * kept,
    }
    rows = []
    for axes, (name, colours) in zip(panels, stacks.items(), strict=True):
        bottom = frozen if colours[0] == frozen else trained
        blocks = [("embeddings", bottom), *((f"layer {n}", colour) for n, colour in enumerate(colours, 1))]
        blocks.append(("classifier", fresh))
        for height, (words, colour) in enumerate(blocks):
            box = FancyBboxPatch(
                (0.1, height + 0.08),
                0.8,
                0.76,
                boxstyle="round,pad=0,rounding_size=0.06",
                facecolor=colour,
                linewidth=0,
            )
            axes.add_patch(box)
            axes.text(0.5, height + 0.46, words, ha="center", va="center", fontsize=9, color="black")
            kind = {trained: "pre-trained, then trained", fresh: "random, then trained", frozen: "pre-trained, frozen"}
            rows.append({"way": name, "block": words, "starts_as": kind[colour]})
        axes.set(xlim=(0, 1), ylim=(0, layers + 2), xticks=[], yticks=[])
        axes.set_title(name, fontsize=10)
        axes.grid(False)
        for spine in axes.spines.values():
            spine.set_visible(False)
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in (trained, fresh, frozen)]
    names = ["pre-trained, then trained", "random, then trained", "pre-trained, frozen"]
    figure.legend(handles, names, loc="outside lower center", ncols=3, fontsize=9)
    caption = (
        "Three ways to use a pre-trained encoder: all of it fine-tuned; its top layers re-initialised and all of it "
        "fine-tuned; its top layers removed and the rest frozen, with only a classifier trained."
    )
    alt = "Three stacks of layers whose colours tell which are pre-trained and trained, random and trained, or frozen."
    return Exhibit("singh2020-figure-4", "Figure 4", pd.DataFrame(rows), caption, alt, figure)
