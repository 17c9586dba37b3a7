# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What can each lens see?
#
# **The question.** The lenses of [chapter 6](/published/6-five-lenses.ipynb) disagree about which
# layers fine-tuning changes. Which is right? We make encoders of which we know where they changed,
# how much, whether at all, and for what.
#
# **The answer here.** Where only some layers were trained, the weights name a trained layer
# {glue:text}`weights_names`, rollback {glue:text}`rollback_names`, and features
# {glue:text}`features_names`, or {glue:text}`features_adds` by what a layer *adds*. But where the
# encoder computes exactly what it did before, the weights report {glue:text}`weights_seen` times
# the change of fine-tuning.

# %% tags=["parameters", "hide-input"]
profile = "tiny"  # tiny or small: the files in notebooks/profiles
# Everything below is as the profile says unless it is given here.
encoder = None
source = None
tasks = None
seeds = None
schedules = None
learning_rate = None
learning_rate_by_encoder = None
batch_size = None
epochs = None
training_examples = None
precision = None
doses = None
neighbours = None
planted = None
planted_examples = None
evaluation_examples = None
similarity_tokens = None
probe_points = None
structural_sentences = None
device = None

# %% tags=["claim", "hide-input"]
import numpy as np
import pandas as pd

from fivelenses import judging
from fivelenses.exhibits import Cells, Layout, counted, curves, dots, heat_maps, printed
from fivelenses.judging import OURS, title
from fivelenses.lenses.checks import INVARIANCES
from fivelenses.papers.measures import BY_KEY, LENSES, MEASURES, name
from fivelenses.records import ALL, FROZEN, FULL, FUNCTIONAL_TWIN, SHUFFLED, SYMMETRIES, TREES, TWIN
from fivelenses.run import begin

run = begin(7, globals())
settings = run.settings

# %% [markdown]
# ## The setting
#
# We try every measure of chapters 1 and 6 and three more: debiased {term}`CKA`
# {cite}`kornblith2019`, the orthogonal {term}`Procrustes distance`, and mutual nearest neighbours.
# Each compares a model with its pre-trained encoder.
#
# ```{table} The five parts of the chapter.
# | part | the models | what a lens should say |
# |---|---|---|
# | where | all layers frozen except one, in some runs also two | names a layer that was trained |
# | how much | the same training, shorter and longer | more after more steps |
# | nothing | weights that changed while every output stayed | nothing |
# | anything | weights moved at random; shuffled labels | less than after learning |
# | what | trained on one kind of annotation | this kind, and no other |
# ```

# %% tags=["claim", "hide-input"]
changes = run.measure("changes_seen", of={"task": settings.tasks}, each=("task", "seed"))
measured = [measure.key for measure in MEASURES if measure.key in set(changes["measure"])]


# %% tags=["hide-input"]
models = run.measure("models", of=settings.ordinary_models)


def number(kind, where=changes):
    """The models of a kind, in words."""
    rows = where[(where["kind"] == kind) & (where["dose"] > 0)]
    return counted(len(rows[["task", "seed", "trained", "dose"]].drop_duplicates()), "model")


run.table(
    "The models",
    models.assign(reached=np.where(models["diverged"], np.nan, models["score"])),
    f"The usual models ({counted(changes['seed'].nunique(), 'seed')} of "
    f"{counted(changes['task'].nunique(), 'task')}), with their development scores (accuracy; "
    "Matthews correlation where the null rate is 0; none where training diverged). Beside each are "
    f"{counted(changes.loc[changes['kind'] == FROZEN, 'trained'].nunique(), 'model')} trained in "
    f"one place alone, {len({*changes['dose']} - {0, 1})} trained for longer or shorter, "
    f"{changes['kind'].isin(SYMMETRIES).groupby(changes['kind']).any().sum()} changed without "
    "effect, one of shuffled labels and "
    f"{counted(len({TWIN, FUNCTIONAL_TWIN} & {*changes['kind']}), 'twin')}.",
    columns={"task": "task", "null_rate": "null rate", "examples": "examples"}
    | {"seed": "seed", "reached": "score"},
    formats={"task": title, "null_rate": "{:.3f}", "examples": "{:,}", "reached": "{:.3f}"},
    key="models",
)
words = run.measure("words_by_example", over=settings.training_sets)
run.gate(models, run.measure("by_example", of=settings.ordinary_models, each="task"), words=words)

# %% [markdown]
# Scores and claims rest on a few functions of the record. Intervals are over models of different
# seeds; examples count as given.

# %% tags=["claim", "hide-input"]
MODEL = ["task", "seed"]
TIE = 1e-5  # of the larger of two values: what differs by less was equal before rounding
PER_MEASURE = dict(place=OURS, record=changes, unit="1", per="measure", pools_tasks=True)
PER_MEASURE |= dict(no_twin="its twins are part of what it measures")


def by_layer(rows, kind):
    """The values of one kind of model, a row per model and measure, a column per layer."""
    keys, rows = [*MODEL, "trained", "dose", "measure"], rows[rows["kind"] == kind]
    return rows.pivot(index=keys, columns="layer", values="value").astype(float)


def usual(rows, kind):
    """The same of models whose layers were all trained, and as long as usual."""
    return by_layer(rows, kind).xs((ALL, 1.0), level=("trained", "dose"))


def over_models(rows, column, of_counts=False):
    """The mean of a column over models, each the mean of its own rows."""
    groups = rows.groupby(MODEL)[column]
    return judging.over_seeds(groups.mean(), step=1 / groups.size().min() if of_counts else 0.0)


def by_measure(rows, column, least, most, of_counts=False):
    """The interval of each measure, within what the number can be."""
    found = {}
    for key, of_measure in rows.groupby("measure"):
        if of_measure[column].notna().any():
            found[name(key)] = over_models(of_measure, column, of_counts).cut(least, most)
    return found


# %% [markdown]
# ## Where?
#
# All but one layer are frozen. Those above it keep their weights and see other input. We ask each
# lens for the layer at which the model departs most from the pre-trained encoder, in either
# direction; equal layers share the vote. A lens is read in two ways: by its value $v_l$ at a layer,
# and by what the layer *adds*, $|v_l| - |v_{l-1}|$.


# %% tags=["claim", "hide-input"]
READINGS = {"value": "by its value", "adds": "by what it adds"}
CASE = [*MODEL, "trained", "measure", "reading"]


def departures(curve, reading, measure):
    """How far a measure departs from 0 at each layer, or how much further than at the layer below.

    A measure of a layer's own parameters inherits nothing: both readings of it are one.
    """
    sizes = np.abs(curve)
    inherits = reading == "adds" and BY_KEY[measure].reads_activations
    return np.diff(sizes, prepend=0.0) if inherits else sizes


# %% tags=["claim", "hide-input"]
def named(rows):
    """Which layers each measure names in each model with frozen layers.

    `share` is that of the vote, `off` counts layers from the nearest trained one, `own` is the
    trained layers' share of all that the measure reports, the rest what naming at random gives.
    """
    found = []
    for (task, seed, place, _, measure), curve in by_layer(rows, FROZEN).iterrows():
        trained = range(int(place.partition("-")[0]), int(place.rpartition("-")[2]) + 1)
        gaps = curve.index.to_numpy()[:, None] - np.array(trained)
        off = gaps[np.arange(len(gaps)), np.abs(gaps).argmin(axis=1)]
        at_random = (off == 0).mean(), np.abs(off).mean()
        for reading in READINGS:
            departs = departures(curve.to_numpy(), reading, measure)
            top = np.flatnonzero(departs >= departs.max() - TIE * np.abs(departs).max())
            upwards = departs.clip(0)
            own = upwards[off == 0].sum() / upwards.sum() if upwards.any() else np.nan
            case = (task, seed, place, measure, reading)
            found += [(*case, off[layer], 1 / len(top), own, *at_random) for layer in top]
    numbers = ["off", "share", "own", "right_at_random", "error_at_random"]
    return pd.DataFrame(found, columns=[*CASE, *numbers])


def cases(rows):
    """Per model, measure and reading: whether a trained layer is named, and how far it is off."""
    votes = named(rows)
    votes["right"] = votes["share"] * (votes["off"] == 0)
    votes["error"] = votes["share"] * votes["off"].abs()
    sums = dict.fromkeys(["right", "error"], "sum")
    same = dict.fromkeys(["own", "right_at_random", "error_at_random"], "first")
    return votes.groupby(CASE, sort=False).agg(sums | same).reset_index()


# %% tags=["hide-input"]
votes, depth = named(changes), int(changes["layer"].max())
votes = votes[~votes["trained"].str.contains("-")]
counts = votes.groupby(["reading", "measure", "off"])["share"].sum()
shares = (counts / counts.groupby(["reading", "measure"]).sum()).rename("cases")
offs = range(1 - depth, depth)
panels = {}
for reading, words in READINGS.items():
    matrix = shares[reading].unstack().reindex(index=measured, columns=offs)
    panels[words] = matrix.fillna(0).rename(index=name)
look = dict(label="share of the cases", x_label="named layer minus trained layer")
cells = Cells(peaks=True, ticks={0: "never", 1: "always"})
drawing = heat_maps(panels, shares.reset_index(), **look, cells=cells)
ticks = [printed(off, "+d") if off else "0" for off in offs]
for axes in drawing.figure.axes[:2]:
    axes.set_xticks(np.arange(len(offs))[::2] + 0.5, ticks[::2])
run.figure(
    "Where",
    drawing,
    "How far above the trained layer each measure names one: share of cases "
    f"({number(FROZEN, changes[~changes['trained'].str.contains('-')])}); white dots: the most "
    f"frequent. Always naming the last gives equal shares from 0 to +{depth - 1}.",
)

# %% tags=["hide-input"]
table, found = cases(changes), []
at_random = table[["right_at_random", "error_at_random"]].mean()
for reading in ((measure, reading) for measure in measured for reading in READINGS):
    rows = table[(table["measure"] == reading[0]) & (table["reading"] == reading[1])]
    right, error = int(rows["right"].sum() + 1e-9), over_models(rows, "error")  # whole cases
    numbers = (right, len(rows), error.estimate, error.low, error.high, rows["own"].mean())
    found.append((*reading, *numbers, *at_random))
columns = ["measure", "reading", "right", "of", "error", "low", "high", "own"]
places = pd.DataFrame(found, columns=[*columns, "right_at_random", "error_at_random"])
ends = " ({low:z.2f} to {high:.2f})" if np.isfinite(places["low"]).all() else ""  # not of one seed
run.table(
    "Places",
    places,
    "Right: cases in which a trained layer is named. Error: layers to the nearest trained one, "
    f"{'with 95% intervals over models ' if ends else ''}(at random "
    f"{at_random['error_at_random']:.2f}). Reported of trained layers: their share of the sum; the "
    f"rest of features is inherited ({number(FROZEN)}).",
    columns={"measure": "measure", "reading": "read", "right": "right", "error": "error"}
    | {"own": "reported of trained layers"},
    formats={"measure": name, "reading": READINGS.get, "right": "{right} of {of}"}
    | {"error": "{error:.2f}" + ends, "own": "{:.0%}"},
)

# %% tags=["hide-input"]
FEATURES = ["svcca", "pwcca", "cka", "rsa", "cka_debiased", "procrustes", "neighbours"]


def in_cases(measures, reading):
    """In how many cases measures name a trained layer, in words."""
    rows = places[places["measure"].isin(measures) & (places["reading"] == reading)]
    ends = dict.fromkeys([rows["right"].min(), rows["right"].max()])
    return f"in {' to '.join(map(str, ends))} of {rows['of'].max()} cases"


run.glue(
    weights_names=in_cases(["weights"], "value"),
    rollback_names=in_cases(["rollback"], "value"),
    features_names=in_cases(FEATURES, "value"),
    features_adds=in_cases(FEATURES, "adds"),
)


# %% tags=["claim", "hide-input"]
@run.claim(
    "lens-names-layer",
    says="Whatever the lens, the layer at which it sees most is one that was trained.",
    above=0.5,
    because="below, it points elsewhere more often than not",
    **PER_MEASURE,
)
def share_of_cases_in_which_it_names_a_trained_layer(rows):
    """Share of models with frozen layers of which a measure names a layer that was trained."""
    table = cases(rows)
    found = by_measure(table[table["reading"] == "value"], "right", 0, 1, of_counts=True)
    part = "share of cases in which it names a trained layer"
    return {key: {part: one} for key, one in found.items()}


# %% [markdown]
# Where the change of features grows on its way up, a lens that reads activations points above the
# layer that caused it. The change of a layer's output minus that of its input,
# {term}`what a layer adds`, can find the cause. Measures of a layer's own parameters inherit
# nothing: their two readings are the same, and right whenever they see anything. So are rollback
# and the last layer after it, since rolling back a frozen layer changes nothing.
#
# ## How much?
#
# We repeat the training, with its whole schedule, for shares of the usual number of steps, the
# {term}`doses <dose>`.

# %% tags=["hide-input"]
table = changes[changes["kind"] == FULL]
table = table.groupby([*MODEL, "measure", "dose"], sort=False, as_index=False)["value"].mean()
table = table.sort_values("measure", key=lambda keys: keys.map(measured.index), kind="stable")
table = table.assign(panel=table["measure"].map(name))
axes = dict(y_label="change, own unit", x="dose", x_label="share of the usual steps")
run.figure(
    "How much",
    curves(table, "value", by="task", **axes, layout=Layout(panels="panel", height=1.75)),
    "In each measure's unit, mean over layers, after shorter and longer trainings "
    f"({number(FULL)}; bands: range of seeds).",
    key="dose",
)


# %% tags=["claim", "hide-input"]
def dose_correlations(rows):
    """Rank correlation of each measure with the dose above 0, mean over layers (0: constant)."""
    rows, found = rows[rows["dose"] > 0], []
    for key, table in by_layer(rows, FULL).groupby([*MODEL, "measure"], sort=False):
        rho = table.reset_index("dose").corr("spearman")["dose"].drop("dose").round(12)
        found.append((*key, rho.fillna(0).mean()))
    return pd.DataFrame(found, columns=[*MODEL, "measure", "correlation"])


@run.claim(
    "lens-rises-with-dose",
    says="Whatever the lens, it sees more the longer an encoder was trained.",
    above=0.5,
    because="it lies halfway between no order and the dose's",
    **PER_MEASURE,
)
def rank_correlation_with_the_dose(rows):
    """Rank correlation of a measure with the length of training, mean over layers."""
    found = by_measure(dose_correlations(rows), "correlation", -1, 1)
    return {key: {"rank correlation with the dose": one} for key, one in found.items()}


# %% [markdown]
# The untrained encoder has no part in this: there every distance is 0, whatever training does.
# A measure that uses the labels may not rise until something is learned.
#
# ## Nothing: changes that no output shows
#
# A layer computes the same function after its heads or its intermediate neurons change places,
# after a rotation of a head's values that its output projection undoes, and after a scaling of
# queries that the keys undo ({py:mod}`fivelenses.models.controls`). We apply these changes to the
# pre-trained encoder.


# %% tags=["claim", "hide-input"]
def without_effect(rows):
    """What each measure reports of changes without effect, as a share of that of fine-tuning.

    Both are mean sizes over the layers. Where a measure reports nothing of fine-tuning, the share
    is 1 if it reports anything here.
    """
    of_tuning, parts = usual(rows, FULL).abs().mean(axis=1), []
    for kind in (kind for kind in SYMMETRIES if kind in set(rows["kind"])):
        here = usual(rows, kind).abs().mean(axis=1)
        share = (here / of_tuning).where(of_tuning > 0, (here > 0).astype(float))
        parts.append(share.rename("share").reset_index().assign(kind=kind))
    return pd.concat(parts, ignore_index=True)


# %% tags=["hide-input"]
table = without_effect(changes)
kinds = list(dict.fromkeys(table["kind"]))
matrix = table.pivot_table("share", "measure", "kind").loc[measured, kinds].rename(index=name)
look = dict(label="share of what fine-tuning shows", cells=Cells("{:.2f}"))
run.figure(
    "Nothing",
    heat_maps({"": matrix.round(2) + 0.0}, table, **look),
    "What each measure reports of these changes, mean over layers, as a share of fine-tuning's "
    f"({counted(changes['seed'].nunique(), 'draw')} each). 0 is right; above 1, more is "
    "reported than of fine-tuning.",
)
of_weights = table[table["measure"] == "weights"].groupby("kind")["share"].mean()
run.glue(weights_seen=f"{of_weights.min():.1f} to {of_weights.max():.1f}")


# %% tags=["claim", "hide-input"]
@run.claim(
    "lens-silent-at-nothing",
    says="Whatever the lens, it sees nothing where the weights changed and the function did not.",
    above=-0.1,
    because="a tenth: what is more would be read as a change",
    **PER_MEASURE,
)
def share_of_fine_tuning_reported_of_nothing(rows):
    """Largest share of fine-tuning's change that a measure reports of four changes without effect,
    negative.
    """
    most = without_effect(rows).groupby([*MODEL, "measure"], sort=False)["share"].max()
    found = by_measure((-most).reset_index(), "share", -np.inf, 0)
    part = "share of fine-tuning's change that it reports where nothing changed, negative"
    return {key: {part: one} for key, one in found.items()}


# %% [markdown]
# Weight distances and JS divergence rely on two models having their heads in the same places.
# Neither random weights nor another pre-training has, so their null in chapters 1 and 6 lies far
# away for that reason, too.
#
# How much does a lens vary with the seed?

# %% tags=["hide-input"]
found = []
for (task, measure), table in usual(changes, FULL).groupby(["task", "measure"], sort=False):
    if len(table) > 1:
        found.append((task, measure, table.mean().abs().mean(), np.sqrt(table.var().mean())))
noise = pd.DataFrame(found, columns=["task", "measure", "signal", "noise"])
noise["ratio"] = noise["signal"] / noise["noise"]
run.table(
    "Noise",
    noise.sort_values("ratio", ascending=False),
    "Signal: a measure's size after fine-tuning, mean over seeds and layers. Noise: its standard "
    "deviation between seeds, pooled over layers. Both in the measure's own unit.",
    columns={one: one for one in noise.columns} | {"ratio": "signal over noise"},
    formats={"measure": name, "task": title}
    | {"signal": "{:.3g}", "noise": "{:.2g}", "ratio": "{:.1f}"},
    if_empty="it compares seeds and this run has one",
)

# %% [markdown]
# ## Anything: movement without learning
#
# Weights also move when nothing is learned: in a {term}`twin`
# ({py:func}`fivelenses.models.controls.moved_at_random`), in a functional twin (where a run has
# it), which moved until its last layer had changed as much by RSA, and in a model of
# {term}`shuffled labels`, which learns no more of new examples than their frequencies.


# %% tags=["claim", "hide-input"]
WALKS = {TWIN: "moved at random", FUNCTIONAL_TWIN: "functional twin", SHUFFLED: "shuffled labels"}


def wins(learned, moved):
    """(m, k) the share of layers at which model i of m is larger than j of k, ties as one half."""
    gap = learned[:, None] - moved[None]
    scale = np.maximum(np.abs(learned[:, None]), np.abs(moved[None]))
    return np.where(np.abs(gap) <= TIE * scale, 0.5, gap > 0).mean(axis=-1)


def learning(rows):
    """How well each measure tells models that learned from those that only moved.

    `area` is that under the curve of all models of a task, `pseudo` the jackknife's pseudo-value of
    each seed, whose mean is nearly that.
    """
    learned, found = usual(rows, FULL), []
    # A twin has the head of the model that it copies, and rollback reads the loss through it.
    with_head = ~(rows["kind"].isin([TWIN, FUNCTIONAL_TWIN]) & rows["measure"].eq("rollback"))
    for walk in (walk for walk in WALKS if walk in set(rows["kind"])):
        moved = usual(rows[with_head], walk)
        both = learned.index.intersection(moved.index, sort=False)
        for (task, measure), table in learned.loc[both].groupby(["task", "measure"], sort=False):
            won = wins(table.to_numpy(), moved.loc[table.index].to_numpy())
            area, count = won.mean(), len(table)
            for place, seed in enumerate(table.index.get_level_values("seed")):
                rest = np.delete(np.delete(won, place, 0), place, 1)
                pseudo = count * area - (count - 1) * rest.mean() if count > 1 else area
                found.append((task, measure, walk, seed, area, pseudo))
    return pd.DataFrame(found, columns=["task", "measure", "walk", "seed", "area", "pseudo"])


# %% tags=["hide-input"]
table = learning(changes).drop_duplicates(["task", "measure", "walk"])
table = table.sort_values("measure", key=lambda keys: keys.map(measured.index), kind="stable")
table = table.assign(row=table["measure"].map(name), against=table["walk"].map(WALKS))
how = dict(label="probability of being larger", line=0.5)
drawing = dots(table, "area", "row", "against", **how)
drawing.figure.axes[0].set_xlim(-0.04, 1.04)
run.figure(
    "Learned or moved",
    drawing,
    "Probability that a measure is larger in a layer of a fine-tuned model than of one that only "
    "moved, as the legend says; mean over layers "
    f"({number(FULL, changes[changes['dose'] == 1])}). Dashed: chance.",
    key="learning",
)


# %% tags=["claim", "hide-input"]
@run.claim(
    "lens-tells-learning",
    says="Whatever the lens, it sees more where something was learned than where weights only "
    "moved.",
    **PER_MEASURE,
)
def area_under_the_curve_over_one_half(rows):
    """Area under the curve of a measure, models that learned against models that only moved, less
    one half.
    """
    table, groups = learning(rows), {}
    table["gain"] = table["pseudo"] - 0.5
    for walk in (TWIN, SHUFFLED):
        found = by_measure(table[table["walk"] == walk], "gain", -0.5, 0.5)
        for key, one in found.items():
            groups.setdefault(key, {})[f"area under the curve over one half, {WALKS[walk]}"] = one
    return groups


# %% [markdown]
# Weight distances cannot tell a model from its twin, by construction. Rollback reads the loss
# through the head, and no twin has one of its own; beside shuffled labels it has an advantage,
# since it asks for the loss on the true ones. Functional twins have no part in the claim, since
# their weights moved farther than the model's.
#
# ## What: which annotation was trained?
#
# Each of these models was trained on one kind of annotation. Do probes, the geometry of labels and
# structural probes see this kind rise, and not the others?

# %% tags=["hide-input"]
read = run.measure("properties_read", of={"task": settings.planted}, each="task")
drawing = read
if len(read):
    of_labels, growth = read["measure"] == "labels", np.log(read["after"] / read["before"])
    read["gain"] = np.where(of_labels, growth, read["after"] - read["before"])
    titles = {key: title(key) for key in read["property"].unique()} | {TREES: "syntax trees"}
    panels = {}
    for kind, rows in {"probes": read[~of_labels], "label distances": read[of_labels]}.items():
        matrix = rows.pivot_table("gain", "property", "trained_on", sort=False)
        panels[kind] = matrix.reindex(list(titles)).rename(titles).rename(columns=title)
    most = max(np.nanmax(np.abs(matrix)) for matrix in panels.values())
    how = dict(label="change from the pre-trained encoder", x_label="trained on")
    drawing = heat_maps(panels, read, limits=(-most, most), cells=Cells("{:+.2f}"), **how)
run.figure(
    "Planted properties",
    drawing,
    "Annotation trained (columns) and read (rows); means over layers and seeds. Left: a probe's "
    "gain of accuracy (trees: rank correlation). Right: growth of the least distance between "
    "labels (logarithm). Ideally only the diagonal is large.",
    if_empty="no property was planted in this run",
    key="planted",
)

# %% [markdown]
# ## What a measure ignores by its definition
#
# A measure of features is *invariant* to a change that leaves its value as it was
# {cite:p}`klabunde2025`. We test what is declared here for every measure on random features.

# %% tags=["hide-input"]
found = []
for measure in MEASURES:
    row = {"measure": measure.name, "lens": LENSES[measure.lens]}
    for change in INVARIANCES:
        ignores = None if measure.invariances is None else change in measure.invariances
        row[change] = "–" if ignores is None else "yes" if ignores else "no"
    found.append(row)
run.table(
    "Declared invariances",
    pd.DataFrame(found),
    "Changes of the model's features, not of the pre-trained encoder's, that each measure ignores "
    "by definition. “–”: it reads no features.",
    key="invariances",
)

# %% [markdown]
# ## What each lens can see
#
# Which lens is right about all of these?


# %% tags=["hide-input"]
QUESTIONS = {"where": "names the layer", "added": "by what it adds", "dose": "rises with dose"}
QUESTIONS |= {"ignores": "silent at no change", "learning": "learned or moved"}


def answers(rows):
    """For each question, the table and the column whose mean is the score, and what chance gives.

    Against learning stands the twin or shuffled labels, whichever a measure tells from it less.
    """
    of_cases, told = cases(rows), learning(rows[rows["kind"] != FUNCTIONAL_TWIN])
    hardest = told.groupby(["measure", "walk"])["area"].mean().unstack().idxmin(axis=1)
    ignored = without_effect(rows).groupby([*MODEL, "measure"], sort=False)["share"].max()
    at_random = of_cases["right_at_random"].mean()
    return {
        "where": (of_cases[of_cases["reading"] == "value"], "right", at_random),
        "added": (of_cases[of_cases["reading"] == "adds"], "right", at_random),
        "dose": (dose_correlations(rows), "correlation", 0.0),
        "ignores": ((1 - ignored.clip(0, 1)).reset_index(), "share", 0.0),
        "learning": (told[told["walk"] == told["measure"].map(hardest)], "pseudo", 0.5),
    }


# %% tags=["hide-input"]
def scores(rows):
    """The score of each measure on each question, 1 if it is always right, with its interval."""
    found = []
    for question, (table, column, by_chance) in answers(rows).items():
        for key in measured:
            of_measure = table[table["measure"] == key]
            interval = over_models(of_measure, column, of_counts=column == "right")
            score = of_measure["area"].mean() if question == "learning" else interval.estimate
            low, high = np.clip([interval.low, interval.high], -1 if question == "dose" else 0, 1)
            low, high = min(score, low), max(score, high)
            low, high = (low, high) if interval.models > 1 else (np.nan, np.nan)
            found.append((key, question, score, low, high, by_chance))
    return pd.DataFrame(found, columns=["measure", "question", "score", "low", "high", "by_chance"])


table = scores(changes)
always = (table["score"] == 1) & (table["low"] >= 1)
table["above_chance"] = (table["low"] > table["by_chance"]) | always
order = table.groupby("measure")["score"].mean().sort_values(ascending=False, kind="stable").index


def matrix(column):
    """Measures from the best to the worst, by question."""
    wide = table.pivot(index="measure", columns="question", values=column)
    return wide.loc[order, list(QUESTIONS)]


# %% tags=["hide-input"]
costs = run.measure("seconds", of=lambda: settings.ordinary_models()[:1])
seconds = costs.set_index("measure")["seconds"]
titles = {key: f"{name(key)} ({seconds[key]:.1f} s)" for key in order}
above_chance = matrix("above_chance")
chance = table.drop_duplicates("question").set_index("question")["by_chance"]
panel = (matrix("score").round(2) + 0.0).rename(index=titles, columns=QUESTIONS)
cells = Cells("{:.2f}", above_chance, above_chance)
look = dict(label="1 is right in all cases", cells=cells)
drawing = heat_maps({"": panel}, costs.merge(table, "right"), **look)
drawing.figure.set_figwidth(4.7)
run.figure(
    "What each lens can see",
    drawing,
    f"Scores ({number(FROZEN)} with frozen layers, {number(FULL)} with all trained): share of "
    "cases that name a trained layer, by value and by what layers add; rank correlation with the "
    "dose; 1 minus “Nothing”; “Learned or moved”, against twins or shuffled labels, whichever is "
    "harder. Bold: 95% interval over models above chance "
    f"({', '.join(f'{chance[key]:.2f}' for key in QUESTIONS)}). In brackets: seconds per model.",
    key="summary",
)

# %% [markdown]
# Trust a lens only where its cell is bold, and then as far as its score goes: bold is better than
# chance, not yet right. The last column leaves out functional twins. “Last layer after rollback” is
# how far the last layer's features move when one layer is rolled back (chapter 1, Figure 3).


# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show the scores with their intervals"}
def with_interval(row):
    """A score with its interval, as it is printed."""
    ends = f" ({row.low:z.2f} to {row.high:z.2f})" if np.isfinite(row.low) else ""
    return f"{row.score:z.2f}{ends}".replace("-", "−")


shown = table.assign(printed=[with_interval(row) for row in table.itertuples()])
shown = shown.pivot(index="measure", columns="question", values="printed")
shown = shown.loc[measured, list(QUESTIONS)].rename(index=name, columns=QUESTIONS).reset_index()
run.table("Scores", table, "The scores above, with 95% intervals over models.", shown=shown)

# %% [markdown]
# The four claims are ours. Intervals cover seeds, not examples.

# %% tags=["hide-input"]
run.finish()

# %% [markdown]
# **Limits.** Ordinary fine-tuning changes all layers, not one or two. What a measure ignores by its
# definition holds for any encoder; the other numbers may not.
#
# Three [exercises](/exercises.md#chapter-7-what-can-each-lens-see) go with this chapter.
