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
# # The toy world
#
# **The question.** Can a world be small enough to learn in five minutes on one core, and rich enough that the methods
# of five papers find something in it? Every chapter also runs on this {term}`toy world`.
#
# **The answer in numbers.** Pre-training adds {glue:text}`toy_pretraining_pays_value` to the score over the same
# network from scratch, depending on the task, and pays on {glue:text}`toy_pretraining_pays_held` tasks that were
# clearly learned. On {glue:text}`toy_structure_needed_held` tasks the models are clearly above a bag of words and below
# a perfect score.
#
# *You need* nothing. *Reading*: 10 minutes. *Running*: seconds from the committed records; without
# them, an hour and a half of training on two cores.

# %% tags=["parameters", "hide-input"]
profile = "tiny"  # this chapter has no other
# Everything below is as the profile says unless it is given here.
source = None
tasks = None
pretrained = None
seeds = None
schedules = None
learning_rate = None
learning_rate_by_encoder = None
batch_size = None
epochs = None
training_examples = None
precision = None
device = None

# %% tags=["hide-input"]
from fivelenses import runs
from fivelenses.papers.toy_world import claims, figures

run = runs.begin(0, globals())

# %% [markdown]
# ## What it is
#
# The world has people, animals, things and places, and events with preconditions and effects: a person who gave a thing
# away no longer has it. A grammar turns an event into an English-like sentence, with free choices of voice, word order,
# synonyms, modifiers, pronouns, relative clauses, negation, tense and number. The toy BERT reads stories, short runs of
# events about the same characters.
#
# Labels follow from the meaning; only CoLA's follow from the grammar. A premise entails what follows from its event. A
# paraphrase says the same event in another way; a non-paraphrase swaps the roles and keeps the words. A sentence is
# positive when the event is good for the one it happens to. TREC-50's question types can be read from single words, so
# that task shows nothing about structure.

# %% tags=["hide-input"]
run.exhibit(figures.examples_of_tasks, run.measure("examples_of_tasks"))

# %% [markdown]
# The grammar also annotates each sentence: parts of speech, dependencies, constituents, entities, predicates and
# arguments, coreference, and the roles of prepositions.

# %% tags=["hide-input"]
run.exhibit(figures.sentence_with_tree, run.measure("sentence_with_tree"))

# %% [markdown]
# ## The toy BERT
#
# It has six layers of width 64 with four heads, and 1,000 WordPieces. We pre-trained it three times, from different
# random weights, on BERT's two tasks: masked tokens and next sentences. `make toy-bert` repeats this; on another
# machine, expect a held-out loss within $0.2$ nats of ours.

# %% tags=["hide-input"]
run.exhibit(figures.pretraining, run.measure("pretraining"))

# %% [markdown]
# ## Is it worth studying?
#
# No, if a logistic regression on word counts or lengths does as well as the network, if no score rises above the
# {term}`null rate`, or if the same network from random weights does as well in as many steps.

# %% tags=["hide-input"]
models = run.measure("models")
baselines = run.measure("without_reading")
predictions = run.measure("by_example", each=("encoder", "task"))
run.measure("words_by_example", over=run.settings.training_sets)
run.gate(figures.pretrained_as_one(models, baselines), predictions, leading=figures.PRETRAINED)

# %% tags=["hide-input"]
scores = figures.scores(models, baselines)
run.exhibit(figures.worth_figure, scores)

# %% tags=["hide-input"]
run.exhibit(figures.worth_table, scores)

# %% [markdown]
# We chose the pre-training recipe, the schedules and the tasks after seeing scores on these development examples, so
# the scores say little about fresh data.
#
# The two claims are ours. Their 95 % intervals cover pre-trainings and examples.

# %% tags=["hide-input"]
run.judge(claims.CLAIMS)
run.finish()
