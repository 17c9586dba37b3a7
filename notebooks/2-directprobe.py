# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The geometry of labels (Zhou and Srikumar, 2022)
#
# **The question.** An encoder turns each word or sentence into a point. How does fine-tuning
# rearrange these points? {cite:t}`zhou2022` ask which labels can be separated by planes, how far
# apart the labels lie, and how they move while the encoder learns.
#
# **The answer in numbers.** A positive number points in the paper's direction. [The last
# section](#the-claims) has all claims; reproduced here: {glue:text}`claims_reproduced`.
# - `mostly-improves`: {glue:text}`mostly_improves_verdict` (change of a probe's accuracy that four
#   in five tasks reach: {glue:text}`mostly_improves_value`).
# - `pushes-apart`: {glue:text}`pushes_apart_verdict` (growth of a label's distance to its nearest
#   neighbour that nine in ten labels reach: {glue:text}`pushes_apart_value`).
# - `diverges`: {glue:text}`diverges_verdict` (fall of the similarity of training and test
#   geometry: {glue:text}`diverges_value`).
#
# *You need* the {doc}`primer </primer>` and convex sets. *Reading*: 20 minutes. *Running*: 2
# minutes on the toy world with two cores.

# %% tags=["parameters", "hide-input"]
profile = "tiny"  # tiny, small or paper: the files in notebooks/profiles
# Everything below is as the profile says unless it is given here.
encoder = None
encoders = None
source = None
tasks = None
seeds = None
schedules = None
learning_rate = None
learning_rate_by_encoder = None
batch_size = None
epochs = None
epochs_by_encoder = None
training_examples = None
precision = None
followed = None
states = None
target = None
tuned_on = None
points = None
followed_points = None
min_examples = None
shuffled = None
probe_points = None
probe_sizes = None
probe_regularisers = None
probe_initialisations = None
probe_epochs = None
device = None

# %% tags=["hide-input", "claim"]
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from fivelenses.exhibits import (
    OTHERS,
    WIDTH,
    Drawing,
    Layout,
    controls_in_words,
    counted,
    curves,
    looks,
)
from fivelenses.judging import CannotTest, estimate, of_size, over_seeds, score, short, title
from fivelenses.records import AFTER, BEFORE, CONTROLS, TWINS, Missing, select, with_controls
from fivelenses.run import begin

run = begin(2, globals())
settings = run.settings

# %% [markdown]
# ## The setting
#
# The paper compares five sizes of BERT, this run the encoders of Table 1 (`english-bert` and
# `toy-bert` are our own; see {doc}`the encoders </encoders>`).

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show Table 1, the encoders"}
run.table(
    "Table 1",
    run.measure("encoder_sizes"),
    "The encoders. Parameters include embeddings, not the pooler (BERT's extra layer on [CLS]).",
    formats={"encoder": short, "parameters": "{:,}"},
)

# %% [markdown]
# Five tasks label a word (POS, its part of speech), a pair of words (DEP, the relation of a word to
# its head), a preposition (PS-role, what it contributes to the scene; PS-fxn, what it marks by
# itself) or a question (TREC-50, the kind of answer that it wants). A word's point is the mean of
# its tokens' vectors. A pair is the two words' vectors, concatenated; a question is the vector of
# its [CLS]. Figures and tables are numbered as in the paper.

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show Table 6, the tasks in numbers"}
paper = {  # Table 6
    "pos": (16_860, 4_323, 17),
    "dep": (16_054, 4_122, 46),
    "ps-role": (4_282, 457, 47),
    "ps-fxn": (4_282, 457, 40),
    "trec": (5_452, 500, 50),
}
names = {"training": "training points", "test": "test points", "labels": "labels"}
paper = pd.DataFrame.from_dict(paper, orient="index", columns=[f"paper_{name}" for name in names])
run.table(
    "Table 6",
    run.measure("task_sizes").join(paper, on="task"),
    "Labelled points of each task, counted from the data, with the paper's numbers in brackets. "
    "The paper's POS includes the treebank's seven empty nodes.",
    columns={"task": "task"} | {name: f"{header} (paper)" for name, header in names.items()},
    formats={"task": title} | {name: f"{{{name}:,}} ({{paper_{name}:,.0f}})" for name in names},
)

# %% [markdown]
# Every encoder is fine-tuned on every task. For one of them, named in the captions, we also store
# the weights at several steps (its *states*). Claims are judged on this encoder, and on tasks whose
# score lies clearly more than two points above the {term}`null rate`, and above a bag of words.

# %% tags=["hide-input"]
by_example = dict(of={"shuffled_labels": False}, each=("encoder", "task", "seed"))
words = run.measure("words_by_example", over=settings.training_sets)
models = run.measure("models", each=("encoder", "task"))
run.gate(models, run.measure("by_example", **by_example), words=words)

# %% [markdown]
# The controls are {term}`twins <twin>` and, on some tasks, {term}`shuffled labels`.
#
# ## Clusters with disjoint hulls
#
# {term}`DirectProbe` {cite:p}`zhou2021` groups labelled points into clusters such that each holds
# one label and the {term}`convex hulls <convex hull>` of clusters with different labels do not
# meet. With one cluster per label, planes separate the labels; more mean a more complex boundary.

# %% tags=["hide-input"]
from fivelenses.lenses.directprobe import probe

CLOUDS = {"separable": [("A", -1.3, -0.6, 14), ("B", 1.3, 0.7, 14)]}  # label, centre and points
CLOUDS["not separable"] = [("A", -1.5, 0.0, 12), ("A", 1.6, 0.0, 12)]
CLOUDS["not separable"] += [("B", 0.0, 1.4, 10), ("B", 0.0, -1.5, 10)]
chance, parts = np.random.default_rng(3), []
for panel, clouds in CLOUDS.items():
    points = np.concatenate([chance.normal((x, y), 0.45, (count, 2)) for _, x, y, count in clouds])
    labels = np.repeat([label for label, *_ in clouds], [count for *_, count in clouds])
    part = pd.DataFrame({"panel": panel, "x": points[:, 0], "y": points[:, 1], "label": labels})
    parts.append(part.assign(cluster=probe(points, labels).assignments))
sketch = pd.concat(parts, ignore_index=True)

# %% tags=["hide-input"]
from scipy.spatial import ConvexHull

figure, panels = plt.subplots(1, 2, figsize=(WIDTH, 2.6), layout="constrained")
for axes, (panel, points) in zip(panels, sketch.groupby("panel", sort=False), strict=True):
    for (label, _), cluster in points.groupby(["label", "cluster"]):
        plane, (colour, marker) = cluster[["x", "y"]].to_numpy(), OTHERS["AB".index(label) * 2]
        axes.scatter(*plane.T, color=colour, marker=marker, s=18, zorder=3)
        if len(plane) > 2:
            corners = plane[ConvexHull(plane).vertices]
            axes.fill(*corners.T, facecolor=colour, edgecolor=colour, alpha=0.18, linewidth=1.5)
        bold = dict(color=colour, fontsize=14, fontweight="bold", ha="center")
        axes.annotate(label, plane.mean(axis=0), **bold)
    clusters, labels = points["cluster"].nunique(), points["label"].nunique()
    axes.set_title(f"{panel}: {clusters} clusters, {labels} labels")
    axes.set(xticks=[], yticks=[], aspect="equal")
    axes.grid(False)
alt = "Points in a plane with hulls: one of each label, and two of A on either side of B's."
run.figure(
    "Figure 1",
    Drawing(figure, sketch, alt),
    "DirectProbe on synthetic points. Left: one cluster per label, a line separates them. Right: "
    "more clusters than labels, no line does.",
)

# %% [markdown]
# The distance between two clusters is that of their hulls,
#
# $$d(A, B) = \min_{\alpha, \beta} \Big\| \sum_i \alpha_i a_i - \sum_j \beta_j b_j \Big\|,
# \qquad \alpha_i, \beta_j \ge 0, \quad \sum_i \alpha_i = \sum_j \beta_j = 1,$$
#
# which is a quadratic program:

# %% tags=["method"]
from scipy.optimize import minimize

from fivelenses.lenses.hulls import hull_distance

chance = np.random.default_rng(0)
a, b = chance.normal(size=(4, 2)) + [5, 0], chance.normal(size=(5, 2))
alpha_sums_to_1 = {"type": "eq", "fun": lambda w: w[:4].sum() - 1}
beta_sums_to_1 = {"type": "eq", "fun": lambda w: w[4:].sum() - 1}
program = {"bounds": [(0, 1)] * 9, "constraints": [alpha_sums_to_1, beta_sums_to_1]}
program |= {"method": "SLSQP", "tol": 1e-14}
start = np.repeat([1 / 4, 1 / 5], [4, 5])
nearest = minimize(lambda w: np.sum((w[:4] @ a - w[4:] @ b) ** 2), start, **program)
by_hand, library = float(np.sqrt(nearest.fun)), hull_distance(a, b).distance
{"by hand": round(by_hand, 5), "library": round(library, 5)}

# %% [markdown]
# This is twice the margin. {py:func}`fivelenses.lenses.directprobe.probe` proves each answer: by a
# plane between disjoint hulls, checked on every point, or by a point that lies in both.
#
# ## What a classifier reads
#
# A classifier {term}`probe` is a network with two hidden layers on the frozen points. Its sizes and
# regulariser are chosen on a tenth of the training points; then it is trained from
# {glue:text}`initialisations` initialisations. The geometries of training and test set are compared
# on the labels with at least {glue:text}`min_examples` points in both.

# %% tags=["hide-input", "claim"]
geometry = run.measure("geometry", each=("encoder", "task"))
probes = run.measure("probe_accuracy", each=("encoder", "task"))


def merge(first, second, on, **names):
    """Two tables side by side; missing where one of them is."""
    return second if isinstance(second, Missing) else first.merge(second, on=on, **names)


# %% tags=["hide-input"]
def means_by_stage(geometry, fits):
    """One row per encoder and task: means over seeds before, after, and after in each control."""
    keys = ["encoder", "task", "stage", "seed", "control"]
    rows = merge(geometry, fits[[*keys, "accuracy", "deviation", "hidden_1", "hidden_2"]], keys)
    rows = rows.assign(stage=rows["control"].map(CONTROLS).fillna(rows["stage"]))
    # A mean of sizes is no size: those of the first seed are shown.
    measures = [name for name in rows.columns if name not in keys]
    how = {name: "first" if name.startswith("hidden") else "mean" for name in measures}
    how |= dict.fromkeys(["similarity", "clusters"], lambda of_seeds: of_seeds.mean(skipna=False))
    means = rows.groupby(["encoder", "task", "stage"], sort=False).agg(how).unstack(sort=False)
    names = [f"{name}_{stage}" for name, stage in means.columns]
    return means.set_axis(names, axis=1).reset_index()


def in_words(values):
    """The range of counts: *4,282 to 6,007*."""
    least, greatest = values.min(), values.max()
    return f"{least:,.0f}" + (f" to {greatest:,.0f}" if greatest > least else "")


# %% tags=["hide-input"]
def yes_or_no(share):
    return "yes" if share == 1 else "no"


STAGES = {BEFORE: " before", AFTER: " after", "twin": ", moved at random"}
STAGES |= {"functional_twin": ", functional twin", "shuffled": ", shuffled labels"}
MEASURES = {
    "clusters": ("clusters", "{:.3g}"),
    "similarity": ("similarity", "{:.2f}"),
    "separable": ("separable", yes_or_no),
    "control_separable": ("random labels", yes_or_no),
    "accuracy": ("accuracy", "{accuracy_STAGE:.3f} ± {deviation_STAGE:.3f}"),
    "hidden_1": ("probe", "{hidden_1_STAGE:.0f}, {hidden_2_STAGE:.0f}"),
}
HEADERS = {"encoder": "encoder", "task": "task", "labels_before": "labels"}
FORMATS = {"encoder": short, "task": title, "labels_before": "{:.0f}"}
for measure, (header, form) in MEASURES.items():
    for stage, words in STAGES.items():
        HEADERS[f"{measure}_{stage}"] = header + words
        FORMATS[f"{measure}_{stage}"] = form if callable(form) else form.replace("STAGE", stage)


def printed(table, *names):
    """How `run.table` prints columns of `means_by_stage`, those that were measured."""
    there = [name for name in names if name in table and table[name].notna().any()]
    columns, formats = ({name: of[name] for name in there} for of in (HEADERS, FORMATS))
    return {"columns": columns, "formats": formats}


# %% tags=["hide-input"]
table = means_by_stage(geometry, probes["fits"])
points, all_points = in_words(table["points_before"]), in_words(table["all_points_before"])
similarities = [f"similarity_{stage}" for stage in STAGES]
accuracies = ["accuracy_before", "accuracy_after"]
look = printed(table, "encoder", "task", *accuracies, *similarities)
look["formats"] |= dict.fromkeys(accuracies, "{:.3f}")
run.table(
    "Table 2",
    table,
    "Accuracy of the classifier probe on the last layer (Table 7 has its deviations), and "
    "similarity of the distances between labels in training and test set (on "
    f"{points} of {all_points} training points). A dash: in some seed planes do not separate the "
    "labels in one of the two, or this run lacks the control.",
    **look,
)

# %% tags=["hide-input", "claim"]
keys = ["encoder", "task", "seed"]
own = geometry[geometry["encoder"] == settings.encoder]
before = own[own["stage"] == BEFORE].drop(columns="control")
changes = merge(own[own["stage"] == AFTER], before, keys, suffixes=("_after", "_before"))


@run.claim(
    "diverges",
    says="The geometries of training and test set become less alike.",
    place="section 4.1, Table 2",
    exhibits=("Table 2",),
    record=changes.dropna(subset=["similarity_before", "similarity_after"]),
    by=("encoder", "task"),
    per="case",
    unit="Pearson correlation",
    printed="a fall to 0.44 at the lowest (BERT-small on PS-fxn)",
    if_empty="in no case do planes separate the labels that training and test set share, before "
    "and after",
)
def fall_of_similarity(rows):
    """Fall of the similarity of training and test set, where planes separate the labels of the
    points measured.
    """
    return (rows["similarity_before"] - rows["similarity_after"]).item()


# %% [markdown]
# ## Fine-tuning makes the space simpler
#
# In $d$ dimensions, planes separate any $d + 1$ points in general position, however labelled. So
# Table 3 also says whether the points are separable with *permuted* labels.

# %% tags=["hide-input"]
SEPARABLE = [f"separable_{BEFORE}", f"separable_{AFTER}"]
CLUSTERS = ["labels_before", *(f"clusters_{stage}" for stage in STAGES), *SEPARABLE]
CLUSTERS += [f"control_{name}" for name in SEPARABLE]
smallest = table[table["encoder"] == settings.encoders[0]]
points, all_points = in_words(smallest["points_before"]), in_words(smallest["all_points_before"])
run.table(
    "Table 3",
    smallest,
    f"The smallest encoder, {short(settings.encoders[0])}: the clusters of its labels in the last "
    f"layer. Clusters are counted on {points} training points (mean over seeds; a dash: this run "
    f"lacks the control, or two labels share a point), separability on all {all_points}, each text "
    "once; so labels with one cluster each can be inseparable. Random labels: permuted ones.",
    **printed(smallest, "task", *CLUSTERS),
)

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show Table 4, TREC-50 in all encoders"}
trec = table[table["task"] == "trec"]
run.table(
    "Table 4",
    trec,
    "TREC-50 in all encoders, as Table 3.",
    **printed(trec, "encoder", *CLUSTERS),
    if_empty="it is about TREC-50, which this run has not measured",
)

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show Table 7, all tasks and encoders"}
read = [f"{name}_{stage}" for stage in (BEFORE, AFTER) for name in ("hidden_1", "accuracy")]
run.table(
    "Table 7",
    table.sort_values("task", key=lambda names: names.map(title), kind="stable"),
    "All tasks and encoders: hidden sizes of the best probe (first seed), accuracy ± deviation of "
    f"{settings.probe_initialisations} initialisations, clusters, and whether planes separate all "
    "points (means over seeds).",
    **printed(table, "task", "encoder", *read, *CLUSTERS[:3], *SEPARABLE),
)


# %% tags=["hide-input", "claim"]
@run.claim(
    "simplifies",
    says="Where labels are not linearly separable, they fall into fewer clusters afterwards.",
    place="section 4.2, Tables 3 and 4",
    exhibits=("Table 3", "Table 4", "Table 7"),
    record=changes[changes["clusters_before"] > changes["labels_before"]],
    per="case",
    unit="clusters per label",
    if_empty="planes separate the labels of all points counted before fine-tuning, or none were "
    "counted",
)
def fewer_clusters(rows):
    """Fall of the number of clusters per label, where planes do not separate the points counted
    before fine-tuning.
    """
    groups = {}
    for (encoder, task), of_task in rows.groupby(["encoder", "task"], sort=False):
        case, labels = f"{short(encoder)} on {title(task)}", of_task["labels_before"].iloc[0]
        fewer = (of_task["clusters_before"] - of_task["clusters_after"]) / labels
        groups[case, of_size(task, None, encoder)] = over_seeds(fewer, step=1 / labels)
    return groups


# %% tags=["hide-input", "claim"]
EXCEPTIONS = 0.2  # share of an encoder's tasks that may gain nothing
sentences = probes["sentences"]


@run.claim(
    "mostly-improves",
    says="Fine-tuning nearly always improves what a probe reads; there are exceptions.",
    place="section 4.1, Table 7",
    exhibits=("Table 7",),
    record=sentences[sentences["encoder"] == settings.encoder],
    per="encoder",
    pools_tasks=True,
    unit="share of the held-out points",
    printed="24 of 25 cases improve",
)
def gain_of_accuracy(rows):
    """The gain of the probe's accuracy that four in five of an encoder's tasks reach."""
    before, gains = rows[rows["stage"] == BEFORE], {}
    for task, after in rows[rows["stage"] == AFTER].groupby("task", sort=False):
        same = (before["task"] == task) & before["seed"].isin(after["seed"])
        gains[of_size(task, None, settings.encoder)] = score(after, before[same])
    if not gains:
        return {}
    excepted = int(EXCEPTIONS * len(gains) + 1e-9)
    # One of the k + 1 that gain least may pass by chance: their intervals hold together.
    least = sorted(gains.values(), key=lambda gain: gain.estimate)[excepted]
    return {(short(settings.encoder), *gains): least.simultaneous(excepted + 1)}


# %% [markdown]
# ## Fine-tuning pushes labels apart
#
# Even where planes separate the labels from the start, a wider margin lowers the loss.

# %% tags=["hide-input", "claim"]
followed = {"task": settings.followed, "encoder": settings.encoder}
along = run.measure("along_training", of=followed, each=("task", "seed"))
single_task = "pos" if "pos" in settings.followed else settings.followed[0]  # of Figures 3 and 5
distances = along["distances"]
similarities = along["similarities"]
last = distances[distances["layer"] == distances["layer"].max()]

# %% tags=["hide-input"]
rows = with_controls(last, "min_distance", x="step")
means = rows.groupby(["task", "label", "step"])["min_distance"].mean().groupby(["task", "label"])
growths = (means.last() - means.first()).groupby("task")
rank, labels = growths.rank(method="first"), growths.transform("size")
count = labels.floordiv(2).clip(upper=3)  # labels that grow most, and least
grows = (rank > labels - count).map({True: "most"}).fillna((rank <= count).map({True: "least"}))
rows = rows.join(grows.rename("grows"), on=["task", "label"]).dropna(subset="grows")
of_two = rows[rows["task"].isin(["ps-role", "pos"])]
layout = Layout(panels="task", each="label", ends=True, height=2.7)
averaged = f"{'mean over ' * (len(settings.seeds) > 1)}{counted(len(settings.seeds), 'seed')}"
look = dict(by="grows", x="step", y_label="distance to nearest label", layout=layout)
says = (
    "Least distance of a label to any other along fine-tuning, in units of the hidden states: last "
    f"layer of {short(settings.encoder)} ({averaged}), the three labels that grow most and the "
    "three that grow least. Curves of controls are means over all labels."
)
run.figure(
    "Figure 2",
    curves(of_two, "min_distance", **look),
    f"{says}{controls_in_words(of_two, 'min_distance')}",
    if_empty="neither PS-role nor POS is followed along training",
)

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show Figure 6, all tasks"}
run.figure(
    "Figure 6",
    curves(rows, "min_distance", **look),
    f"{says} All tasks that are followed.{controls_in_words(rows, 'min_distance')}",
)


# %% tags=["hide-input", "claim"]
def growth(rows):
    """Of one model's labels, all but a tenth grow so much from the first state to the last."""
    wide = rows.pivot(index="step", columns="label", values="min_distance").sort_index()
    return (wide.iloc[-1] - wide.iloc[0]).quantile(0.1)


@run.claim(
    "pushes-apart",
    says="Each label moves away from its nearest neighbour.",
    place="section 4.3, Figures 2 and 6",
    exhibits=("Figure 6",),
    record=last,
    per="task",
    unit="units of the hidden states",
    if_empty="in no task do planes separate the labels at the first and the last state",
)
def growth_of_the_least_distance(rows):
    """Growth of the least distance that nine in ten labels reach, where planes separate the labels
    at the first and the last state.
    """
    # That a label also comes nearer on the way is not judged: the greatest fall of many labels
    # between many states is above zero whatever they do.
    groups = {}
    for task, of_task in rows.groupby("task", sort=False):
        first, end = of_task["step"].min(), of_task["step"].max()
        ends = of_task[of_task["step"].isin([first, end])]
        if first < end and ends["separable"].all():
            groups[task] = estimate(ends, growth)
    return groups


# %% tags=["hide-input"]
def draw_paths(paths):
    """A panel for each layer, its own components and scale; markers grow along training."""
    if not len(paths):
        return paths
    sized = dict(figsize=(WIDTH, 3.6), layout="constrained", squeeze=False)
    (figure, (panels,)), said = plt.subplots(1, paths["layer"].nunique(), **sized), []
    for axes, (layer, of_layer) in zip(panels, paths.groupby("layer"), strict=True):
        of_labels = of_layer.groupby("label", sort=False)
        for (label, path), (colour, marker) in zip(of_labels, OTHERS, strict=False):
            axes.plot(path["x"], path["y"], color=colour, linewidth=1.2, alpha=0.7)
            sizes = np.linspace(12, 60, len(path))
            axes.scatter(path["x"], path["y"], color=colour, marker=marker, s=sizes, label=label)
            far = np.hypot(*(path[["x", "y"]].iloc[-1] - path[["x", "y"]].iloc[0]))
            said.append(f"{label} in layer {layer} moves {far:.2f}")
        axes.set(title=f"layer {layer}", xlabel="first principal component")
        axes.set_aspect("equal", adjustable="datalim")
    panels[0].set_ylabel("second principal component")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return Drawing(figure, paths, f"Paths in a plane. {'; '.join(said)}.")


paths = along["paths"]
run.figure(
    "Figure 3",
    draw_paths(paths[(paths["task"] == single_task) & (paths["seed"] == settings.seeds[0])]),
    f"Paths of the centroids of the three closest labels of {title(single_task)} along "
    f"fine-tuning, {short(settings.encoder)}, seed {settings.seeds[0]}: markers grow from the "
    "first state to the last. Each layer has its own components and scale.",
)

# %% [markdown]
# ## Fine-tuning on one task, measuring another
#
# Fine-tuning on a related task should move the labels of PS-fxn apart, too; fine-tuning on POS,
# which gives all prepositions one tag, should pull them together.

# %% tags=["hide-input", "claim"]
target_distances = run.measure("target_distances", of=settings.models_for_target, each="seed")
target_accuracy = run.measure("target_accuracy", of=settings.models_for_target, each="seed")

# %% tags=["hide-input"]
AT_RANDOM = dict(zip(TWINS, (", moved at random", ", functional twin"), strict=True))
keys = ["control", "tuned_on", "seed"]
fits = target_accuracy["fits"]
table = merge(target_distances, fits[[*keys, "accuracy", "deviation"]], keys)
change = table["after"] - table["before"]
shares = {"grew": np.sign(change).clip(lower=0), "shrank": -np.sign(change).clip(upper=0)}
averages = ["grew", "shrank", "change", "before", "accuracy", "deviation"]
counts = table.assign(change=change, **shares).groupby(keys, sort=False)[averages].mean()
counts[["grew", "shrank"]] *= table["label"].nunique()
counts = counts.groupby(keys[:2], sort=False).mean().reset_index()
counts["relative"] = counts["change"] / counts["before"]
# Before fine-tuning nothing changes, and there is nothing to count.
counts.loc[counts["tuned_on"] == "nothing", ["grew", "shrank", "change", "relative"]] = np.nan
at_random = counts["control"].map(AT_RANDOM).fillna("")
counts["tuned_on"] = counts["tuned_on"].map(title) + at_random
run.table(
    "Table 5",
    table,
    f"The {table['label'].nunique()} labels of {title(settings.target)} in the last layer of "
    "models that were fine-tuned on it and on other tasks: for how many of them the least distance "
    "to any other label grew or shrank, the mean change, and the accuracy of a probe (± standard "
    f"deviation over initialisations); {averaged}, of functional twins over those measured.",
    columns={"tuned_on": "fine-tuned on", "grew": "distance grew", "shrank": "shrank"}
    | {"change": "mean change", "relative": "relative", "accuracy": "accuracy"},
    formats={"grew": "{:.3g}", "shrank": "{:.3g}", "change": "{:+.2f}", "relative": "{:+.0%}"}
    | {"accuracy": "{accuracy:.3f} ± {deviation:.3f}"},
    shown=counts.sort_values("control", key=lambda names: names.isin(TWINS), kind="stable"),
)

# %% tags=["hide-input", "claim"]
ORDER = {
    "PS-fxn over PS-role": ("ps-fxn", "ps-role"),
    "PS-role over pre-trained": ("ps-role", "nothing"),
    "pre-trained over POS": ("nothing", "pos"),
}


@run.claim(
    "cross-task",
    says="A related task pushes the labels apart less than the task itself, an opposing one "
    "together; accuracy agrees.",
    place="section 4.4, Table 5",
    exhibits=("Table 5",),
    record={"distances": target_distances, "accuracy": target_accuracy["sentences"]},
    per="target",
    unit={f"distances, {name}": "units of the hidden states" for name in ORDER}
    | {f"accuracy, {name}": "share of the held-out points" for name in ORDER},
    printed="−1.68 on average after POS",
)
def order_of_tasks(rows):
    """Differences of the labels' mean least distance, and of a probe's accuracy, between models
    fine-tuned on each task.
    """
    distances, sentences, needed = rows["distances"], rows["accuracy"], ("ps-fxn", "ps-role", "pos")
    if lacking := [task for task in needed if task not in set(distances["tuned_on"])]:
        raise CannotTest(f"there are no such models of {', '.join(map(title, lacking))}")
    if not distances["separable"].all():
        raise CannotTest("planes do not separate the labels of PS-fxn in each of the models")
    mean, parts = distances.groupby(["seed", "tuned_on"])["after"].mean().unstack(), {}
    for name, (more, less) in ORDER.items():
        parts[f"distances, {name}"] = over_seeds(mean[more] - mean[less])
    for name, (more, less) in ORDER.items():
        read = [sentences[sentences["tuned_on"] == task] for task in (more, less)]
        parts[f"accuracy, {name}"] = score(*read)
    return {(title("ps-fxn"), *needed): parts}


# %% [markdown]
# ## What stays as it was
#
# {term}`Spatial similarity` is the correlation of the distances between all pairs of labels with
# those before fine-tuning.
#
# :::{admonition} Predict, then look
# :class: tip
# In the top layer, what becomes of the geometry of labels during fine-tuning?
#
# - **a** It stays almost as it was, with a correlation above $0.9$.
# - **b** It changes but can be recognised, between $0.5$ and $0.9$.
# - **c** It is lost, below $0.5$.
# :::

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "I have made my choice: show the figure"}
top = similarities["layer"].max()
# Controls are drawn of the last layer alone.
shown = similarities[(similarities["layer"] == top) | ~similarities["control"].isin(CONTROLS)]
rows = with_controls(shown, "similarity", x="step")
sizes = rows.groupby("task", sort=False)[["points", "all_points"]].first().itertuples()
points = [f"{title(one.Index)} {one.points:,} of {one.all_points:,}" for one in sizes]
layout = Layout("task", shared=True, ends=True, missing="not separable", height=2.5)
look = dict(by="layer", x="step", y_label="similarity to itself before", layout=layout)
run.figure(
    "Figure 4",
    curves(rows.assign(layer="layer " + rows["layer"].astype(str)), "similarity", **look),
    f"Similarity of every other layer of {short(settings.encoder)} to itself before fine-tuning "
    "(Pearson correlation of the distances between labels). A layer is missing where planes do not "
    f"separate its labels, before or at that step. Training points followed: {', '.join(points)}. "
    f"Controls are of layer {top}.{controls_in_words(rows, 'similarity')}",
)


# %% tags=["hide-cell", "claim"] mystnb={"code_prompt_show": "Show what the paper claims"}
@run.claim(
    "keeps-order",
    says="Even the last layer keeps the relative positions of the labels.",
    place="section 4.5, Figure 4",
    exhibits=("Figure 4",),
    record=similarities[similarities["layer"] == similarities["layer"].max()],
    per="task",
    above=0.5,
    because="the paper's own: more than 0.5",
    unit="Pearson correlation",
    printed="more than 0.5",
    if_empty="in no task do planes separate the labels in the last layer at every state",
)
def least_similarity(rows):
    """Least similarity of the last layer to itself before, where planes separate the labels of the
    points measured.
    """
    groups = {}
    for task, of_task in rows.groupby("task", sort=False):
        by_seed = of_task.groupby("seed")["similarity"]
        least = by_seed.agg(lambda values: values.min(skipna=False)).dropna()
        if of_task["step"].nunique() > 1 and len(least):
            groups[task] = over_seeds(least)
    return groups


# %% [markdown]
# *Your prediction*: a or b is right on the tasks where `keeps-order` holds, c where it fails.
# In this run it is {glue:text}`keeps_order_verdict`.


# %% tags=["hide-input"]
def name_farthest(axes, rows, reach):
    """Name the labels that moved most, on the side that has fewer points, with lines."""
    side = -1 if (rows["x"] < 0).sum() < (rows["x"] > 0).sum() else 1
    farthest = rows.nlargest(3, "length").sort_values("y")
    for row, height in zip(farthest.itertuples(), (-0.75, 0.1, 0.8), strict=False):
        place = dict(xytext=(side * 0.97 * reach, height * reach), va="center", fontsize=9)
        line = dict(arrowstyle="-", color="#777777", linewidth=0.7, shrinkA=1, shrinkB=2)
        place |= dict(ha="left" if side < 0 else "right", arrowprops=line)
        axes.annotate(row.label, (row.x, row.y), **place).set_in_layout(False)  # it lies inside


# %% tags=["hide-input"]
def draw_movements(rows):
    """Where each label's centroid went, one panel per layer, all on one scale."""
    if not len(rows):
        return rows
    layers, reach = sorted(rows["layer"].unique()), 1.15 * rows[["x", "y"]].abs().to_numpy().max()
    count, ((colour, _),) = -(-len(layers) // 2), looks(rows["task"]).values()
    sized = dict(figsize=(WIDTH, 2.55 * count + 0.3), layout="constrained", squeeze=False)
    figure, panels = plt.subplots(count, min(2, len(layers)), **sized, sharex=True, sharey=True)
    figure.supxlabel("along the first direction", fontsize="medium")
    figure.supylabel("along the second direction", fontsize="medium")
    for axes, layer in zip(panels.flat, layers, strict=False):
        of_layer = rows[rows["layer"] == layer]
        axes.axhline(0, color="#CCCCCC", linewidth=0.8)
        axes.axvline(0, color="#CCCCCC", linewidth=0.8)
        axes.scatter(of_layer["x"], of_layer["y"], s=14, color=colour)
        name_farthest(axes, of_layer, reach)
        axes.set_title(f"layer {layer} · {of_layer['in_two'].iloc[0]:.0%} in the plane", fontsize=9)
        axes.grid(False)
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    for axes in panels.flat[len(layers) :]:
        axes.set_visible(False)
    means = rows.groupby("layer")["length"].mean().items()
    means = [f"{length:.2f} in layer {layer}" for layer, length in means]
    alt = "Label movements in a plane, one panel per layer. Mean length of a movement: "
    return Drawing(figure, rows, f"{alt}{', '.join(means)}.")


# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show Figure 5, where labels move"}
rows = select(along["movements"])
rows = rows[rows["seed"] == settings.seeds[0]].assign(relative=rows["length"] / rows["spread"])
every_other = (rows["layer"].max() - rows["layer"]).mod(2) == 0
run.figure(
    "Figure 5",
    draw_movements(rows[(rows["task"] == single_task) & every_other]),
    f"Where fine-tuning on {title(single_task)} moves the centroid of each label in "
    f"{short(settings.encoder)}, seed {settings.seeds[0]}: the difference vectors of a layer on "
    "their two principal directions (not centred), all panels on one scale. The percentage is the "
    "share of the squared movement that lies in the plane. The three labels that move most in all "
    "dimensions are named, so they can lie near the origin of this plane.",
)

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show Figures 7 to 10, all layers"}
NUMBERS = {"pos": 7, "dep": 8, "ps-role": 9, "ps-fxn": 10}  # Appendix E
for task in settings.followed:
    run.figure(
        f"Figure {NUMBERS[task]}" if task in NUMBERS else title(task),
        draw_movements(rows[rows["task"] == task]),
        f"As Figure 5, for {title(task)} and every layer of {short(settings.encoder)}.",
        key="" if task in NUMBERS else f"movements-{task}",
    )


# %% tags=["hide-input", "claim"]
@run.claim(
    "low-moves-little",
    says="In low layers the labels move much less than in high ones, and in fewer directions.",
    place="section 4.5, Figures 3 and 5",
    exhibits=("Figure 5", "Figure 7", "Figure 8", "Figure 9", "Figure 10"),
    record=along["movements"],
    by="task",
    above={"high layers over low ones": 5},
    because={
        "high layers over low ones": "“much smaller”: a straight line from zero gives at most 5, "
        "whatever the depth"
    },
    unit={
        "high layers over low ones": "ratio",
        "low layers in fewer directions": "share of the movement that lies in two directions",
    },
    variants={"halves of the layers": {"share": 1 / 2}},
)
def movement(rows, share=1 / 3):
    """Mean movement of the labels in the upper third of the layers over that in the lower; share of
    it that lies in two directions, lower third minus upper.
    """
    depth = rows["layer"].max()
    low, high = rows[rows["layer"] <= depth * share], rows[rows["layer"] > depth * (1 - share)]
    if low.empty:
        raise CannotTest(f"an encoder of {depth} layers has none in its lower third")
    low, high = (third[["length", "in_two"]].mean() for third in (low, high))
    return {
        "high layers over low ones": high["length"] / low["length"],
        "low layers in fewer directions": low["in_two"] - high["in_two"],
    }


# %% [markdown]
# ## The claims
#
# Distances and clusters jump when a single point moves, so their intervals cover seeds alone; those
# of accuracies cover seeds and held-out sentences. Where Tables 2 to 7 have other encoders, these
# take no part in the verdicts. {doc}`The ledger </claims>` explains the verdicts.

# %% tags=["hide-input"]
run.glue(initialisations=settings.probe_initialisations, min_examples=settings.min_examples)
run.finish()

# %% [markdown]
# **Limits.** Distances and lengths of movements are not scaled: an encoder whose states grow pushes
# everything apart. Three [exercises](/exercises.md#chapter-2-the-geometry-of-labels) go with this
# chapter.
