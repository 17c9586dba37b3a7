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
# # The landscape of fine-tuning
#
# **The question.** Why does fine-tuning a pre-trained encoder work better than training the same network from
# scratch? {cite:t}`hao2019` look at the ground that both walk on: the loss along the way from start to end, on a
# plane around it, and under the steps of the optimiser.
#
# **The answer here.** Does fine-tuning end in a wider basin than training from scratch (`wider-optima`:
# {glue:text}`wider_optima_verdict`; difference of their areas, in squared lengths of the direction:
# {glue:text}`wider_optima_value`)? Does it point where it will end after a third of its steps (`straighter`:
# {glue:text}`straighter_verdict`; degrees by which it points closer: {glue:text}`straighter_value`)? Do the low
# layers matter least (`rollback`: {glue:text}`rollback_verdict`; accuracy with the low layers put back minus that with
# the high ones: {glue:text}`rollback_value`)? Numbers are ranges over tasks. Of the claims of the paper,
# {glue:text}`claims_reproduced` are reproduced in this run; [the last section](#the-claims) lists all of them with
# their numbers.

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
grouped = None
device = None

# %% tags=["hide-input"]
from fivelenses import runs
from fivelenses.checkpoints import predictions, tables
from fivelenses.papers.hao2019 import claims, figures, layer_groups, measure
from fivelenses.papers.hao2019.tables import fine_tuned, table_1, table_of_groups, table_of_measures, table_of_models

run = runs.begin(3, globals())
settings = run.settings

# %% [markdown]
# ## The setting
#
# Each task is trained twice with one network: from the pre-trained encoder, and from random weights, for more epochs.
# The paper does so with BERT-large on MNLI, RTE, SST-2 and MRPC.

# %%
models = run.measure(tables.models)
run.exhibit(table_of_models, models, second=settings.second)

# %% [markdown]
# A claim says nothing of a task that was not learned: where the score of the fine-tuned models is not clearly more than
# two points above the null rate, over seeds and development examples, the task takes no part in any claim.

# %%
scores = run.measure(predictions.by_example, of=settings.ordinary_models, each=("task", "seed"))
run.gate(models, scores, of=lambda table: fine_tuned(table, settings.second))

# %% [markdown]
# A training leads from parameters $\theta_0$ to $\theta_1$. With $\delta_1 = \theta_1 - \theta_0$, and
# $\delta_2 = \theta_2 - \theta_0$ where $\theta_2$ was trained from the same start on another task, the paper's first
# two equations are
#
# $$f(\alpha) = \mathcal{J}(\theta_0 + \alpha \delta_1), \qquad
# f(\alpha, \beta) = \mathcal{J}\Bigl(\theta_0 + \alpha \delta_1
# + \beta \frac{\lVert \delta_1 \rVert}{\lVert \delta_2 \rVert} \delta_2\Bigr).$$
#
# All parameters of the encoder move, its embeddings too; pooler and classifier keep what they learned, and dropout is
# off. $\mathcal{J}$ is a mean over one random subset of the examples for all cells of a grid, or over all of them
# (with the paper's models, over 4,000, which are all of RTE and MRPC: all of MNLI would take days). The
# paper's 40 points from −4 to 4 miss 0 and 1, so −1, 0 and 1 are added to every grid: start and end are cells.

# %%
each_model = {"init": measure.INITS, "task": settings.tasks, "seed": settings.seeds}
landscapes = run.measure(measure.landscapes, over=each_model)

# %% [markdown]
# ## A good place to start
#
# A wide basin forgives a small change of the parameters, a narrow one does not. Mind the unit: both axes of a panel
# are in lengths of its own $\delta_1$, and a training from scratch goes much farther. The table after the pictures
# has the lengths, and a measure of sharpness that does not depend on them.

# %%
run.exhibit(figures.figure_1, landscapes)

# %%
histories = run.measure(tables.histories)
run.exhibit(figures.figure_2, histories, models, second=settings.second)

# %% [markdown]
# Where does the optimiser walk? A state $\theta^i$ with $\delta^i = \theta^i - \theta_0$ is drawn at (equations 3 to
# 5, whose product is an inner product)
#
# $$v_{\cos} = \frac{\langle \delta^i, \delta_1 \rangle}{\lVert \delta^i \rVert \lVert \delta_1 \rVert}, \qquad
# d^\alpha = \frac{\langle \delta^i, \delta_1 \rangle}{\lVert \delta_1 \rVert^2}, \qquad
# d^\beta = \sqrt{\frac{\lVert \delta^i \rVert^2}{\lVert \delta_1 \rVert^2} - (d^\alpha)^2}.$$
#
# The second coordinate is a root, so it has no sign, and it holds all that lies outside the first axis, in whichever
# of the many directions: it says how far a state is from the straight way, not where on the surface it lies. The
# nearest point of the plane, by least squares, is drawn beside it. A random walk, too, points nearer and nearer to
# where it ends: in so many dimensions its steps are orthogonal, and after the share $s$ of their summed squared lengths
# it lies at $\alpha = s$ and $\beta = \sqrt{s - s^2}$, on a half circle.

# %%
if settings.followed_tasks():
    paths = run.measure(measure.trajectories, over={"task": settings.followed_tasks(), "seed": settings.seeds})
    run.exhibit(figures.figure_3, landscapes, paths)

# %% [markdown]
# What if the training goes on? The paper trains five epochs and then twenty more, and looks at the error on the
# development set. Here a long training with a schedule of its own leaves from the same start as the finished one, to
# whose end $\delta_1$ leads, and its states are kept after every epoch.

# %%
if settings.long_task in settings.tasks:
    longer = run.measure(measure.long_training, over={"seed": settings.seeds})
    run.exhibit(figures.figure_4, longer)

# %% [markdown]
# ## Better on new examples
#
# The cut through a surface along $\delta_1$, with the axes normalised. A basin that looks wide may be wide in every
# direction: the grey curves leave the end in a random direction of the same length.

# %%
run.exhibit(figures.figure_5, landscapes)

# %%
run.exhibit(figures.figure_6, landscapes)

# %% [markdown]
# The pictures in numbers. The basin of a model is the part of the plane around its end where the loss is less than a
# stated rise above that of the end.

# %%
run.exhibit(table_of_measures, landscapes)

# %% [markdown]
# ## Layers that may stay as they were
#
# For a group $G$ of layers, the low, middle or high third, the surface around the fine-tuned model is
# $f(\alpha, \beta) = \mathcal{J}(\theta_1 + \alpha \delta_1^G + \beta \delta_2^G)$. All other parameters stay
# fine-tuned. At $(-1, 0)$ the group is as it was before.

# %%
if settings.grouped_tasks():
    surfaces = run.measure(layer_groups.group_surfaces, over={"task": settings.grouped_tasks(), "seed": settings.seeds})
    run.exhibit(figures.figure_7, surfaces)

# %%
rollbacks = run.measure(layer_groups.rollbacks, over={"task": settings.tasks, "seed": settings.seeds})
run.exhibit(table_1, rollbacks)

# %% [markdown]
# A group may seem invariant because it has hardly moved. The distances are in lengths of each group's own direction,
# so the lengths stand beside them, and beside what is lost by going back, what is lost by going as far at random.

# %%
if settings.grouped_tasks():
    run.exhibit(table_of_groups, surfaces, rollbacks)

# %% [markdown]
# ## The claims
#
# The paper lets the pictures speak. Each of its sentences is made one or more signed numbers per task, positive in the
# direction of the sentence, with 95 % intervals over seeds and examples: ten folds of the examples, the same at every
# point of a surface, are left out one after another. A task *holds* if all of its intervals lie above their
# thresholds, *fails* if one lies below, and is *open* otherwise. A claim is reproduced, contradicted, mixed or open by
# its tasks, or cannot be tested. What needs a training alone, such as an angle along it, is chance over seeds, and with
# one seed it stays open. A basin that reaches the edge of the grid (≥ in the tables) is at least as wide as what is
# seen of it, so that its difference from another is bounded on one side only. The control of a direction is a random
# direction of its length, and that of a trajectory a random walk: a claim that holds for these, too, may be true, but
# it does not speak of training.

# %% tags=["hide-input"]
run.judge(claims.CLAIMS)
run.finish()

# %% [markdown]
# What to keep in mind:
#
# - **Seeds.** With one seed per task, an interval is of this model, and says nothing of what another seed would give.
# - **Width.** Area of the tuned basin minus that from scratch, in squared lengths of the direction:
#   {glue:text}`wider_optima_value` (`wider-optima`: {glue:text}`wider_optima_verdict`). The unit decides much here; see
#   the lengths in the table. So does the grid: what lies beyond its edge is not seen. Width of the basin at half of the
#   drop on the curve, tuned minus scratch: {glue:text}`sharper_from_scratch_value` (`sharper-from-scratch`:
#   {glue:text}`sharper_from_scratch_verdict`).
# - **Ease.** Mean loss over the steps of fine-tuning, from scratch minus tuned, in nats: {glue:text}`easier_value`
#   (`easier`: {glue:text}`easier_verdict`); angle to the final direction after a third of the steps, from scratch minus
#   tuned, in degrees: {glue:text}`straighter_value` (`straighter`: {glue:text}`straighter_verdict`).
# - **More epochs.** Development error of the finished training minus that of the long one:
#   {glue:text}`robust_overfitting_value` (`robust-overfitting`: {glue:text}`robust_overfitting_verdict`).
# - **Error and loss.** Rank correlation of their surfaces for the tuned model: {glue:text}`error_follows_loss_value`
#   (`error-follows-loss`: {glue:text}`error_follows_loss_verdict`); from scratch, on more data minus on less:
#   {glue:text}`scratch_needs_data_value` (`scratch-needs-data`: {glue:text}`scratch_needs_data_verdict`).
# - **Layers.** Distance to the rim of the basin along the low layers minus that along the high ones:
#   {glue:text}`low_invariant_value`
#   (`low-invariant`: {glue:text}`low_invariant_verdict`); accuracy with the low layers put back minus that with the
#   high ones: {glue:text}`rollback_value` (`rollback`: {glue:text}`rollback_verdict`).
#
# Where the table of models shows a score at the null rate, the task was not learned in that way, and its landscape is
# that of a training that went nowhere: what the claims say of such a task is little. A model from scratch can bring its
# training loss down by memory and stay at the null rate on new examples.
#
# A surface is a plane through a space of very many dimensions. That the loss is low on one plane says nothing of the
# others; the sharpness in random directions is a second opinion, and no more.
