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
# # What each layer's pre-training is worth
#
# **The question.** Pre-training gives a task more than it needs, or does it? {cite:t}`singh2020` take it away layer
# by layer: they re-initialise the top layers, fine-tune all the same, and measure what the task loses, with much data
# and with little. They compare this with a frozen encoder without its top layers, and measure how far fine-tuning
# moves the weights.
#
# **The answer here.** Does the curve fall sooner with less data (`less-data-more-reliance`:
# {glue:text}`less_data_more_reliance_verdict`, holds in {glue:text}`less_data_more_reliance_held` cases; concavity
# with the most data minus that with the least: {glue:text}`less_data_more_reliance_value`)?
# Does a frozen encoder peak lower and need more of its layers than a re-initialised one (`probing-needs-more`:
# {glue:text}`probing_needs_more_verdict`; how much lower: {glue:text}`probing_needs_more_value`)?
# Do upper layers move further (`weights-move-up`: {glue:text}`weights_move_up_verdict`; top minus bottom third:
# {glue:text}`weights_move_up_value`)? Of the paper's six
# claims, {glue:text}`claims_reproduced` are reproduced in this run; [the last section](#the-claims) lists all of
# them with their numbers.

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
from fivelenses.checkpoints import tables
from fivelenses.checkpoints.predictions import by_example
from fivelenses.papers.singh2020 import claims, curves, figures, measure

run = runs.begin(4, globals())
settings = run.settings

# %% [markdown]
# ## The setting
#
# The paper fine-tunes BERT-base (12 layers) on sentiment (SST-2), question answering as inference (QNLI) and
# acceptability (CoLA), with 100, 10 and 1 % of the training examples. For every number $k$ of layers, the six linear
# projections of the top $k$ layers (query, key, value, attention output, intermediate, output) are drawn anew, and
# the whole model is fine-tuned. The weights are drawn from a normal distribution with mean 0 and deviation
# $\sigma = 0.02$ that is cut at $\pm 2\sigma$, which leaves a deviation of $0.0176$.
#
# The report says nothing of the biases and LayerNorms of these layers; we keep them (the parameter
# `biases_and_norms` resets them). A smaller set of examples is a part of the larger one, stratified by label, and
# every seed draws its own. Where the largest size is all that there is, there is nothing to draw: its models differ in
# their first weights and the order of the examples alone.

# %%
data = run.measure(measure.sizes, over={"task": settings.tasks})
sizes = {row.task: settings.sizes(row.training_examples) for row in data.itertuples()}
run.exhibit(figures.table_1, data, sizes)

# %% [markdown]
# Three ways to use a pre-trained encoder, and what each of them trains:

# %%
models = run.measure(tables.models)
run.exhibit(figures.figure_4, models, reinitialised=2)

# %% [markdown]
# A task that the ordinary models, fine-tuned on the most examples with all layers kept, did not learn says nothing
# about layers. Their scores and those of all other models are kept example by example, for the intervals.

# %%
predictions = run.measure(by_example, of=settings.on_true_labels, each=("task", "seed"))
run.gate(models, predictions)

# %% [markdown]
# ## Re-initialised layers
#
# Where a curve stays flat and then falls, the lower layers are enough and the upper ones can be learned from the task
# alone; where it falls at once, the task needs what pre-training put into the top. The right end is a network whose
# layers are all drawn anew: only its embeddings, biases and LayerNorms know anything. Each point is a fine-tuned
# model of its own.

# %%
for task in settings.sized_tasks():
    run.exhibit(figures.reinitialisation, models, task, sizes[task])

# %% [markdown]
# With the same number of examples the tasks can be compared. Their null rates differ, so the picture shows what is
# gained over them.

# %%
matched = settings.matched_tasks()
if matched:
    examples = min(settings.matched_examples, *(sizes[task][0] for task in matched))
    run.exhibit(figures.figure_1c, models, matched, examples)

# %%
for task in settings.tasks:
    if task not in settings.sized_tasks():
        run.exhibit(figures.reinitialisation, models, task, sizes[task][:1])

# %% [markdown]
# Fewer examples at equal epochs also mean fewer steps. Models of the smaller sizes that were trained for as many steps
# as the largest tell the two apart; a run has them where the parameter `equal_steps_depth` asks for them.

# %%
again = settings.equal_steps_depth is not None and settings.sized_tasks()
if again:
    axes = ("score", "score", "reinitialised", figures.REINITIALISED)
    run.exhibit(figures.equal_steps, curves.scores(models), again, *axes)

# %% [markdown]
# Is a curve a line, or concave? The eye is easily persuaded, so shapes are measured on the mean curve: what the score
# loses with each third of the layers, the area between the curve and a straight line, and the greatest distance from
# that line.

# %%
run.exhibit(figures.table_of_shapes, models, spare=predictions)

# %% [markdown]
# ## Frozen layers
#
# Fine-tuning can mend what re-initialisation broke. A frozen encoder shows what its layers hold as they are: the top
# $k$ layers are removed, the rest is kept as it was pre-trained, and only a classifier is trained on [CLS]. The paper
# trains that classifier for three epochs at the learning rate of fine-tuning, which leaves it far from done (on CoLA
# it hardly leaves the majority). Here it is a logistic regression that is trained until it has converged, on
# standardised features, so that what is missing is missing in the features. The same examples are used as above. The
# regression has no chance in it, so on all examples that there are, one probe is all there can be: its interval is
# over development examples, and says nothing about another draw.

# %%
probes = run.measure(
    measure.frozen_probes, over={"task": settings.tasks}, sizes=sizes, max_lengths=settings.max_lengths()
)
for task in settings.sized_tasks():
    run.exhibit(figures.probing, probes, task)

# %% [markdown]
# ## Weights that move
#
# The distance between the pre-trained and the fine-tuned weights of a layer's output projection,
# $\lVert W - W' \rVert_F$, for the models without re-initialised layers. Fewer examples mean fewer steps of the
# optimiser, so a curve that lies lower need not mean that less was there to learn: the numbers of steps are in the
# captions. Weights also move where there is nothing to learn but the labels' frequencies: models trained on shuffled
# labels are drawn dashed where a run has them. (Weights moved at random by the same norm, the control of other
# chapters, would lie on the curves themselves.)

# %%
distances = run.measure(measure.weight_distances, of=settings.with_all_layers, each="task")
for task in settings.sized_tasks():
    run.exhibit(figures.weight_distance, distances, task)

# %%
if again:
    outputs = figures.outputs(distances)
    run.exhibit(figures.equal_steps, outputs, again, "absolute", "weight distance (L2)", "layer", "layer")

# %%
run.exhibit(figures.table_of_sublayers, distances)

# %% [markdown]
# The paper's appendix shows the same for CoLA: frozen probes first, then the weights.

# %%
for task in settings.tasks:
    if task not in settings.sized_tasks():
        run.exhibit(figures.probing, probes, task)
        run.exhibit(figures.weight_distance, distances, task)

# %% [markdown]
# ## The claims
#
# The report argues from the shapes of its curves. Each of its sentences is made one or more numbers per task, positive
# in the direction of the sentence, with 95 % intervals over seeds and development examples. A claim *holds* for a task
# where all its intervals lie above their thresholds, *fails* where one lies below, and is *open* otherwise; so a claim
# is reproduced, contradicted, mixed or open, or it cannot be tested. A curve that does not clearly fall has no shape,
# and a claim about it cannot be tested. Probes and tuned models are compared from one layer on: a model that needs no
# layer and a probe that needs the first are equal there.

# %% tags=["hide-input"]
run.judge(claims.CLAIMS)
run.finish()

# %% [markdown]
# What to keep in mind:
#
# - **Data.** Concavity with the most data minus that with the least: {glue:text}`less_data_more_reliance_value`
#   (`less-data-more-reliance`: {glue:text}`less_data_more_reliance_verdict`).
# - **Tasks.** Concavity of QNLI, at about as many examples as in the paper's Figure 1c:
#   {glue:text}`qnli_concave_sst_linear_value` (`qnli-concave-sst-linear`:
#   {glue:text}`qnli_concave_sst_linear_verdict`); CoLA's distance from a line, as a share of its drop, with a minus
#   sign: {glue:text}`cola_linear_value` (`cola-linear`: {glue:text}`cola_linear_verdict`).
# - **Frozen layers.** Gain of a frozen probe without the top sixth of the layers:
#   {glue:text}`top_two_hurt_probing_value` (`top-two-hurt-probing`: {glue:text}`top_two_hurt_probing_verdict`); how
#   much lower than a tuned model it peaks: {glue:text}`probing_needs_more_value` (`probing-needs-more`:
#   {glue:text}`probing_needs_more_verdict`).
# - **Weights.** Distance of the top minus that of the bottom third: {glue:text}`weights_move_up_value`
#   (`weights-move-up`: {glue:text}`weights_move_up_verdict`).
# - **Steps.** Fewer examples mean fewer steps, too. Where a fine-tuned model stays at the null rate and a frozen probe
#   on the same examples does not, steps may be lacking. On SST-2 with the least data of the run on real data they were:
#   as many steps as the most data have, given by the parameter `min_steps`, lift all-MiniLM far above the null.
#
# Numbers are ranges over tasks. A model of few layers and few examples has smaller drops than BERT-base, and its seeds
# differ by about as much as neighbouring points of its curves. Where a model whose layers are all re-initialised scores
# as well as one that keeps them, the pre-training of the layers was worth nothing to that task at that size, beyond the
# embeddings: the table of shapes has both numbers side by side.
