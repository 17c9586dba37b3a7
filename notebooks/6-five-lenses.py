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
# # Do the five lenses agree?
#
# **The question.** Five papers look at what fine-tuning does to an encoder, each with instruments of its own, each on
# models of its own. Would they point at the same layers if they looked at the same models?
#
# **The answer here.** Over {glue:text}`models`, two lenses order the layers with a mean rank correlation of
# {glue:text}`overall`, where 1 is the same order and 0 is none in common (`lenses-agree`:
# {glue:text}`lenses_agree_verdict`, in {glue:text}`lenses_agree_held` pairs); most alike are
# {glue:text}`closest_lenses` at {glue:text}`closest_value`, least {glue:text}`farthest_lenses` at
# {glue:text}`farthest_value`. By their measures the change has its centre between layer {glue:text}`lowest_centre` and
# layer {glue:text}`highest_centre`, where the middle of the encoder is {glue:text}`middle`. The two measures that agree
# least part most at layer {glue:text}`parting_layer`, which “{glue:text}`parting_higher`” ranks
# {glue:text}`parting_ranks` places higher than “{glue:text}`parting_lower`” does; [the section on
# partings](#where-they-part-and-why) says in what they differ and whether that is the reason.

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
evaluation_examples = None
variance_kept = None
similarity_tokens = None
probe_points = None
structural_sentences = None
random_directions = None
device = None

# %% tags=["hide-input"]
from fivelenses import runs
from fivelenses.checkpoints import tables
from fivelenses.checkpoints.predictions import by_example
from fivelenses.papers.five_lenses import claims, figures, measure, statement

run = runs.begin(6, globals())

# %% [markdown]
# ## The setting
#
# The models are those of the [first chapter](1-attention-svcca.ipynb): one pre-trained encoder, fine-tuned on several
# tasks with several seeds, and not trained again for this one.

# %%
models = run.measure(tables.models)
run.exhibit(figures.table_of_models, models)
run.gate(models, run.measure(by_example, each="task"))

# %% [markdown]
# A model that hardly beats a constant answer was changed all the same, but for nothing. The pictures show it; in the
# statements below it takes no part.
#
# Each paper gives one measure or two that have a value for every layer, and all of them are taken of each model: of the
# same development examples where they read activations, and of training examples where they are a loss, as in its
# paper. Some are read from a layer's *activations*, what it makes of a text, and with them from all that was changed
# below it; others from the layer's own *parameters*. Some are told the task's labels; others count any change, whatever
# it is for.

# %%
changes = run.measure(measure.changes_by_layer, each="task")
run.exhibit(figures.table_of_instruments, changes)

# %% [markdown]
# ## Where each lens sees the change
#
# If the lenses agreed, the dots of a panel would stand in one column and all of its rows would darken alike. Read the
# picture by rows first: a row says where one instrument would have looked for the change.

# %%
run.exhibit(figures.overview, changes)

# %% [markdown]
# A row is scaled to its own range, and so hides how much there was to see. The curves in their own units, beside their
# nulls, do not. Beside them is a control: a twin of each model, whose matrices moved from the pre-trained ones as far
# as fine-tuning moved them, but in random directions. What a curve shares with its twin's is due to the distance alone.

# %%
run.exhibit(figures.all_curves, changes)

# %% [markdown]
# As many points as the encoder is wide are separable whatever their labels are, so that the labels' distance is always
# there to be compared ({py:func}`fivelenses.lenses.directprobe.probe`). What of its growth concerns the labels is what
# permuted ones do not show: of these models, {glue:text}`beyond_permuted` grow the distance of the true labels more
# than that of permuted ones. An independent encoder is not a floor but a yardstick: in the last layer,
# {glue:text}`beyond_independent` are less similar to the encoder that they were tuned from than that encoder is to one
# that it shares no weights with.
#
# ## Do they order the layers alike?
#
# Values in nats, shares and accuracies cannot be compared, orders can. Spearman's rank correlation
# ({py:func}`fivelenses.papers.five_lenses.rank_statistics.rank_correlation`) is taken between two measures over the
# layers of one model, and then averaged over the models.

# %%
run.exhibit(figures.correlations, changes)

# %% [markdown]
# How much agreement is there to be had? In two seeds of one task, a measure agrees with itself by
# {glue:text}`between_seeds` on average, at least by {glue:text}`least_repeated`; what does not repeat has little to
# agree with. Two measures of one paper agree by {glue:text}`same_lens`. For a pair of lenses the correlations of their
# measures are averaged. The interval says how much that number would vary with other tasks, seeds and sentences. It
# does not say how it would vary with other layers: the layers of an encoder are no sample of anything, and
# {glue:text}`layers` of them in an arbitrary order often correlate by chance.

# %%
run.exhibit(figures.table_of_lenses, changes)

# %% [markdown]
# The last column asks what is left when depth is held fixed: two measures that do nothing but rise from layer to layer
# agree perfectly, and say no more together than either does alone.
#
# ## Which layer changes most?

# %%
run.exhibit(figures.centres, changes)

# %%
run.exhibit(figures.greatest_change, changes)

# %% [markdown]
# The most frequent layer of greatest change is layer {glue:text}`usual_top`, in {glue:text}`usual_top_share` cases, a
# case being a measure and a model; if each measure picked a layer by lot, a layer would be picked in about
# {glue:text}`usual_top_chance`.
#
# ## Where they part, and why
#
# The two measures of different papers that agree least are “{glue:text}`parting_higher`” and
# “{glue:text}`parting_lower`”, with a rank correlation of {glue:text}`parting_value`; the intervals of
# {glue:text}`parting_alike` other pairs reach as low, so that another run may name one of them. They differ
# most at layer {glue:text}`parting_layer`.
#
# :::{div} glued-sentences
# {glue:text}`parting_reason`
# :::

# %%
run.exhibit(figures.what_sets_apart, changes)

# %% [markdown]
# Activations inherit. Of the change in the features that the last layer puts out, {glue:text}`inherited_last` had come
# in with its input; at layer {glue:text}`parting_layer` it is {glue:text}`inherited_there`. If that were all that sets
# activations and parameters apart, what a layer *adds* to the change, its output's less its input's, should agree
# better with the layer's parameters than the whole does.

# %%
run.exhibit(figures.what_layers_add, changes)

# %% [markdown]
# With the weights, what a layer adds agrees by {glue:text}`layers_inherit_value` more than the whole, depending on the
# task (`layers-inherit`: {glue:text}`layers_inherit_verdict`); a negative number means that the explanation fails. How
# far a layer's weights moved and how much that matters are two questions: “weights” answers the first alone, “rollback”
# asks the second, and the table has a line for either.
#
# ## The statements
#
# No paper says that the lenses agree or part. These five statements are ours, and they are judged by the rule of all
# chapters: a group (a measure, a pair of lenses or a task) *holds* where its interval of 95 % lies wholly above the
# threshold, *fails* where it lies wholly below, and is *open* otherwise. Where a group pools tasks, the tasks are the
# draws, for models of one task share its examples; where a group is a task, its seeds are. Sentences enter by leaving
# out each of ten folds. They count as given for the labels' distance, which hangs on single points, for the trees, and
# for the weights, which need none. Growth is the difference between thirds of the layers in the measure's own unit.

# %% tags=["hide-input"]
run.judge(claims.CLAIMS)
run.glue(**statement.findings(changes))
run.finish()

# %% [markdown]
# What to keep in mind:
#
# - **Depth.** Do all measures rise with it? From each third of the layers to the next (`all-rise-with-depth`):
#   {glue:text}`all_rise_with_depth_verdict`, in {glue:text}`all_rise_with_depth_held` measures. Does the highest third
#   change most (`top-is-high`)? {glue:text}`top_is_high_verdict`, in {glue:text}`top_is_high_held` measures. What two
#   lenses have in common may be nothing else.
# - **Kinds of lens.** The agreement among attention, features and similarity exceeds theirs with the weights by
#   {glue:text}`outputs_agree_more_value`, depending on the task (`outputs-agree-more`:
#   {glue:text}`outputs_agree_more_verdict`). SVCCA and RSA are near relatives: they read the same vectors.
# - **Few layers.** Another encoder has other layers. Averages over models narrow the interval, not the doubt about the
#   layers.
# - **Scaled rows.** The first picture and the centres scale each measure to its own range, so that a measure that
#   hardly varies looks as eventful as one that does; the curves in their own units, beside their nulls, say which is
#   which.
# - **Models that share.** All models share one pre-trained encoder; another encoder is another run.
