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
# **The question.** A fine-tuned encoder serves its task better. What has happened to the points that it makes of
# words and sentences? {cite:t}`zhou2022` look at them as geometers: which labels can be told apart by planes, how
# far apart do they lie, and how do they move while the encoder learns?
#
# **The answer here.** But for one task in five, a classifier's accuracy rises by {glue:text}`mostly_improves_value` at
# the least after fine-tuning (`mostly-improves`: {glue:text}`mostly_improves_verdict`). Along training, nine in ten
# labels of a task move at least {glue:text}`pushes_apart_value` away from their nearest neighbour (`pushes-apart`:
# {glue:text}`pushes_apart_verdict`), and the similarity of training and test set falls by {glue:text}`diverges_value`
# (`diverges`: {glue:text}`diverges_verdict`). Of the paper's seven claims, {glue:text}`claims_reproduced` are
# reproduced in this run; [the last section](#the-claims) lists all of them with their numbers.

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
from fivelenses.checkpoints import predictions
from fivelenses.checkpoints.tables import models
from fivelenses.papers.zhou2022 import claims, figures, labelled, measure, probing, tables

run = runs.begin(2, globals())
settings = run.settings

# %% [markdown]
# ## The setting
#
# The paper compares five sizes of BERT, from 2 layers of width 128 to 12 of width 768. Here the family is what the
# run names:

# %%
run.exhibit(tables.table_1, run.measure(labelled.encoder_sizes))

# %% [markdown]
# Five tasks ask for a label: of a word (POS, its part of speech), of a pair of words (DEP, the relation of a word to
# its head in the sentence), of a preposition (PS-role, what it contributes to the scene; PS-fxn, what it marks by
# itself) and of a question (TREC-50, what kind of answer it wants). A word is the mean of its tokens, a pair two words
# laid end to end, a question its [CLS].

# %%
run.exhibit(tables.table_6, run.measure(labelled.task_sizes))

# %% [markdown]
# Every encoder is fine-tuned on every task, with a linear learning rate after 10 % of warm-up. For the encoder
# followed along training, the weights at some steps are kept. A task that an encoder did not learn takes no part in
# any claim: where the score is not clearly more than two points above the null rate, over seeds and examples.

# %%
by_example = dict(of=settings.ordinary_models, each=("encoder", "task", "seed"))
run.gate(run.measure(models), run.measure(predictions.by_example, **by_example))

# %% [markdown]
# Two controls tell what is due to learning. Each fine-tuned model has a *twin*, whose matrices have moved from the
# pre-trained ones as far, in random directions ({py:mod}`fivelenses.models.twins`); all that follows is measured on
# it, too. And on some tasks the encoder is trained with the labels shuffled, for as many steps.

# %% [markdown]
# ## Clusters whose hulls keep clear of each other
#
# DirectProbe {cite:p}`zhou2021` groups the points of a labelled set into clusters such that each holds one label and
# the convex hulls of clusters with different labels do not meet. Whatever boundary a classifier draws has to pass
# between them. If there are as many clusters as labels, planes separate the labels; every further cluster is a bend
# that the boundary must make.

# %%
run.exhibit(figures.figure_1)

# %% [markdown]
# The distance between two clusters is that of their hulls,
#
# $$d(A, B) = \min_{\alpha, \beta} \Big\| \sum_i \alpha_i a_i - \sum_j \beta_j b_j \Big\|,
# \qquad \alpha_i, \beta_j \ge 0, \quad \sum_i \alpha_i = \sum_j \beta_j = 1,$$
#
# which is twice the margin of the widest slab between them. The lens,
# {py:func}`fivelenses.lenses.directprobe.probe`, gives each answer with its proof: a plane, checked on every point,
# where it says separable, and a point in both hulls where it says not.
#
# ## What a classifier reads
#
# A classifier probe is a network with two hidden layers on the frozen points. Its sizes and regulariser are chosen on
# a tenth of the training points (the paper chooses on the test set, which flatters), then it is trained from
# {glue:text}`initialisations` initialisations ({py:func}`fivelenses.lenses.mlp_probe.fit_grid`).

# %%
geometry = run.measure(measure.geometry, each=("encoder", "task"))
probes = run.measure(probing.probe_accuracy, each=("encoder", "task"))
run.exhibit(tables.table_2, geometry, probes)

# %% [markdown]
# Training and test set are compared on the labels that both have, with at least {glue:text}`min_examples` points in
# each: a hull of one or two points says nothing about a label. Everything else keeps all labels.
#
# ## Fine-tuning makes the space simpler
#
# In high dimensions, planes separate almost anything: $n$ points in general position can be labelled at will as long
# as $n$ is at most the dimension plus one. So each row says whether the same points with *permuted* labels are
# separable too.

# %%
run.exhibit(tables.table_3, geometry, probes)

# %%
run.exhibit(tables.table_4, geometry, probes)

# %% [markdown]
# ## Fine-tuning pushes labels apart
#
# Where the labels are already separable, nothing forces the encoder to move them. It does so all the same. For each
# label, the figure follows the least distance to any other label.

# %%
along = run.measure(measure.along_training, of=settings.followed_models, each=("task", "seed"))
run.exhibit(figures.figure_2, along, settings.encoder)

# %%
run.exhibit(figures.figure_3, along, settings.encoder)

# %% [markdown]
# ## Tuning on one task, measuring another
#
# If distances between labels are what fine-tuning is about, then a related task should push the labels of PS-fxn
# apart as well, and a task that wants all prepositions in one place (POS has one tag for them) should pull them
# together.

# %%
distances = run.measure(measure.target_distances, of=settings.models_for_target, each="seed")
accuracies = run.measure(probing.target_accuracy, of=settings.models_for_target, each="seed")
run.exhibit(tables.table_5, distances, accuracies)

# %% [markdown]
# ## What stays as it was
#
# The vector of all distances between labels describes how they lie relative to each other. Its correlation with the
# same vector before fine-tuning says how much of that order is kept.

# %%
run.exhibit(figures.figure_4, along, settings.encoder)

# %%
run.exhibit(figures.figure_5, along, settings.encoder)

# %% [markdown]
# ## All tasks, all layers
#
# The paper's appendices show the same for every task.

# %%
run.exhibit(tables.table_7, geometry, probes)

# %%
run.exhibit(figures.figure_6, along, settings.encoder)

# %%
for task in settings.followed_tasks():
    run.exhibit(figures.figure_of_movements, along, task, settings.encoder)

# %% [markdown]
# ## The claims
#
# The paper gives one threshold itself (similarity above $0.5$); the others are ours. Each claim is a number, or
# several, per group (an encoder, a task, or both), positive in the paper's direction, with a 95 % interval. A claim
# *holds* in a group where all its intervals lie above their thresholds, *fails* where one lies below, and is *open*
# otherwise. It is *reproduced* when it fails nowhere and holds in at least two thirds of the groups, *contradicted* the
# other way round, *mixed* when it holds in some and fails in others, *open* otherwise, and *cannot be tested* where
# no group is left. Distances and clusters jump when a single point moves, so their intervals cover seeds alone, for the
# training set that was measured: with one seed they are infinite, and the claim stays open. Those of accuracies cover
# seeds and held-out sentences.

# %% tags=["hide-input"]
run.judge(claims.CLAIMS)
run.glue(initialisations=str(settings.probe_initialisations), min_examples=str(settings.min_examples))
run.finish()

# %% [markdown]
# What to keep in mind:
#
# - **Reading.** But for one task in five, the accuracy of an encoder's probe rises by
#   {glue:text}`mostly_improves_value` at the least (`mostly-improves`: {glue:text}`mostly_improves_verdict`).
# - **Clusters.** Where labels were not separable, there are {glue:text}`simplifies_value` clusters fewer per label
#   (`simplifies`: {glue:text}`simplifies_verdict`; it holds in {glue:text}`simplifies_held` cases). Clusters are
#   counted on the points that were measured, not on all.
# - **Distances.** Nine in ten labels end at least {glue:text}`pushes_apart_value` further from their nearest
#   neighbour than they began (`pushes-apart`: {glue:text}`pushes_apart_verdict`). Distances are not scaled: an encoder
#   whose states grow pushes everything apart.
# - **Other tasks.** Tuning on PS-fxn leaves its labels {glue:text}`cross_task_value` further apart than tuning on
#   PS-role (`cross-task`: {glue:text}`cross_task_verdict`); the claim asks the same of PS-role against no tuning, of
#   no tuning against POS, and of all three in accuracy.
# - **Order.** The last layer's similarity to itself before falls to {glue:text}`keeps_order_value` at the least
#   (`keeps-order`: {glue:text}`keeps_order_verdict`).
# - **Low layers.** They move less than high ones, by a share of {glue:text}`low_moves_little_value`
#   (`low-moves-little`: {glue:text}`low_moves_little_verdict`). These are absolute lengths, as in the paper; those
#   relative to the distances within a layer stand under the figures of movements.
#
# What sets this run apart from the paper stands in its first box and in `notebooks/profiles`: on the profile `small`
# the encoders are two sentence encoders of three and six layers, not five sizes of BERT; each model is trained from one
# seed for half of the paper's epochs, and the grid of the classifier probe is a corner of the paper's. The two MiniLMs
# differ in more than their size, so a difference between them is not an effect of size.
