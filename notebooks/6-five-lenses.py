# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Do the lenses agree?
#
# **The question.** Five papers look at fine-tuning, each with {term}`lenses <lens>` and models of
# its own. Do their lenses point at the same layers of the same models?
#
# **The answer in numbers.** Over {glue:text}`models`, two lenses order the layers with a mean rank
# correlation of {glue:text}`overall`, where 1 is the same order. They agree in
# {glue:text}`lenses_agree_held` pairs (`lenses-agree`: {glue:text}`lenses_agree_verdict`). Each
# claim is below its exhibit.
#
# *You need* chapters 1 to 5, at least their figures. *Reading*: 10 minutes. *Running*: 1 minute
# on the toy world with two cores, after chapter 1.

# %% tags=["parameters", "hide-input"]
profile = "tiny"  # tiny, small or paper: the files in notebooks/profiles
# Everything below is as the profile says unless it is given here.
encoder = None
source = None
tasks = None
independent = None
seeds = None
schedules = None
learning_rate = None
learning_rate_by_encoder = None
batch_size = None
epochs = None
training_examples = None
precision = None
evaluation_examples = None
variance_kept = None
similarity_tokens = None
probe_points = None
structural_sentences = None
random_directions = None
device = None

# %% tags=["claim", "hide-input"]
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pandas as pd

from fivelenses.exhibits import Cells, Layout, counted, curves, dots, heat_maps
from fivelenses.judging import OURS, CannotTest, by_rate, jackknife, over_seeds, title
from fivelenses.models import thirds
from fivelenses.papers.measures import BY_KEY, LENSES, MEASURES, lens, name
from fivelenses.records import TWINS, WHOLE, learning_rates, select
from fivelenses.run import begin

run = begin(6, globals())

# %% [markdown]
# ## The setting
#
# The models are those of [chapter 1](/published/1-attention-svcca.ipynb): one pre-trained encoder,
# fine-tuned on one task or several, with several seeds.

# %% tags=["hide-input"]
models = run.measure("models", each="task")
run.table(
    "The models",
    models.assign(reached=np.where(models["diverged"], np.nan, models["score"])),
    "The fine-tuned models: development score (accuracy, or Matthews correlation where the null "
    "rate is 0) and the null rate. A model without a score diverged in training and is not "
    "measured.",
    columns={"task": "task", "null_rate": "null rate", "examples": "trained on"}
    | {"seed": "seed", "reached": "score"},
    formats={"task": title, "null_rate": "{:.3f}", "examples": "{:,}", "reached": "{:.3f}"},
    key="models",
)
words = run.measure("words_by_example", over=run.settings.training_sets)
run.gate(models, run.measure("by_example", each="task"), words=words)

# %% [markdown]
# Models that hardly beat the {term}`null rate` are drawn and not judged.
#
# We take one or two measures of each paper on the same development examples (loss: training
# examples; syntax: trees). *Activations* contain what changed below a layer, *parameters* do not.

# %% tags=["claim", "hide-input"]
limits, order = run.settings.limits(), [measure.key for measure in MEASURES].index
each_lens = {"lens": [key for key in LENSES if key]}
changes = run.measure("changes_by_layer", each="task", over=each_lens, limits=limits)
changes = changes.sort_values("measure", key=lambda keys: keys.map(order), kind="stable")
whole = select(changes)  # the fine-tuned models, on all sentences

# %% tags=["hide-input"]
INDEPENDENT = "the distance between the pre-trained and an independent encoder"
UNTRAINED = "an untrained encoder in place of the fine-tuned one"
MEANING = {  # what a larger value is, and the null
    "js": ("JS divergence from the pre-trained encoder's attention (nats)", INDEPENDENT),
    "svcca": ("SVCCA distance from the pre-trained encoder's output (0 to 1)", INDEPENDENT),
    "labels": (
        "growth of the distance between the labels' convex hulls (natural logarithm of after over "
        "before; negative where they moved together)",
        "the same with permuted labels",
    ),
    "probe": ("accuracy of a classifier probe minus that on the pre-trained encoder", UNTRAINED),
    "rollback": (
        "rise of the training loss with this layer alone reset to pre-trained parameters (nats)",
        "the layer moved as far in random directions",
    ),
    "weights": (
        "relative Frobenius distance from the pre-trained weights, mean of the six projections",
        INDEPENDENT,
    ),
    "rsa": ("1 minus RSA similarity to the pre-trained encoder", INDEPENDENT),
    "structure": (
        "fall of a structural probe's rank correlation with tree distances and depths",
        UNTRAINED,
    ),
}

# %% tags=["hide-input"]
table = whole.groupby("measure", sort=False)[["value", "null"]].agg(["min", "max"])
table.columns = ["least", "most", "null_least", "null_most"]
table = table.reset_index()
table["lens"] = [LENSES[lens(key)] for key in table["measure"]]
table["reads"] = [
    ("activations" if one.reads_activations else "parameters") + ", labels" * one.knows_labels
    for one in map(BY_KEY.get, table["measure"])
]
table[["more", "control"]] = [MEANING[key] for key in table["measure"]]
run.table(
    "The instruments",
    table,
    "The measures of change. A larger value is more of what its row names; below 0, fine-tuning "
    "went the other way, which tops and rank correlations count as the least change.",
    columns={"measure": "measure", "lens": "lens", "reads": "reads", "more": "more is"}
    | {"least": "here", "control": "null", "null_least": "null here"},
    formats={"measure": name, "least": "{least:z.3f} to {most:z.3f}"}
    | {"null_least": "{null_least:z.3f} to {null_most:z.3f}"},
    key="instruments",
)

# %% [markdown]
# ## Where each lens sees the change
#
# If the lenses agreed, the dots of a panel would lie in one column.
#
# :::{admonition} Predict, then look
# :class: tip
# Eight measures of the same models: in how many is the last layer the one that changes most?
#
# - **a** In all of them.
# - **b** In six or seven; the measures of syntax or of weights differ.
# - **c** In about half: three to five.
# :::

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "I have made my choice: show the figure"}
keys = list(dict.fromkeys(whole["measure"]))
number = len(whole.groupby(["task", "seed"]))
in_words = f"{counted(number, 'model')} of {counted(whole['task'].nunique(), 'task')}"


def scaled(values):
    """A curve scaled to [0, 1] by its own range; missing throughout where it is constant."""
    extent = np.ptp(values)
    return (values - values.min()) / extent if extent > 0 else values * np.nan


panels = {}
for task, rows in whole.groupby("task", sort=False):
    means = rows.pivot_table("value", "measure", "layer").loc[keys]
    panels[title(task)] = means.apply(scaled, axis=1).rename(name)
starts = [place for place in range(1, len(keys)) if lens(keys[place]) != lens(keys[place - 1])]
ticks = {0: "the row's least change", 1: "its greatest"}
how = dict(label="change, each row scaled to its own range", x_label="layer")
drawing = heat_maps(panels, whole, cells=Cells(peaks=True, ticks=ticks), **how)
for axes, place in product(drawing.figure.axes[: len(panels)], starts):
    axes.axhline(place, color="white", linewidth=5)
run.figure(
    "Overview",
    drawing,
    f"Where fine-tuning changes an encoder, by {len(keys)} measures of five lenses ({in_words}, "
    "mean over seeds). Each row is scaled to its own range, so that shades compare layers and not "
    "rows; a white dot marks the layer of greatest change, wider gaps part the lenses.",
)

# %% [markdown]
# The same in their own units, beside their nulls and the {term}`twins <twin>`:

# %% tags=["hide-input"]
rows = whole.assign(panel=whole["measure"].map(name))
nulls = {"null": "null"}
for control, words in zip(TWINS, ("moved at random", "functional twin"), strict=True):
    column = control.replace(" ", "_")
    twins = select(changes[changes["control"] == control], control)
    twins = twins.rename(columns={"value": column})[["task", "seed", "measure", "layer", column]]
    if len(twins):
        rows, nulls[column] = rows.merge(twins, how="left"), words
look = dict(y_label="change", nulls=nulls, layout=Layout(panels="panel", far=2))
run.figure(
    "All curves",
    curves(rows, "value", by="task", **look),
    f"Every measure in its own unit, more change upwards ({in_words}, bands from least to "
    "greatest seed). Dashed: the null of the table of instruments, mean over the models. Other "
    "broken lines are the twins.",
    key="curves",
)

# %% [markdown]
# With no more points than dimensions, planes separate any labels, even permuted ones
# ({py:func}`fivelenses.lenses.directprobe.probe`). So a distance of labels counts only by its
# excess over that of permuted labels.
#
# Is it the higher layers that change? We ask by thirds of the depth. Intervals of a mean over tasks
# and seeds count tasks, because models of one task have much in common. A few tasks may agree by
# chance, so we count models instead where that gives the wider interval.


# %% tags=["claim", "hide-input"]
MODEL, PAIR, KEYS = ["task", "seed"], ["first", "second"], [measure.key for measure in MEASURES]
CONSTANT = "the measures that it compares are the same at all layers"
OF_MEASURES = dict(place=OURS, record=changes, pools_tasks=True, if_empty=CONSTANT)


def varying(rows):
    """The curves that vary: a measure that is the same at all layers orders nothing."""
    vary = rows.groupby(["measure", *MODEL])["value"].transform("nunique") > 1
    if not vary.any():
        raise CannotTest(CONSTANT)
    return rows[vary]


def over_models(rows, value, most=np.inf):
    """The mean of a column over models with its interval; None where no model has it."""
    rows = rows[rows[value].notna().groupby([rows[column] for column in MODEL]).transform("all")]
    if rows.empty:
        return None
    found, rows = [], rows if "fold" in rows else rows.assign(fold=WHOLE)
    for draws in (["task"], MODEL) if rows["task"].nunique() > 1 else (["seed"],):
        means = rows.pivot_table(value, draws, "fold")
        theta, left_out = means[WHOLE].to_numpy(), means.drop(columns=WHOLE).to_numpy()
        found.append(jackknife(theta, left_out) if left_out.size else over_seeds(theta))
    widest = max(found, key=lambda one: one.high - one.low)
    return replace(widest, models=len(theta)).cut(-most, most)


# %% tags=["claim", "hide-input"]
def by_task(gaps, part):
    """The mean of a number of each model, per task, with its interval."""
    tasks = gaps.reset_index().groupby("task", sort=False)
    found = {task: over_models(of_task, gaps.name) for task, of_task in tasks}
    return {task: {part: interval} for task, interval in found.items() if interval is not None}


def differences_of_thirds(rows, *pairs):
    """The mean change in one third of the layers less that in another, per measure."""
    rows = varying(rows)
    of_third = {}
    for third, layers in thirds(int(rows["layer"].max())).items():
        of_third |= dict.fromkeys(layers, third)
    columns = ["measure", *MODEL, "fold", rows["layer"].map(of_third)]
    means = rows.groupby(columns, sort=False)["value"].mean().unstack("layer").reset_index()
    groups = {}
    for key, of_measure in means.groupby("measure", sort=False):
        for third, other in pairs:
            gaps = of_measure.assign(gap=of_measure[third] - of_measure[other])
            part = f"{third} third over {other} third"
            groups.setdefault(name(key), {})[part] = over_models(gaps, "gap")
    return groups


@run.claim(
    "all-rise-with-depth",
    says="Whatever the lens, fine-tuning changes a layer the more the higher it is.",
    unit="units of the measure",
    per="measure",
    **OF_MEASURES,
)
def rise_from_third_to_third(rows):
    """Change in a third of the layers less that in the third below."""
    return differences_of_thirds(rows, ("middle", "low"), ("high", "middle"))


# %% tags=["claim", "hide-input"]
@run.claim(
    "top-is-high",
    says="The high third of the layers changes most, whatever the measure.",
    unit="units of the measure",
    per="measure",
    **OF_MEASURES,
)
def high_third_over_the_others(rows):
    """Change in the high third of the layers less that in the middle, and less that in the low."""
    return differences_of_thirds(rows, ("high", "middle"), ("high", "low"))


# %% [markdown]
# ## Do they order the layers alike?
#
# Nats, shares and accuracies cannot be compared, but orders can. We take Spearman's
# {term}`rank correlation` of two measures over the layers of a model, and average it over models.
# By hand and by pandas:

# %% tags=["method"]
one, other = [0.1, 0.3, 0.2, 0.4], [1.0, 2.0, 3.0, 9.0]  # two measures at four layers
ranks = [np.argsort(np.argsort(curve)) for curve in (one, other)]
by_hand = np.corrcoef(*ranks)[0, 1]
library = pd.Series(one).corr(pd.Series(other), "spearman")
{"by hand": round(float(by_hand), 6), "pandas": round(float(library), 6)}

# %% [markdown]
# Two measures that rise with depth agree for that alone. The partial correlation holds the layer's
# number $d$ fixed:
#
# $$\rho_{ab \cdot d} =
# \frac{\rho_{ab} - \rho_{ad} \rho_{bd}}{\sqrt{(1 - \rho_{ad}^2)(1 - \rho_{bd}^2)}}.$$
#
# It is undefined for a measure that rises, or falls, at every layer.


# %% tags=["claim", "hide-input"]
def orders(of_model, value="value"):
    """Rank correlations over the layers of one model, of its measures and with depth."""
    columns = of_model.pivot(index="layer", columns="measure", values=value)
    columns["depth"] = columns.index
    columns = columns[[key for key in (*KEYS, "depth") if key in columns]]
    return columns.corr("spearman").round(12)  # undefined for a constant


def beside_depth(rho):
    """What is left of each correlation with the layer's number held fixed."""
    depth = rho["depth"].to_numpy()
    left = np.outer(1 - depth**2, 1 - depth**2)
    left = np.where(left > 1e-12, left, np.nan)
    return ((rho - np.outer(depth, depth)) / np.sqrt(left)).clip(-1, 1)


def correlations(rows):
    """The rank correlation of each pair of measures in each model, and that beside depth."""
    found = []
    for model, of_model in rows.groupby(MODEL, sort=False):
        rho = orders(of_model)
        left = beside_depth(rho)
        pairs = combinations(rho.index[:-1], 2)
        found += [(*model, *pair, rho.at[pair], left.at[pair]) for pair in pairs]
    return pd.DataFrame(found, columns=[*MODEL, *PAIR, "correlation", "given_depth"])


def between_lenses(rows):
    """The same for pairs of lenses: the mean over the pairs of their measures, in each model."""
    table = correlations(rows)
    table[PAIR] = table[PAIR].map(lens)
    table = table[table["first"] != table["second"]]
    return table.groupby([*MODEL, *PAIR], sort=False).mean().reset_index()


# %% tags=["hide-input"]
def between_seeds(rows):
    """The rank correlation of each measure with itself in two models of one task."""
    found = []
    for (task, measure), of_measure in rows.groupby(["task", "measure"], sort=False):
        rho = of_measure.pivot(index="layer", columns="seed", values="value").corr("spearman")
        found += [(task, measure, rho.loc[pair]) for pair in combinations(rho.index, 2)]
    return pd.DataFrame(found, columns=["task", "measure", "correlation"])


def summary(rows):
    """Pairs with their mean correlation over models, its interval, and where it is defined."""
    found = []
    for pair, of_pair in rows.groupby(PAIR, sort=False):
        mean, left = over_models(of_pair, "correlation", 1), of_pair["given_depth"]
        numbers = (np.nan,) * 3 if mean is None else (mean.estimate, mean.low, mean.high)
        counts = of_pair["correlation"].count(), left.count()
        found.append((*pair, *numbers, *counts, left.mean()))
    columns = ["correlation", "low", "high", "models", "given_depth_models", "given_depth"]
    return pd.DataFrame(found, columns=[*PAIR, *columns])


# %% tags=["hide-input"]
pairs = summary(correlations(whole)).drop(columns=["given_depth", "given_depth_models"])
pairs.insert(2, "same_lens", pairs["first"].map(lens) == pairs["second"].map(lens))
repeated = between_seeds(whole).groupby("measure")["correlation"].mean()
square = pd.DataFrame(np.nan, keys, keys)
bold, framed = square.notna(), square.notna() | np.eye(len(keys), dtype=bool)
for pair in pairs.itertuples():
    square.loc[pair.second, pair.first] = pair.correlation
    bold.loc[pair.second, pair.first] = pair.low > 0 or pair.high < 0
for key in repeated.index:
    square.loc[key, key] = repeated[key]
undefined = number * len(pairs) - pairs["models"].sum()
left_out = f" {undefined} are undefined, where a measure is the same at all layers, and left out."
# Rounded before it is written, so that no zero has a sign.
square = square.rename(index=name, columns=name).round(2) + 0.0
look = dict(label="mean rank correlation", limits=(-1, 1))
run.figure(
    "Rank correlations",
    heat_maps({"": square}, pairs, **look, cells=Cells("{:.2f}", bold, framed)),
    f"How alike two measures order the layers of a model, averaged over models ({in_words}); bold "
    "where the 95% interval, the wider of that over tasks and that over models, excludes 0. "
    f"Framed: a measure with itself in two seeds of one task.{left_out if undefined else ''}",
    key="correlations",
)


# %% tags=["claim", "hide-input"]
@run.claim(
    "outputs-agree-more",
    says="Measures of attention and features agree more with each other than with how far the "
    "weights moved.",
    place=OURS,
    record=changes,
    per="task",
    unit="rank correlation",
    if_empty=CONSTANT,
)
def agreement_of_outputs(rows):
    """Mean rank correlation among attention, features and similarity, minus theirs with the
    weights.
    """
    table, outputs = correlations(varying(select(rows))), ("js", "svcca", "rsa")
    first, second = (table[side].isin(outputs) for side in PAIR)
    weights = (table[PAIR] == "weights").any(axis=1)
    inside, across = (
        table[kind].groupby(MODEL, sort=False)["correlation"].mean()
        for kind in (first & second, weights & (first | second))
    )
    part = "agreement with themselves over that with the weights"
    return by_task((inside - across).rename("gap"), part)


# %% [markdown]
# For two lenses we average the correlations of their measures. Intervals cover tasks and seeds, not
# layers: two arbitrary orders of few layers often correlate by chance.

# %% tags=["hide-input"]
lenses = between_lenses(whole)
table = summary(lenses).sort_values("correlation", ascending=False)
table["pair"] = table["first"].map(LENSES) + " / " + table["second"].map(LENSES)
of_lenses = pairs.assign(**{side: pairs[side].map(lens) for side in PAIR}).groupby(PAIR)
table = table.join(of_lenses["correlation"].agg(least="min", most="max"), on=PAIR)
run.table(
    "Pairs of lenses",
    table,
    "From the most to the least alike: mean rank correlation over layers of their measures "
    f"({in_words}), with its 95% interval (the wider of that over tasks and that over models, "
    "the layers being given); least and greatest of a pair of measures; and the partial "
    "correlation with the layer's number held fixed, over the models in which it is defined.",
    columns={"pair": "lenses", "correlation": "rank correlation", "least": "of two measures"}
    | {"models": "models", "given_depth": "given depth"},
    formats={"correlation": "{correlation:z.2f} ({low:z.2f} to {high:z.2f})"}
    | {"least": "{least:z.3f} to {most:z.3f}"}
    | {"given_depth": "{given_depth:z.2f} ({given_depth_models} models)"},
    key="lenses",
)
means = lenses.groupby(MODEL, sort=False)["correlation"].mean().reset_index()
overall = over_models(means, "correlation", 1)
run.glue(models=in_words, overall="undefined" if overall is None else f"{overall.estimate:z.2f}")


# %% tags=["claim", "hide-input"]
@run.claim(
    "lenses-agree",
    says="Any two lenses, each with its measures pooled, order the layers alike.",
    above=0.5,
    because="below, three quarters of one order are unexplained by the other",
    unit="1",
    per="pair",
    **OF_MEASURES,
)
def agreement_of_lenses(rows):
    """Rank correlation of two lenses over the layers, mean over the pairs of their measures
    (similarity and syntax count as one lens).
    """
    pairs = between_lenses(varying(select(rows))).groupby(PAIR, sort=False)
    found = {pair: over_models(of_pair, "correlation", 1) for pair, of_pair in pairs}
    found = {pair: interval for pair, interval in found.items() if interval is not None}
    return {" / ".join(map(LENSES.get, pair)): {"rank correlation": found[pair]} for pair in found}


# %% [markdown]
# ## Which layer changes most?
#
# The centre of change of a measure is $\sum_l l\,s_l / \sum_l s_l$ for its values $s$ scaled to
# $[0, 1]$ within the model.


# %% tags=["hide-input"]
def centres(rows):
    """Where each measure sees change in each model: its centre, its top, and whether it rises."""
    found = []
    for model, of_model in rows.groupby(MODEL, sort=False):
        rises = orders(of_model)["depth"]
        for measure, curve in of_model.groupby("measure", sort=False):
            layers, shares = curve["layer"].to_numpy(), scaled(curve["value"].to_numpy(float))
            centre = layers @ shares / shares.sum()
            top = np.nan if np.isnan(centre) else layers[shares.argmax()]  # the lowest of equals
            found.append((*model, measure, centre, top, rises[measure]))
    return pd.DataFrame(found, columns=[*MODEL, "measure", "centre", "top", "rises"])


places = centres(whole)
middle = (whole["layer"].min() + whole["layer"].max()) / 2
rows = places.assign(row=places["measure"].map(name))
drawing = dots(rows, "centre", "row", "task", label="layer", line=middle, mean=True)
drawing.figure.axes[0].set_xlim(whole["layer"].min(), whole["layer"].max())
run.figure(
    "Centres of change",
    drawing,
    "The centre of change of each measure: the mean layer, weighted by its values scaled to its "
    f"own range. One point per model ({in_words}), a bar at their mean; dashed, the middle of the "
    "encoder.",
    key="centres",
)

# %% tags=["hide-input"]
of_measure = places.groupby("measure", sort=False)
table = of_measure[["centre", "rises"]].agg(["mean", "std"])
table.columns = ["centre", "centre_sd", "rises", "rises_sd"]
seeds = between_seeds(whole).groupby("measure")["correlation"].agg(["mean", "std"])
table = table.join(seeds.rename(columns={"mean": "seeds", "std": "seeds_sd"})).reset_index()
counts = [tops.value_counts().sort_index().items() for _, tops in of_measure["top"]]
table["tops"] = [", ".join(f"{top:.0f} ({models})" for top, models in of_one) for of_one in counts]
run.table(
    "Greatest change",
    table.assign(lens=table["measure"].map(lens)),
    "The layer at which each measure is greatest, with the number of models; its centre; and its "
    "rank correlation with depth, and with itself in another seed of the same task, mean ± "
    f"standard deviation ({in_words}).",
    columns={"measure": "measure", "lens": "lens", "tops": "layer of greatest change (models)"}
    | {"centre": "centre", "rises": "with depth", "seeds": "between seeds"},
    formats={"measure": name, "lens": LENSES.get, "centre": "{centre:.2f} ± {centre_sd:.2f}"}
    | {one: f"{{{one}:z.2f}} ± {{{one}_sd:.2f}}" for one in ("rises", "seeds")},
    key="greatest",
)

# %% [markdown]
# ## Why they part
#
# Activations inherit: much of the change in a layer's output came in with its input. If that is why
# activations and parameters disagree, the change that a layer *adds* (its output's minus its
# input's) agrees better with the layer's parameters than the whole change does.


# %% tags=["claim", "hide-input"]
def added(rows):
    """Rank correlations of a layer's parameters with its output's change, and with what it adds."""
    found = []
    for model, of_model in rows.groupby(MODEL, sort=False):
        wide = of_model.pivot(index="layer", columns="measure")
        pairs = [(one, own) for one in ("svcca", "rsa") for own in ("rollback", "weights")]
        for measure, own in pairs:
            if measure in wide["value"] and own in wide["value"]:
                output = wide["value"][measure]
                sides = {"output": output, "added": output - wide["entering"][measure]}
                rho = pd.DataFrame(sides | {"own": wide["value"][own]}).corr("spearman")["own"]
                found.append((*model, measure, own, *rho[["output", "added"]].round(12)))
    table = pd.DataFrame(found, columns=[*MODEL, "measure", "own", "output", "added"])
    return table.assign(difference=table["added"] - table["output"])


# %% tags=["hide-input"]
table = added(whole)
pair = table["measure"].map(name) + " and " + table["own"].map(name)
sides = {"output": "what it puts out", "added": "what it adds"}
parts = (table.assign(side=words, correlation=table[side]) for side, words in sides.items())
rows = pd.concat(parts).assign(pair=pair)
run.figure(
    "What a layer adds",
    dots(rows, "correlation", "pair", "side", label="rank correlation", line=0),
    "Rank correlation over layers of rollback or weights with the change of a layer's output, and "
    f"with what the layer adds; one point per model ({in_words}).",
    key="added",
)


# %% tags=["claim", "hide-input"]
@run.claim(
    "layers-inherit",
    says="Features part from weights because a layer inherits what changed below it: what it adds "
    "agrees better.",
    place=OURS,
    record=changes,
    per="task",
    unit="rank correlation",
    if_empty=CONSTANT,
)
def gain_of_what_a_layer_adds(rows):
    """Rank correlation with the weights of what a layer adds to the features' change, minus that of
    the whole.
    """
    table = added(varying(select(rows)))
    means = table[table["own"] == "weights"].groupby(MODEL, sort=False)["difference"].mean()
    return by_task(means, "agreement of what a layer adds over that of the whole")


# %% [markdown]
# ## And at another learning rate?
#
# Each verdict above is on models trained at one rate, and papers train at different ones. So the
# claims of [chapter 1](/published/1-attention-svcca.ipynb) were judged at four.

# %% tags=["hide-input"]
sweep = learning_rates()
verdicts = by_rate(sweep)
groups = sweep.drop_duplicates(["claim", "learning_rate", "group"])
held = groups.groupby(["claim", "learning_rate"])["group_outcome"].agg(
    lambda outcomes: f" ({(outcomes == 'holds').sum()}/{outcomes.count()})"
)
held = held.replace(" (0/0)", "").unstack().loc[verdicts.index]
run.table(
    "Learning rates",
    sweep,
    "Verdicts on claims of chapter 1 at four learning rates, with the tasks in which each holds of "
    "those that test it: all-MiniLM on MNLI and SST-2, seeds 20 to 22, not its chapter 1's. "
    "Stays: at how many of the other rates that test a claim its verdict is that at 5e-5, the "
    "rate of this encoder elsewhere.",
    shown=(verdicts[held.columns] + held).assign(stays=verdicts["stays"]).reset_index(),
    columns={"claim": "claim"}
    | {rate: f"{rate:.0e}".replace("-0", "-") for rate in held}
    | {"stays": "stays"},
)

# %% [markdown]
# ## The claims
#
# The five claims are ours. Intervals cover tasks, or seeds where the group is a task, and sentences
# in the claims on thirds, except for label distance, syntax and weights.

# %% tags=["hide-input"]
run.finish()

# %% [markdown]
# What to keep in mind:
#
# - **Which lens is right?** This chapter cannot say.
#   [Chapter 7](/published/7-known-truth.ipynb) tries the lenses on encoders of which we know where
#   they changed.
# - **Few layers.** Averages over models add no layers, and all models share one pre-trained
#   encoder.
# - **Scaled rows.** In the first picture and the centres, a measure that hardly varies looks as
#   eventful as any.
# - **Kinds of lens.** SVCCA and {term}`RSA` read the same vectors, RSA only those of words.
#
# Three [exercises](/exercises.md#chapter-6-do-the-lenses-agree) go with this chapter.
