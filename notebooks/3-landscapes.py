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
# # Loss landscapes
#
# **The question.** Why does fine-tuning a pre-trained encoder work better than training the same network from scratch?
# {cite:t}`hao2019` compare their {term}`loss surfaces <loss surface>`: on the line from start to end, on a plane around
# it, and along the steps of the optimiser.
#
# **The answer in numbers.** Around its end, the basin of the fine-tuned model fills more of a disc than that from
# scratch does, by {glue:text}`wider_optima_value` of the disc (`wider-optima`: {glue:text}`wider_optima_verdict`).
# After a third of its steps, fine-tuning points {glue:text}`straighter_value` degrees closer to its end than training
# from scratch (`straighter`: {glue:text}`straighter_verdict`). Rolling back the low layers costs less accuracy than the
# middle ones, by {glue:text}`rollback_value` (`rollback`: {glue:text}`rollback_verdict`). Negative numbers point the
# other way; ranges are over tasks. [The last section](#the-claims) has all claims; {glue:text}`claims_reproduced` are
# reproduced here.
#
# *You need* the {doc}`primer </primer>` and gradient descent. *Reading*: 20 minutes. *Running*: 5 minutes on the toy
# world with two cores.

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
scratch_epochs = None
second = None
low = None
high = None
points = None
line_points = None
grid_examples = None
bfloat16 = None
followed = None
states = None
long_task = None
long_epochs = None
curvature_examples = None
grouped = None
device = None

# %% tags=["hide-input"]
from fivelenses import runs
from fivelenses.papers.hao2019 import claims, figures
from fivelenses.papers.hao2019.sharpness import table_of_curvature
from fivelenses.papers.hao2019.tables import (
    fine_tuned,
    gains,
    table_1,
    table_of_groups,
    table_of_measures,
    table_of_models,
)
from fivelenses.records import INITS

run = runs.begin(3, globals())
settings = run.settings

# %% [markdown]
# ## The setting
#
# Each task is trained from the pre-trained encoder and, for more epochs, from random weights. The paper does so with
# BERT-large on MNLI, RTE, SST-2 and MRPC.

# %% tags=["hide-input"]
models = run.measure("models")
run.exhibit(table_of_models, models, second=settings.second)

# %% [markdown]
# Claims are judged on tasks whose fine-tuned models score clearly above the {term}`null rate`, by more than a tenth of
# what the paper's models gain (two points where it has none), and better than a bag of words.

# %% tags=["hide-input"]
scores = run.measure("by_example", of=settings.ordinary_models, each=("task", "seed"))
words = run.measure("words_by_example", over=settings.training_sets)
run.gate(models, scores, of=lambda table: fine_tuned(table, settings.second), gains=gains(models), words=words)

# %% [markdown]
# Training leads from $\theta_0$ to $\theta_1$. Let $\delta_1 = \theta_1 - \theta_0$ and
# $\delta_2 = \theta_2 - \theta_0$, where $\theta_2$ was trained from the same start on another task. The paper draws
# the loss $\mathcal{J}$ on a line and on a plane:
#
# $$f(\alpha) = \mathcal{J}(\theta_0 + \alpha \delta_1), \qquad
# f(\alpha, \beta) = \mathcal{J}\Bigl(\theta_0 + \alpha \delta_1
# + \beta \frac{\lVert \delta_1 \rVert}{\lVert \delta_2 \rVert} \delta_2\Bigr).$$
#
# One row of such a surface, for a logistic regression with two weights:

# %% tags=["method"]
import torch
from torch.nn.functional import softplus

from fivelenses.lenses.landscape import surface

y = torch.tensor([1.0, -1.0]).repeat(25)
x = torch.randn(50, 2, generator=torch.Generator().manual_seed(0)) + y[:, None]
start, end, other = torch.zeros(2), torch.tensor([2.0, 1.0]), torch.tensor([-1.0, 3.0])
first, second = end - start, (other - start) * (end - start).norm() / (other - start).norm()
alphas, beta = [-1.0, 0.0, 1.0, 2.0], 0.5
cells = [start + alpha * first + beta * second for alpha in alphas]
by_hand = [float(softplus(-y * (x @ w)).mean()) for w in cells]
grid = {"w": start}, ({"w": first}, {"w": second}), alphas, [beta]
library = surface(lambda at: float(softplus(-y * (x @ at["w"])).mean()), *grid).losses[0]
{"by hand": [round(loss, 6) for loss in by_hand], "library": library.round(6).tolist()}

# %% [markdown]
# The encoder's parameters move, embeddings included; pooler and classifier stay as trained, without dropout.
# $\mathcal{J}$ is the mean over one random subset of the examples, the same for every cell.

# %% tags=["hide-input"]
each_model = {"init": INITS, "task": settings.tasks, "seed": settings.seeds}
landscapes = run.measure("landscapes", over=each_model)

# %% [markdown]
# ## A good place to start
#
# A wide {term}`basin` tolerates small changes of the parameters. Each panel of Figure 1 measures in lengths of its own
# $\delta_1$ (given in the table after Figure 6).
#
# :::{admonition} Predict, then look
# :class: tip
# Around which end is the basin larger, in lengths of its own $\delta_1$?
#
# - **a** Around the fine-tuned one: pre-training led to a flat region.
# - **b** Around the one from scratch: it trains for more epochs and ends deeper.
# - **c** Around neither, in this unit.
# :::

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "I have made my choice: show the figure"}
run.exhibit(figures.figure_1, landscapes)

# %% tags=["hide-input"]
histories = run.measure("histories")
run.exhibit(figures.figure_2, histories, models, second=settings.second)

# %% [markdown]
# The paper draws a state $\theta^i$ of the training, with $\delta^i = \theta^i - \theta_0$, at $(d^\alpha, d^\beta)$;
# $v_{\cos}$ is the cosine of its angle to the final direction:
#
# $$v_{\cos} = \frac{\langle \delta^i, \delta_1 \rangle}{\lVert \delta^i \rVert \lVert \delta_1 \rVert}, \qquad
# d^\alpha = \frac{\langle \delta^i, \delta_1 \rangle}{\lVert \delta_1 \rVert^2}, \qquad
# d^\beta = \sqrt{\frac{\lVert \delta^i \rVert^2}{\lVert \delta_1 \rVert^2} - (d^\alpha)^2}.$$
#
# $d^\beta$ is a distance from the straight line, without a sign, so we also draw the nearest point of the plane. A
# random walk turns towards its end, too: its steps are nearly orthogonal in so many dimensions, so after a share $s$ of
# their summed squared lengths it is at $\alpha = s$, $\beta = \sqrt{s - s^2}$.

# %% tags=["hide-input"]
if settings.followed_tasks():
    paths = run.measure("trajectories", over={"task": settings.followed_tasks(), "seed": settings.seeds})
    run.exhibit(figures.figure_3, landscapes, paths)

# %% [markdown]
# What if training goes on? The paper trains for five epochs, then for twenty more. So do we: the rate falls to a tenth
# over the first epochs and stays there, and the optimiser keeps its state. A second line is a separate training, whose
# rate falls over all twenty-five, beside one that finished after five.

# %% tags=["hide-input"]
if settings.long_task in settings.tasks:
    longer = run.measure("long_training", over={"seed": settings.seeds})
    run.exhibit(figures.figure_4, longer)

# %% [markdown]
# ## Better on new examples
#
# Figure 5 cuts the surface along $\delta_1$. A basin that looks wide there may be wide in every direction, so grey
# curves leave the end in a random direction, for the same length.

# %% tags=["hide-input"]
run.exhibit(figures.figure_5, landscapes)

# %% tags=["hide-input"]
run.exhibit(figures.figure_6, landscapes)

# %% [markdown]
# The pictures in numbers:

# %% tags=["hide-input"]
run.exhibit(table_of_measures, landscapes)

# %% [markdown]
# A width depends on a direction and its length; the {term}`Hessian` of the loss does not. Its largest eigenvalue is the
# greatest curvature in any direction, its trace the sum over all.

# %% tags=["hide-input"]
curved = settings.examples_of_curvature()
curvatures = run.measure("end_curvature", over=each_model, grid_examples=curved)
run.exhibit(table_of_curvature, landscapes, curvatures)

# %% [markdown]
# ## Layers that may stay as they were
#
# Now only a third $G$ of the layers moves (low, middle or high), around the fine-tuned model:
# $f(\alpha, \beta) = \mathcal{J}(\theta_1 + \alpha \delta_1^G + \beta \delta_2^G)$, where $\delta^G$ is $\delta$ in the
# layers of $G$ and 0 elsewhere. At $(-1, 0)$ this third is {term}`rolled back`.

# %% tags=["hide-input"]
if settings.grouped_tasks():
    each_third = {"task": settings.grouped_tasks(), "seed": settings.seeds}
    surfaces = run.measure("group_surfaces", over=each_third)
    run.exhibit(figures.figure_7, surfaces)

# %% tags=["hide-input"]
rollbacks = run.measure("rollbacks", over={"task": settings.tasks, "seed": settings.seeds})
run.exhibit(table_1, rollbacks)

# %% [markdown]
# A third may matter little because it has hardly moved:

# %% tags=["hide-input"]
if settings.grouped_tasks():
    run.exhibit(table_of_groups, surfaces, rollbacks)

# %% [markdown]
# ## The claims
#
# Intervals cover seeds and ten folds of the examples; those of angles cover seeds alone. A width that reaches the edge
# of the grid (≥ in the tables) bounds a difference on one side only; a share of a disc has no such edge.
# {doc}`The ledger </claims>` explains the verdicts.

# %% tags=["hide-input"]
run.judge(claims.CLAIMS)
run.finish()

# %% [markdown]
# **Limits.** The same basin can be the wider one in lengths of its own $\delta_1$ and the narrower one in absolute
# length. One plane says nothing about the other dimensions.
#
# Three [exercises](/exercises.md#chapter-3-loss-landscapes) go with this chapter.
