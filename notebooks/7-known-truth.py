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
# # What can each lens see?
#
# **The question.** The lenses of [chapter 6](6-five-lenses.ipynb) disagree about which layers fine-tuning changes.
# Which is right? We make encoders of which we know where they changed, how much, whether at all, and for what.
#
# **The answer here.** Where only some layers were trained, the weights name a trained layer {glue:text}`weights_names`,
# rollback {glue:text}`rollback_names`, and features {glue:text}`features_names`, or {glue:text}`features_adds` by what
# a layer *adds*. But where the encoder computes exactly what it did before, the weights report
# {glue:text}`weights_seen` times the change of fine-tuning.

# %% tags=["parameters", "hide-input"]
profile = "tiny"  # tiny or small: the files in notebooks/profiles
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
doses = None
neighbours = None
planted = None
planted_examples = None
evaluation_examples = None
similarity_tokens = None
probe_points = None
structural_sentences = None
device = None

# %% tags=["hide-input"]
from fivelenses import runs
from fivelenses.papers.known_truth import claims, figures, statement

run = runs.begin(7, globals())
settings = run.settings

# %% [markdown]
# ## The setting
#
# We try every measure of chapters 1 and 6 and three that no paper uses: debiased {term}`CKA` {cite}`kornblith2019`, the
# orthogonal {term}`Procrustes distance`, and mutual nearest neighbours. Each compares a model with its pre-trained
# encoder.
#
# ```{table} The five parts of the chapter.
# | part | the models | what a lens should say |
# |---|---|---|
# | where | all layers frozen except one, or two neighbours | names a layer that was trained |
# | how much | the same training, shorter and longer | more after more steps |
# | nothing | weights that changed while every output stayed | nothing |
# | anything | weights moved at random; shuffled labels | less than after learning |
# | what | trained on one kind of annotation | this kind, and no other |
# ```

# %% tags=["hide-input"]
models = run.measure("models", of=settings.ordinary)
changes = run.measure("changes_seen", of=settings.classifiers, each=("task", "seed"))
run.exhibit(figures.table_of_models, models, changes)
words = run.measure("words_by_example", over=settings.training_sets)
run.gate(models, run.measure("by_example", of=settings.ordinary, each="task"), words=words)

# %% [markdown]
# ## What each lens can see
#
# Which lens is right about all of these?

# %% tags=["hide-input"]
seconds = run.measure("seconds", of=settings.first)
run.exhibit(figures.summary, changes, seconds)

# %% [markdown]
# A lens should not be asked a question whose cell is not bold. “Last layer after rollback” is how far the features of
# the last layer move when one layer is rolled back (chapter 1, Figure 3).
#
# ## Where?
#
# All but one layer are frozen. Those above it keep their weights and see other input. We ask each lens for the layer
# at which the model departs most from the pre-trained encoder, in either direction.

# %% tags=["hide-input"]
run.exhibit(figures.named_places, changes)

# %% tags=["hide-input"]
run.exhibit(figures.table_of_places, changes)

# %% [markdown]
# Where the change of features grows on its way up, a lens that reads activations points above the layer that caused it.
# The change of a layer's output minus that of its input, {term}`what a layer adds`, can find the cause. Measures of a
# layer's own parameters inherit nothing: their two readings are the same, and right whenever they see anything.
#
# ## How much?
#
# We repeat the training, with its whole schedule, for shares of the usual number of steps, the {term}`doses <dose>`.

# %% tags=["hide-input"]
run.exhibit(figures.dose_curves, changes)

# %% [markdown]
# A measure that levels off still orders the doses; one that uses the labels may not rise until something is learned.
#
# ## Nothing
#
# A layer computes the same function after its heads or its intermediate neurons change places, after a rotation of a
# head's values that its output projection undoes, and after a scaling of queries that the keys undo
# ({py:mod}`fivelenses.models.symmetries`). We apply these changes to the pre-trained encoder.

# %% tags=["hide-input"]
run.exhibit(figures.seen_of_nothing, changes)

# %% [markdown]
# Weight distances and JS divergence rely on two models having their heads in the same places. Independent pre-trainings
# do not, so the independent encoder that is their null in chapters 1 and 6 lies far away for that reason, too.
#
# How much does a lens vary with the seed?

# %% tags=["hide-input"]
run.exhibit(figures.table_of_noise, changes)

# %% [markdown]
# ## Anything
#
# Weights also move when nothing is learned: in a {term}`twin` ({py:func}`fivelenses.models.twins.moved_at_random`), and
# in a model of {term}`shuffled labels`, which can learn nothing that holds for new examples except their frequencies.

# %% tags=["hide-input"]
run.exhibit(figures.learned_or_walked, changes)

# %% [markdown]
# Weight distances cannot tell a model from its twin, by construction.
#
# ## What?
#
# Each of these models was trained on one kind of annotation. Do probes, the geometry of labels and structural probes
# see this kind rise, and not the others?

# %% tags=["hide-input"]
read = run.measure("properties_read", of=settings.with_property, each="task")
run.exhibit(figures.planted, read)

# %% [markdown]
# ## What a measure ignores by its definition
#
# A measure of features is *invariant* to a change that leaves its value as it was {cite:p}`klabunde2025`. We test what
# is declared here for every measure on random features.

# %% tags=["hide-input"]
run.exhibit(figures.table_of_invariances)

# %% [markdown]
# ## The statements
#
# The four claims are ours. Intervals cover seeds, not examples.

# %% tags=["hide-input"]
run.judge(claims.CLAIMS)
run.glue(**statement.findings(changes))
run.finish()

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show the scores with their intervals"}
run.exhibit(figures.table_of_scores, changes)

# %% [markdown]
# **Limits.** Ordinary fine-tuning changes all layers, not one or two. What a measure ignores by its definition holds
# for any encoder; the other numbers may not.
#
# Three [exercises](/exercises.md#chapter-7-what-can-each-lens-see) go with this chapter.
