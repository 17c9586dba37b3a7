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
# # Layers without pre-training
#
# **The question.** Does a task need all of pre-training? {cite:t}`singh2020` re-initialise the top layers, fine-tune
# anyway, and measure what the task loses, with much data and with little. Their paper is a course report, not
# peer-reviewed, and runs each setting once.
#
# **The answer in numbers.** With more data, the score falls later as layers are re-initialised: its curve is more
# concave by {glue:text}`less_data_more_reliance_value` (`less-data-more-reliance`:
# {glue:text}`less_data_more_reliance_verdict`). A frozen encoder peaks lower than a re-initialised one by
# {glue:text}`probing_needs_more_value` (`probing-needs-more`: {glue:text}`probing_needs_more_verdict`). Weights of the
# top third move further than those of the bottom third by {glue:text}`weights_move_up_value` (`weights-move-up`:
# {glue:text}`weights_move_up_verdict`). Negative numbers point the other way; ranges are over tasks.
# [The last section](#the-claims) has all claims; {glue:text}`claims_reproduced` are reproduced here.
#
# *You need* the {doc}`primer </primer>`. *Reading*: 20 minutes. *Running*: 6 minutes on the toy world with two cores.

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

# %% tags=["hide-input"]
from fivelenses import runs
from fivelenses.papers.singh2020 import claims, curves, figures

run = runs.begin(4, globals())
settings = run.settings

# %% [markdown]
# ## The setting
#
# The paper fine-tunes BERT-base (12 layers) on sentiment (SST-2), question answering as inference (QNLI) and
# acceptability (CoLA, scored by {term}`Matthews correlation`), with 100, 10 and 1 % of the training examples. It first
# re-initialises the six linear projections (query, key, value, attention output, intermediate, output) of the top $k$
# layers, for every $k$. The new weights come from a normal distribution with mean 0 and deviation $\sigma = 0.02$, cut
# at $\pm 2\sigma$:

# %% tags=["method"]
import torch

from fivelenses.models import encoders, layers

encoder = encoders.load_weights(encoders.locate("toy-bert/seed-0"))
projection = layers.projections(encoder, 6)["output"]
pretrained = projection.weight.detach().clone()
chance = torch.Generator().manual_seed(0)
by_hand = 0.02 * torch.randn(pretrained.shape, generator=chance)
while (by_hand.abs() > 0.04).any():  # draw again what lies outside
    again = 0.02 * torch.randn(by_hand.shape, generator=chance)
    by_hand = torch.where(by_hand.abs() > 0.04, again, by_hand)
layers.reinitialise(encoder, [6], seed=0)
weights = {"pre-trained": pretrained, "by hand": by_hand, "library": projection.weight.data}
{name: [round(float(one), 4) for one in (of.std(), of.max())] for name, of in weights.items()}

# %% [markdown]
# Each pair is the deviation ($0.0176$ after the cut) and the greatest weight. Biases and LayerNorms, which the report
# does not mention, stay pre-trained. Training sets are stratified by label, and the smaller ones are drawn again for
# every seed.

# %% tags=["hide-input"]
data = run.measure("sizes", over={"task": settings.tasks})
sizes = {row.task: settings.sizes(row.task, row.training_examples) for row in data.itertuples()}
run.exhibit(figures.table_1, data, sizes)

# %% tags=["hide-input"]
models = run.measure("models", each="task")
run.exhibit(figures.figure_4, models, reinitialised=2)

# %% [markdown]
# What was not learned with all layers kept does not say what a layer is worth: claims are judged on the tasks and sizes
# that these models learned, better than a bag of words where a run has one.

# %% tags=["hide-input"]
predictions = run.measure("by_example", of=settings.on_true_labels, each=("task", "seed"))
words = run.measure("words_by_example", over=settings.training_sets)
run.gate(models, predictions, words=words)

# %% [markdown]
# ## Re-initialised layers
#
# Where a curve stays flat and then falls, the task itself can teach the upper layers. Where it falls at once, the task
# needs what pre-training put into the top. At the right end all layers are {term}`re-initialised`: only embeddings,
# biases and LayerNorms are pre-trained.
#
# :::{admonition} Predict, then look
# :class: tip
# Re-initialise the top third of the layers before fine-tuning. What does the task lose?
#
# - **a** Most of its gain over the {term}`null rate`: the top layers are the most abstract.
# - **b** Next to nothing: fine-tuning learns these layers again.
# - **c** It depends on the number of examples: nothing with many, much with few.
# :::

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "I have made my choice: show the figure"}
for task in settings.sized_tasks():
    run.exhibit(figures.reinitialisation, models, task, sizes[task])

# %% [markdown]
# Null rates differ, so Figure 1c compares gains over them, at one number of examples.

# %% tags=["hide-input"]
matched = settings.matched_tasks()
if matched:
    examples = min(settings.matched_examples, *(sizes[task][0] for task in matched))
    run.exhibit(figures.figure_1c, models, matched, examples)

# %% tags=["hide-input"]
for task in settings.tasks:
    if task not in settings.sized_tasks():
        run.exhibit(figures.reinitialisation, models, task, sizes[task][:1])

# %% [markdown]
# Fewer examples at equal epochs mean fewer steps, so we also train on the smaller sets for as many steps as on the
# largest.

# %% tags=["hide-input"]
again = settings.equal_steps_depth is not None and settings.sized_tasks()
if again:
    axes = ("score", "score", "reinitialised", figures.REINITIALISED)
    run.exhibit(figures.equal_steps, curves.scores(models), again, *axes)

# %% [markdown]
# The mean curves in numbers:

# %% tags=["hide-input"]
run.exhibit(figures.table_of_shapes, models, spare=predictions)

# %% [markdown]
# ## Frozen layers
#
# Fine-tuning can repair what re-initialisation broke. To see what the layers hold as they are, we remove the top $k$,
# freeze the rest, and train only a classifier on [CLS]. The paper's three epochs are too few (on CoLA its probe hardly
# leaves the null rate); ours is a logistic regression on standardised features, trained to convergence. A size that
# uses all examples of the run has one probe, with an interval over development examples only.

# %% tags=["hide-input"]
probes = run.measure("frozen_probes", over=settings.probed(sizes))
for task in settings.sized_tasks():
    run.exhibit(figures.probing, probes, task)

# %% [markdown]
# ## Weights that move
#
# The distance is $\lVert W - W' \rVert_F$ between each layer's pre-trained and fine-tuned output projection, in models
# with all layers kept. The control is training on {term}`shuffled labels` (dash-dotted).

# %% tags=["hide-input"]
distances = run.measure("weight_distances", of=settings.with_all_layers, each="task")
for task in settings.sized_tasks():
    run.exhibit(figures.weight_distance, distances, task)

# %% tags=["hide-input"]
if again:
    outputs = figures.outputs(distances)
    run.exhibit(figures.equal_steps, outputs, again, "absolute", figures.DISTANCE, "layer", "layer")

# %% tags=["hide-input"]
run.exhibit(figures.table_of_sublayers, distances)

# %% [markdown]
# The same for CoLA (the paper's appendix):

# %% tags=["hide-input"]
for task in settings.tasks:
    if task not in settings.sized_tasks():
        run.exhibit(figures.probing, probes, task)
        run.exhibit(figures.weight_distance, distances, task)

# %% [markdown]
# ## The claims
#
# Intervals cover seeds and development examples. Probes are compared with fine-tuned models where at least one layer is
# kept. {doc}`The ledger </claims>` explains the verdicts.

# %% tags=["hide-input"]
run.judge(claims.CLAIMS)
run.finish()

# %% [markdown]
# **Limits.** A model at the null rate may only have had too few steps, above all where a frozen probe on the same
# examples does better.
#
# Three [exercises](/exercises.md#chapter-4-layers-without-pre-training) go with this chapter.
