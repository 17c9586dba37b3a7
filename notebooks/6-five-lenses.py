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
# # Do the lenses agree?
#
# **The question.** Five papers look at fine-tuning, each with {term}`lenses <lens>` and models of its own. Do their
# lenses point at the same layers of the same models?
#
# **The answer in numbers.** Over {glue:text}`models`, two lenses order the layers with a mean rank correlation of
# {glue:text}`overall`, where 1 is the same order (`lenses-agree`: {glue:text}`lenses_agree_verdict`, in
# {glue:text}`lenses_agree_held` pairs). The closest pair is {glue:text}`closest_lenses` at {glue:text}`closest_value`,
# the furthest {glue:text}`farthest_lenses` at {glue:text}`farthest_value`.
#
# *You need* chapters 1 to 5, at least their figures. *Reading*: 20 minutes. *Running*: about 4 minutes on the toy world
# with two cores, after chapter 1.

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

# %% tags=["hide-input"]
from fivelenses import runs
from fivelenses.papers.five_lenses import claims, figures, statement

run = runs.begin(6, globals())

# %% [markdown]
# ## The setting
#
# The models are those of [chapter 1](1-attention-svcca.ipynb): one pre-trained encoder, fine-tuned on several tasks
# with several seeds.

# %% tags=["hide-input"]
models = run.measure("models", each="task")
run.exhibit(figures.table_of_models, models)
words = run.measure("words_by_example", over=run.settings.training_sets)
run.gate(models, run.measure("by_example", each="task"), words=words)

# %% [markdown]
# Models that hardly beat the {term}`null rate` are in the pictures, not in the claims.
#
# We take one or two measures of each paper, on the same development examples (a loss on training examples). A layer's
# *activations* contain what changed below it; its own *parameters* do not.

# %% tags=["hide-input"]
changes = run.measure("changes_by_layer", each="task")
run.exhibit(figures.table_of_instruments, changes)

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
# - **b** In most; the measures of syntax or of weights differ.
# - **c** In about half.
# :::

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "I have made my choice: show the figure"}
run.exhibit(figures.overview, changes)

# %% [markdown]
# The same in their own units, beside their nulls and the {term}`twins <twin>`:

# %% tags=["hide-input"]
run.exhibit(figures.all_curves, changes)

# %% [markdown]
# With no more points than dimensions, planes separate any labels, even permuted ones
# ({py:func}`fivelenses.lenses.directprobe.probe`). So a distance of labels counts only by its excess over that of
# permuted labels: in {glue:text}`beyond_permuted` models the distance of true labels grows more. By similarity in the
# last layer, {glue:text}`beyond_independent` models are further from their pre-trained encoder than that encoder is
# from an independent one.
#
# ## Do they order the layers alike?
#
# Nats, shares and accuracies cannot be compared, but orders can. We take Spearman's {term}`rank correlation`
# ({py:func}`fivelenses.papers.five_lenses.rank_statistics.rank_correlation`) of two measures over the layers of a
# model, and average it over models.

# %% tags=["hide-input"]
run.exhibit(figures.correlations, changes)

# %% [markdown]
# How much agreement is possible? Between two seeds of one task, a measure agrees with itself by
# {glue:text}`between_seeds` on average, and by at least {glue:text}`least_repeated`. For two lenses we average the
# correlations of their measures. Intervals cover tasks, seeds and sentences, not layers: two arbitrary orders of
# {glue:text}`layers` layers often correlate by chance.

# %% tags=["hide-input"]
run.exhibit(figures.table_of_lenses, changes)

# %% [markdown]
# The last column removes what two measures share because both rise with depth. It is undefined for a measure that rises
# at every layer.
#
# ## Which layer changes most?

# %% tags=["hide-input"]
run.exhibit(figures.centres, changes)

# %% tags=["hide-input"]
run.exhibit(figures.greatest_change, changes)

# %% [markdown]
# Layer {glue:text}`usual_top` changes most in {glue:text}`usual_top_share` cases (one measure on one model); by chance
# a layer would do so in about {glue:text}`usual_top_chance`.
#
# ## Where they part, and why
#
# The two measures of different papers that agree least are “{glue:text}`parting_higher`” and
# “{glue:text}`parting_lower`”, with a rank correlation of {glue:text}`parting_value`; the intervals of
# {glue:text}`parting_alike` other pairs reach as low. They differ most at layer {glue:text}`parting_layer`.
#
# :::{div} glued-sentences
# {glue:text}`parting_reason`
# :::

# %% tags=["hide-input"]
run.exhibit(figures.what_sets_apart, changes)

# %% [markdown]
# Activations inherit: of the change in the last layer's features, {glue:text}`inherited_last` came in with its input.
# If that is why activations and parameters disagree, the change that a layer *adds* (its output's minus its input's)
# agrees better with the layer's parameters than the whole change does.

# %% tags=["hide-input"]
run.exhibit(figures.what_layers_add, changes)

# %% [markdown]
# A positive difference whose interval excludes 0 supports this (`layers-inherit`: {glue:text}`layers_inherit_verdict`).
#
# ## The statements
#
# The five claims are ours. Intervals cover tasks, or seeds where the group is a task, and sentences, except for label
# distance, syntax and weights.

# %% tags=["hide-input"]
run.judge(claims.CLAIMS)
run.glue(**statement.findings(changes))
run.finish()

# %% [markdown]
# What to keep in mind:
#
# - **Which lens is right?** This chapter cannot say. [Chapter 7](7-known-truth.ipynb) tries the lenses on encoders of
#   which we know where they changed.
# - **Few layers.** Averages over models add no layers, and all models share one pre-trained encoder.
# - **Scaled rows.** In the first picture and the centres, a measure that hardly varies looks as eventful as any.
# - **Kinds of lens.** SVCCA and {term}`RSA` read the same vectors, RSA only those of words.
#
# Three [exercises](/exercises.md#chapter-6-do-the-lenses-agree) go with this chapter.
