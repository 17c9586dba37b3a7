# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
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
beside = None
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
keep = None
batch_rows = None
device = None

# %% tags=["hide-input"]
from fivelenses import runs
from fivelenses.papers import hao2020

overrides = dict(
    encoder=encoder, source=source, tasks=tasks, dataset_pairs=dataset_pairs, seeds=seeds, schedules=schedules
)
overrides |= dict(learning_rate=learning_rate, batch_size=batch_size, epochs=epochs, device=device, keep=keep)
overrides |= dict(training_examples=training_examples, evaluation_examples=evaluation_examples)
overrides |= dict(mixed_examples=mixed_examples, batch_rows=batch_rows, beside=beside)
overrides |= dict(learning_rate_by_encoder=learning_rate_by_encoder)
run = runs.begin(1, profile, **overrides)
settings = run.settings

# %% [markdown]
# ## The setting
#
# The paper fine-tunes BERT-large (24 layers) on four tasks: natural language inference with much data (MNLI) and
# with little (RTE), sentiment (SST-2) and paraphrase (MRPC), with Adam, a slanted triangular learning rate and
# dropout $0.1$, and measures on the development sets. We do the same with the encoder, data and seeds named above.
# Layers are counted from 1 here, and 0 is the embedding output; the paper counts its 24 layers from 0.

# %%
models = [(task, seed) for task in settings.tasks for seed in settings.seeds]
specifications = [settings.specification(task, seed, settings.encoder) for task, seed in models]
checkpoints = dict(zip(models, run.prepare(specifications), strict=True))
run.exhibit(hao2020.table_1(checkpoints))

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
measuring = dict(
    keep=settings.keep, batch_rows=settings.batch_rows, device=None if settings.device == "auto" else settings.device
)
changes = hao2020.changes_by_layer(
    checkpoints, settings.encoder, settings.source, settings.evaluation_examples, **measuring
)
run.exhibit(hao2020.figure_1(changes))

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
run.exhibit(hao2020.figure_2(changes))

# %%
run.exhibit(hao2020.table_of_measures(changes, settings.keep))

# %% [markdown]
# ## Putting one layer back
#
# The last layer is what the classifier reads. How much does each layer's change matter to it? Put one layer of
# the fine-tuned encoder back to its pre-trained values, leave all others as they are, and measure how far the
# last layer moves.

# %%
rollbacks = hao2020.rollbacks(checkpoints, settings.encoder, settings.source, settings.evaluation_examples, **measuring)
run.exhibit(hao2020.figure_3(rollbacks))

# %% [markdown]
# ## Would it happen again? Seeds
#
# Two models of one task differ in the seed of the head, of the order of examples and of dropout. They share their
# pre-trained start and their training examples.

# %%
run.exhibit(hao2020.figure_4(changes))

# %%
run.exhibit(hao2020.figure_5(changes))

# %% [markdown]
# ## Would it happen again? Data sets
#
# The paper compares models of two data sets that are close (RTE and MNLI, both inference), further apart (MRPC
# and RTE, both pairs of sentences) and far apart (MRPC and SST-2), on a mixture of their development examples.

# %%
each = settings.mixed_examples
pairs = settings.compared_pairs()
if pairs:
    between = hao2020.between_datasets(checkpoints, pairs, settings.encoder, settings.source, each, **measuring)
    run.exhibit(hao2020.figure_6(between, each))

# %%
if pairs:
    run.exhibit(hao2020.figure_7(between, each))

# %% [markdown]
# ## Would it happen again? Another encoder
#
# The paper has one encoder, so that its curves may be those of BERT-large and of no other. Encoders beside the one
# named above, in this run: {glue:text}`others`. Each is fine-tuned on the same tasks, and gives Figures 1 and 2 once
# more. Read the dashed line of attention first: where it is low, a layer's attention before fine-tuning was hardly more
# than an untrained one's, and had little shape to lose.

# %%
for name in settings.others():
    specifications = [settings.specification(task, seed, name) for task, seed in models]
    tuned = dict(zip(models, run.prepare(specifications), strict=True))
    moved = hao2020.changes_by_layer(tuned, name, settings.source, settings.evaluation_examples, **measuring)
    run.exhibit(hao2020.another_encoder(moved, name, tuned))

# %% [markdown]
# ## The claims
#
# The paper argues from the shapes of its curves and prints no numbers for them. To judge its sentences, each is
# made a predicate on the table behind a figure, with a threshold that is ours, fixed before any run and printed
# in the third column. A claim is *reproduced* when it holds for every task (or pair), *partly* when it holds for
# at least half of them, and *not reproduced* otherwise.

# %% tags=["hide-input"]
run.judge(hao2020.CLAIMS)
run.glue(others=" and ".join(run.settings.others()) or "none")
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
