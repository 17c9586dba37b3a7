# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The geometry of labels
#
# **The question.** An encoder turns each word or sentence into a point. How does fine-tuning rearrange these points?
# {cite:t}`zhou2022` ask which labels planes separate, how far apart the labels lie, and how they move while the encoder
# learns.
#
# **The answer in numbers.** In four of five tasks, a probe's accuracy rises by at least
# {glue:text}`mostly_improves_value` (`mostly-improves`: {glue:text}`mostly_improves_verdict`). Nine in ten labels move
# at least {glue:text}`pushes_apart_value` away from their nearest neighbour (`pushes-apart`:
# {glue:text}`pushes_apart_verdict`). The similarity of training and test geometry falls by {glue:text}`diverges_value`
# (`diverges`: {glue:text}`diverges_verdict`). [The last section](#the-claims) has all claims;
# {glue:text}`claims_reproduced` are reproduced here.
#
# *You need* the {doc}`primer </primer>` and convex sets. *Reading*: 20 minutes. *Running*: 8 minutes on the toy world
# with two cores.

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

# %% tags=["hide-input"]
from fivelenses import runs
from fivelenses.papers.zhou2022 import claims, figures, tables

run = runs.begin(2, globals())
settings = run.settings

# %% [markdown]
# ## The setting
#
# The paper compares five sizes of BERT, this run the encoders of Table 1 (`english-bert` is our own; see
# {doc}`the encoders </encoders>`).

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show Table 1, the encoders"}
run.exhibit(tables.table_1, run.measure("encoder_sizes"))

# %% [markdown]
# Five tasks label a word (POS, its part of speech), a pair of words (DEP, the relation of a word to its head), a
# preposition (PS-role, what it contributes to the scene; PS-fxn, what it marks by itself) or a question (TREC-50, the
# kind of answer that it wants). A word's point is the mean of its tokens' vectors, a pair's joins those of its words, a
# question's is the vector of its [CLS].

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show Table 6, the tasks in numbers"}
run.exhibit(tables.table_6, run.measure("task_sizes"))

# %% [markdown]
# Every encoder is fine-tuned on every task. Of one, named in the captions, we also keep the weights at several steps
# (its *states*). Claims are judged on tasks whose score lies clearly more than two points above the {term}`null rate`.

# %% tags=["hide-input"]
by_example = dict(of=settings.ordinary_models, each=("encoder", "task", "seed"))
words = run.measure("words_by_example", over=settings.training_sets)
run.gate(run.measure("models"), run.measure("by_example", **by_example), words=words)

# %% [markdown]
# The controls are {term}`twins <twin>` and, on some tasks, {term}`shuffled labels`.
#
# ## Clusters with disjoint hulls
#
# {term}`DirectProbe` {cite:p}`zhou2021` groups labelled points into clusters such that each holds one label and the
# {term}`convex hulls <convex hull>` of clusters with different labels do not meet. With one cluster per label, a plane
# separates each pair of labels; more clusters mean a more complex boundary.

# %% tags=["hide-input"]
run.exhibit(figures.figure_1)

# %% [markdown]
# The distance between two clusters is that of their hulls,
#
# $$d(A, B) = \min_{\alpha, \beta} \Big\| \sum_i \alpha_i a_i - \sum_j \beta_j b_j \Big\|,
# \qquad \alpha_i, \beta_j \ge 0, \quad \sum_i \alpha_i = \sum_j \beta_j = 1,$$
#
# which is a quadratic program:

# %% tags=["method"]
import numpy as np
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
# This is twice the margin. {py:func}`fivelenses.lenses.directprobe.probe` proves each answer: for disjoint hulls by a
# plane, checked on every point; otherwise by a point in both.
#
# ## What a classifier reads
#
# A classifier {term}`probe` is a network with two hidden layers on the frozen points. Its sizes and regulariser are
# chosen on a tenth of the training points; then it is trained from {glue:text}`initialisations` initialisations. The
# geometries of training and test set are compared on the labels with at least {glue:text}`min_examples` points in both.

# %% tags=["hide-input"]
geometry = run.measure("geometry", each=("encoder", "task"))
probes = run.measure("probe_accuracy", each=("encoder", "task"))
run.exhibit(tables.table_2, geometry, probes)

# %% [markdown]
# ## Fine-tuning makes the space simpler
#
# In $d$ dimensions, planes separate any $d + 1$ points in general position, however labelled. So Table 3 also says
# whether the points are separable with *permuted* labels.

# %% tags=["hide-input"]
run.exhibit(tables.table_3, geometry, probes)

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show Table 4, TREC-50 in all encoders"}
run.exhibit(tables.table_4, geometry, probes)

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show Table 7, all tasks and encoders"}
run.exhibit(tables.table_7, geometry, probes)

# %% [markdown]
# ## Fine-tuning pushes labels apart
#
# Even where planes separate the labels from the start, a wider margin lowers the loss.

# %% tags=["hide-input"]
along = run.measure("along_training", of=settings.followed_models, each=("task", "seed"))
run.exhibit(figures.figure_2, along, settings.encoder)

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show Figure 6, all tasks"}
run.exhibit(figures.figure_6, along, settings.encoder)

# %% tags=["hide-input"]
run.exhibit(figures.figure_3, along, settings.encoder)

# %% [markdown]
# ## Tuning on one task, measuring another
#
# Tuning on a related task should move the labels of PS-fxn apart, too; tuning on POS, which gives all prepositions one
# tag, should pull them together.

# %% tags=["hide-input"]
distances = run.measure("target_distances", of=settings.models_for_target, each="seed")
accuracies = run.measure("target_accuracy", of=settings.models_for_target, each="seed")
run.exhibit(tables.table_5, distances, accuracies)

# %% [markdown]
# ## What stays as it was
#
# {term}`Spatial similarity` is the correlation of the distances between all pairs of labels with those before
# fine-tuning.
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
run.exhibit(figures.figure_4, along, settings.encoder)

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show Figure 5, where labels move"}
run.exhibit(figures.figure_5, along, settings.encoder)

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show Figures 7 to 10, all layers"}
for task in settings.followed_tasks():
    run.exhibit(figures.figure_of_movements, along, task, settings.encoder)

# %% [markdown]
# ## The claims
#
# Distances and clusters jump when a single point moves, so their intervals cover seeds alone; those of accuracies cover
# seeds and held-out sentences. Tables 2 to 7 also show other encoders: these take no part in the verdicts, which stand
# under the name of one. {doc}`The ledger </claims>` explains the verdicts.

# %% tags=["hide-input"]
run.judge(claims.CLAIMS, settings.encoder)
run.glue(initialisations=str(settings.probe_initialisations), min_examples=str(settings.min_examples))
run.finish()

# %% [markdown]
# **Limits.** Distances and lengths of movements are not scaled: an encoder whose states grow pushes everything apart.
# Three [exercises](/exercises.md#chapter-2-the-geometry-of-labels) go with this chapter.
