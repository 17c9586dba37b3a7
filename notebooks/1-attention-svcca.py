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
# **The question.** Which layers of an encoder does fine-tuning change, and would another {term}`seed` or other data
# change the same ones? {cite:t}`hao2020` asked this of BERT-large, with the Jensen–Shannon divergence of *attention*
# and the SVCCA distance of *features*.
#
# **The answer in numbers.** Attention in the last third of the layers moves {glue:text}`js_last_layers_value` times as
# much as below (`js-last-layers`: {glue:text}`js_last_layers_verdict`). SVCCA distance is
# {glue:text}`svcca_grows_value` larger in the last third than in the lower third (`svcca-grows`:
# {glue:text}`svcca_grows_verdict`). Ranges are over tasks. [The last section](#the-claims) has all claims;
# {glue:text}`claims_reproduced` are reproduced here.
#
# *You need* the {doc}`primer </primer>` and singular value decomposition. *Reading*: 20 minutes. *Running*: 5 minutes
# on the {term}`toy world` with two cores.

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

# %% tags=["hide-input"]
from fivelenses import runs
from fivelenses.papers.hao2020 import claims, figures

run = runs.begin(1, globals())
settings = run.settings

# %% [markdown]
# ## The setting
#
# The paper fine-tunes BERT-large (24 layers) on inference with much data (MNLI) and with little (RTE), sentiment
# (SST-2) and paraphrase (MRPC). We count layers from 1, the paper from 0. Claims are judged on tasks whose score lies
# clearly (at 95 %) more than two points above the {term}`null rate`.

# %% tags=["hide-input"]
models = run.measure("models", of=settings.ordinary_models, each="task")
run.exhibit(figures.table_1, models)

# %% tags=["hide-input"]
by_example = run.measure("by_example", of=settings.ordinary_models, each=("task", "seed"))
words = run.measure("words_by_example", over=settings.training_sets)
run.gate(models, by_example, words=words)

# %% [markdown]
# Controls show what is due to learning: a {term}`twin`, whose matrices moved as far as in fine-tuning but at random, a
# functional twin, which moved on until its last layer had changed as much (where a run has it), and training on
# {term}`shuffled labels`.
#
# ## Attention changes
#
# Each {term}`attention head` gives every token a distribution over the tokens that it attends to. The
# {term}`Jensen–Shannon divergence` compares the distributions $P$ and $Q$ of two models with their mean
# $R = (P + Q)/2$:
#
# $$D_{JS}(P \,\|\, Q) = \tfrac12 D_{KL}(P \,\|\, R) + \tfrac12 D_{KL}(Q \,\|\, R).$$
#
# It is 0 where they agree and $\ln 2 \approx 0.69$ nats where no token receives attention from both. By hand and by
# {py:func}`fivelenses.lenses.attention.js_divergence`:

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

# %% [markdown]
# A layer's number is the mean over tokens ([CLS] and [SEP] included), then heads, then examples.
#
# :::{admonition} Predict, then look
# :class: tip
# In which layers does fine-tuning change attention most?
#
# - **a** In all layers alike: every weight is trained.
# - **b** In the lowest: everything above depends on them.
# - **c** In the highest: the classifier reads their output.
# :::

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "I have made my choice: show the figure"}
changes = run.measure("changes_by_layer", each=("task", "shuffled_labels"))
run.exhibit(figures.figure_1, changes)

# %% [markdown]
# ## Features change
#
# {term}`SVCCA` {cite:p}`raghu2017` compares the outputs $X$ and $Y$ of a layer in two models on the same tokens,
# whatever the basis of each. It keeps the principal directions that hold 99 % of the variance on each side, finds the
# canonical correlations $\rho_i$ between them, and takes
#
# $$D_{SVCCA} = 1 - \frac1c \sum_{i=1}^{c} \rho_i ,$$
#
# where $c$ is the smaller number of directions. The paper keeps all; the table below Figure 2 has both forms.

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
# Unrelated representations are less than 1 apart, because finitely many tokens correlate by chance (dashed in Figure
# 2).

# %% tags=["hide-input"]
run.exhibit(figures.figure_2, changes)

# %% tags=["hide-input"]
run.exhibit(figures.table_of_measures, changes, settings.variance_kept)

# %% [markdown]
# ## Rolling one layer back
#
# How much does each layer's change matter to the last layer, which the classifier reads?
# {term}`Roll back <rolled back>` one layer to its pre-trained values and measure how far the last one moves.

# %% tags=["hide-input"]
each = ("task", "seed", "shuffled_labels")
rollbacks = run.measure("rollbacks", each=each)
run.exhibit(figures.figure_3, rollbacks)

# %% [markdown]
# ## Other seeds
#
# Two models of one task share their start and training examples and differ in the seed alone.

# %% tags=["hide-input"]
run.exhibit(figures.figure_4, changes)

# %% tags=["hide-input"]
run.exhibit(figures.figure_5, changes)

# %% [markdown]
# ## Other data sets
#
# The paper compares models of close data sets (RTE and MNLI, both inference), of less close ones (MRPC and RTE, both
# pairs of sentences) and of distant ones (MRPC and SST-2), on a mixture of their development examples.

# %% tags=["hide-input"]
pairs = settings.compared_pairs()
between = run.measure("between_datasets", of=settings.models_of, each="seed", over={"pair": pairs})
run.exhibit(figures.figure_6, between, settings.mixed_examples)

# %% tags=["hide-input"]
run.exhibit(figures.figure_7, between)

# %% [markdown]
# ## The claims
#
# Each claim becomes one or more numbers per task or pair of tasks, positive in its direction; its card gives the
# threshold. {doc}`The ledger </claims>` explains the verdicts.

# %% tags=["hide-input"]
run.judge(claims.CLAIMS)
run.finish()

# %% [markdown]
# **Limits.** A third of a small encoder is two or three layers (eight in the paper), so it is only roughly known where
# a curve begins to rise.
#
# Three [exercises](/exercises.md#chapter-1-attention-and-features) go with this chapter.
