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
# much as in the layers below. The claim that it does so drastically is {glue:text}`js_last_layers_verdict`; it holds
# in {glue:text}`js_last_layers_held` tasks. SVCCA distance of the last third minus that of the lower third is
# {glue:text}`svcca_grows_value`, and the claim that it grows is {glue:text}`svcca_grows_verdict`. Of the paper's seven
# claims, {glue:text}`claims_reproduced` are reproduced in this run; [the last section](#the-claims) lists all of them
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
shuffled = None
device = None

# %% tags=["hide-input"]
from fivelenses import runs
from fivelenses.checkpoints import predictions, tables
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

# %%
by_example = run.measure(predictions.by_example, each=("task", "seed"))
run.gate(models, by_example)

# %% [markdown]
# A model that does not beat the majority has learned nothing that its layers could show: a task counts only if the
# 95 % interval of its score, over seeds and examples, lies more than two points above the null rate.
#
# Any change of the weights moves attention and features. Two controls show how much of what we see is due to
# learning. The *twin* of a fine-tuned model has moved from the pre-trained weights as far as the model did, matrix by
# matrix, but in random directions. A model trained on *shuffled labels* took as many steps on the same texts, with
# nothing to learn but the labels' frequencies. Where a control was measured, its mean is a line in the figures.
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
changes = run.measure(measure.changes_by_layer, of=settings.with_shuffled, each=("task", "shuffled_labels"))
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
# ## Rolling one layer back
#
# The last layer is what the classifier reads. How much does each layer's change matter to it? Roll one layer of
# the fine-tuned encoder back to its pre-trained values, leave all others as they are, and measure how far the
# last layer moves.

# %%
each = ("task", "seed", "shuffled_labels")
rollbacks = run.measure(measure.rollbacks, of=settings.with_shuffled, each=each)
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
# turned into one or more numbers per task (or pair of tasks), positive in the direction of the sentence, with a
# threshold. It is 0 where the sentence is about an order. Where the paper writes *drastically*, *hardly* or
# *consistent*, the number has to exceed what a straight line over the layers gives: if every layer adds the same,
# none stands out.
#
# Each number has a 95 % interval over seeds and examples. A claim *holds* for a task if its intervals lie above
# their thresholds, *fails* if one lies below, and is *open* otherwise. It is *reproduced* if it fails nowhere and
# holds in at least two thirds of the tasks, *contradicted* if it holds nowhere and fails in at least two thirds,
# *mixed* if it holds in some and fails in others, and *open* in all other cases. Some claims *cannot be tested* in a
# run: with data sets that are all small, for example, nothing can be said of large ones.

# %% tags=["hide-input"]
run.judge(claims.CLAIMS)
run.finish()

# %% [markdown]
# What to keep in mind:
#
# - **Attention.** The last third of the layers moves {glue:text}`js_last_layers_value` times as much as those
#   below (`js-last-layers`: {glue:text}`js_last_layers_verdict`). Between seeds of the tasks that the paper calls
#   large, the ratio is {glue:text}`seeds_js_value` (`seeds-js`: {glue:text}`seeds_js_verdict`).
# - **Features.** SVCCA distance to the pre-trained encoder is {glue:text}`svcca_grows_value` larger in the last third
#   than in the lower third (`svcca-grows`: {glue:text}`svcca_grows_verdict`). Between seeds it is
#   {glue:text}`seeds_svcca_value` larger in the last third than in the middle one (`seeds-svcca`:
#   {glue:text}`seeds_svcca_verdict`). Every layer inherits what changed below it, so part of this growth is not the
#   layer's own doing.
# - **Rolling layers back.** Relative to a higher layer, a low layer moves the last one less by a share of
#   {glue:text}`rollback_low_harmless_value`; 1 would mean not at all, and a negative share means more
#   (`rollback-low-harmless`: {glue:text}`rollback_low_harmless_verdict`).
# - **Data sets.** Relative to the last third, attention of models of two data sets differs less in the lower third by
#   a share of {glue:text}`datasets_low_agree_value` (`datasets-low-agree`:
#   {glue:text}`datasets_low_agree_verdict`). The paper's order of the three pairs holds for
#   {glue:text}`datasets_order_held` measures (`datasets-order`: {glue:text}`datasets_order_verdict`).
#
# An encoder of six layers has two of them in each third, where the paper's has eight: what the paper sees at layer 9
# of 24 has no separate place here.
