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
# # Attention and features
#
# **The question.** Fine-tuning turns one pre-trained encoder into many: one that infers, one that judges
# sentiment, one that recognises paraphrases. Which of its layers does it change, and would it change the same
# ones again with another seed or other data? {cite:t}`hao2020` asked this of BERT-large with two instruments: how
# far each layer's *attention* moves (Jensen–Shannon divergence) and how far its *features* move (SVCCA distance).
#
# **The answer here.** In the last third of the layers, attention moves {glue:text}`js_last_layers_value` times as
# much as in the layers below, and the claim that it does so drastically is {glue:text}`js_last_layers_verdict`
# (it holds in {glue:text}`js_last_layers_held` tasks). SVCCA distance rises with depth with a rank correlation of
# {glue:text}`svcca_grows_value` ({glue:text}`svcca_grows_verdict`). Of the paper's seven claims,
# {glue:text}`claims_reproduced` are reproduced in this run; [the last section](#the-claims) lists all of them
# with their numbers.

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
evaluation_examples = None
mixed_examples = None
variance_kept = None
batch_rows = None
device = None

# %% tags=["hide-input"]
from fivelenses import runs
from fivelenses.checkpoints import tables
from fivelenses.papers.hao2020 import claims, figures, measure

run = runs.begin(1, globals())
settings = run.settings

# %% [markdown]
# ## The setting
#
# The paper fine-tunes BERT-large (24 layers) on four tasks: natural language inference with much data (MNLI) and
# with little (RTE), sentiment (SST-2) and paraphrase (MRPC), with Adam, a slanted triangular learning rate and
# dropout $0.1$, and measures on the development sets. We do the same with the encoder, data and seeds named above.
# Layers are counted from 1 here, and 0 is the embedding output; the paper counts its 24 layers from 0.

# %%
models = run.measure(tables.models)
run.exhibit(figures.table_1, models)

# %% [markdown]
# A model that does not beat the majority has learned nothing that its layers could show: read its curves below
# with that in mind.
#
# ## Attention changes
#
# Each head of each layer gives every token $i$ a distribution over the tokens it attends to. The Jensen–Shannon
# divergence compares that distribution in two models, $P$ and $Q$, with their mean $R = (P + Q)/2$:
#
# $$D_{JS}(P \,\|\, Q) = \tfrac12 D_{KL}(P \,\|\, R) + \tfrac12 D_{KL}(Q \,\|\, R).$$
#
# It is 0 where they agree and $\ln 2 \approx 0.69$ where no token receives attention from both. A layer's number
# is the mean over the tokens of an example, then over heads, then over examples, in that order, so that a long
# example does not weigh more than a short one. [CLS] and [SEP] count as tokens, as in the paper.
#
# The function is {py:func}`fivelenses.lenses.attention.js_divergence`; one pass over the examples feeds all
# models side by side and keeps no attention map.

# %%
changes = run.measure(measure.changes_by_layer, each="task")
run.exhibit(figures.figure_1, changes)

# %% [markdown]
# ## Features change
#
# Attention says where a layer looks; its output is what it extracts. SVCCA compares the outputs $X$ and $Y$ of a
# layer in two models on the same $n$ tokens, whatever basis each is written in: keep the principal directions
# that hold 99 % of the variance on each side, find the canonical correlations $\rho_i$ between them, and take
#
# $$D_{SVCCA} = 1 - \frac1c \sum_{i=1}^{c} \rho_i .$$
#
# The paper writes that $c$ is the hidden size, that is, all directions. We draw the truncated form, which is what
# SVCCA means elsewhere, and give the other in the table below the figure.
#
# Two unrelated representations do not have distance 1: with finitely many tokens some correlation appears by
# chance. The dashed line is that floor seen from above, the distance when the tokens of one side are permuted. A
# curve near it would mean that nothing is shared.

# %%
run.exhibit(figures.figure_2, changes)

# %%
run.exhibit(figures.table_of_measures, changes, settings.variance_kept)

# %% [markdown]
# ## Putting one layer back
#
# The last layer is what the classifier reads. How much does each layer's change matter to it? Put one layer of
# the fine-tuned encoder back to its pre-trained values, leave all others as they are, and measure how far the
# last layer moves.

# %%
rollbacks = run.measure(measure.rollbacks, each=("task", "seed"))
run.exhibit(figures.figure_3, rollbacks)

# %% [markdown]
# ## Would it happen again? Seeds
#
# Two models of one task differ in the seed of the head, of the order of examples and of dropout. They share their
# pre-trained start and their training examples.

# %%
run.exhibit(figures.figure_4, changes)

# %%
run.exhibit(figures.figure_5, changes)

# %% [markdown]
# ## Would it happen again? Data sets
#
# The paper compares models of two data sets that are close (RTE and MNLI, both inference), further apart (MRPC
# and RTE, both pairs of sentences) and far apart (MRPC and SST-2), on a mixture of their development examples.

# %%
between = run.measure(measure.between_datasets, pairs=settings.compared_pairs())
run.exhibit(figures.figure_6, between, settings.mixed_examples)

# %%
run.exhibit(figures.figure_7, between, settings.mixed_examples)

# %% [markdown]
# ## The claims
#
# The paper argues from the shapes of its curves and prints no numbers for them. To judge its sentences, each is
# made a predicate on the table behind a figure, with a threshold that is ours, fixed before any run and printed
# in the third column. A claim is *reproduced* when it holds for every task (or pair), *partly* when it holds for
# at least half of them, and *not reproduced* otherwise.

# %% tags=["hide-input"]
run.judge(claims.CLAIMS)
run.finish()

# %% [markdown]
# What to keep in mind:
#
# - **Attention.** The last third of the layers moves {glue:text}`js_last_layers_value` times as much as those
#   below (`js-last-layers`: {glue:text}`js_last_layers_verdict`); between seeds the ratio is
#   {glue:text}`seeds_js_value` (`seeds-js`: {glue:text}`seeds_js_verdict`).
# - **Features.** Distance grows with depth against the pre-trained encoder ({glue:text}`svcca_grows_value`,
#   `svcca-grows`: {glue:text}`svcca_grows_verdict`) and between seeds ({glue:text}`seeds_svcca_value`,
#   `seeds-svcca`: {glue:text}`seeds_svcca_verdict`). Every layer above inherits what changed below it, so part of
#   this growth is not the layer's own doing.
# - **Putting layers back.** A low layer put back moves the last one {glue:text}`rollback_low_harmless_value`
#   times as much as a higher one does (`rollback-low-harmless`: {glue:text}`rollback_low_harmless_verdict`).
# - **Data sets.** In the lower third, models of two data sets differ {glue:text}`datasets_low_agree_value` times
#   as much as in the last (`datasets-low-agree`: {glue:text}`datasets_low_agree_verdict`). The rank correlation
#   of the pairs' distances with the paper's order is {glue:text}`datasets_order_value` (`datasets-order`:
#   {glue:text}`datasets_order_verdict`).
#
# Spreads are standard deviations over tasks and seeds together. An encoder of six layers has two of them in each
# third, where the paper's has eight: what the paper sees at layer 9 of 24 has no separate place here.
