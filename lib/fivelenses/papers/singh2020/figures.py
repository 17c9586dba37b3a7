"""The exhibits of Singh and Giovanardi (2020), from the records of `measure` and `checkpoints.tables.models`."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.patches import FancyBboxPatch

from fivelenses import tasks
from fivelenses.first_exhibits import plots, style
from fivelenses.first_exhibits.claims import seen_as
from fivelenses.first_exhibits.effects import Interval
from fivelenses.first_exhibits.exhibit import MISSING, Absent, Exhibit, counted, printed, title
from fivelenses.papers.singh2020 import curves
from fivelenses.papers.singh2020.curves import MIN_DROP, scores
from fivelenses.records import SHUFFLED

# The paper's figures of each task: re-initialised, frozen, moved.
FIGURES = {"sst2": ("1a", "2a", "3a"), "qnli": ("1b", "2b", "3b"), "cola": ("1d", "5a", "5b")}
KINDS = ("re-initialised", "frozen-probing", "weight-distance")
# Table 1, page 4: training and test examples.
PAPER_TABLE_1 = {"sst2": ("67k", "1.8k"), "qnli": ("105k", "5.4k"), "cola": ("8.5k", "1k")}
NULLS = {"null_rate": "null rate", "shuffled": "shuffled labels"}
THIRDS = ("top", "middle", "bottom")
REINITIALISED = "layers re-initialised, from the top"
DISTANCE = "Frobenius distance"


def _spread(table: pd.DataFrame, of: str = "seed") -> str:
    words = f"mean of {counted(table['seed'].nunique(), of)}, band from least to greatest"
    by_size = table.groupby("examples")["seed"].nunique()
    alone = " and ".join(f"{size:,}" for size in by_size.index[(by_size == 1) & (by_size.max() > 1)])
    return words + (f"; with {alone} examples, all of this run's sample, one {of}" if alone else "")


def _by_size(table: pd.DataFrame, kind: str, y: str, y_label: str, x: str, x_label: str, words: str, alt: str):
    """The figure of one kind and task, one curve per number of training examples, with the null rate where there is
    one.
    """
    task, place = table["task"].iloc[0], KINDS.index(kind)
    key, name = f"singh2020-{kind}-{task}", f"{title(task)}, {kind.replace('-', ' ')}"
    if task in FIGURES:
        key, name = f"singh2020-figure-{FIGURES[task][place]}", f"Figure {FIGURES[task][place]}"
    looks = plots.looks_in_sequence({size: f"{size:,} examples" for size in sorted(set(table["examples"]))[::-1]})
    nulls = {column: null for column, null in NULLS.items() if column in table}
    more = {"x": x, "x_label": x_label, "nulls": nulls, "bottom": None if "null_rate" in nulls else 0.0}
    figure = plots.curves(table, y, "examples", looks, y_label, **more)
    alt = f"{alt}, one per number of training examples. {plots.ends(table, y, 'examples', x)}."
    return Exhibit(key, name, table, f"{title(task)}: {words}", alt, figure)


def table_1(data: pd.DataFrame, used: Mapping[str, Sequence[int]]) -> Exhibit:
    """Table 1: the tasks (`measure.sizes`), with the paper's sizes beside the numbers that this run used."""
    definitions = {name: tasks.find(name) for name in data["task"]}
    papers = [PAPER_TABLE_1.get(name, (None, None)) for name in data["task"]]
    table = data.assign(
        sizes=[", ".join(f"{size:,}" for size in used[name]) for name in definitions],
        inputs=[" and ".join(task.inputs) for task in definitions.values()],
        metric=[task.score_name for task in definitions.values()],
        paper_training=[training for training, _ in papers],
        paper_evaluation=[evaluation for _, evaluation in papers],
    )
    columns = {
        "task": ("task", title),
        "training_data": ("training examples (paper)", "{training_data} ({paper_training})"),
        "sizes": "sizes used",
        "evaluation_data": ("evaluated on (paper)", "{evaluation_data} ({paper_evaluation})"),
        "inputs": "inputs",
        "labels": "labels",
        "metric": "metric",
    }
    caption = (
        "Tasks, with the paper's sizes in brackets. We evaluate on the development examples, as the labels of the test "
        "sets are not public."
    )
    return Exhibit("singh2020-table-1", "Table 1", table, caption, columns=columns)


def reinitialisation(models: pd.DataFrame, task: str, sizes: Sequence[int]) -> Exhibit:
    """Figures 1a, 1b and 1d: score of one task against the number of re-initialised layers, one curve per data size."""
    table = scores(models).query("not equal_steps")
    table = table[(table["task"] == task) & table["examples"].isin(sizes)].reset_index(drop=True)
    metric, null = tasks.find(task).score_name, table["null_rate"].iloc[0]
    zero = "always the most frequent label" if metric == "accuracy" else "any constant label"
    words = (
        f"{metric} on the development examples after fine-tuning, by number of re-initialised top layers and "
        f"of training examples ({_spread(table)}). Dashed: the null rate ({zero}), {null:.2f}."
    )
    alt = f"Curves of {metric} on {title(task)} over the number of re-initialised layers (null rate {null:.2f})"
    return _by_size(table, KINDS[0], "score", metric, "reinitialised", REINITIALISED, words, alt)


def figure_1c(models: pd.DataFrame, matched: Sequence[str], examples: int) -> Exhibit:
    """Figure 1c: tasks at one number of training examples."""
    table = scores(models).query("not equal_steps")
    table = table[table["task"].isin(matched) & (table["examples"] == examples)].reset_index(drop=True)
    table = table.assign(rise=table["score"] - table["null_rate"], null=0.0)
    looks, label = plots.looks_of_tasks(table["task"].unique()), "accuracy above null rate"
    caption = (
        f"{' and '.join(looks.names.values())} with {counted(examples, 'training example')} each: accuracy above the "
        f"null rate of the task, by the number of re-initialised layers ({_spread(table)})."
    )
    alt = (
        "Curves of accuracy above the null rate over the number of re-initialised layers, one per task. "
        f"{plots.ends(table, 'rise', 'task', 'reinitialised')}."
    )
    more = {"x": "reinitialised", "x_label": REINITIALISED, "nulls": {"null": "null rate"}, "bottom": None}
    figure = plots.curves(table, "rise", "task", looks, label, **more)
    return Exhibit("singh2020-figure-1c", "Figure 1c", table, caption, alt, figure)


def probing(probes: pd.DataFrame | Mapping[str, pd.DataFrame], task: str) -> Exhibit:
    """Figures 2a, 2b and 5a: score of frozen probes of one task against the number of layers removed."""
    table = curves.of_probes(probes["scores"] if isinstance(probes, Mapping) else probes)
    table, metric = table[table["task"] == task].rename(columns={"place": "removed"}), tasks.find(task).score_name
    words = (
        f"{metric} of a logistic regression on [CLS] of the frozen encoder, by number of removed top layers and of "
        f"training examples ({_spread(table, 'draw')}). Dashed: null rate, "
        f"{table['null_rate'].iloc[0]:.2f}."
    )
    alt = f"Curves of the {metric} of frozen probes on {title(task)} over the number of layers removed"
    return _by_size(table, KINDS[1], "score", metric, "removed", "layers removed, from the top", words, alt)


def outputs(distances: pd.DataFrame) -> pd.DataFrame:
    """The distances of the output projections, with `equal_steps` as `curves.scores` has it."""
    table = distances[distances["part"] == "output"].reset_index(drop=True)
    return curves.with_equal_steps(table)


def weight_distance(distances: pd.DataFrame, task: str) -> Exhibit:
    """Figures 3a, 3b and 5b: distance of the output projection of each layer, one curve per data size; with the most
    data, that of models trained on shuffled labels is drawn like a null, where there are any.
    """
    every = outputs(distances[distances["task"] == task])
    table, most = seen_as(every[~every["equal_steps"]]), every["examples"].max()
    if "control" in every.columns:
        shuffled = every[(every["control"] == SHUFFLED) & (every["examples"] == most)]
        if not shuffled.empty:
            table = table.assign(shuffled=table["layer"].map(shuffled.groupby("layer")["absolute"].mean()))
    steps = table.drop_duplicates("examples")[["steps", "examples"]].itertuples(index=False)
    words = (
        "Frobenius norm of the change of each layer's output projection in fine-tuning, by the number of training "
        f"examples ({_spread(table)}; {', '.join(f'{some} steps with {size:,}' for some, size in steps)})."
    )
    words += f" Dash-dotted: {most:,} examples with shuffled labels." * ("shuffled" in table)
    alt = f"Curves of weight distance over layers on {title(task)}"
    return _by_size(table, KINDS[2], "absolute", DISTANCE, "layer", "layer", words, alt)


def equal_steps(table: pd.DataFrame, sized: Sequence[str], y: str, y_label: str, x: str, x_label: str) -> Exhibit:
    """Beyond the paper: as `reinitialisation` and `weight_distance`, with as many steps for every number of examples.

    Args:
        table: of `curves.scores`, or distances of the output projections.
        sized: the tasks with models of fewer examples at equal steps.
        y, y_label, x, x_label: what is drawn over what, with its words.
    """
    table = curves.at_equal_steps(seen_as(table[table["task"].isin(sized)]))
    looks = plots.looks_in_sequence({size: f"{size:,} examples" for size in sorted(set(table["examples"]))[::-1]})
    nulls = {"null_rate": "null rate"} if "null_rate" in table else {}
    more = {"x": x, "x_label": x_label, "nulls": nulls, "bottom": None if nulls else 0.0, "col": "task"}
    figure = plots.curves(table, y, "examples", looks, y_label, titles={task: title(task) for task in sized}, **more)
    caption = (
        f"{y_label[0].upper()}{y_label[1:]} when fewer examples are read more often, until the steps are those of the "
        f"most examples ({_spread(table)})."
    )
    ends = "; ".join(f"{title(task)}, {plots.ends(rows, y, 'examples', x)}" for task, rows in table.groupby("task"))
    alt = f"Curves of the {y_label}, one panel per task, one curve per number of training examples. {ends}."
    name = f"{'Scores' if nulls else 'Distances'} at equal steps"
    return Exhibit(f"singh2020-equal-steps-{y}", name, table, caption, alt, figure)


def table_of_shapes(models: pd.DataFrame, spare=None) -> Exhibit | Absent:
    """Beyond the paper: the shapes of all curves of Figure 1, in numbers; with intervals where `spare` is
    `checkpoints.predictions.by_example`, and not something else that a run has in its place.
    """
    rows, table = [], curves.of_models(models, spare if isinstance(spare, pd.DataFrame) else None)
    for (task, examples, again), curve in table.groupby(["task", "examples", "equal_steps"], sort=False):
        mean = curves.mean_curve(curve)
        if len(mean) < 3:
            continue
        row = {"task": task, "examples": examples, "equal_steps": again, "kept": mean.iloc[0], "none": mean.iloc[-1]}
        row |= {"null_rate": curve["null_rate"].iloc[0], "seeds": curve["seed"].nunique()}
        depth, fall = curve["layers"].iloc[0], curves.drop(mean.index)
        thirds = [curves.at(mean.index, share * depth) for share in (0, 1 / 3, 2 / 3, 1)]
        for third, (name, (above, below)) in enumerate(zip(THIRDS, pairwise(thirds), strict=True)):
            if _is_measured(mean.index, third * depth / 3, (third + 1) * depth / 3):
                row |= _reach(name, curves.interval(curves.values(curve, above - below)))
        if curves.falls(curve):
            bow = curves.interval(curves.values(curve, curves.concavity(mean.index), fall))
            place, away = curves.departure(curve)
            off = curves.interval(curves.values(curve, away, fall))
            row |= _reach("concavity", bow) | _reach("departure", off) | {"departs_at": place}
        rows.append(row)
    if not rows:
        reason = "no curve of this run has a place between none and all layers re-initialised"
        return Absent("singh2020-shapes", "The table of shapes", reason)
    table = pd.DataFrame(rows).reindex(columns=list(dict.fromkeys(name for row in rows for name in row)))
    shown = pd.DataFrame(
        {
            "task": [title(row.task) + ", equal steps" * row.equal_steps for row in table.itertuples()],
            "examples": table["examples"].map("{:,}".format),
            "all layers kept": [printed(score, "z.3f") for score in table["kept"]],
            "all re-initialised": [printed(score, "z.3f") for score in table["none"]],
        }
        | {f"lost with the {name} third": _shown(table, name) for name in THIRDS}
        | {"concavity": _shown(table, "concavity"), "from a line": _shown(table, "departure")}
    )
    caption = (
        "What the score loses with each third of the layers, from the top, with 95 % intervals over seeds and "
        "examples; concavity, the area between the mean curve and the straight line between its ends, over its drop "
        "(positive falls late, negative early); and the greatest distance from that line, over the drop. A dash: the "
        f"curve does not clearly fall, by {MIN_DROP:g} or more, or no model was trained within that third."
    )
    return Exhibit("singh2020-shapes", "Shapes", table, caption, shown=shown)


def _is_measured(places: pd.Index, low: float, high: float) -> bool:
    """Whether the curve between two numbers of layers is more than a part of one straight line between models."""
    inside, at_ends = ((places > low) & (places < high)).any(), {low, high} <= set(places)
    return bool(inside or at_ends)


def _reach(name: str, of: Interval) -> dict[str, float]:
    low, high = (of.low, of.high) if of.measured else (np.nan, np.nan)
    return {name: of.estimate, f"{name}_low": low, f"{name}_high": high}


def _shown(table: pd.DataFrame, name: str) -> list[str]:
    """A number with its interval, where there are such."""
    if name not in table.columns:
        return [MISSING] * len(table)
    ends = zip(table[name], table[f"{name}_low"], table[f"{name}_high"], strict=True)
    words = [f"{one:+z.2f}" + (f" [{low:+z.2f}, {high:+z.2f}]" if low == low else "") for one, low, high in ends]
    return [text.replace("-", "−") if one == one else MISSING for text, one in zip(words, table[name], strict=True)]


def table_of_sublayers(distances: pd.DataFrame) -> Exhibit | Absent:
    """Beyond the paper: relative distance of all six projections, lower and upper half of the layers."""
    parts = distances["part"].unique()
    if len(parts) == 1:
        reason = f"this run recorded the {parts[0]} projections alone"
        return Absent("singh2020-sublayers", "The table of all six projections", reason)
    distances = seen_as(distances)
    largest = distances[distances["examples"] == distances.groupby("task")["examples"].transform("max")]
    half = np.where(largest["layer"] <= largest["layer"].max() / 2, "lower", "upper")
    table = largest.assign(half=half).groupby(["part", "task", "half"], sort=False)["relative"].mean().reset_index()
    wide = table.pivot(index="part", columns=["task", "half"], values="relative").loc[parts].map("{:.1%}".format)
    wide.columns = [f"{title(task)}, {half} half" for task, half in wide.columns]
    caption = (
        "How far every projection moves, relative to the norm that it had before: mean over the layers of either half "
        "of the encoder and over seeds, with the most data. The paper measures the output projection alone."
    )
    shown = wide.rename_axis(index="projection").reset_index()
    return Exhibit("singh2020-sublayers", "All six projections", table, caption, shown=shown)


def figure_4(models: pd.DataFrame, reinitialised: int) -> Exhibit:
    """Figure 4: what is trained from what, for the three ways of using a pre-trained encoder; the second re-initialises
    so many layers, and the third removes them.
    """
    layers = int(scores(models)["layers"].iloc[0])
    kept = layers - reinitialised
    trained, fresh, frozen = "pre-trained, then trained", "random, then trained", "pre-trained, frozen"
    colours = {trained: style.SEQUENCE[3], fresh: style.SEQUENCE[2], frozen: "#D0D0D0"}
    stacks = {
        "fine-tuning": [trained] * layers,
        f"top {reinitialised} re-initialised": [trained] * kept + [fresh] * reinitialised,
        f"frozen, top {reinitialised} removed": [frozen] * kept,
    }
    rows = []
    for name, starts in stacks.items():
        blocks = {"embeddings": frozen if frozen in starts else trained}
        blocks |= {f"layer {number}": start for number, start in enumerate(starts, 1)} | {"classifier": fresh}
        rows += [{"way": name, "block": block, "starts_as": start} for block, start in blocks.items()]
    table = pd.DataFrame(rows)
    figure, panels = plt.subplots(1, 3, figsize=(style.WIDTH, 3.8), layout="constrained")
    box = {"boxstyle": "round,pad=0,rounding_size=0.06", "linewidth": 0}
    for axes, (name, stack) in zip(panels, table.groupby("way", sort=False), strict=True):
        for height, (block, start) in enumerate(zip(stack["block"], stack["starts_as"], strict=True)):
            axes.add_patch(FancyBboxPatch((0.1, height + 0.08), 0.8, 0.76, facecolor=colours[start], **box))
            axes.text(0.5, height + 0.46, block, ha="center", va="center", fontsize=9, color="black")
        axes.set(xlim=(0, 1), ylim=(0, layers + 2))
        axes.set_title(name, fontsize=10)
        axes.axis("off")
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour, label=start) for start, colour in colours.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=9)
    caption = (
        "Three ways to use a pre-trained encoder: all of it fine-tuned; its top layers re-initialised and all of it "
        "fine-tuned; its top layers removed and the rest frozen, with only a classifier trained."
    )
    alt = "Three stacks of layers whose colours tell which are pre-trained and trained, random and trained, or frozen."
    return Exhibit("singh2020-figure-4", "Figure 4", table, caption, alt, figure)
