# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Attention and features (Hao et al., 2020)
#
# **The question.** Which layers of an encoder does fine-tuning change, and would another
# {term}`seed` or other data change the same ones? {cite:t}`hao2020` asked this of BERT-large, with
# the Jensen–Shannon divergence of *attention* and the SVCCA distance of *features*.
#
# **The answer in numbers.** Ranges are over tasks. [The last section](#the-claims) has all claims;
# reproduced here: {glue:text}`claims_reproduced`.
# - `js-last-layers`: {glue:text}`js_last_layers_verdict` (change of attention, last third of the
#   layers over those below: {glue:text}`js_last_layers_value`).
# - `svcca-grows`: {glue:text}`svcca_grows_verdict` (SVCCA distance, last third of the layers minus
#   the lower third: {glue:text}`svcca_grows_value`).
#
# *You need* the {doc}`primer </primer>` and singular value decomposition. *Reading*: 15 minutes.
# *Running*: 2 minutes on the {term}`toy world` with two cores.

# %% tags=["parameters", "hide-input"]
profile = "tiny"  # tiny, small or paper: the files in notebooks/profiles
# Everything below is as the profile says unless it is given here.
encoder = None
source = None
tasks = None
dataset_pairs = None
seeds = None
schedules = None
learning_rate = None
learning_rate_by_encoder = None
batch_size = None
epochs = None
training_examples = None
precision = None
evaluation_examples = None
mixed_examples = None
variance_kept = None
batch_rows = None
shuffled = None
device = None

# %% tags=["hide-input", "claim"]
from fivelenses.exhibits import controls_in_words, counted, curves, in_words, table_of_models
from fivelenses.judging import PAIR, CannotTest, estimate, title
from fivelenses.records import select, with_controls
from fivelenses.run import begin

run = begin(1, globals())
settings = run.settings
models = run.measure("models", of=settings.ordinary_models, each="task")
DIVERGED = "the training of every model diverged: lower learning_rate"

# %% [markdown]
# ## The setting
#
# The paper fine-tunes BERT-large (24 layers) on inference with much data (MNLI) and with little
# (RTE), sentiment (SST-2) and paraphrase (MRPC). We count layers from 1, the paper from 0. Figures
# and tables are numbered as in the paper. Claims are judged on tasks whose score lies clearly (at
# 95%) more than two points above the {term}`null rate`, and above a classifier of word counts.

# %% tags=["hide-input"]
paper = {"mnli": (3e-5, 64, 3), "rte": (1e-5, 32, 5), "sst2": (3e-5, 64, 4), "mrpc": (1e-5, 16, 5)}
names = ["learning_rate", "batch_size", "epochs"]  # Table 1, page 2
table = table_of_models(models)
for place, name in enumerate(names):
    table[f"paper_{name}"] = [paper.get(task, (None,) * 3)[place] for task in table["task"]]
run.table(
    "Table 1",
    table,
    "Hyperparameters, the paper's in brackets, and the development score that our models reach "
    "(accuracy; Matthews correlation where the null rate is 0): mean over seeds and half the "
    "range. The null rate is the share of the most frequent label.",
    columns={"task": "task", "learning_rate": "learning rate (paper)"}
    | {"batch_size": "batch (paper)", "epochs": "epochs (paper)", "training_data": "trained on"}
    | {"score": "score", "null_rate": "null rate"},
    formats={name: f"{{{name}:g}} ({{paper_{name}:g}})" for name in names}
    | {"task": title, "score": "{score:.3f} ± {score_spread:.3f}", "null_rate": "{:.3f}"},
)
by_example = run.measure("by_example", of=settings.ordinary_models, each=("task", "seed"))
words = run.measure("words_by_example", over=settings.training_sets)
run.gate(models, by_example, words=words)

# %% [markdown]
# Controls show what is due to learning. A {term}`twin`'s matrices moved as far as in fine-tuning,
# but at random. Some runs have functional twins, which moved on until the last layer had changed as
# much (by RSA), and training on {term}`shuffled labels`. Their lines are means over the tasks.
#
# The paper argues from the shapes of curves and prints no values, so thresholds are ours. Layers
# are taken relative to the depth: the last third of six layers is two of them, of 24 eight. Where
# the paper says that layers change *drastically* or *not seriously*, the threshold asks for more
# than a straight line gives, a curve to which every layer adds the same.

# %% tags=["hide-input", "claim"]
LOW, MIDDLE, LAST, BELOW = (0, 1 / 3), (1 / 3, 2 / 3), (2 / 3, 1), (0, 2 / 3)  # of the depth
HALVES = {"halves of the layers": {"lower": (0, 1 / 2), "upper": (1 / 2, 1)}}
ALL_VARIANCE = {"all of the variance kept": {"value": "svcca_all"}}


def mean(rows, value, span):
    """The mean of a curve over the layers between two relative depths."""
    layers, (above, upto) = rows["layer"].to_numpy(), span
    inside = (layers > above * layers.max() + 1e-9) & (layers <= upto * layers.max() + 1e-9)
    if not inside.any():
        part = f"between {above:.0%} and {upto:.0%} of its depth"
        raise CannotTest(f"an encoder of {layers.max()} layers has none {part}")
    return rows[value].to_numpy()[inside].mean()


def ratio(rows, value, upper, lower):
    """The mean over one part of the depth over that of another, neither less than rounding."""
    if (depth := rows["layer"].max()) < 6:
        few = "too few to tell a bend from a straight line, which takes 6"
        raise CannotTest(f"an encoder of {depth} layers has {few}")
    return max(mean(rows, value, upper), 1e-12) / max(mean(rows, value, lower), 1e-12)


# %% [markdown]
# ## Attention changes
#
# Each {term}`attention head` gives every token a distribution over the tokens that it attends to.
# The {term}`Jensen–Shannon divergence` of the distributions $P$ and $Q$ of two models is their mean
# Kullback–Leibler divergence $D_{KL}$ from $R = (P + Q)/2$:
#
# $$D_{JS}(P \,\|\, Q) = \tfrac12 D_{KL}(P \,\|\, R) + \tfrac12 D_{KL}(Q \,\|\, R).$$
#
# It is 0 where they agree and $\ln 2 \approx 0.69$ nats where no token receives attention from
# both. By hand and by {py:func}`fivelenses.lenses.attention.js_divergence`:

# %% tags=["method"]
import numpy as np

from fivelenses.lenses.attention import js_divergence

chance = np.random.default_rng(0)
p, q = chance.dirichlet(np.ones(5), size=(2, 5))  # a head of two models, five tokens
r = (p + q) / 2
to_p, to_q = np.sum(p * np.log(p / r), axis=1), np.sum(q * np.log(q / r), axis=1)
by_hand = float(np.mean((to_p + to_q) / 2))
library = float(js_divergence(p[None, None], q[None, None], np.ones((1, 5))))
{"by hand": round(by_hand, 6), "library": round(library, 6)}

# %% tags=["hide-input", "claim"]
changes = run.measure("changes_by_layer", each=("task", "shuffled_labels"))
fine_tuned = changes.query("first == 'pre-trained' and second != 'untrained'")
fine_tuned = fine_tuned.rename(columns={"second": "seed"})
between_seeds = changes.query("first != 'pre-trained'")

# %% [markdown]
# A layer's number is the mean over tokens ([CLS] and [SEP] included), then heads, then examples.
#
# :::{admonition} Predict, then look
# :class: tip
# In which layers does fine-tuning change attention most?
#
# - **a** In all layers alike: every weight is trained.
# - **b** In the lowest: everything above depends on them.
# - **c** In the highest: they are nearest to the classifier.
# :::

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "I have made my choice: show the figure"}
rows = with_controls(fine_tuned, "js")
null = select(changes).query("second == 'untrained'").groupby("layer")["js"].mean()
rows["js_null"] = rows["layer"].map(null)
run.figure(
    "Figure 1",
    curves(
        rows, "js", by="task", y_label="JS divergence (nats)", nulls={"js_null": "random weights"}
    ),
    "JS divergence of attention between the pre-trained and the fine-tuned encoder, per layer, on "
    f"development examples ({in_words(rows)}; bands from least to greatest seed). Dashed: the "
    f"divergence between the pre-trained encoder and random weights, {null.min():.2f} to "
    f"{null.max():.2f} nats.{controls_in_words(rows, 'js')}",
    if_empty=DIVERGED,
)


# %% tags=["hide-cell", "claim"] mystnb={"code_prompt_show": "Show what the paper claims"}
STRAIGHT = "a straight line that starts at zero or above gives at most 3.3 over six layers or more"


@run.claim(
    "js-last-layers",
    says="Fine-tuning hardly changes the attention of low and middle layers, and changes that of "
    "the last layers drastically.",
    place="section 3, Figure 1",
    record=fine_tuned,
    by="task",
    above=3.5,
    unit="ratio",
    because=STRAIGHT,
    variants=HALVES,
)
def last_third_over_the_layers_below(rows, lower=BELOW, upper=LAST):
    """Mean JS divergence of the last third of the layers over that of the two thirds below."""
    return ratio(rows, "js", upper, lower)


# %% [markdown]
# *Your prediction*: c is right where `js-last-layers` is reproduced. In this run:
# {glue:text}`js_last_layers_verdict`.

# %% [markdown]
# ## Features change
#
# {term}`SVCCA` {cite:p}`raghu2017` compares the outputs $X$ and $Y$ of a layer in two models on the
# same tokens, however each is rotated. It keeps the principal directions that hold 99% of the
# variance on each side, finds the canonical correlations $\rho_i$ between them, and takes
#
# $$D_{SVCCA} = 1 - \frac1c \sum_{i=1}^{c} \rho_i ,$$
#
# where $c$ is the smaller number of directions. The paper seems to keep all; a table has both.

# %% tags=["method"]
from fivelenses.lenses.cca import svcca_distance

x = chance.normal(size=(200, 6)) * [9, 6, 4, 2, 1, 0.1]
y = x @ chance.normal(size=(6, 6)) + 5 * chance.normal(size=(200, 6))
centred = x - x.mean(0), y - y.mean(0)
(u, s, _), (v, t, _) = (np.linalg.svd(side, full_matrices=False) for side in centred)
kept = [int(np.searchsorted(np.cumsum(of**2) / np.sum(of**2), 0.99)) + 1 for of in (s, t)]
correlations = np.linalg.svd(u[:, : kept[0]].T @ v[:, : kept[1]], compute_uv=False)
by_hand, library = float(1 - correlations.mean()), svcca_distance(x, y, variance_kept=0.99)
{"directions kept": kept, "by hand": round(by_hand, 6), "library": round(library, 6)}

# %% [markdown]
# Unrelated representations are less than 1 apart, because on a finite number of tokens they
# correlate by chance (dashed in Figure 2).

# %% tags=["hide-input"]
rows = with_controls(fine_tuned, "svcca")
null = rows.groupby("layer")["svcca_null"].mean()
tokens = sorted({rows["tokens"].min(), rows["tokens"].max()})
run.figure(
    "Figure 2",
    curves(rows, "svcca", by="task", y_label="SVCCA distance", nulls={"svcca_null": "permuted"}),
    "SVCCA distance between the pre-trained and the fine-tuned encoder, per layer "
    f"({in_words(rows)}; {' to '.join(f'{count:,}' for count in tokens)} tokens). Dashed: the "
    f"distance when the tokens of one side are permuted, {null.min():.2f} to {null.max():.2f} "
    "(mean over tasks).",
    if_empty=DIVERGED,
)


# %% tags=["hide-input", "claim"]
@run.claim(
    "svcca-grows",
    says="SVCCA distance to the pre-trained encoder is larger in higher layers.",
    place="section 4, Figure 2",
    record=fine_tuned,
    by="task",
    unit="SVCCA distance",
    variants=HALVES | ALL_VARIANCE,
)
def last_third_minus_lower_third(rows, lower=LOW, upper=LAST, value="svcca"):
    """Mean SVCCA distance of the last third of the layers minus that of the lower third."""
    return mean(rows, value, upper) - mean(rows, value, lower)


# %% tags=["hide-input"]
last = select(fine_tuned).assign(cka_distance=lambda rows: 1 - rows["cka"])
last = last[last["layer"] == last["layer"].max()]
measures = {
    "svcca": f"SVCCA, {settings.variance_kept:.0%} of variance",
    "svcca_all": "SVCCA, all directions",
    "pwcca": f"PWCCA, {settings.variance_kept:.0%} of variance",
    "cka_distance": "1 − linear CKA",
    "svcca_null": "SVCCA, permuted tokens",
}
run.table(
    "Measures compared",
    last.groupby("task", sort=False)[list(measures)].mean().reset_index(),
    "The last layer, pre-trained against fine-tuned, under four measures of distance in [0, 1] "
    "(mean over seeds), the last column a control.",
    columns={"task": "task"} | measures,
    formats={"task": title} | dict.fromkeys(measures, "{:.3f}"),
    key="measures",
)

# %% [markdown]
# ## Rolling one layer back
#
# How much does each layer's change matter to the last layer, which the classifier reads?
# {term}`Roll back <rolled back>` one layer to its pre-trained values: how far does the last move
# from that of the fine-tuned model?

# %% tags=["hide-input", "claim"]
rollbacks = run.measure("rollbacks", each=("task", "seed", "shuffled_labels"))

# %% tags=["hide-input"]
rows = with_controls(rollbacks, "svcca")
axes = dict(y_label="SVCCA distance of last layer", x_label="layer rolled back")
run.figure(
    "Figure 3",
    curves(rows, "svcca", by="task", **axes),
    "SVCCA distance of the last layer between the fine-tuned encoder and the same with one layer "
    f"rolled back to its pre-trained values, by the layer rolled back ({in_words(rows)}).",
    if_empty=DIVERGED,
)


# %% tags=["hide-input", "claim"]
@run.claim(
    "rollback-low-harmless",
    says="Rolling back any of the lower 11 of 24 layers hardly moves the last layer; rolling back "
    "a higher one does.",
    place="section 4, Figure 3",
    printed="layers 0–10 of 24, counted from 0",
    record=rollbacks,
    by="task",
    above=8,
    unit="ratio",
    because="low layers move the last one by an eighth or less: a straight line gives at least a "
    "seventh over six layers or more",
    variants={"halves of the layers": {"border": 1 / 2}},
)
def the_other_layers_over_the_low_ones(rows, border=11 / 24):
    """Mean movement for the layers above the lower 11/24 over that for the layers below."""
    return ratio(rows, "svcca", (border, 1), (0, border))


# %% [markdown]
# ## Other seeds
#
# Two models of one task share their start and training examples and differ in the seed alone.
# Intervals count models, not pairs: pairs that share a model are not independent. The paper sets
# two large data sets, MNLI and SST-2, against a small one, MRPC, whose curves rise earlier. We make
# that comparison with sets at least ten times as large.

# %% tags=["hide-input", "claim"]
LARGE = ("mnli", "sst2")
ONE_SEED = "it compares seeds and this run has one, or one that did not diverge"
SHARE = "share of the height that is reached before the last sixth, MRPC over the large set"
WHY = {"last third over the layers below": STRAIGHT, SHARE: "the same share"}
RATIOS = dict.fromkeys(WHY, "ratio")
RISES = (
    "middle third minus lower third",
    "last third minus middle third",
    "rise into the last third minus rise into the middle third",
)
BETWEEN_SEEDS = dict(
    record=between_seeds,
    because=WHY,
    per="comparison",
    halves={
        "large sets in the last layers": [f"{title(task)}, last layers" for task in LARGE],
        "MRPC from a lower layer on": [f"MRPC before {title(task)}" for task in LARGE],
    },
    if_empty=ONE_SEED,
)


# %% tags=["hide-input", "claim"]
def both_halves(rows, early, late):
    """What each large set does in its last layers, and MRPC's share of its height by then."""

    def reached(of_pair):
        rise = mean(of_pair, early, (1 / 2, 5 / 6)) - mean(of_pair, early, LOW)
        return max(rise / max(mean(of_pair, early, (5 / 6, 1)), 1e-12), 0.01)

    groups, examples = {}, models.groupby("task")["examples"].max()
    of_tasks = {task: of_task for task, of_task in rows.groupby("task") if task in examples}
    for task in LARGE:
        names = (f"{title(task)}, last layers", task), (f"MRPC before {title(task)}", "mrpc", task)
        if lacking := [one for one in (task, "mrpc") if one not in of_tasks]:
            why = f"this run does not compare seeds of {title(lacking[0])}"
            groups |= dict.fromkeys(names, why)
        elif examples[task] < 10 * examples["mrpc"]:
            why = f"{title(task)} has {examples[task]:,} training examples here, not 10 times"
            groups |= dict.fromkeys(names, f"{why} MRPC's {examples['mrpc']:,}")
        else:
            shares = [estimate(of_tasks[one], reached, PAIR, "ratio") for one in ("mrpc", task)]
            of_last = estimate(of_tasks[task], late, PAIR, RATIOS)
            groups |= {names[0]: of_last, names[1]: {SHARE: shares[0] - shares[1]}}
    return groups


# %% tags=["hide-input"]
rows = with_controls(between_seeds, "js")
pairs = f"{counted(len(rows[['first', 'second']].drop_duplicates()), 'pair')} of seeds per task"
run.figure(
    "Figure 4",
    curves(rows, "js", by="task", y_label="JS divergence (nats)"),
    f"JS divergence of attention between two seeds of one task, per layer ({pairs}).",
    if_empty=ONE_SEED,
)


# %% tags=["hide-input", "claim"]
@run.claim(
    "seeds-js",
    says="Between seeds, attention agrees in low and middle layers of models of the large sets "
    "MNLI and SST-2 and diverges in the last; for MRPC it diverges from about layer 10 of 24 on.",
    place="section 5.1, Figure 4",
    printed="MRPC: from layer 9 of 24, counted from 0",
    above={"last third over the layers below": 3.5, SHARE: 1},
    unit=RATIOS,
    variants=HALVES,
    **BETWEEN_SEEDS,
)
def attention_between_seeds(rows, lower=BELOW, upper=LAST):
    """For each set with at least ten times MRPC's training examples, mean JS divergence between
    seeds of the last third over that of the two thirds below; for MRPC, the rise from the lower
    third to the layers between 1/2 and 5/6 of the depth as a share of the height of the last sixth
    (at least 0.01), over that of each large set.
    """

    def late(of_pair):
        return {"last third over the layers below": ratio(of_pair, "js", upper, lower)}

    return both_halves(rows, "js", late)


# %% tags=["hide-input"]
rows = with_controls(between_seeds, "svcca")
run.figure(
    "Figure 5",
    curves(rows, "svcca", by="task", y_label="SVCCA distance"),
    f"SVCCA distance between two seeds of one task, per layer ({pairs}).",
    if_empty=ONE_SEED,
)


# %% tags=["hide-input", "claim"]
@run.claim(
    "seeds-svcca",
    says="Between seeds, SVCCA distance rises through all layers: for MNLI and SST-2 most in the "
    "last, for MRPC from about layer 14 of 24.",
    place="section 5.1, Figure 5",
    printed="MRPC: from layer 13 of 24, counted from 0",
    unit=dict.fromkeys(RISES, "SVCCA distance") | {SHARE: "ratio"},
    variants=ALL_VARIANCE,
    **BETWEEN_SEEDS,
)
def features_between_seeds(rows, value="svcca"):
    """Differences of mean SVCCA distance between seeds from third to third; for each set with at
    least ten times MRPC's training examples, the second difference minus the first; for MRPC, the
    share as for seeds-js.
    """

    def rises(of_pair):
        low, middle, last = (mean(of_pair, value, third) for third in (LOW, MIDDLE, LAST))
        return dict(zip(RISES, (middle - low, last - middle), strict=False))

    def steeper(of_pair):
        to_middle, to_last = rises(of_pair).values()
        return {RISES[2]: to_last - to_middle}

    of_tasks = rows.groupby("task", sort=False)
    groups = {task: estimate(of_task, rises, PAIR) for task, of_task in of_tasks}
    return groups | both_halves(rows, value, steeper)


# %% [markdown]
# ## Other data sets
#
# The paper compares models of similar data sets (RTE and MNLI, both inference), less similar ones
# (MRPC and RTE, both pairs) and dissimilar ones (MRPC and SST-2), on 200 examples of each.

# %% tags=["hide-input", "claim"]
between = run.measure(
    "between_datasets",
    of=lambda pair: settings.models(task=pair, shuffled_labels=False),
    each="seed",
    over={"pair": settings.dataset_pairs},
)
OF_PAPER = ("rte–mnli", "mrpc–rte", "mrpc–sst2")  # from near to far
STEPS = ("MRPC–RTE minus RTE–MNLI", "MRPC–SST-2 minus MRPC–RTE")
NO_PAIR = "this run has no pair of data sets whose trainings ended well"

# %% tags=["hide-input"]
rows = with_controls(between, "js", by="pair")
run.figure(
    "Figure 6",
    curves(rows, "js", by="pair", y_label="JS divergence (nats)"),
    "JS divergence of attention between models of two data sets, per layer, on "
    f"{rows['examples'].max()} development examples, up to {settings.mixed_examples} of each set "
    f"({in_words(rows, 'pair')}, bands from least to greatest).",
    if_empty=NO_PAIR,
)
rows = with_controls(between, "svcca", by="pair")
run.figure(
    "Figure 7",
    curves(rows, "svcca", by="pair", y_label="SVCCA distance"),
    "SVCCA distance between models of two data sets, per layer, on the examples of Figure 6 "
    f"({rows['tokens'].min():,} to {rows['tokens'].max():,} tokens).",
    if_empty=NO_PAIR,
)


# %% tags=["hide-input", "claim"]
@run.claim(
    "datasets-low-agree",
    says="The lower third of the layers agrees between models of different data sets, whatever the "
    "domain.",
    place="section 5.2, Figures 6 and 7",
    printed="layers 0–7 of 24, counted from 0",
    exhibits=("Figure 6", "Figure 7"),
    record=between.query("pair in @OF_PAPER"),
    by="pair",
    above=10,
    unit="ratio",
    because="the lower third differs by a tenth or less of the last: a straight line gives 3.7 to "
    "9 over 6, 12 or 24 layers",
    if_empty="this run compares none of the paper's pairs of data sets",
    variants=HALVES | ALL_VARIANCE,
)
def last_third_over_the_lower(rows, lower=LOW, upper=LAST, value="svcca"):
    """Mean distance in the last third over that in the lower, for JS divergence and for SVCCA
    distance.
    """
    return {
        "attention, last third over the lower third": ratio(rows, "js", upper, lower),
        "features, last third over the lower third": ratio(rows, value, upper, lower),
    }


# %% tags=["hide-input", "claim"]
@run.claim(
    "datasets-order",
    says="In middle and last layers models differ more the more their data sets do: RTE–MNLI, then "
    "MRPC–RTE, then MRPC–SST-2.",
    place="section 5.2, Figures 6 and 7",
    exhibits=("Figure 6", "Figure 7"),
    record=between,
    unit="nats or SVCCA distance",
    per="measure",
    if_empty="it needs models of MNLI, RTE, SST-2 and MRPC with one seed",
    variants={"halves of the layers": {"border": 1 / 2}} | ALL_VARIANCE,
)
def order_of_data_sets(rows, border=1 / 3, value="svcca"):
    """Differences of the mean distance above the lower third between neighbouring pairs in that
    order. Models and examples that two pairs of data sets share are left out of both together.
    """
    rows = rows[rows["pair"].isin(OF_PAPER)]
    counts = rows.groupby("seed")["pair"].nunique()
    rows = rows[rows["seed"].isin(counts.index[counts == len(OF_PAPER)])]
    if rows.empty:
        raise CannotTest("it needs models of MNLI, RTE, SST-2 and MRPC with one seed")

    def steps(of_seed, column):
        of_pairs = (of_seed[of_seed["pair"] == pair] for pair in OF_PAPER)
        near, further, far = (mean(of_pair, column, (border, 1)) for of_pair in of_pairs)
        return dict(zip(STEPS, (further - near, far - further), strict=True))

    groups, tasks_needed = {}, ("mnli", "rte", "sst2", "mrpc")
    for name, column in {"attention": "js", "features": value}.items():
        intervals = estimate(rows, lambda of_seed, column=column: steps(of_seed, column))
        groups[name, *tasks_needed] = intervals
    return groups


# %% [markdown]
# ## The claims
#
# Each claim becomes one or more numbers per task or pair of tasks, larger where they support it;
# the card below its figure gives the threshold. {doc}`The ledger </claims>` explains the verdicts.

# %% tags=["hide-input"]
run.finish()

# %% [markdown]
# **Limits.** A third of the depth is two to four layers here (eight in the paper), so we know only
# roughly where a curve begins to rise.
# Three [exercises](/exercises.md#chapter-1-attention-and-features) go with this chapter.
