# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Layers without pre-training (Singh and Giovanardi, 2020)
#
# **The question.** Does a task need all of pre-training? {cite:t}`singh2020` re-initialise the top
# layers, fine-tune anyway, and measure what the task loses, with much data and with little. Their
# paper is a course report, not peer-reviewed, and shows one run of each setting.
#
# **The answer in numbers.** A positive number points in the paper's direction; ranges are over
# tasks. [The last section](#the-claims) has all claims; reproduced here:
# {glue:text}`claims_reproduced`.
# - `less-data-more-reliance`: {glue:text}`less_data_more_reliance_verdict` (how much more concave
#   the curve is with more data: {glue:text}`less_data_more_reliance_value`).
# - `probing-needs-more`: {glue:text}`probing_needs_more_verdict` (best score of a fine-tuned model
#   minus that of a frozen one: {glue:text}`probing_needs_more_value`).
# - `weights-move-up`: {glue:text}`weights_move_up_verdict` (movement of the top third of the
#   layers minus that of the bottom third: {glue:text}`weights_move_up_value`).
#
# *You need* the {doc}`primer </primer>`. *Reading*: 20 minutes. *Running*: 2 minutes on the toy
# world with two cores.

# %% tags=["parameters", "hide-input"]
profile = "tiny"  # tiny, small or paper: the files in notebooks/profiles
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
fractions = None
sized = None
matched = None
matched_examples = None
depths = None
min_steps = None
equal_steps_depth = None
shuffled = None
biases_and_norms = None
device = None

# %% tags=["hide-input", "claim"]
import numpy as np
import pandas as pd

from fivelenses.exhibits import MISSING, OTHERS, WIDTH, Drawing, Layout, counted, curves, printed
from fivelenses.judging import CannotTest, estimate, of_size, over_seeds, scores_by_fold, title
from fivelenses.records import SHUFFLED, WHOLE, select
from fivelenses.run import begin
from fivelenses.tasks import find

run = begin(4, globals())
settings = run.settings

# %% [markdown]
# ## The setting
#
# The paper fine-tunes BERT-base (12 layers) on sentiment (SST-2), question answering as inference
# (QNLI) and acceptability (CoLA, scored by {term}`Matthews correlation`), the first two also with
# 10 and 1% of the examples. It first re-initialises the six linear projections (query, key, value,
# attention output, intermediate, output) of the top $k$ layers, for every $k$. The new weights come
# from a normal distribution with mean 0 and deviation $\sigma = 0.02$, cut at $\pm 2\sigma$:

# %% tags=["method"]
from scipy.stats import truncnorm

chance = np.random.default_rng(0)
by_hand = 0.02 * chance.standard_normal(100_000)
while (outside := abs(by_hand) > 0.04).any():  # draw again what lies outside
    by_hand[outside] = 0.02 * chance.standard_normal(outside.sum())
library = truncnorm(-2, 2, scale=0.02)
pairs = {"by hand": (by_hand.std(), by_hand.max())}
pairs["library"] = library.std(), library.support()[1]
{name: [round(float(one), 4) for one in pair] for name, pair in pairs.items()}

# %% [markdown]
# Each pair is the deviation ($0.0176$ after the cut) and the greatest weight. Biases and
# LayerNorms, which the report does not mention, stay pre-trained. Training sets are stratified by
# label, and the smaller ones are drawn again for every seed. The numbering is the paper's.

# %% tags=["hide-input", "claim"]
data = run.measure("sizes", over={"task": settings.tasks})
models = run.measure("models", each="task")
sizes = {row.task: settings.sizes(row.task, row.training_examples) for row in data.itertuples()}
ALONE = [task for task in settings.tasks if task not in settings.sized]  # the appendix

# %% tags=["hide-input"]
PAPER_SIZES = {"sst2": ("67k", "1.8k"), "qnli": ("105k", "5.4k"), "cola": ("8.5k", "1k")}  # page 4
definitions = {task: find(task) for task in data["task"]}
papers = [PAPER_SIZES.get(task, (None, None)) for task in definitions]
run.table(
    "Table 1",
    data.assign(
        sizes=[", ".join(f"{size:,}" for size in sizes[task]) for task in definitions],
        inputs=[" and ".join(task.inputs) for task in definitions.values()],
        metric=[task.score_name for task in definitions.values()],
        paper_training=[training for training, _ in papers],
        paper_evaluation=[evaluation for _, evaluation in papers],
    ),
    "Tasks, with the paper's sizes in brackets. We evaluate on the development examples, as the "
    "labels of the test sets are not public.",
    columns={"task": "task", "training_data": "training examples (paper)", "sizes": "sizes used"}
    | {"evaluation_data": "evaluated on (paper)"}
    | {one: one for one in ("inputs", "labels", "metric")},
    formats={"task": title, "training_data": "{training_data} ({paper_training})"}
    | {"evaluation_data": "{evaluation_data} ({paper_evaluation})"},
)

# %% tags=["hide-input"]
from matplotlib import pyplot as plt
from matplotlib.patches import FancyBboxPatch

LAYERS = int(models["reinitialised"].max())
TRAINED, FRESH, FROZEN = "pre-trained, then trained", "random, then trained", "pre-trained, frozen"
COLOURS = {TRAINED: OTHERS[3][0], FRESH: OTHERS[2][0], FROZEN: "#D0D0D0"}
stacks = {
    "fine-tuning": [TRAINED] * LAYERS,
    "top 2 re-initialised": [TRAINED] * (LAYERS - 2) + [FRESH] * 2,
    "frozen, top 2 removed": [FROZEN] * (LAYERS - 2),
}
rows = []
for way, starts in stacks.items():
    blocks = {"embeddings": FROZEN if FROZEN in starts else TRAINED}
    blocks |= {f"layer {number}": start for number, start in enumerate(starts, 1)}
    blocks["classifier"] = FRESH
    rows += [{"way": way, "block": block, "starts_as": start} for block, start in blocks.items()]
ways = pd.DataFrame(rows)
figure, panels = plt.subplots(1, 3, figsize=(WIDTH, 3.8), layout="constrained")
for axes, (way, stack) in zip(panels, ways.groupby("way", sort=False), strict=True):
    for height, (block, start) in enumerate(zip(stack["block"], stack["starts_as"], strict=True)):
        box = dict(boxstyle="round,pad=0,rounding_size=0.06", linewidth=0, facecolor=COLOURS[start])
        axes.add_patch(FancyBboxPatch((0.1, height + 0.08), 0.8, 0.76, **box))
        axes.text(0.5, height + 0.46, block, ha="center", va="center", fontsize=9)
    axes.set(xlim=(0, 1), ylim=(0, LAYERS + 2))
    axes.set_title(way, fontsize=10)
    axes.axis("off")
plt.close(figure)  # shown below, with its legend

# %% tags=["hide-input"]
handles = [plt.Rectangle((0, 0), 1, 1, color=shade, label=way) for way, shade in COLOURS.items()]
figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=9)
colours = "pre-trained and trained, random and trained, or frozen"
run.figure(
    "Figure 4",
    Drawing(figure, ways, f"Three stacks of layers whose colours tell which are {colours}."),
    "Three ways to use a pre-trained encoder: fine-tuned; fine-tuned after its top layers were "
    "re-initialised; frozen without its top layers, with only a classifier trained.",
)

# %% [markdown]
# A model that learned nothing with all layers kept does not show what a layer is worth. So claims
# are judged only on tasks that it learned, better than a bag of words where a run has one.

# %% tags=["hide-input", "claim"]
predictions = run.measure("by_example", of={"shuffled_labels": False}, each=("task", "seed"))

# %% tags=["hide-input"]
words = run.measure("words_by_example", over=settings.training_sets)
run.gate(models, predictions, words=words)

# %% [markdown]
# ## Re-initialised layers
#
# Where a curve stays flat and then falls, the task itself can teach the upper layers. Where it
# falls at once, so much training does not replace what pre-training put into the top. At the right
# end all layers are {term}`re-initialised`, but not the embeddings.


# %% tags=["hide-input", "claim"]
def with_equal_steps(table):
    """`equal_steps`: whether a model has more steps than others of its task and examples."""
    fewest = table.groupby(["task", "examples"])["steps"].transform("min")
    return table.assign(equal_steps=table["steps"] > fewest)


OF_MODEL = ["task", "examples", "seed", "layers", "reinitialised", "steps", "score", "null_rate"]
scores = models[~models["shuffled_labels"].astype(bool)]
scores = scores.assign(layers=scores["reinitialised"].max())
scores = with_equal_steps(scores[[*OF_MODEL, "diverged", "address"]])

# %% tags=["hide-input"]
REINITIALISED = "layers re-initialised, from the top"
FIGURES = {"sst2": ("1a", "2a", "3a"), "qnli": ("1b", "2b", "3b"), "cola": ("1d", "5a", "5b")}
KINDS = ("re-initialised", "frozen probing", "weight distance")


def spread(table, of="seed"):
    """How many models a curve is the mean of, in words."""
    seeds = table.groupby("examples")["seed"].nunique()
    words = ("mean and range of " if seeds.max() > 1 else "") + counted(seeds.max(), of)
    alone = " and ".join(f"{size:,}" for size in seeds.index[(seeds == 1) & (seeds.max() > 1)])
    return words + (f"; with {alone} examples, all there are, one {of}" if alone else "")


# %% tags=["hide-input"]
def by_size(table, kind, task, y, caption, **axes):
    """The figure of one kind and task: one curve per number of training examples."""
    place, paper = KINDS.index(kind), FIGURES.get(task)
    name = f"Figure {paper[place]}" if paper else f"{title(task)}, {kind}"
    table = table.sort_values("examples", ascending=False, kind="stable")
    size = [f"{examples:,} examples" for examples in table["examples"]]
    nulls = {"null_rate": "null rate", "shuffled": "shuffled labels"}
    nulls = {column: null for column, null in nulls.items() if column in table}
    bottom = Layout(bottom=None if "null_rate" in nulls else 0.0)
    drawing = curves(table.assign(size=size), y, "size", nulls=nulls, layout=bottom, **axes)
    key = "" if paper else f"{kind}-{task}"
    return dict(title=name, drawing=drawing, caption=f"{title(task)}: {caption}", key=key)


def reinitialisation(task, of_sizes):
    table = scores[scores["examples"].isin(of_sizes) & ~scores["equal_steps"]]
    table = table[table["task"] == task]
    metric, null = find(task).score_name, table["null_rate"].iloc[0]
    caption = f"{metric} on development examples by re-initialised layers and training "
    caption += f"examples ({spread(table)}). Dashed: the null rate, {null:.2f}."
    axes = dict(y_label=metric, x="reinitialised", x_label=REINITIALISED)
    return by_size(table, KINDS[0], task, "score", caption, **axes)


# %% [markdown]
# :::{admonition} Predict, then look
# :class: tip
# Re-initialise the top third of the layers before fine-tuning. What does the task lose?
#
# - **a** Most of its gain over the {term}`null rate`: the top layers are the most abstract.
# - **b** Next to nothing: fine-tuning learns these layers again.
# - **c** It depends on the number of examples: nothing with many, much with few.
# :::

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "I have made my choice: show the figure"}
for task in settings.sized:
    run.figure(**reinitialisation(task, sizes[task]))

# %% [markdown]
# Numbers describe a curve's shape: weighted sums of its scores, or ratios of two such sums
# $C = \sum_p w_p \bar s_p / \sum_p v_p \bar s_p$ of the mean curve. Each model's part in a ratio is
# linearised, $C + \sum_p (w_p - C v_p)\, s_p / \sum_p v_p \bar s_p$ (the delta method), so that a
# curve that hardly falls does not blow up. *Concavity* is the area between a curve and the straight
# line between its ends, over its drop.

# %% tags=["hide-input", "claim"]
MIN_DROP = 0.03  # a curve that falls by less has no shape to speak of
by_place = scores_by_fold(predictions, ["address"])
by_place = by_place.merge(scores.drop(columns="score"), on="address")
by_place = by_place.rename(columns={"reinitialised": "place"})


def mean_curve(curve):
    return curve[curve["fold"] == WHOLE].groupby("place")["score"].mean()


def numbers(curve, weights, over=None):
    """A number of each model's curve, on all examples and without each fold: a weighted sum, or a
    linearised ratio.
    """
    shift = 0.0
    if over is not None:
        mean = mean_curve(curve)
        shift, below = float(weights @ mean / (over @ mean)), float(over @ mean)
        weights = (weights - shift * over) / below
    wide = curve.pivot(index=["seed", "fold"], columns="place", values="score")[weights.index]
    return (shift + wide @ weights).rename("value").reset_index()


def interval(values, reference=None):
    """Of `numbers`, or of their difference from those of other curves on the same examples."""
    return estimate(values, lambda of_model: of_model["value"].item(), reference=reference)


# %% tags=["hide-input", "claim"]
def at(places, place):
    """The weights of the score at a place, interpolated between its neighbours."""
    index = pd.Index(sorted(places))
    return pd.Series([np.interp(place, index, one) for one in np.eye(len(index))], index)


def drop(places):
    return at(places, min(places)) - at(places, max(places))


def area(places):
    """Between a curve and the line between its ends, places scaled to [0, 1]."""
    index = pd.Index(sorted(places))
    gaps = np.diff(index) / (index[-1] - index[0])
    inside = pd.Series(np.append(gaps, 0) + np.append(0, gaps), index) / 2
    return inside - (at(index, index[0]) + at(index, index[-1])) / 2


def clear(difference):
    """Whether a difference of scores is large enough to speak of, and clearly one."""
    return difference.estimate >= MIN_DROP and difference.low > 0


def falls(curve):
    """Whether a curve has a shape."""
    places = curve["place"].unique()
    return len(places) > 1 and clear(interval(numbers(curve, drop(places))))


def concavity(curve):
    places = curve["place"].unique()
    return numbers(curve, area(places), drop(places))


# %% tags=["hide-input", "claim"]
def departure(curve, side=0):
    """Where the mean curve lies farthest from the line between its ends, and how far, over the
    drop: on either side, or above (1) or below (-1) alone.
    """
    mean = mean_curve(curve)
    first, last = mean.index[0], mean.index[-1]
    off = {}
    for place in mean.index[1:-1]:
        share = (place - first) / (last - first)
        line = (1 - share) * at(mean.index, first) + share * at(mean.index, last)
        off[place] = at(mean.index, place) - line
    height = {place: weights @ mean for place, weights in off.items()}
    worst = max(off, key=lambda place: side * height[place] if side else abs(height[place]))
    return worst, numbers(curve, off[worst] * (side or np.sign(height[worst])), drop(mean.index))


COMPARED = ("sst2", "qnli")  # the report's figures 1 to 3; CoLA has an appendix of its own
FEW = 673  # 1% of SST-2: the report's smallest


def nearest(sizes):
    return min(sizes, key=lambda examples: abs(examples - FEW))


def most(table):
    return table[table["examples"] == table["examples"].max()]


def two_sizes(table):
    """Of each task that is compared, usual trainings on few and on the most examples."""
    for task in COMPARED:
        rows = table[(table["task"] == task) & ~table["equal_steps"]]
        if rows["examples"].nunique() > 1:
            few = nearest(rows["examples"].unique())
            yield task, rows[rows["examples"] == few], most(rows), (task, of_size(task, few))


# %% tags=["hide-input", "claim"]
NEEDS_HEAD = "scores need a trained classifier, which a twin does not have"
SHARE, POINTS = "share of the drop", "points of the score, as a share"
LATER = "the curve with more data is the more concave"
BEATS = "few examples with the pre-trained layers beat the most without them"
FROM_SCRATCH = "SST-2 against no pre-training"


# %% tags=["hide-cell", "claim"] mystnb={"code_prompt_show": "Show what the paper claims"}
@run.claim(
    "less-data-more-reliance",
    says="With less data, more layers' pre-training is needed: the score drops sooner, and 1% of "
    "SST-2 with the pre-trained layers beats all of it without them.",
    place="abstract and section 6.1, Figures 1a and 1b",
    exhibits=("Figure 1a", "Figure 1b"),
    printed="QNLI: the rapid drop begins at three (100%), four (10%) and five (1%) layers",
    record=by_place,
    unit={LATER: SHARE, BEATS: POINTS},
    per="case",
    halves={
        "the score drops sooner": [title(task) for task in COMPARED],
        "1% with pre-training beats all without": [FROM_SCRATCH],
    },
    no_twin=NEEDS_HEAD,
    if_empty="this run has trained neither SST-2 nor QNLI on two numbers of examples",
)
def fewer_examples_need_more_layers(table):
    """Concavity of the curve with the most data minus that with few (−1 to 1); on SST-2, score with
    few and all layers minus that with the most data and none.
    """
    groups = {}
    for task, few, many, on in two_sizes(table):
        shared = set(few["place"]) & set(many["place"])
        few, many = few[few["place"].isin(shared)], many[many["place"].isin(shared)]
        if flat := [size for size, curve in (("few", few), ("the most", many)) if not falls(curve)]:
            which = f"the curve of {title(task)} with {' and with '.join(flat)} examples"
            groups[title(task), *on] = f"{which} does not clearly fall, by {MIN_DROP:g} or more"
        else:
            groups[title(task), *on] = {LATER: interval(concavity(many), concavity(few))}
        if task == "sst2":
            kept = numbers(few, at(shared, min(shared)))
            none = numbers(many, at(shared, max(shared)))
            groups[FROM_SCRATCH, *on] = {BEATS: interval(kept, none)}
    return groups


# %% [markdown]
# Null rates differ, so Figure 1c compares gains over them, at one number of examples.

# %% tags=["hide-input"]
matched = settings.matched
if matched:
    examples = min(settings.matched_examples, *(sizes[task][0] for task in matched))
    table = scores[(scores["examples"] == examples) & ~scores["equal_steps"]]
    table = table[table["task"].isin(matched)]
    table = table.assign(rise=table["score"] - table["null_rate"], null=0.0)
    axes = dict(y_label="accuracy above null rate", x="reinitialised", x_label=REINITIALISED)
    axes |= dict(nulls={"null": "null rate"}, layout=Layout(bottom=None))
    names = " and ".join(map(title, table["task"].unique()))
    run.figure(
        "Figure 1c",
        curves(table, "rise", "task", **axes),
        f"{names} with {counted(examples, 'training example')} each: accuracy above the task's "
        f"null rate ({spread(table)}).",
    )


# %% tags=["hide-input", "claim"]
def shape(curve, task):
    """A curve whose shape can be spoken of."""
    name = f"the curve of {title(task)}"
    if curve["place"].nunique() < 3:
        raise CannotTest(f"{name} has no place between none and all layers re-initialised")
    if not falls(curve):
        raise CannotTest(
            f"{name} does not clearly fall, by {MIN_DROP:g} or more, from none to all layers "
            "re-initialised: it has no shape"
        )
    return curve


PARABOLA = "a parabola that begins flat: the least bent that is clearly no line"
QNLI_CONCAVE = "QNLI's curve is concave"
SST_NEARER = "SST-2's curve is nearer to a line than QNLI's"
SST_MIDDLE = "the middle third of the layers matters to SST-2"
TWO_POINTS = "two points: less is no considerable drop (the report sees about five)"


def of_as_many_examples(table):
    """The number of examples nearest to 670 that both tasks have, and the curves with as many."""
    if lacking := set(COMPARED) - set(table["task"]):
        raise CannotTest(f"this run has not trained {' and '.join(map(title, sorted(lacking)))}")
    sizes = [set(table.loc[table["task"] == task, "examples"]) for task in COMPARED]
    if not (shared := set.intersection(*sizes)):
        raise CannotTest("SST-2 and QNLI have no number of training examples in common")
    size = nearest(sorted(shared))
    alike = table[table["examples"] == size]
    return size, *(shape(alike[alike["task"] == task], task) for task in COMPARED)


# %% tags=["hide-input", "claim"]
@run.claim(
    "qnli-concave-sst-linear",
    says="With about 670 examples each, QNLI drops late and steeply, SST-2 gradually.",
    place="section 6.1.3, Figure 1c",
    exhibits=("Figure 1c",),
    printed="SST-2 drops by about 5 points over the middle layers; QNLI most over the last four",
    record=by_place,
    above={QNLI_CONCAVE: 1 / 6, SST_MIDDLE: 0.02},
    because={QNLI_CONCAVE: PARABOLA, SST_MIDDLE: TWO_POINTS},
    unit={QNLI_CONCAVE: SHARE, SST_NEARER: SHARE, SST_MIDDLE: POINTS},
    per="pair of tasks",
    no_twin=NEEDS_HEAD,
)
def qnli_is_concave(table):
    """Concavity of QNLI (−1/2 to 1/2); greatest distance from a line, QNLI's minus SST-2's, as a
    share of the drop; what SST-2 loses with the middle third of the layers: at the number of
    examples nearest to 670 that both have.
    """
    size, sst2, qnli = of_as_many_examples(table[~table["equal_steps"]])
    layers, places = sst2["layers"].iloc[0], sst2["place"].unique()
    middle, last = (at(places, layers * share) for share in (1 / 3, 2 / 3))
    parts = {
        QNLI_CONCAVE: interval(concavity(qnli)),
        SST_NEARER: interval(departure(qnli)[1]) - interval(departure(sst2)[1]),
        SST_MIDDLE: interval(numbers(sst2, middle - last)),
    }
    on = [of_size(task, size) for task in COMPARED]
    return {(f"QNLI against SST-2, {size:,} examples each", *on): parts}


# %% tags=["hide-input"]
for task in ALONE:
    run.figure(**reinitialisation(task, sizes[task][:1]))


# %% tags=["hide-input", "claim"]
ABOVE, BELOW = "minus the height above a line", "minus the depth below a line"


@run.claim(
    "cola-linear",
    says="CoLA drops about linearly.",
    place="section 6.1.4, Figure 1d",
    exhibits=("Figure 1d",),
    record=by_place,
    above={ABOVE: -1 / 4, BELOW: -1 / 4},
    unit=SHARE,
    because=f"a quarter of the drop, as of {PARABOLA}",
    per="task",
    no_twin=NEEDS_HEAD,
)
def cola_is_a_line(table):
    """Minus the mean curve's greatest distance above and below the line between its ends, as a
    share of the drop. The places are chosen where the distances are greatest, so the intervals are
    simultaneous over places (Bonferroni).
    """
    table = table[(table["task"] == "cola") & ~table["equal_steps"]]
    if table.empty:
        raise CannotTest("this run has not trained CoLA")
    curve, parts = shape(most(table), "cola"), {}
    for part, side in ((ABOVE, 1), (BELOW, -1)):
        away = departure(curve, side)[1]
        line = interval(away.assign(value=-away["value"]))
        parts[part] = line.simultaneous(curve["place"].nunique() - 2)
    return {"cola": parts}


# %% [markdown]
# Fewer examples mean fewer steps, even when read for more epochs. Where a run has it
# (`equal_steps_depth`), the smaller sets are also trained for as many steps as the largest.

# %% tags=["hide-input"]
again = settings.sized if settings.equal_steps_depth is not None else []


def at_equal_steps(table, y, y_label, **axes):
    """The smaller sets trained for as many steps as the largest, beside it."""
    longer = table["equal_steps"]
    largest = table["examples"] == table.groupby("task")["examples"].transform("max")
    table = table[longer | (largest & table["task"].isin(set(table.loc[longer, "task"])))]
    table = table.sort_values(["task", "examples"], ascending=False, kind="stable")
    table = table.assign(size=[f"{examples:,} examples" for examples in table["examples"]])
    nulls = {"null_rate": "null rate"} if "null_rate" in table else {}
    layout = Layout(panels="task", bottom=None if nulls else 0.0)
    run.figure(
        f"{'Scores' if nulls else 'Distances'} at equal steps",
        curves(table, y, "size", y_label=y_label, nulls=nulls, layout=layout, **axes),
        f"{y_label[0].upper()}{y_label[1:]}, smaller sets beside the largest ({spread(table)}).",
        key=f"equal-steps-{y}",
    )


if again:
    of_again = scores[scores["task"].isin(again)]
    at_equal_steps(of_again, "score", "score", x="reinitialised", x_label=REINITIALISED)

# %% tags=["hide-input"]
THIRDS = ("top", "middle", "bottom")
SHAPES = {"fall": "lost with all"} | {name: f"lost with the {name} third" for name in THIRDS}
SHAPES |= {"concavity": "concavity", "departure": "from a line"}


def of_shape(curve):
    """What a curve loses with each third of the layers, and how bent it is, with intervals."""
    mean, found = (
        mean_curve(curve),
        {"fall": interval(numbers(curve, drop(curve["place"].unique())))},
    )
    row = {"kept": mean.iloc[0], "none": mean.iloc[-1], "null_rate": curve["null_rate"].iloc[0]}
    row["seeds"] = curve["seed"].nunique()
    places, thirds = mean.index, [share * curve["layers"].iloc[0] for share in (0, 1 / 3, 2 / 3, 1)]
    for name, above, below in zip(THIRDS, thirds, thirds[1:], strict=False):
        # More than a part of one straight line between models.
        if ((places > above) & (places < below)).any() or {above, below} <= set(places):
            found[name] = interval(numbers(curve, at(places, above) - at(places, below)))
    if falls(curve):
        row["departs_at"], away = departure(curve)
        found |= {"concavity": interval(concavity(curve)), "departure": interval(away)}
    for name, one in found.items():
        row |= {name: one.estimate, f"{name}_low": one.low, f"{name}_high": one.high}
    return row


# %% tags=["hide-input"]
def with_interval(row, name):
    if pd.isna(row.get(name)):
        return MISSING
    ends = (printed(row[f"{name}_{end}"], "+z.2f") for end in ("low", "high"))
    return f"{printed(row[name], '+z.2f')} [{', '.join(ends)}]"


rows = [
    dict(zip(("task", "examples", "equal_steps"), key, strict=True)) | of_shape(curve)
    for key, curve in by_place.groupby(["task", "examples", "equal_steps"], sort=False)
    if curve["place"].nunique() > 2
]

# %% tags=["hide-input"]
shapes = pd.DataFrame(rows)
if len(shapes):
    order = scores[["task", "examples", "equal_steps"]].drop_duplicates()
    shapes = order.merge(shapes, on=list(order))
rows = shapes.to_dict("records")
named = [title(row["task"]) + ", equal steps" * row["equal_steps"] for row in rows]
shown = shapes.assign(task=named)
for name in SHAPES:
    shown[name] = [with_interval(row, name) for row in rows]
run.table(
    "Shapes",
    shapes,
    "What the score loses with all layers and with each third, from the top, with 95% intervals "
    "over seeds and examples; concavity, the area between the mean curve and the straight line "
    "between its ends, over its drop (positive falls late, negative early); and the greatest "
    "distance from that line, over the drop. A dash: the curve does not clearly fall, by "
    f"{MIN_DROP:g} or more, or no model was trained within that third.",
    columns={"task": "task", "examples": "examples", "kept": "all layers kept"}
    | {"none": "all re-initialised"}
    | SHAPES,
    formats={"examples": "{:,}", "kept": "{:z.3f}", "none": "{:z.3f}"},
    shown=shown,
    if_empty="no curve of this run has a place between none and all layers re-initialised",
)

# %% [markdown]
# ## Frozen layers
#
# Fine-tuning can repair what re-initialisation broke. To see what the layers hold as they are, we
# remove the top $k$, freeze the rest, and train only a classifier on [CLS]. The paper trains for
# three epochs, perhaps too few (on CoLA its probe hardly leaves the null rate); ours is a logistic
# regression on standardised features, trained to convergence. With a single draw of training
# examples, intervals cover development examples only.

# %% tags=["hide-input", "claim"]
probes = run.measure("frozen_probes", over=lambda: settings.probed(sizes))


def own_draws(table):
    """Draws that are the same examples count once."""
    draws = table.pivot(index=["task", "examples", "seed"], columns="removed", values="score")
    repeated = draws.reset_index().drop(columns="seed").duplicated().to_numpy()
    return table.merge(draws[~repeated].reset_index()[list(draws.index.names)])


OF_PROBE = ["task", "examples", "seed", "removed"]
probed = probes["scores"].pipe(own_draws)
frozen = scores_by_fold(probes["by_example"], OF_PROBE)
frozen = frozen.merge(probed.drop(columns="score"), on=OF_PROBE)
frozen = frozen.rename(columns={"removed": "place"})


# %% tags=["hide-input"]
def probing(task):
    table = probed[probed["task"] == task]
    caption = (
        f"{find(task).score_name} of the frozen probe by removed layers and training "
        f"examples ({spread(table, 'draw')}). Dashed: null rate, {table['null_rate'].iloc[0]:.2f}."
    )
    axes = dict(y_label=find(task).score_name, x="removed", x_label="layers removed, from the top")
    return by_size(table, KINDS[1], task, "score", caption, **axes)


for task in settings.sized:
    run.figure(**probing(task))


# %% tags=["hide-input", "claim"]
PEAKS_LOWER = "the best frozen probe scores below the best tuned model"
NEEDS_MORE = "the probe needs more layers"


def above_null(curve):
    return curve.assign(score=curve["score"] - curve["null_rate"])


def rise_kept(curve):
    """How much of its rise a curve has with few layers, as weights: the best score with so many
    layers or fewer, its mean over one to all layers, and the best of all, of which it is a share.
    One minus it is the mean number of further layers needed, over all shares of the rise.
    """
    mean, depth = mean_curve(curve), int(curve["layers"].iloc[0])
    by_kept = [at(mean.index, depth - kept) for kept in range(1, depth + 1)]
    reached = np.array([weights @ mean for weights in by_kept])
    best = [int(reached[:kept].argmax()) for kept in range(1, depth + 1)]
    lengths = np.r_[0.5, np.ones(depth - 2), 0.5] / (depth - 1)
    kept = sum(length * by_kept[place] for length, place in zip(lengths, best, strict=True))
    return kept, by_kept[best[-1]]


# %% tags=["hide-input", "claim"]
@run.claim(
    "probing-needs-more",
    says="Frozen probing peaks lower and needs more layers than re-initialisation.",
    place="section 6.2, Figure 2",
    exhibits=("Figure 1a", "Figure 1b", "Figure 2a", "Figure 2b"),
    record={"tuned": by_place, "frozen": frozen},
    unit={PEAKS_LOWER: POINTS, NEEDS_MORE: "share of the layers"},
    per="task",
    no_twin=NEEDS_HEAD,
)
def probing_against_tuning(tables):
    """Best score, tuned minus frozen; layers needed beyond the first, over all shares of the rise
    over the null rate, frozen minus tuned, as a share of these layers. Both with the most data, and
    read from one layer kept to all.
    """
    tuned, groups = tables["tuned"][~tables["tuned"]["equal_steps"]], {}
    if tuned["layers"].min() < 2:
        raise CannotTest("an encoder of one layer has no curve from one layer kept to all")
    for task in [task for task in COMPARED if task in set(tuned["task"])]:
        curves_of = (one[one["task"] == task] for one in (tuned, tables["frozen"]))
        both = [above_null(most(curve)) for curve in curves_of]
        weights = [rise_kept(curve) for curve in both]
        peaks = [numbers(curve, best) for curve, (_, best) in zip(both, weights, strict=True)]
        if all(clear(interval(peak)) for peak in peaks):
            kept = [numbers(curve, *pair) for curve, pair in zip(both, weights, strict=True)]
            groups[task] = {PEAKS_LOWER: interval(*peaks), NEEDS_MORE: interval(*kept)}
        else:
            unclear = f"a curve of {title(task)} does not clearly rise above the null rate"
            groups[task] = f"{unclear}, by {MIN_DROP:g} or more"
    return groups


# %% tags=["hide-input", "claim"]
@run.claim(
    "top-two-hurt-probing",
    says="Removing the top two of twelve layers raises the accuracy of frozen probing.",
    place="section 6.2, Figure 2",
    exhibits=("Figure 2a", "Figure 2b"),
    printed="the highest two of 12 layers",
    record=frozen,
    unit=POINTS,
    per="task",
    no_twin="it is measured on the pre-trained encoder, and nothing has moved",
)
def without_the_top_sixth(table):
    """Probing score without the top sixth of the layers minus that with all, with the most data,
    where the better of both lies clearly more than two points above the null rate.
    """
    groups = {}
    for task in [task for task in COMPARED if task in set(table["task"])]:
        curve = most(table[table["task"] == task])
        removed = max(1, round(2 / 12 * curve["layers"].iloc[0]))
        whole, without = (at(curve["place"].unique(), place) for place in (0, removed))
        better = max(whole, without, key=lambda weights: weights @ mean_curve(curve))
        if interval(numbers(above_null(curve), better)).low > 0.02:
            gain = interval(numbers(curve, without - whole))
            groups[task] = {"the probe gains without the top sixth of the layers": gain}
        else:
            groups[task] = f"the frozen probe of {title(task)} is not clearly above the null rate"
    return groups


# %% [markdown]
# ## Weights that move
#
# The distance is $\lVert W - W' \rVert_F$ between each layer's pre-trained and fine-tuned output
# projection, in models with all layers kept. The control is training on {term}`shuffled labels`.

# %% tags=["hide-input", "claim"]
distances = run.measure("weight_distances", of={"reinitialised": ()}, each="task")

# %% tags=["hide-input"]
outputs = with_equal_steps(distances.query("part == 'output'").reset_index(drop=True))
DISTANCE = "Frobenius distance"


def weight_distance(task):
    """Models that were trained on shuffled labels, with the most data, are drawn like a null."""
    every = outputs[outputs["task"] == task]
    table, largest = select(every[~every["equal_steps"]]), every["examples"].max()
    shuffled = every[(every["control"] == SHUFFLED) & (every["examples"] == largest)]
    if len(shuffled):
        means = shuffled.groupby("layer")["absolute"].mean()
        table = table.assign(shuffled=table["layer"].map(means))
    one_each = table.drop_duplicates("examples").itertuples()
    steps = ", ".join(f"{row.steps} with {row.examples:,}" for row in one_each)
    caption = f"distance of each layer's output projection ({spread(table)}; steps: {steps})."
    caption += f" Dashed: {largest:,} examples with shuffled labels." * ("shuffled" in table)
    return by_size(table, KINDS[2], task, "absolute", caption, y_label=DISTANCE)


for task in settings.sized:
    run.figure(**weight_distance(task))


# %% tags=["hide-input", "claim"]
UPWARDS = "the top third moves further than the bottom third"
FURTHER = "the layers move further with more data, on average"
STEEPER = "top and bottom third lie further apart with more data"


# %% tags=["hide-input", "claim"]
@run.claim(
    "weights-move-up",
    says="Weights move further in higher layers, and all layers further, and more steeply, with "
    "more data.",
    place="section 6.3, Figure 3",
    exhibits=("Figure 3a", "Figure 3b"),
    record=distances,
    unit="Frobenius norm",
    per="task",
    no_twin="a twin's matrices have moved exactly as far, by construction; the control is a "
    "training on shuffled labels",
    if_empty="this run has trained neither SST-2 nor QNLI on two numbers of examples",
    variants={"halves of the layers": {"parts": 2}},
)
def weights_of_thirds(table, parts=3):
    """Distance of the output projections: top minus bottom third with the most data; mean, and top
    minus bottom third, with the most minus with few. Distances have no examples, so seeds alone
    give intervals.
    """

    def top_minus_bottom(by_layer):
        of_part = max(1, by_layer.shape[1] // parts)
        return by_layer.iloc[:, -of_part:].mean(axis=1) - by_layer.iloc[:, :of_part].mean(axis=1)

    groups = {}
    for task, *rows, on in two_sizes(with_equal_steps(table[table["part"] == "output"])):
        few, many = (one.pivot(index="seed", columns="layer", values="absolute") for one in rows)
        groups[title(task), *on] = {
            UPWARDS: over_seeds(top_minus_bottom(many)),
            FURTHER: over_seeds((many.mean(axis=1) - few.mean(axis=1)).dropna()),
            STEEPER: over_seeds((top_minus_bottom(many) - top_minus_bottom(few)).dropna()),
        }
    return groups


# %% tags=["hide-input"]
if again:
    of_again = select(outputs[outputs["task"].isin(again)])
    at_equal_steps(of_again, "absolute", DISTANCE, x="layer")
largest = select(distances)
largest = largest[largest["examples"] == largest.groupby("task")["examples"].transform("max")]
half = largest["layer"].gt(largest["layer"].max() / 2).map({False: "lower", True: "upper"})
means = largest.assign(half=half).groupby(["part", "task", "half"], sort=False)["relative"].mean()
table, several = means.reset_index(), means.index.unique("part").size > 1
wide = table.pivot(index="part", columns=["task", "half"], values="relative")
wide = wide.loc[table["part"].unique()]
wide.columns = [f"{title(task)}, {half} half" for task, half in wide.columns]
run.table(
    "All six projections",
    table if several else table.iloc[:0],
    "How far every projection moves, relative to the norm that it had before: mean over the layers "
    "of either half of the encoder and over seeds, with the most data. The paper measures the "
    "output projection alone.",
    formats=dict.fromkeys(wide.columns, "{:.1%}"),
    shown=wide.rename_axis(index="projection").reset_index(),
    if_empty="this run recorded the output projections alone",
    key="sublayers",
)

# %% [markdown]
# The same for CoLA (the paper's appendix):

# %% tags=["hide-input"]
for task in ALONE:
    run.figure(**probing(task))
    run.figure(**weight_distance(task))

# %% [markdown]
# ## The claims
#
# Intervals cover seeds and development examples. Probes are compared with fine-tuned models where
# at least one layer is kept. {doc}`The ledger </claims>` explains the verdicts.

# %% tags=["hide-input"]
run.finish()

# %% [markdown]
# **Limits.** A model at the null rate may only have had too few steps, above all where a frozen
# probe on the same examples does better.
#
# Three [exercises](/exercises.md#chapter-4-layers-without-pre-training) go with this chapter.
